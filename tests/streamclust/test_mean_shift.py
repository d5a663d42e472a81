"""Mean shift: the modes of scikit-learn, visits by trajectory, the automatic bandwidth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.cluster import MeanShift as Peer
from sklearn.datasets import load_iris, load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score

from streamclust.errors import InvalidParameter
from streamclust.refit.mean_shift import Landscape, MeanShift, assigned, bandwidths

seeds = pytest.mark.parametrize("where", ["bins", "points"])


def apart(ours, theirs):
    """The largest distance from a mode of either to the nearest mode of the other."""
    far = cdist(ours, theirs)
    return max(far.min(axis=0).max(), far.min(axis=1).max())


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([0.3, 0.7, 1.5, 4.0]))
def test_from_every_point_the_modes_are_those_of_scikit_learn(seed, d, bandwidth):
    X = np.random.default_rng(seed).normal(size=(60, d))
    X[:20] += 3.0
    theirs = Peer(bandwidth=bandwidth, bin_seeding=False, n_jobs=1).fit(X).cluster_centers_
    ours = MeanShift(bandwidth=bandwidth, seeds="points", least_weight=0).fit(X).modes_
    assert len(ours) == len(theirs)
    assert apart(ours, theirs) < 1e-9


@pytest.mark.parametrize("d", [2, 8])
@pytest.mark.parametrize("bandwidth", [0.5, 1.2, 3.0])
def test_the_modes_of_scikit_learn_where_trajectories_go_in_groups(d, bandwidth):
    X = np.random.default_rng(d).normal(size=(400, d))
    bandwidth *= np.sqrt(d)  # up to balls that hold all
    theirs = Peer(bandwidth=bandwidth, bin_seeding=False, n_jobs=1).fit(X).cluster_centers_
    ours = MeanShift(bandwidth=bandwidth, seeds="points", least_weight=0).fit(X).modes_
    assert len(ours) == len(theirs)
    assert apart(ours, theirs) < 1e-9


@seeds
def test_visits_do_not_depend_on_what_is_kept(where, monkeypatch):
    X, _ = make_blobs(300, n_features=3, centers=4, random_state=6)
    kept = MeanShift(bandwidth=2.5, seeds=where).fit(X)
    monkeypatch.setattr("streamclust.refit.mean_shift.WORDS", 1)  # every group runs twice
    again = MeanShift(bandwidth=2.5, seeds=where).fit(X)
    assert np.array_equal(kept.labels_, again.labels_)
    assert np.allclose(kept.visits_, again.visits_, atol=1e-12)


@seeds
@pytest.mark.parametrize("d", [2, 5, 8])
def test_the_modes_of_scikit_learn_in_blobs(where, d):
    X, _ = make_blobs(240, n_features=d, centers=6, random_state=3)
    bandwidth = 1.5 * np.sqrt(d)
    theirs = Peer(bandwidth=bandwidth, bin_seeding=False, n_jobs=1).fit(X)
    ours = MeanShift(bandwidth=bandwidth, seeds=where, least_weight=0).fit(X)
    assert len(ours.modes_) == len(theirs.cluster_centers_)
    assert apart(ours.modes_, theirs.cluster_centers_) < 0.1 * bandwidth
    assert adjusted_rand_score(theirs.labels_, ours.labels_) > 0.98


@seeds
def test_the_number_of_clusters_needs_no_bandwidth(where):
    X, y = make_blobs(500, n_features=3, centers=7, cluster_std=0.5, random_state=1)
    model = MeanShift(seeds=where).fit(X)
    assert model.n_clusters_ == 7
    assert adjusted_rand_score(y, model.labels_) > 0.99


def test_wine_is_shifted_in_its_code_space():
    X, y = load_wine(return_X_y=True)
    model = MeanShift().fit((X - X.mean(axis=0)) / X.std(axis=0))
    assert model.n_clusters_ == 3
    assert model.modes_.shape == (3, 13)
    assert adjusted_rand_score(y, model.labels_) > 0.8


def test_modes_and_bandwidth_are_in_the_units_of_the_window():
    X, _ = make_blobs(300, n_features=2, centers=3, random_state=5)
    small, large = MeanShift().fit(X), MeanShift().fit(X * 2.0**10 + 2.0**14)
    assert np.allclose(small.modes_ * 2.0**10 + 2.0**14, large.modes_)
    assert small.bandwidth_ * 2.0**10 == pytest.approx(large.bandwidth_)


@seeds
def test_visits_are_shares_of_the_trajectories_of_a_mode(where):
    X, _ = make_blobs(300, n_features=2, centers=4, random_state=2)
    model = MeanShift(bandwidth=2.0, seeds=where).fit(X)
    assert model.visits_.shape == (300, model.n_clusters_)
    assert model.visits_.min() >= 0.0
    assert model.visits_.max() <= 1.0 + 1e-12
    # the ball at rest is passed by all trajectories of its mode that rest within it
    assert model.visits_.max(axis=0).min() > 0.5
    inside = model.labels_ >= 0
    assert np.array_equal(model.visits_.argmax(axis=1)[inside], model.labels_[inside])


def test_a_trajectory_counts_a_point_once():
    line = np.linspace(0.0, 3.0, 31)[:, None]  # trajectories creep: many balls hold a point
    land = Landscape(line, np.ones(31))
    climb = land.climb(0.5, 1e-3, every=True)
    visits = land.visits(climb, np.arange(len(climb.modes)))
    total = np.bincount(climb.led, minlength=len(climb.modes))
    counts = visits * total
    assert np.allclose(counts, counts.round())
    assert (counts <= total + 1e-9).all()


def test_every_point_has_a_trajectory_that_sees_it():
    X = np.random.default_rng(0).uniform(size=(200, 8))  # cells are wider than balls
    land = Landscape(np.unique(X, axis=0), np.ones(200))
    climb = land.climb(0.3, 1e-3, every=False)
    assert (land.visits(climb, np.arange(len(climb.modes))).max(axis=1) > 0).all()
    assert climb.shares.sum() == pytest.approx(200.0)


def test_far_points_are_noise():
    X, _ = make_blobs(300, n_features=2, centers=3, cluster_std=0.4, random_state=4)
    X = np.r_[X, [[40.0, 40.0], [-40.0, 40.0]]]
    model = MeanShift(bandwidth=1.5).fit(X)
    assert model.n_clusters_ == 3
    assert np.array_equal(model.labels_[300:], [-1, -1])
    every = MeanShift(bandwidth=1.5, least_weight=0).fit(X)
    assert every.n_clusters_ == 5
    assert every.labels_.min() == 0


def test_all_noise():
    X = 100.0 * np.eye(20)
    model = MeanShift(bandwidth=1.0).fit(X)
    assert model.n_clusters_ == 0
    assert np.array_equal(model.labels_, np.full(20, -1))
    assert model.modes_.shape == (0, 20)
    assert model.visits_.shape == (20, 0)


def test_one_ball_is_one_cluster():
    X = np.random.default_rng(0).normal(size=(50, 3))
    assert MeanShift(bandwidth=100.0).fit(X).n_clusters_ == 1


def test_automatic_bandwidths_descend_and_scale():
    points = np.random.default_rng(0).normal(size=(400, 3))
    ladder = bandwidths(points, np.ones(400))
    assert ladder == sorted(ladder, reverse=True)
    assert np.allclose(np.array(bandwidths(points * 8.0, np.ones(400))) / 8.0, ladder)
    far = cdist(points, points)
    held = np.median([(row <= ladder[0]).sum() for row in far])
    assert held == pytest.approx(0.4 * 400, rel=0.05)


def test_nobody_visited_is_assigned_nowhere():
    visits = np.array([[0.0, 0.0], [0.2, 0.2], [0.1, 0.3]])
    assert assigned(visits).tolist() == [-1, 0, 1]
    assert assigned(np.zeros((2, 0))).tolist() == [-1, -1]


def test_iris_in_the_known_bandwidth():
    X, _ = load_iris(return_X_y=True)
    assert MeanShift(bandwidth=1.1).fit(X).n_clusters_ == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"bandwidth": 0.0},
        {"bandwidth": "wide"},
        {"seeds": "all"},
        {"least_weight": -1},
        {"tolerance": 0},
    ],
)
def test_wrong_parameters(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        MeanShift(**wrong).fit(np.zeros((3, 1)))
