"""Three regions: the invariants hold for every window and every ratio."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import load_iris, make_blobs

from streamclust.errors import InvalidParameter
from streamclust.refit.three_way import ThreeWayMeanShift, belonging, cores


def check_regions(model):
    """Every point in one core, in several boundaries, or outside; no core is empty."""
    inside = model.labels_ >= 0
    count = model.belongs_.sum(axis=1)
    assert np.array_equal(model.core_ | model.boundary_, inside)
    assert not (model.core_ & model.boundary_).any()
    assert np.array_equal(model.core_, count == 1)
    assert np.array_equal(model.boundary_, count > 1)
    assert model.belongs_[inside, model.labels_[inside]].all()
    assert model.belongs_.shape == (len(model.labels_), model.n_clusters_)
    if inside.any():
        assert model.belongs_[model.core_].any(axis=0).all()
    assert 0.0 < model.boundary_ratio_ <= 1.0


windows = st.integers(1, 3).flatmap(
    lambda d: arrays(
        np.float64,
        st.tuples(st.integers(1, 30), st.just(d)),
        elements=st.integers(-4, 4).map(float) | st.floats(-4, 4),
    )
)


@settings(max_examples=60)
@given(
    windows,
    st.sampled_from([None, 0.01, 0.3, 0.9]),
    st.sampled_from([None, 0.5, 2.0]),
    st.sampled_from([None, 0]),
)
def test_the_invariants_hold(X, ratio, bandwidth, least):
    model = ThreeWayMeanShift(boundary_ratio=ratio, bandwidth=bandwidth, least_weight=least)
    check_regions(model.fit(X))


def near_pair():
    X, _ = make_blobs(600, centers=[[0.0, 0.0], [3.2, 0.0]], cluster_std=0.8, random_state=0)
    return X


def test_boundary_points_lie_between():
    X = near_pair()
    model = ThreeWayMeanShift(bandwidth=1.2, boundary_ratio=0.5).fit(X)
    check_regions(model)
    assert model.n_clusters_ == 2
    assert model.boundary_.any()
    assert np.abs(X[model.boundary_, 0] - 1.6).max() < 1.6


def test_a_larger_ratio_makes_fewer_boundary_points():
    X = near_pair()
    shares = [
        ThreeWayMeanShift(bandwidth=1.2, boundary_ratio=ratio).fit(X).boundary_.sum()
        for ratio in (0.05, 0.3, 0.6, 0.95)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[-1]


@pytest.mark.parametrize("seed", range(5))
def test_the_automatic_ratio_leaves_most_points_core(seed):
    X, _ = make_blobs(400, centers=5, cluster_std=1.2, random_state=seed)
    model = ThreeWayMeanShift().fit(X)
    check_regions(model)
    assert model.core_.mean() >= 0.8


def test_iris():
    X, _ = load_iris(return_X_y=True)
    model = ThreeWayMeanShift().fit(X)
    check_regions(model)
    assert model.core_.mean() >= 0.8


def test_outside_belongs_nowhere():
    visits = np.array([[0.9, 0.8], [0.9, 0.1], [0.0, 0.0]])
    told = belonging(visits, np.array([0, 0, -1]), 0.5)
    assert told.tolist() == [[True, True], [True, False], [False, False]]


def test_a_mode_without_a_core_is_given_up():
    assert cores(np.array([[True, False], [True, True]])).tolist() == [True, False]
    assert cores(np.array([[True, True], [True, True]])).tolist() == [True, False]
    assert cores(np.array([[True], [True]])).tolist() == [True]
    assert cores(np.zeros((3, 0), dtype=bool)).tolist() == []


@pytest.mark.parametrize("ratio", [0.0, 1.0, -0.5, "half"])
def test_wrong_ratios(ratio):
    with pytest.raises(InvalidParameter, match="boundary_ratio"):
        ThreeWayMeanShift(boundary_ratio=ratio).fit(np.zeros((3, 1)))
