"""The neighbour graph of a window: who is close to whom, told symmetrically.

Mutual k-nearest neighbours and a minimum spanning forest of the neighbour graph (Shah and Koltun,
PNAS 2017, section "Graph construction"), with three repairs: duplicates are one point with a
weight, every neighbour tied at the k-th distance is kept, and points come in a canonical order, so
that the order of the rows carries nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamclust.kernels.linkage import bridge_components, single_linkage
from streamclust.kernels.neighbours import count_ties, leaf_nearest, list_edges, pair_up
from streamclust.kernels.rcc import edge_squares
from streamclust.refit.leaves import point_tree
from streamclust.results import BoolArray, FloatArray, IntArray

BLOCK = 1 << 22
"""Entries of the distance block that brute force holds at a time (32 MB)."""
TREE_DIMENSIONS = 32
"""Above this many features a tree visits nearly every point, and brute force is cheaper."""
TIE = 1e-9
"""Relative difference below which two distances are tied."""
SPARE = 4
"""How many more than k nearest points are looked at first, so as to see where ties end."""
TIE_LIMIT = 4
"""A layer of ties that would grow a neighbourhood beyond so many times k is not kept at all."""


@dataclass(frozen=True, slots=True)
class Distinct:
    """The distinct points of a window, in lexicographic order.

    Attributes
    ----------
    points : float array of shape (m, d)
    weights : float array of shape (m,)
        Summed weights of the equal points.
    member : int array of shape (n,)
        Which distinct point each point of the window is.
    """

    points: FloatArray
    weights: FloatArray
    member: IntArray


class Nearest(NamedTuple):
    """Of each of m points the nearest others, nearest first, and their squared distances."""

    near: IntArray
    squares: FloatArray


@dataclass(frozen=True, slots=True)
class Graph:
    """Undirected edges, each once, with ``first < second``.

    Attributes
    ----------
    n : int
        Number of points.
    first, second : int array of shape (m,)
        Ends.
    lengths : float array of shape (m,)
        Euclidean, in the units of the points.
    fused : bool array of shape (m,)
        Mutual neighbours and the minimum spanning forest. The others are one-sided neighbours and
        the bridges that make the graph connected.
    """

    n: int
    first: IntArray
    second: IntArray
    lengths: FloatArray
    fused: BoolArray

    def lists(self, chosen: BoolArray | None = None) -> tuple[IntArray, IntArray, IntArray]:
        """The neighbours of every point along the (chosen) edges.

        Returns
        -------
        start : int array of shape (n + 1,)
            Where the neighbours of each point begin.
        entry : int array
            Neighbours of all points, one after the other.
        edge : int array
            The edge to each, counted among the chosen ones.
        """
        first, second = self.first, self.second
        if chosen is not None:
            first, second = first[chosen], second[chosen]
        start = np.empty(self.n + 1, np.int64)
        entry, edge = np.empty(2 * len(first), np.int64), np.empty(2 * len(first), np.int64)
        list_edges(first, second, start, entry, edge)
        return start, entry, edge


def distinct_points(X: FloatArray, weights: FloatArray) -> Distinct:
    """Collapse duplicates and put the points into lexicographic order.

    Parameters
    ----------
    X : float array of shape (n, d)
        Finite.
    weights : float array of shape (n,)
        Not negative.
    """
    X = X + 0.0  # one zero: -0.0 and 0.0 are equal points
    order = ranked(np.ascontiguousarray(X[:, 0]), weights, *X.T[:0:-1])
    ordered = X[order]
    starts = np.ones(len(X), dtype=bool)
    starts[1:] = np.any(ordered[1:] != ordered[:-1], axis=1)
    group = np.cumsum(starts) - 1
    member = np.empty(len(X), dtype=np.int64)
    member[order] = group
    summed: FloatArray = np.bincount(group, weights=weights[order]).astype(np.float64)
    return Distinct(np.ascontiguousarray(ordered[starts]), summed, member)


def neighbour_count(n: int) -> int:
    """Neighbours per point: grows with the logarithm of n, so that the graph stays connected."""
    return int(min(n - 1, max(5, min(15, round(math.log2(max(n, 2)))))))


def nearest_points(points: FloatArray, k: int) -> Nearest:
    """The k nearest other points of each point, and a few more.

    Parameters
    ----------
    points : float array of shape (n, d)
        Pairwise distinct.
    k : int
        1 <= k < n.
    """
    return _nearest(points, np.arange(len(points)), min(len(points) - 1, k + SPARE))


def neighbour_graph(points: FloatArray, k: int, known: Nearest | None = None) -> Graph:
    """The symmetric, connected neighbour graph of distinct points.

    Parameters
    ----------
    points : float array of shape (n, d)
        Pairwise distinct.
    k : int
        Neighbours per point, 1 <= k < n.
    known : Nearest, optional
        What `nearest_points` gives for the same points and k.
    """
    n = len(points)
    if n < 2:
        empty = np.empty(0, dtype=np.int64)
        return Graph(n, empty, empty, np.empty(0), np.empty(0, dtype=bool))
    source, target = _neighbours(points, k, known or nearest_points(points, k))
    first, second = np.empty((2, len(source)), np.int64)
    mutual = np.empty(len(source), np.bool_)
    count = pair_up(source, target, n, first, second, mutual)
    first, second, mutual = first[:count], second[:count], mutual[:count]
    squares = np.empty(count)
    edge_squares(first, second, points, squares)
    forest = np.empty(count, np.bool_)
    order = ranked(squares)
    left, right = np.empty((2, n - 1), np.int64)
    if single_linkage(first, second, order, left, right, forest) < n - 1:
        bridges = bridge_components(points, first, second)
        first, second = np.concatenate((first, bridges[0])), np.concatenate((second, bridges[1]))
        squares = np.empty(len(first))
        edge_squares(first, second, points, squares)
    fused = np.zeros(len(first), np.bool_)
    fused[:count] = mutual | forest
    return Graph(n, first, second, np.sqrt(squares), fused)


def _neighbours(points: FloatArray, k: int, known: Nearest) -> tuple[IntArray, IntArray]:
    """Directed edges to the k nearest and to all that tie with the k-th."""
    n = len(points)
    limit = min(n - 1, TIE_LIMIT * k)
    rows = np.arange(n)
    parts: list[tuple[IntArray, IntArray]] = []
    near, squares = known
    while True:
        width = near.shape[1]
        kept = np.empty(len(rows), np.int64)
        count_ties(squares, k, TIE, width < n - 1, width >= limit, kept)
        done = kept >= 0
        chosen = np.arange(width) < kept[:, None]
        parts.append((np.repeat(rows[done], kept[done]), near[chosen]))
        rows = rows[~done]
        if not rows.size:
            break
        near, squares = _nearest(points, rows, min(limit, 2 * width))
    source, target = (np.concatenate(part) for part in zip(*parts, strict=True))
    return source, target


def _nearest(points: FloatArray, rows: IntArray, width: int) -> Nearest:
    """The `width` nearest other points of each row."""
    return (_by_product if points.shape[1] > TREE_DIMENSIONS else _by_tree)(points, rows, width)


def ranked(values: FloatArray, *then: FloatArray) -> IntArray:
    """The order of some values; of equal ones by `then`, and by their place in the end."""
    order = np.argsort(values)
    found = values[order]
    if (found[1:] == found[:-1]).any():  # a stable sort takes several times as long
        order = np.lexsort((*then, values))
    return order


def _by_tree(points: FloatArray, rows: IntArray, width: int) -> Nearest:
    """`_nearest` with a tree of the points."""
    n = len(points)
    order, bounds, boxes, _ = point_tree(points, np.ones(n))
    inner = len(bounds) // 2
    where = np.full(n, -1)
    where[rows] = np.arange(len(rows))
    near, squares = np.empty((len(rows), width), np.int64), np.empty((len(rows), width))
    columns = np.ascontiguousarray(points[order].T)
    leaves = bounds[inner:], boxes[inner:]
    leaf_nearest(columns, order, *leaves, where[order], width, near, squares)
    return Nearest(near, squares)


def _by_product(points: FloatArray, rows: IntArray, width: int) -> Nearest:
    """`_nearest` with matrix products: for many features."""
    n = len(points)
    near = np.empty((len(rows), width), dtype=np.int64)
    found = np.empty((len(rows), width))
    centred = points - points.mean(axis=0)
    squares = np.einsum("ij,ij->i", centred, centred)
    size = max(1, BLOCK // n)
    for begin in range(0, len(rows), size):
        block = rows[begin : begin + size]
        gap = squares - 2.0 * (centred[block] @ centred.T)
        gap[np.arange(len(block)), block] = np.inf
        close = np.argpartition(gap, width - 1, axis=1)[:, :width]
        exact = _squares(points, block, close)
        order = np.lexsort((close, exact))
        near[begin : begin + size] = np.take_along_axis(close, order, axis=1)
        found[begin : begin + size] = np.take_along_axis(exact, order, axis=1)
    return Nearest(near, found)


def _squares(points: FloatArray, rows: IntArray, others: IntArray) -> FloatArray:
    """Squares of differences: exact enough to compare ties, which the product form is not."""
    found = np.empty(others.shape)
    size = max(1, BLOCK // (others.shape[1] * points.shape[1]))
    for begin in range(0, len(rows), size):
        part = slice(begin, begin + size)
        step = points[others[part]] - points[rows[part], None, :]
        found[part] = np.einsum("ijk,ijk->ij", step, step)
    return found
