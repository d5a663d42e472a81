"""What every batch estimator promises, held to each of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

from streamclust.errors import InvalidParameter, InvalidPoint
from streamclust.refit.comet import COMET
from streamclust.refit.mean_shift import MeanShift
from streamclust.refit.rcc import RCC, RCCDR
from streamclust.refit.three_way import ThreeWayMeanShift
from tests.streamclust.degenerate import WINDOWS

KINDS = [COMET, RCC, RCCDR, MeanShift, ThreeWayMeanShift]
every = pytest.mark.parametrize("kind", KINDS)


def blobs(n, k, d, seed, noise=0.0):
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-5.0, 5.0, (k, d))
    labels = rng.integers(0, k, n)
    points = centers[labels] + rng.normal(size=(n, d)) * 0.7
    out = rng.random(n) < noise
    points[out] = rng.uniform(-8.0, 8.0, (int(out.sum()), d))
    labels[out] = -1
    return points / 4.0, labels


def check_labels(model, n):
    labels = model.labels_
    assert labels.dtype == np.int64
    assert labels.shape == (n,)
    assert set(np.unique(labels)) - {-1} == set(range(model.n_clusters_))


@every
@pytest.mark.parametrize("name", WINDOWS)
def test_degenerate_windows(kind, name):
    X = WINDOWS[name]
    before = X.copy()
    model = kind().fit(X)
    check_labels(model, len(X))
    assert np.array_equal(X, before)
    equal = np.unique(X, axis=0, return_inverse=True)[1].reshape(-1)
    assert all(len(np.unique(model.labels_[equal == e])) == 1 for e in np.unique(equal))


@every
def test_one_place_is_one_cluster(kind):
    assert np.array_equal(kind().fit(np.full((50, 4), 2.5)).labels_, np.zeros(50))
    assert np.array_equal(kind().fit([[7.0]]).labels_, [0])


@every
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_finds_blobs_and_their_number(kind, noise):
    X, truth = blobs(500, 6, 5, 3, noise)
    model = kind().fit(X)
    check_labels(model, 500)
    assert model.n_clusters_ == 6
    assert adjusted_rand_score(truth[truth >= 0], model.labels_[truth >= 0]) > 0.98
    if noise:
        assert (model.labels_[truth < 0] < 0).mean() > 0.9


@every
def test_one_gaussian_is_one_cluster(kind):
    assert kind().fit(np.random.default_rng(1).normal(size=(300, 4))).n_clusters_ == 1


@every
def test_uniform_points_are_at_most_one_cluster(kind):
    assert kind().fit(np.random.default_rng(1).uniform(size=(300, 3))).n_clusters_ <= 1


windows = st.integers(1, 3).flatmap(
    lambda d: arrays(
        np.float64,
        st.tuples(st.integers(1, 30), st.just(d)),
        elements=st.integers(-4, 4).map(float) | st.floats(-4, 4),
    )
)


@every
@settings(max_examples=25)
@given(X=windows, random=st.randoms(use_true_random=False))
def test_the_order_of_rows_carries_nothing(kind, X, random):
    order = list(range(len(X)))
    random.shuffle(order)
    assert np.array_equal(kind().fit(X[order]).labels_, kind().fit(X).labels_[order])


@every
def test_the_order_of_rows_carries_nothing_in_a_full_window(kind):
    X, _ = blobs(500, 5, 10, 4, 0.1)
    X[::7] = np.round(X[::7])
    X[100:150] = X[:50]
    order = np.random.default_rng(0).permutation(500)
    assert np.array_equal(kind().fit(X[order]).labels_, kind().fit(X).labels_[order])


@every
@pytest.mark.parametrize("d", [3, 12])
def test_units_carry_nothing(kind, d):
    X, _ = blobs(300, 4, d, 5, 0.1)
    labels = kind().fit(X).labels_
    assert np.array_equal(kind().fit(X * 2.0**20).labels_, labels)
    assert np.array_equal(kind().fit(X * 2.0**-20).labels_, labels)
    assert adjusted_rand_score(kind().fit(X * 3.7e5).labels_, labels) > 0.99


@every
@pytest.mark.parametrize("d", [3, 12])
def test_rotation_offset_and_jitter_hardly_matter(kind, d):
    rng = np.random.default_rng(6)
    X, _ = blobs(400, 6, d, 6, 0.1)
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    order = rng.permutation(400)
    moved = (X @ turn + 3.0 + 1e-9 * rng.normal(size=X.shape))[order]
    assert adjusted_rand_score(kind().fit(moved).labels_, kind().fit(X).labels_[order]) >= 0.95


@every
def test_a_weight_is_a_repetition(kind):
    rng = np.random.default_rng(7)
    X, _ = blobs(150, 3, 3, 7)
    times = rng.integers(1, 4, 150)
    weighted, repeated = kind().fit(X, times), kind().fit(np.repeat(X, times, axis=0))
    assert np.array_equal(np.repeat(weighted.labels_, times), repeated.labels_)


@every
def test_a_weight_of_zero_is_an_absence(kind):
    X, _ = blobs(200, 3, 3, 8)
    weights = np.ones(200)
    weights[:30] = 0.0
    model = kind().fit(X, weights)
    assert np.array_equal(model.labels_[30:], kind().fit(X[30:]).labels_)
    check_labels(model, 200)


@every
@pytest.mark.parametrize("weight", [1e-200, 1e-9, 1e9])
def test_any_positive_weight_is_accepted(kind, weight):
    X, _ = blobs(60, 2, 2, 8)
    check_labels(kind().fit(X, np.full(60, weight)), 60)


@every
def test_parameters_are_kept_verbatim(kind):
    model = kind()
    assert clone(model).get_params() == model.get_params()
    assert repr(model).startswith(f"{kind.__name__}(")
    with pytest.raises(InvalidParameter, match="no parameter"):
        model.set_params(clusters=2)
    assert model.set_params(**dict.fromkeys(model.get_params(), "any")) is model
    assert set(model.get_params().values()) == {"any"}


@every
@pytest.mark.parametrize(
    "fault",
    [
        {"X": np.zeros(3)},
        {"X": np.zeros((0, 2))},
        {"X": [[np.nan]]},
        {"X": [["a"]]},
        {"X": np.zeros((3, 1)), "sample_weight": [1.0, 1.0]},
        {"X": np.zeros((3, 1)), "sample_weight": [1.0, 1.0, -1.0]},
        {"X": np.zeros((3, 1)), "sample_weight": [0.0, 0.0, 0.0]},
    ],
)
def test_faulty_windows(kind, fault):
    with pytest.raises((InvalidPoint, ValueError)):
        kind().fit(**fault)


@every
def test_predicting_is_fitting_and_fitting_again_changes_nothing(kind):
    X, _ = blobs(100, 2, 2, 0)
    model = kind()
    labels = model.fit_predict(X)
    assert np.array_equal(labels, model.labels_)
    assert np.array_equal(labels, model.fit(X).labels_)


# Two conventions of scikit-learn do not hold, and this class stands in for them: the second
# argument of `fit` is not y but the weights, as the engine's refits have it; and there are no tags,
# for which scikit-learn would have to be imported. With it, every check holds.
class TowardsSklearn(ClusterMixin, BaseEstimator):
    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X, sample_weight)


FOR_SKLEARN = {
    kind: type(f"Sk{kind.__name__}", (TowardsSklearn, kind), {"__init__": kind.__init__})
    for kind in KINDS
}
globals().update({one.__name__: one for one in FOR_SKLEARN.values()})  # pickle looks there
for one in FOR_SKLEARN.values():
    one.__module__ = __name__


@every
@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn(kind):
    checks = check_estimator(FOR_SKLEARN[kind](), on_fail=None, on_skip=None)
    failed = {one["check_name"]: one["exception"] for one in checks if one["status"] == "failed"}
    assert len(checks) > 30
    assert not failed
