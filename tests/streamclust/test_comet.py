import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from streamclust.errors import InvalidParameter, InvalidPoint
from streamclust.refit.adam import cluster_by_descent
from streamclust.refit.comet import COMET
from tests.streamclust.degenerate import WINDOWS


def blobs(n, k, d, seed, noise=0.0):
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-5.0, 5.0, (k, d))
    labels = rng.integers(0, k, n)
    points = centers[labels] + rng.normal(size=(n, d))
    out = rng.random(n) < noise
    points[out] = rng.uniform(-8.0, 8.0, (int(out.sum()), d))
    labels[out] = -1
    return points / 4.0, labels


def agreement(labels, truth):
    clean = truth >= 0
    return adjusted_rand_score(truth[clean], labels[clean])


def check_labels(model, n):
    labels = model.labels_
    assert labels.dtype == np.int64
    assert labels.shape == (n,)
    assert set(np.unique(labels)) - {-1} == set(range(model.n_clusters_))
    assert model.n_clusters_ >= 1


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.1])
def test_finds_blobs_and_their_number(noise):
    X, truth = blobs(600, 6, 5, 3, noise)
    model = COMET().fit(X)
    check_labels(model, 600)
    assert model.n_clusters_ == 6
    assert agreement(model.labels_, truth) > 0.98


def test_one_gaussian_is_one_cluster():
    assert COMET().fit(np.random.default_rng(1).normal(size=(300, 4))).n_clusters_ == 1


def test_one_gaussian_under_noise_is_one_cluster():
    rng = np.random.default_rng(28)  # Student's law tells all of it, and finds no noise
    X = rng.normal(size=(1000, 8))
    X = np.concatenate((X, rng.uniform(X.min(axis=0), X.max(axis=0), (100, 8))))
    model = COMET().fit(X)
    assert model.n_clusters_ == 1
    assert np.mean(model.labels_[1000:] == -1) > 0.7


def test_uniform_points_are_one_cluster():
    assert COMET().fit(np.random.default_rng(1).uniform(size=(300, 3))).n_clusters_ == 1


@pytest.mark.parametrize("side", [[1, 1, 1, 1], [-1, -1, -1, -1], [1, -1, 1, -1]])
def test_a_skewed_cluster_is_one(side):
    X = np.random.default_rng(1).exponential(size=(600, 4)) ** 1.2 * side
    assert COMET().fit(X / X.std(axis=0)).n_clusters_ == 1


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("k", [None, 1, 3, 7])
def test_degenerate_windows(name, k):
    X = WINDOWS[name]
    model = COMET(n_clusters=k).fit(X)
    check_labels(model, len(X))
    if k is not None:
        assert model.n_clusters_ == min(k, len(np.unique(X, axis=0)))


def test_identical_points_are_one_cluster():
    assert np.array_equal(COMET().fit(np.full((50, 4), 2.5)).labels_, np.zeros(50))


@pytest.mark.parametrize("k", [2, 5, 8, 15])
def test_exactly_k(k):
    X, _ = blobs(300, 8, 3, 0, 0.05)
    model = COMET(n_clusters=k).fit(X)
    check_labels(model, 300)
    assert model.n_clusters_ == k


def test_told_the_truth_it_finds_the_blobs():
    X, truth = blobs(400, 8, 6, 2, 0.1)
    assert agreement(COMET(n_clusters=8).fit(X).labels_, truth) > 0.98


windows = st.integers(1, 3).flatmap(
    lambda d: arrays(
        np.float64,
        st.tuples(st.integers(1, 30), st.just(d)),
        elements=st.integers(-4, 4).map(float) | st.floats(-4, 4),
    )
)


@settings(max_examples=60, deadline=None)
@given(windows, st.randoms(use_true_random=False))
def test_the_order_of_rows_carries_nothing(X, random):
    order = list(range(len(X)))
    random.shuffle(order)
    assert np.array_equal(COMET().fit(X[order]).labels_, COMET().fit(X).labels_[order])


def test_the_order_of_rows_carries_nothing_in_a_full_window():
    X, _ = blobs(500, 5, 10, 4, 0.1)
    X[::7] = np.round(X[::7])
    X[100:150] = X[:50]
    order = np.random.default_rng(0).permutation(500)
    assert np.array_equal(COMET().fit(X[order]).labels_, COMET().fit(X).labels_[order])


@pytest.mark.parametrize("d", [3, 12, 40])
def test_units_carry_nothing(d):
    X, _ = blobs(300, 4, d, 5, 0.1)
    labels = COMET().fit(X).labels_
    assert np.array_equal(COMET().fit(X * 2.0**20).labels_, labels)
    assert np.array_equal(COMET().fit(X * 2.0**-20).labels_, labels)


@pytest.mark.parametrize("d", [3, 12])
def test_rotation_offset_and_jitter_hardly_matter(d):
    rng = np.random.default_rng(6)
    X, _ = blobs(400, 6, d, 6, 0.1)
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    order = rng.permutation(400)
    moved = (X @ turn + 3.0 + 1e-9 * rng.normal(size=X.shape))[order]
    assert adjusted_rand_score(COMET().fit(moved).labels_, COMET().fit(X).labels_[order]) >= 0.95


def test_a_weight_is_a_repetition():
    rng = np.random.default_rng(7)
    X, _ = blobs(150, 3, 3, 7)
    times = rng.integers(1, 4, 150)
    weighted = COMET().fit(X, times)
    repeated = COMET().fit(np.repeat(X, times, axis=0))
    assert np.array_equal(np.repeat(weighted.labels_, times), repeated.labels_)
    assert weighted.code_length_ == repeated.code_length_


