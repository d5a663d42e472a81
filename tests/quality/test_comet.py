"""What a blind refit finds, as means over seeds with stated bounds."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from streamclust.refit.comet import COMET
from tests.data import reference_set

pytestmark = pytest.mark.quality
SEEDS = range(20)


def blobs(n, k, d, noise, seed):
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-5.0, 5.0, (k, d))
    truth = rng.integers(0, k, n)
    X = centers[truth] + rng.normal(size=(n, d))
    out = rng.random(n) < noise
    X[out] = rng.uniform(-8.0, 8.0, (int(out.sum()), d))
    truth[out] = -1
    return X / 4.0, truth


def with_noise(X, truth, seed, share=0.1):
    rng = np.random.default_rng(seed)
    extra = int(share * len(X))
    X = np.concatenate((X, rng.uniform(X.min(axis=0), X.max(axis=0), (extra, X.shape[1]))))
    truth = np.concatenate((truth, np.full(extra, -1)))
    order = rng.permutation(len(X))
    return ((X - X.mean(axis=0)) / X.std(axis=0))[order], truth[order]


def agreement(X, truth):
    clean = truth >= 0
    return adjusted_rand_score(truth[clean], COMET().fit(X).labels_[clean])


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.1])
@pytest.mark.parametrize(("k", "d"), [(10, 8), (50, 32)])
def test_windows_of_blobs(k, d, noise):
    found, scores = [], []
    for seed in range(5):
        X, truth = blobs(1000, k, d, noise, seed)
        found.append(COMET().fit(X).n_clusters_)
        scores.append(agreement(X, truth))
    assert np.mean(scores) >= 0.98
    assert max(abs(count - k) for count in found) <= (1 if k == 10 else 3)


@pytest.mark.parametrize(("n", "bound"), [(40, 0.8), (80, 0.93), (160, 0.97), (320, 0.98)])
def test_small_windows_of_blobs(n, bound):
    assert np.mean([agreement(*blobs(n, 10, 8, 0.05, seed)) for seed in SEEDS]) >= bound


@pytest.mark.parametrize("d", [1, 2, 5, 8, 30])
@pytest.mark.parametrize("law", ["normal", "uniform"])
def test_nothing_to_separate_is_one_cluster(law, d):
    for seed in SEEDS:
        X = getattr(np.random.default_rng(seed), law)(size=(500, d))
        assert COMET().fit(X).n_clusters_ == 1


@pytest.mark.parametrize("d", [2, 5, 8, 20])
def test_one_gaussian_under_noise_is_one_cluster(d):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1000, d))
        X = np.concatenate((X, rng.uniform(X.min(axis=0), X.max(axis=0), (100, d))))
        assert COMET().fit(X).n_clusters_ == 1


@pytest.mark.parametrize(
    "law", [lambda r: r.standard_t(3, (800, 4)), lambda r: r.laplace(size=(800, 4))]
)
def test_heavy_tails_are_one_cluster(law):
    found = [COMET().fit(law(np.random.default_rng(seed))).n_clusters_ for seed in SEEDS]
    assert np.mean(np.array(found) == 1) >= 0.9


@pytest.mark.parametrize("d", [2, 4, 8])
@pytest.mark.parametrize(
    "law",
    [
        lambda r, d: r.exponential(size=(1000, d)),
        lambda r, d: np.exp(0.7 * r.normal(size=(1000, d))),
        lambda r, d: -r.gamma(3.0, size=(1000, d)),
    ],
)
def test_skewed_features_are_one_cluster(law, d):
    for seed in SEEDS:
        X = law(np.random.default_rng(seed), d)
        labels = COMET().fit(X / X.std(axis=0)).labels_
        assert np.mean(labels == 0) >= 0.98


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_curved_clusters(noise):
    scores = []
    for seed in range(6):
        for X, truth in (
            make_moons(600, noise=0.06, random_state=seed),
            make_circles(600, factor=0.4, noise=0.05, random_state=seed),
        ):
            scores.append(agreement(*with_noise(X, truth, seed, noise)))
    assert np.mean(scores) >= 0.7


@pytest.mark.parametrize(("load", "bound"), [(load_wine, 0.8), (load_breast_cancer, 0.55)])
def test_bundled_sets_under_noise(load, bound):
    X, truth = load(return_X_y=True)
    assert np.mean([agreement(*with_noise(X, truth, seed)) for seed in range(6)]) >= bound


@pytest.mark.parametrize(
    ("name", "bound"),
    [("newthyroid", 0.7), ("wisconsin", 0.75), ("dermatology", 0.85), ("r15", 0.97)],
)
def test_reference_sets_under_noise(name, bound):
    X, truth = reference_set(name)
    assert np.mean([agreement(*with_noise(X, truth, seed)) for seed in range(6)]) >= bound
