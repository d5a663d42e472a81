import numpy as np
import pytest

from streamclust.kernels.neighbours import count_ties, leaf_nearest, list_edges, pair_up
from streamclust.refit.leaves import point_tree


def edges(n, m, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, n, (2, m))
    key = np.unique(np.minimum(a, b)[a != b] * n + np.maximum(a, b)[a != b])
    return key // n, key % n


def nearest(points, rows, width, depth):
    """Neighbours and squared distances of some rows, by way of a tree of 2 ** depth leaves."""
    n, inner = len(points), 2**depth - 1
    order, bounds, boxes, _ = point_tree(points, np.ones(n), n / 2**depth)
    where = np.full(n, -1)
    where[rows] = np.arange(len(rows))
    near, squares = np.empty((len(rows), width), np.int64), np.empty((len(rows), width))
    columns = np.ascontiguousarray(points[order].T)
    leaves = bounds[inner:], boxes[inner:]
    leaf_nearest(columns, order, *leaves, where[order], width, near, squares)
    return near, squares


@pytest.mark.parametrize("width", [1, 4, 59])
@pytest.mark.parametrize("d", [1, 3, 9])
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_nearest_by_leaves(width, d, depth):
    points = np.random.default_rng(d).integers(0, 5, (60, d)).astype(float)  # with ties
    rows = np.array([0, 7, 29, 59])
    for i, found, told in zip(rows, *nearest(points, rows, width, depth), strict=True):
        gaps = ((points - points[i]) ** 2).sum(axis=1)
        gaps[i] = np.inf
        order = np.argsort(gaps, kind="stable")[:width]
        assert np.array_equal(found, order)
        assert np.array_equal(told, gaps[order])


def test_nearest_beyond_the_range_of_squares():
    near, _ = nearest(np.array([[-1e200], [0.0], [1e200]]), np.arange(3), 2, 0)
    assert near.tolist() == [[1, 2], [0, 2], [0, 1]]


@pytest.mark.parametrize("m", [0, 60])
def test_list_edges(m):
    n = 20
    first, second = edges(n, m, m)
    start = np.empty(n + 1, np.int64)
    entry, edge = np.empty((2, 2 * len(first)), np.int64)
    list_edges(first, second, start, entry, edge)
    assert start[0] == 0
    assert start[-1] == 2 * len(first)
    for i in range(n):
        own = slice(start[i], start[i + 1])
        assert sorted(entry[own]) == sorted([*second[first == i], *first[second == i]])
        assert np.array_equal(first[edge[own]] + second[edge[own]] - i, entry[own])


@pytest.mark.parametrize("m", [0, 1, 150])
def test_pairs_are_sorted_and_told_once(m):
    n = 20
    source, target = np.divmod(np.random.default_rng(m).permutation(n * n)[: 2 * m], n)
    source, target = source[source != target], target[source != target]
    first, second = np.empty((2, len(source)), np.int64)
    mutual = np.empty(len(source), np.bool_)
    count = pair_up(source, target, n, first, second, mutual)
    linked = np.zeros((n, n), np.bool_)
    linked[source, target] = True
    expected = np.nonzero(np.triu(linked | linked.T))
    assert np.array_equal((first[:count], second[:count]), expected)
    assert np.array_equal(mutual[:count], (linked & linked.T)[expected])


@pytest.mark.parametrize(
    ("more", "last", "expected"),
    [
        (False, False, [2, 3, 5, 5]),  # there are no more points
        (True, False, [2, 3, -1, -1]),  # ties may go on
        (True, True, [2, 3, 1, 2]),  # too many: only what is nearer, if anything is
    ],
)
def test_ties_with_the_second_nearest(more, last, expected):
    far = np.array([[1, 2, 3, 4, 5], [1, 2, 2, 3, 4], [1, 2, 2, 2, 2], [2, 2, 2, 2, 2]]) + 1e-12
    kept = np.empty(4, np.int64)
    count_ties(far**2, 2, 1e-9, more, last, kept)
    assert kept.tolist() == expected
