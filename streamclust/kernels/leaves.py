"""A compiled balanced tree of points, whose nodes know their box, their weight and their sum.

Nodes are split at the middle point along their widest side until a leaf holds few enough, so that
what looks for points near a place can pass over the others by their boxes.
"""

from __future__ import annotations

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.results import FloatArray, IntArray


@kernel
def _halve(
    points: FloatArray, order: IntArray, begin: int, end: int, middle: int, along: int
) -> None:
    """Rearrange a part of the order so that none before the middle exceeds one behind it."""
    low, high = begin, end - 1
    while low < high:
        pivot = points[order[(low + high) // 2], along]
        i, j = low, high
        while i <= j:
            while points[order[i], along] < pivot:
                i += 1
            while points[order[j], along] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@kernel
def build_tree(
    points: FloatArray,
    weights: FloatArray,
    depth: int,
    order: IntArray,
    bounds: IntArray,
    boxes: FloatArray,
    sums: FloatArray,
) -> None:
    """Arrange points in a balanced tree; node i has the children 2 i + 1 and 2 i + 2.

    Parameters
    ----------
    points : float array of shape (n, d)
        n >= 1; left in place, see `order`.
    weights : float array of shape (n,)
    depth : int
        Levels below the root; the tree has 2 ** (depth + 1) - 1 nodes.
    order : int array of shape (n,)
        Receives the points in the order of the leaves.
    bounds : int array of shape (nodes, 2)
        Receives begin and end of every node in `order`.
    boxes : float array of shape (nodes, 2, d)
        Receives the least and the greatest coordinates of every node.
    sums : float array of shape (nodes, d + 1)
        Receives the weighted sum of every node's points, and their weight last.
    """
    n, d = points.shape
    nodes = bounds.shape[0]
    inner = 2**depth - 1
    for i in range(n):
        order[i] = i
    bounds[0, 0], bounds[0, 1] = 0, n
    for node in range(nodes):
        begin, end = bounds[node, 0], bounds[node, 1]
        widest, width = 0, -1.0
        for j in range(d):
            low, high, total = np.inf, -np.inf, 0.0
            for at in range(begin, end):
                value = points[order[at], j]
                low = min(low, value)
                high = max(high, value)
                total += weights[order[at]] * value
            boxes[node, 0, j], boxes[node, 1, j] = low, high
            sums[node, j] = total
            if high - low > width:
                widest, width = j, high - low
        mass = 0.0
        for at in range(begin, end):
            mass += weights[order[at]]
        sums[node, d] = mass
        if node < inner:
            middle = (begin + end) // 2
            _halve(points, order, begin, end, middle, widest)
            bounds[2 * node + 1, 0], bounds[2 * node + 1, 1] = begin, middle
            bounds[2 * node + 2, 0], bounds[2 * node + 2, 1] = middle, end
