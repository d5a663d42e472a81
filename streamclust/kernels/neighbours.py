"""Compiled pieces of the neighbour graph: nearest points by leaves, and the edge lists."""

from __future__ import annotations

import math

import numpy as np

from streamclust.kernels.compiled import inlined_kernel, kernel
from streamclust.results import BoolArray, FloatArray, IntArray

PART = 8


@kernel
def _between(boxes: FloatArray, one: int, other: int) -> float:
    """The squared distance between two boxes."""
    total = 0.0
    for j in range(boxes.shape[2]):
        above, below = boxes[one, 0, j] - boxes[other, 1, j], boxes[other, 0, j] - boxes[one, 1, j]
        gap = max(above, below, 0.0)
        total += gap * gap
    return total


@kernel
def _beside(boxes: FloatArray, box: int, columns: FloatArray, at: int) -> float:
    """The squared distance between a box and a point."""
    total = 0.0
    for j in range(boxes.shape[2]):
        gap = max(boxes[box, 0, j] - columns[j, at], columns[j, at] - boxes[box, 1, j], 0.0)
        total += gap * gap
    return total


@kernel
def leaf_nearest(
    columns: FloatArray,
    names: IntArray,
    bounds: IntArray,
    boxes: FloatArray,
    rows: IntArray,
    width: int,
    near: IntArray,
    squares: FloatArray,
) -> None:
    """Find the nearest other points of some points by looking at the leaves of a tree.

    All points of a leaf look at another leaf before they go on to the next one: its coordinates
    are at hand, and the loops over them have no branches.

    Parameters
    ----------
    columns : float array of shape (d, n)
        The points, feature by feature, in the order of the leaves.
    names : int array of shape (n,)
        What number each of them has.
    bounds : int array of shape (leaves, 2)
        Begin and end of every leaf; the number of leaves is a power of two.
    boxes : float array of shape (leaves, 2, d)
        The least and the greatest coordinates of every leaf.
    rows : int array of shape (n,)
        The row of every point in `near`, in the order of the leaves; -1 for none.
    width : int
        How many neighbours, less than n.
    near : int array of shape (m, width)
        Receives the neighbours, nearest first; of equally near ones the least number comes first.
    squares : float array of shape (m, width)
        Receives their squared distances.
    """
    n = columns.shape[1]
    gaps, hits = np.empty(n), np.empty(n, np.int64)
    squares[:] = np.inf
    near[:] = n
    for leaf in range(bounds.shape[0]):
        limit = np.inf
        for step in range(bounds.shape[0]):
            other = leaf ^ step  # the sibling, then the cousins: near leaves come early
            if _between(boxes, other, leaf) > limit:
                continue
            begin, end = bounds[other, 0], bounds[other, 1]
            limit = -np.inf
            for at in range(bounds[leaf, 0], bounds[leaf, 1]):
                row = rows[at]
                if row < 0:
                    continue
                worst = squares[row, width - 1]
                if _beside(boxes, other, columns, at) <= worst:
                    found = _within(columns, at, begin, end, worst, gaps, hits)
                    mine, far = near[row], squares[row]
                    for hit in hits[:found]:
                        square, name = gaps[hit], names[begin + hit]
                        if square < worst or (square == worst and name < mine[width - 1]):
                            _insert(square, name, mine, far)
                            worst = far[width - 1]
                limit = max(limit, worst)


@inlined_kernel
def _within(
    columns: FloatArray,
    at: int,
    begin: int,
    end: int,
    worst: float,
    gaps: FloatArray,
    hits: IntArray,
) -> int:
    """Find the points of a range whose squared distance is at most `worst`; answer how many.

    `gaps` receives the squared distances, `hits` which of them are so small. After every few
    features it is seen whether any can still be.
    """
    d, first, length = columns.shape[0], np.uint64(begin), np.uint64(end - begin)
    for i in range(length):
        gaps[i] = 0.0
    for part in range(0, d, PART):
        for j in range(part, min(part + PART, d)):
            own = columns[j, at]
            for i in range(length):
                gap = columns[j, first + i] - own
                gaps[i] += gap * gap
        found = 0
        for i in range(length):
            found += gaps[i] <= worst
        if found == 0:
            return 0
    if begin <= at < end:
        gaps[at - begin] = np.nan  # the point itself
    found = 0
    for i in range(end - begin):
        hits[found] = i  # no branch: which points are near is hard to foretell
        found += gaps[i] <= worst
    return found


