"""Compiled pieces of the neighbour graph: nearest points by a scan, and the edge lists."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamclust.kernels.compiled import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@kernel
def scan_nearest(
    columns: FloatArray, rows: IntArray, width: int, near: IntArray, squares: FloatArray
) -> None:
    """Find the nearest other points of some points by looking at all of them.

    Parameters
    ----------
    columns : float array of shape (d, n)
        The points, feature by feature, so that the loop over points fills vector registers.
    rows : int array of shape (m,)
        Whose neighbours are sought.
    width : int
        How many, less than n.
    near : int array of shape (m, width)
        Receives the neighbours, nearest first; of equally near ones the first comes first.
    squares : float array of shape (m, width)
        Receives their squared distances.
    """
    d, n = columns.shape
    gaps = np.empty(n)
    for r in range(rows.shape[0]):
        i = rows[r]
        gaps[:] = 0.0
        for j in range(d):
            along = columns[j]
            own = along[i]
            for other in range(n):
                step = along[other] - own
                gaps[other] += step * step
        top, who = squares[r], near[r]
        top[:] = np.inf
        found, worst = 0, np.inf
        # outwards from the point itself: in a sorted window the near ones come early
        for step in range(1, n):
            other = i + step if i + step < n else n - 1 - step
            gap = gaps[other]
            if gap > worst or (gap == worst and found == width and other > i):
                continue
            at = min(found, width - 1)
            while at > 0 and (top[at - 1] > gap or (top[at - 1] == gap and who[at - 1] > other)):
                top[at], who[at] = top[at - 1], who[at - 1]
                at -= 1
            top[at], who[at] = gap, other
            found = min(found + 1, width)
            worst = top[width - 1]


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
