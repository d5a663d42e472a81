"""Boxes of routing tables and the values next to their thresholds, against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamclust.boxes import all_boxes, boxes_of
from streamclust.kernels.boxes import depth, neighbours
from streamclust.nodes import RoutingTable
from tests.kernels import boxes_references as reference


def random_table(seed: int, m: int, d: int, k: int, n_values: int) -> RoutingTable:
    """A table of m cuts at few values, so that empty, equal and touching boxes abound."""
    rng = np.random.default_rng(seed)
    child = np.full((m, 2), -1, dtype=np.int64)
    ends = [(0, 0), (0, 1)] if m else []
    for node in range(1, m):
        at, side = ends.pop(int(rng.integers(len(ends))))
        child[at, side] = node
        ends += [(node, 0), (node, 1)]
    for leaf, (at, side) in enumerate(ends):
        child[at, side] = ~leaf
    return RoutingTable(
        rng.integers(0, d, m),
        rng.integers(0, n_values, m).astype(float),
        child,
        10 * rng.integers(0, k, m + 1),
    )


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32), st.integers(0, 40), st.integers(1, 5), st.integers(1, 6))
def test_they_are_the_boxes_of_plain_python(seed, m, d, k):
    table = random_table(seed, m, d, k, 6)
    found, expected = all_boxes(table, d), reference.all_boxes(table)
    assert found == expected
    orders = [[list(box) for box in found[id]] for id in expected]
    assert orders == [[list(box) for box in boxes] for boxes in expected.values()]


def test_centers_without_a_leaf_have_no_box_and_none_has_none():
    table = random_table(0, 0, 1, 1, 1)
    flat = boxes_of(table, [7, 0, 3], 1)
    assert flat.counts.tolist() == [0, 1, 0]
    assert flat.spans() == [(0, 0, 0, 0), (0, 1, 0, 0), (1, 1, 0, 0)]
    empty = RoutingTable(*(np.zeros(s, dtype=np.int64) for s in (0, 0, (0, 2), 0)))
    assert boxes_of(empty, [], 3).spans() == []


def test_the_edges_are_the_thresholds_of_the_nodes():
    table = random_table(5, 30, 3, 4, 10)
    flat = boxes_of(table, np.unique(table.owner).tolist(), 3)
    closed = flat.nodes >= 0
    assert np.array_equal(flat.edges[closed], table.threshold[flat.nodes[closed]])
    assert np.all(np.isinf(flat.edges[~closed]))
    assert np.all(flat.edges[:, 0] < flat.edges[:, 1])


@pytest.mark.parametrize("m", [0, 1, 17])
def test_depth_is_the_longest_path(m):
    table = random_table(m, m, 2, 3, 9)

    def longest(node):
        return 0 if node < 0 else 1 + max(longest(int(c)) for c in table.child[node])

    assert depth(table.child) == longest(0 if m else -1)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32), st.integers(0, 12), st.integers(0, 30))
def test_neighbours_are_those_that_sorting_finds(seed, m, n):
    rng = np.random.default_rng(seed)
    points = rng.integers(-5, 6, (n, 3)).astype(float)
    points[rng.random((n, 3)) < 0.1] = np.nan
    origin = rng.integers(0, 3, 3).astype(float)
    feature = rng.integers(0, 3, m)
    bound = rng.integers(-6, 9, m) + rng.choice([0.0, 0.5], m)
    order = np.lexsort((bound, feature))
    feature, bound = feature[order], bound[order]
    near = np.empty((m, 2))
    neighbours(points, origin, feature, bound, near)
    assert np.array_equal(near, reference.near(points, origin, feature, bound))
