"""Compiled pieces of the neighbour graph: nearest points by leaves, and the edge lists."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamclust.kernels.compiled import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


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
    d, n = columns.shape
    gaps = np.empty(n)
    squares[:] = np.inf
    near[:] = n
    for leaf in range(bounds.shape[0]):
        limit = np.inf
        for step in range(bounds.shape[0]):
            other = leaf ^ step  # the sibling, then the cousins: near leaves come early
            if _between(boxes, other, leaf) > limit:
                continue
            begin, first = bounds[other, 0], np.uint64(bounds[other, 0])
            length = np.uint64(bounds[other, 1] - begin)
            limit = -np.inf
            for at in range(bounds[leaf, 0], bounds[leaf, 1]):
                row = rows[at]
                if row < 0:
                    continue
                worst, hits = squares[row, width - 1], 0
                if _beside(boxes, other, columns, at) <= worst:
                    for i in range(length):
                        gaps[i] = 0.0
                    for j in range(d):
                        own = columns[j, at]
                        for i in range(length):
                            gap = columns[j, first + i] - own
                            gaps[i] += gap * gap
                    for i in range(length):
                        hits += gaps[i] <= worst
                if hits > 0:
                    for i in range(bounds[other, 1] - begin):
                        if gaps[i] <= worst and begin + i != at:
                            _insert(gaps[i], names[begin + i], row, near, squares)
                            worst = squares[row, width - 1]
                limit = max(limit, worst)


@kernel
def _insert(square: float, name: int, row: int, near: IntArray, squares: FloatArray) -> None:
    """Put a point among the nearest ones of a row, if it is nearer than the last of them."""
    slot = near.shape[1] - 1
    worst = squares[row, slot]
    if square > worst or (square == worst and name > near[row, slot]):
        return
    while slot > 0 and (
        squares[row, slot - 1] > square
        or (squares[row, slot - 1] == square and near[row, slot - 1] > name)
    ):
        squares[row, slot], near[row, slot] = squares[row, slot - 1], near[row, slot - 1]
        slot -= 1
    squares[row, slot], near[row, slot] = square, name


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