def test_a_weight_of_zero_is_an_absence():
    X, _ = blobs(200, 3, 3, 8)
    weights = np.ones(200)
    weights[:30] = 0.0
    model = COMET().fit(X, weights)
    assert np.array_equal(model.labels_[30:], COMET().fit(X[30:]).labels_)
    check_labels(model, 200)


def test_the_incumbent_stays_when_nothing_is_better():
    X, truth = blobs(500, 5, 4, 9)
    renamed = (truth + 2) % 5
    model = COMET().fit(X, incumbent=renamed)
    assert model.kept_incumbent_
    assert np.array_equal(model.labels_, renamed)


def test_a_wrong_incumbent_goes():
    X, truth = blobs(500, 5, 4, 9)
    model = COMET().fit(X, incumbent=np.minimum(truth, 1))
    assert not model.kept_incumbent_
    assert agreement(model.labels_, truth) > 0.98


def test_an_empty_incumbent_is_none():
    X, _ = blobs(200, 3, 4, 9)
    free = COMET().fit(X)
    model = COMET().fit(X, incumbent=np.full(200, -1))
    assert np.array_equal(model.labels_, free.labels_)


def test_a_window_that_changed_a_little_is_clustered_as_if_anew():
    X, _ = blobs(900, 6, 5, 11, 0.05)
    model = COMET().fit(X[:700])
    warm = model.partial_fit(X[200:]).labels_
    assert adjusted_rand_score(warm, COMET().fit(X[200:]).labels_) > 0.98


def test_a_window_that_changed_altogether_is_clustered_anew():
    X, _ = blobs(400, 4, 3, 12)
    model = COMET().fit(X)
    assert np.array_equal(model.partial_fit(5.0 - X).labels_, COMET().fit(5.0 - X).labels_)


def test_the_first_partial_fit_is_a_fit():
    X, _ = blobs(200, 3, 4, 13)
    assert np.array_equal(COMET().partial_fit(X).labels_, COMET().fit(X).labels_)


def test_a_cluster_born_since_the_last_window_is_found():
    X, truth = blobs(800, 5, 4, 15)
    old = truth != 4
    model = COMET().partial_fit(X[old]).partial_fit(X)
    assert model.n_clusters_ == 5
    assert agreement(model.labels_, truth) > 0.98


@pytest.mark.parametrize("size", [5, 40, 5000])
def test_bins_of_rows_find_the_blobs(size):
    X, truth = blobs(400, 5, 4, 15, 0.1)
    labels = COMET(batch_size=size).fit(X).labels_
    assert agreement(labels, truth) > 0.97
    assert np.array_equal(COMET(batch_size=size).fit(X[::-1]).labels_[::-1], labels)


def test_parameters_are_kept_verbatim():
    model = COMET(n_clusters=3, seed=5)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(n_clusters=None) is model
    assert model.n_clusters is None
    with pytest.raises(InvalidParameter, match="no parameter"):
        model.set_params(clusters=2)


@pytest.mark.parametrize(
    "wrong", [{"n_clusters": 0}, {"n_clusters": 1.5}, {"fusion_strength": 0}, {"batch_size": 0}]
)
def test_wrong_parameters(wrong):
    with pytest.raises(InvalidParameter):
        COMET(**wrong).fit(np.zeros((3, 1)))


@pytest.mark.parametrize(
    "fault",
    [
        {"X": np.zeros(3)},
        {"X": np.zeros((0, 2))},
        {"X": [[np.nan]]},
        {"X": np.zeros((3, 1)), "sample_weight": [1.0, 1.0]},
        {"X": np.zeros((3, 1)), "sample_weight": [1.0, 1.0, -1.0]},
        {"X": np.zeros((3, 1)), "sample_weight": [0.0, 0.0, 0.0]},
        {"X": np.zeros((3, 1)), "incumbent": [0, 0]},
        {"X": np.zeros((3, 1)), "incumbent": [0.0, 0.5, 1.0]},
    ],
)
def test_faulty_windows(fault):
    with pytest.raises((InvalidPoint, InvalidParameter)):
        COMET().fit(**fault)


def test_predicting_is_fitting():
    X, _ = blobs(100, 2, 2, 0)
    model = COMET()
    assert np.array_equal(model.fit_predict(X), model.labels_)


@pytest.mark.parametrize("solver", ["adam", "published"])
def test_the_published_descent_is_a_solver(solver):
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 2)) + 12.0 * truth[:, None]
    model = COMET(solver=solver).fit((X - X.mean(axis=0)) / X.std(axis=0))
    assert adjusted_rand_score(truth, model.labels_) > 0.9
    assert np.isnan(model.code_length_)
    assert not model.kept_incumbent_


def test_the_published_path_takes_the_rows_as_they_are():
    X = np.random.default_rng(1).normal(size=(90, 3))
    expected = cluster_by_descent(X, np.random.default_rng(3))
    assert np.array_equal(COMET(solver="published", seed=3).fit(X).labels_, expected)


def test_the_symmetric_descent_ignores_order_unit_and_offset():
    X = np.random.default_rng(2).normal(size=(80, 3)) + np.repeat([0.0, 9.0], 40)[:, None]
    order = np.random.default_rng(3).permutation(80)
    model = COMET(solver="adam").fit(X)
    again = COMET(solver="adam").fit(1e3 * X[order] + 5.0)
    assert adjusted_rand_score(model.labels_[order], again.labels_) == 1.0
