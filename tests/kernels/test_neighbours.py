import numpy as np
import pytest

from streamclust.kernels.neighbours import list_edges, scan_nearest


def edges(n, m, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, n, (2, m))
    key = np.unique(np.minimum(a, b)[a != b] * n + np.maximum(a, b)[a != b])
    return key // n, key % n


@pytest.mark.parametrize("width", [1, 4, 29])
@pytest.mark.parametrize("d", [1, 3, 9])
def test_scan_nearest(width, d):
    points = np.random.default_rng(d).integers(0, 5, (30, d)).astype(float)  # with ties
    rows = np.array([0, 7, 29])
    near, squares = np.empty((3, width), np.int64), np.empty((3, width))
    scan_nearest(np.ascontiguousarray(points.T), rows, width, near, squares)
    for i, found, told in zip(rows, near, squares, strict=True):
        gaps = ((points - points[i]) ** 2).sum(axis=1)
        gaps[i] = np.inf
        order = np.argsort(gaps, kind="stable")[:width]
        assert np.array_equal(found, order)
        assert np.array_equal(told, gaps[order])


def test_scan_nearest_beyond_the_range_of_squares():
    near, squares = np.empty((3, 2), np.int64), np.empty((3, 2))
    scan_nearest(np.array([[-1e200, 0.0, 1e200]]), np.arange(3), 2, near, squares)
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