@kernel
def _insert(square: float, name: int, near: IntArray, squares: FloatArray) -> None:
    """Put a point among the nearest ones instead of the last of them, which is farther."""
    slot = near.shape[0] - 1
    while slot > 0 and (
        squares[slot - 1] > square or (squares[slot - 1] == square and near[slot - 1] > name)
    ):
        squares[slot], near[slot] = squares[slot - 1], near[slot - 1]
        slot -= 1
    squares[slot], near[slot] = square, name


@kernel
def count_ties(
    squares: FloatArray, k: int, tie: float, more: bool, last: bool, kept: IntArray
) -> None:
    """Tell how many of the nearest points of each row are neighbours: k, and what ties with them.

    Parameters
    ----------
    squares : float array of shape (m, width)
        Squared distances, nearest first; width >= k.
    k : int
    tie : float
        Relative difference below which two distances are tied.
    more : bool
        Whether there are more points than these.
    last : bool
        Whether no more of them will be looked at. Ties that may go on are then not kept at all,
        but for k where nothing is nearer.
    kept : int array of shape (m,)
        Receives the numbers; -1 where ties may go on and more will be looked at.
    """
    width = squares.shape[1]
    for row in range(squares.shape[0]):
        far = math.sqrt(squares[row, k - 1])
        count = k
        while count < width and math.sqrt(squares[row, count]) <= far * (1.0 + tie):
            count += 1
        if more and count == width:
            count = k if last else -1
            while (
                last and count > 0 and not (math.sqrt(squares[row, count - 1]) < far * (1.0 - tie))
            ):
                count -= 1
            if count == 0:
                count = k
        kept[row] = count


@kernel
def _by_end(ends: IntArray, order: IntArray, n: int) -> IntArray:
    """Some edges, given in an order, by one of their ends; those of the same end keep theirs."""
    start = np.zeros(n + 1, np.int64)
    for end in ends:
        start[end + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    sorted_ = np.empty(order.shape[0], np.int64)
    for e in order:
        sorted_[start[ends[e]]] = e
        start[ends[e]] += 1
    return sorted_


@kernel
def pair_up(
    source: IntArray,
    target: IntArray,
    n: int,
    first: IntArray,
    second: IntArray,
    mutual: BoolArray,
) -> int:
    """Make undirected edges of directed ones, each once, sorted by their ends.

    Parameters
    ----------
    source, target : int array of shape (m,)
        Below n; no pair comes twice.
    n : int
    first, second : int array of shape (m,)
        Receive the ends, the lower one first.
    mutual : bool array of shape (m,)
        Receives whether both directions were there.

    Returns
    -------
    int
        How many edges there are.
    """
    m = source.shape[0]
    low, high, order = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    for e in range(m):
        a, b = source[e], target[e]
        order[e] = e
        low[e], high[e] = (a, b) if a < b else (b, a)
    count = 0
    for e in _by_end(low, _by_end(high, order, n), n):
        if count > 0 and first[count - 1] == low[e] and second[count - 1] == high[e]:
            mutual[count - 1] = True
            continue
        first[count], second[count], mutual[count] = low[e], high[e], False
        count += 1
    return count


@kernel
def list_edges(
    first: IntArray, second: IntArray, start: IntArray, entry: IntArray, edge: IntArray
) -> None:
    """List every point's neighbours and the edges to them.

    Parameters
    ----------
    first, second : int array of shape (m,)
        Ends of the edges.
    start : int array of shape (n + 1,)
        Receives where the neighbours of each point begin.
    entry, edge : int array of shape (2 m,)
        Receive the neighbours of all points, one after the other, and the edges to them.
    """
    n = start.shape[0] - 1
    start[:] = 0
    for e in range(first.shape[0]):
        start[first[e] + 1] += 1
        start[second[e] + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    at = start[:n].copy()
    for e in range(first.shape[0]):
        a, b = first[e], second[e]
        entry[at[a]], edge[at[a]] = b, e
        entry[at[b]], edge[at[b]] = a, e
        at[a] += 1
        at[b] += 1
