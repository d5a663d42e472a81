"""The neighbour graph of a window: who is close to whom, told symmetrically.

Mutual k-nearest neighbours and a minimum spanning forest of the neighbour graph (Shah and Koltun,
PNAS 2017, section "Graph construction"), with three repairs: duplicates are one point with a
weight, every neighbour tied at the k-th distance is kept, and points come in a canonical order, so
that the order of the rows carries nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial import cKDTree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

BLOCK = 1 << 22
"""Entries of the distance block that brute force holds at a time (32 MB)."""
TREE_DIMENSIONS = 12
"""Above this many features a KD-tree visits nearly every point, and brute force is cheaper."""
TIE = 1e-9
"""Relative difference below which two distances are tied."""
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

    def adjacency(self, values: FloatArray, chosen: BoolArray | None = None) -> csr_array:
        """A symmetric sparse matrix of one value per (chosen) edge."""
        first, second = self.first, self.second
        if chosen is not None:
            first, second, values = first[chosen], second[chosen], values[chosen]
        rows, columns = np.concatenate((first, second)), np.concatenate((second, first))
        both = np.concatenate((values, values))
        return csr_array(coo_array((both, (rows, columns)), shape=(self.n, self.n)))


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
    order = np.lexsort((weights, *X.T[::-1]))
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


def neighbour_graph(points: FloatArray, k: int) -> Graph:
    """The symmetric, connected neighbour graph of distinct points.

    Parameters
    ----------
    points : float array of shape (n, d)
        Pairwise distinct.
    k : int
        Neighbours per point, 1 <= k < n.
    """
    n = len(points)
    if n < 2:
        empty = np.empty(0, dtype=np.int64)
        return Graph(n, empty, empty, np.empty(0), np.empty(0, dtype=bool))
    source, target, length = _neighbours(points, k)
    low, high = np.minimum(source, target), np.maximum(source, target)
    key, where, count = np.unique(low * n + high, return_index=True, return_counts=True)
    low, high, length = key // n, key % n, length[where]
    # scipy reads a stored zero as no edge; distinct points may still be at distance 0.0
    positive = np.maximum(length, np.finfo(float).tiny)
    sparse = csr_array(coo_array((positive, (low, high)), shape=(n, n)))
    forest = coo_array(minimum_spanning_tree(sparse))
    i, j = forest.coords
    in_forest = np.isin(key, np.minimum(i, j).astype(np.int64) * n + np.maximum(i, j))
    bridges = _bridges(points, sparse)
    span = np.sqrt(((points[bridges[0]] - points[bridges[1]]) ** 2).sum(axis=1))
    return Graph(
        n,
        np.concatenate((low, bridges[0])),
        np.concatenate((high, bridges[1])),
        np.concatenate((length, span)),
        np.concatenate(((count == 2) | in_forest, np.zeros(len(span), dtype=bool))),
    )


def _neighbours(points: FloatArray, k: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Directed edges to the k nearest and to all that tie with the k-th."""
    n, d = points.shape
    limit = min(n - 1, TIE_LIMIT * k)
    width = min(n - 1, k + 4)
    tree = cKDTree(points) if d <= TREE_DIMENSIONS else None
    rows = np.arange(n)
    parts: list[tuple[IntArray, IntArray, FloatArray]] = []
    while rows.size:
        near, far = _nearest(points, rows, width, tree)
        reach = far[:, k - 1 : k] * (1.0 + TIE)
        open_end = (far[:, -1:] <= reach).ravel()  # ties may go on beyond what was asked for
        if width >= n - 1:
            open_end[:] = False
        done = np.ones(len(rows), dtype=bool) if width >= limit else ~open_end
        kept = far <= reach
        crowded = open_end & done
        kept[crowded] = far[crowded] < far[crowded, k - 1 : k] * (1.0 - TIE)
        bare = crowded & ~kept.any(axis=1)
        kept[bare, :k] = True
        kept[~done] = False
        at, column = np.nonzero(kept)
        parts.append((rows[at], near[at, column], far[at, column]))
        rows = rows[~done]
        width = min(limit, 2 * width)
    source, target, length = (np.concatenate(part) for part in zip(*parts, strict=True))
    return source, target, length


def _nearest(
    points: FloatArray, rows: IntArray, width: int, tree: cKDTree | None
) -> tuple[IntArray, FloatArray]:
    """The `width` nearest other points of each row, nearest first, and their distances."""
    n = len(points)
    if tree is not None:
        found = tree.query(points[rows], k=width + 1)
        far, near = np.asarray(found[0]), np.asarray(found[1])
        self_at = near == rows[:, None]
        self_at[~self_at.any(axis=1), -1] = True
        return near[~self_at].reshape(-1, width).astype(np.int64), far[~self_at].reshape(-1, width)
    near = np.empty((len(rows), width), dtype=np.int64)
    far = np.empty((len(rows), width))
    centred = points - points.mean(axis=0)
    squares = np.einsum("ij,ij->i", centred, centred)
    size = max(1, BLOCK // n)
    for begin in range(0, len(rows), size):
        block = rows[begin : begin + size]
        gap = squares - 2.0 * (centred[block] @ centred.T)
        gap[np.arange(len(block)), block] = np.inf
        close = np.argpartition(gap, width - 1, axis=1)[:, :width]
        exact = _distances(points, block, close)
        order = np.lexsort((close, exact))
        near[begin : begin + size] = np.take_along_axis(close, order, axis=1)
        far[begin : begin + size] = np.take_along_axis(exact, order, axis=1)
    return near, far


def _distances(points: FloatArray, rows: IntArray, others: IntArray) -> FloatArray:
    """Distances by differences: exact enough to compare ties, which the product form is not."""
    found = np.empty(others.shape)
    size = max(1, BLOCK // (others.shape[1] * points.shape[1]))
    for begin in range(0, len(rows), size):
        part = slice(begin, begin + size)
        step = points[others[part]] - points[rows[part], None, :]
        found[part] = np.sqrt(np.einsum("ijk,ijk->ij", step, step))
    return found


def _bridges(points: FloatArray, graph: csr_array) -> tuple[IntArray, IntArray]:
    """Edges that join the components: each to the one of nearest mean, again until one is left."""
    n = len(points)
    first: list[int] = []
    second: list[int] = []
    while True:
        extra = coo_array((np.ones(len(first)), (first, second)), shape=(n, n))
        count, part = connected_components(csr_array(graph + extra), directed=False)
        if count == 1:
            break
        sizes = np.bincount(part)
        means = np.zeros((count, points.shape[1]))
        np.add.at(means, part, points)
        means /= sizes[:, None]
        near = np.asarray(cKDTree(means).query(means, k=2)[1])
        other = np.where(near[:, 0] == np.arange(count), near[:, 1], near[:, 0])
        members = np.split(np.argsort(part, kind="stable"), np.cumsum(sizes)[:-1])
        for a in range(count):
            b = int(other[a])
            if int(other[b]) == a and b < a:
                continue  # the pair is joined already
            i = members[a][np.argmin(((points[members[a]] - means[b]) ** 2).sum(axis=1))]
            j = members[b][np.argmin(((points[members[b]] - points[i]) ** 2).sum(axis=1))]
            first.append(int(min(i, j)))
            second.append(int(max(i, j)))
    return np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)
