"""Robust continuous clustering: its two extractions, its levels, its dictionary."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    homogeneity_score,
)

from streamclust.errors import InvalidParameter
from streamclust.refit.rcc import RCC, RCCDR

both = pytest.mark.parametrize("kind", [RCC, RCCDR])
PUBLISHED = {
    "metric": "cosine",
    "fusion_strength": 1.0,
    "extraction": "edges",
    "scales": "published",
}


def blobs(n, k, d, seed):
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-5.0, 5.0, (k, d))
    labels = rng.integers(0, k, n)
    return centers[labels] + 0.5 * rng.normal(size=(n, d)), labels


@both
@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_exactly_k(kind, k):
    X, _ = blobs(300, 5, 3, 0)
    assert kind(n_clusters=k).fit(X).n_clusters_ == k


@both
def test_more_clusters_than_places(kind):
    assert kind(n_clusters=7).fit(np.repeat([[0.0], [1.0]], 30, axis=0)).n_clusters_ == 2


@both
def test_the_published_extraction_finds_blobs_and_knows_no_noise(kind):
    X, truth = blobs(300, 4, 3, 1)
    for parameters in ({"extraction": "edges"}, PUBLISHED | {"metric": "euclidean"}):
        model = kind(**parameters).fit(X)
        assert model.labels_.min() == 0
        assert homogeneity_score(truth, model.labels_) > 0.9  # pieces, but pure ones


@both
def test_pieces_without_a_valley_between_them_are_one_cluster(kind):
    X, truth = make_moons(400, noise=0.05, random_state=0)
    assert adjusted_rand_score(truth, kind().fit(X).labels_) > 0.95


@both
def test_the_published_scales_follow_the_unit_and_ours_do_not(kind):
    X, _ = blobs(200, 4, 3, 2)
    X += 20.0

    def drawn(scales, unit):
        model = kind(scales=scales, extraction="edges").fit(X * unit)
        return model.representatives_ / (unit if scales == "published" else 1.0)

    assert np.allclose(drawn("free", 1.0), drawn("free", 2.0**8))
    assert not np.allclose(drawn("published", 1.0), drawn("published", 2.0**-8), rtol=1e-2)


@both
def test_representatives_of_a_cluster_are_drawn_together(kind):
    X, truth = blobs(300, 4, 3, 3)
    model = kind().fit(X)
    U = model.representatives_
    inside = np.mean([U[truth == c].var(axis=0).sum() for c in range(4)])
    before = np.mean([X[truth == c].var(axis=0).sum() for c in range(4)]) / X.var(axis=0).mean()
    assert inside < 0.05 * before
    assert 1 <= model.n_iter_ <= 100


def test_cosine_neighbours_ignore_lengths():
    rng = np.random.default_rng(0)
    angle = rng.choice([0.1, 0.8, 1.4], 240) + 0.01 * rng.normal(size=240)
    X = np.c_[np.cos(angle), np.sin(angle)] * rng.uniform(1.0, 3.0, (240, 1))
    points = np.unique(X, axis=0)
    turned = RCC(metric="cosine")._direction(points)
    assert np.allclose((turned**2).sum(axis=1), 1.0)
    RCC(metric="cosine").fit(np.r_[X, np.zeros((1, 2))])  # the origin has no direction


@both
@pytest.mark.parametrize(
    "wrong",
    [
        {"n_clusters": 0},
        {"n_clusters": True},
        {"n_clusters": 3, "extraction": "edges"},
        {"n_neighbors": 0},
        {"n_neighbors": 2.5},
        {"metric": "city"},
        {"fusion_strength": 0.0},
        {"fusion_strength": np.inf},
        {"extraction": "any"},
        {"scales": "any"},
        {"tolerance": -1.0},
        {"tolerance": "1"},
    ],
)
def test_wrong_parameters(kind, wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        kind(**wrong).fit(np.zeros((3, 1)))


@pytest.mark.parametrize("wrong", [{"n_components": 0}, {"sparsity": -0.1}, {"sparsity": np.nan}])
def test_wrong_parameters_of_the_dictionary(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        RCCDR(**wrong).fit(np.zeros((3, 1)))


@pytest.mark.parametrize("n_components", [1, 2, 100])
@pytest.mark.parametrize("sparsity", [0.0, 0.2, 5.0])
def test_any_dictionary_fits(n_components, sparsity):
    X, _ = blobs(120, 3, 4, 4)
    model = RCCDR(n_components=n_components, sparsity=sparsity).fit(X)
    assert model.representatives_.shape == (120, min(n_components, 4))
    assert np.isfinite(model.representatives_).all()


@pytest.mark.quality
@pytest.mark.parametrize(
    ("parameters", "least"), [({}, 0.89), (PUBLISHED | {"tolerance": 0.1}, 0.89)]
)
def test_digits(parameters, least):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    labels = RCC(**parameters).fit(X[order] / 16.0).labels_
    assert adjusted_mutual_info_score(y[order], labels) >= least
