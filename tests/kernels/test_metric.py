"""The compiled metric against a plain one, and its forms against each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamclust.kernels import metric
from streamclust.nearness import standing
from tests.kernels import metric_references as plain
from tests.kernels.metric_references import P, vectors


@given(vectors(), P)
def test_distances_equal_the_plain_ones(ab, p):
    a, b, weights = ab
    expected = plain.distance(a, b, weights, p)
    assert metric.distance(a, b, weights, p) == pytest.approx(expected, rel=1e-12)
    assert metric.distance(b, a, weights, p) == metric.distance(a, b, weights, p)
    assert metric.distance(a, a, weights, p) == 0.0


@given(vectors(), st.floats(0.0, 30.0))
def test_a_bounded_distance_is_the_distance_or_beyond_the_limit(ab, limit):
    a, b, weights = ab
    true = metric.distance(a, b, weights, 2.0)
    for bound in (limit, true, np.nextafter(true, 0.0)):
        found = metric.euclid(a, b, weights, bound)
        assert found == true if true <= bound else found > bound


@given(vectors(6), P)
def test_a_table_of_distances_equals_them_to_the_bit(points, p):
    *many, weights = points
    points = np.array(many)
    for centers in (points, points[:2]):
        table = metric.distance_table(points, centers, weights, p)
        expected = [[metric.distance(a, b, weights, p) for b in centers] for a in points]
        assert table.tolist() == expected


@given(st.integers(0, 10**6), st.sampled_from([1.0, 2.0, 3.0]))
def test_points_stand_to_centers_as_plainly(seed, p):
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(1, 8)), int(rng.integers(1, 4))
    points, centers = rng.integers(-3, 4, (20, d)) * 1.0, rng.integers(-3, 4, (k, d)) * 1.0
    fences, scales = rng.uniform(0, 3, k), rng.integers(0, 3, k) * 0.5
    groups, weights = np.unique(rng.integers(0, k, k), return_inverse=True)[1], rng.uniform(0, 2, d)
    expected = plain.standing(points, centers, fences, scales, groups, weights, p)
    holders, nearest = standing(points, centers, fences, scales, groups, weights, p)
    assert holders.tolist() == expected[0].tolist()
    assert np.allclose(nearest, expected[1])
    table = metric.distance_table(points[:k], centers, weights, p)
    assert metric.distances(points[:k], centers, weights, p).tolist() == table.diagonal().tolist()


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("n", [0, 1, 7, 40])
def test_distances_across_columns_equal_them_to_the_bit_and_touch_no_other(n, p):
    rng = np.random.default_rng(n)
    across, weights = 30.0 * rng.normal(size=(6, 41)), rng.random(5)
    point, found = rng.normal(size=7), np.full(41, -1.0)
    metric.distances_across(point, across, weights, p, found[:n])
    told = [metric.distance(point, across[:5, m].copy(), weights, p) for m in range(n)]
    assert found.tolist() == [*told, *[-1.0] * (41 - n)]


def test_a_single_wild_feature_counts_ten_at_most():
    zero, far = np.zeros(3), np.array([1e100, 1.0, 0.0])
    assert metric.distance(zero, far, np.ones(3), 2.0) == pytest.approx(np.sqrt(101))
