"""A balanced tree of points, laid out for the kernels that look for what is near a place."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamclust.kernels.leaves import build_tree
from streamclust.results import FloatArray, IntArray

LEAF = 64
"""Points of a leaf at the most."""


class PointTree(NamedTuple):
    """The order of the points in the tree, and its nodes; see `kernels.leaves.build_tree`."""

    order: IntArray
    bounds: IntArray
    boxes: FloatArray
    sums: FloatArray


def point_tree(points: FloatArray, weights: FloatArray, leaf: float = LEAF) -> PointTree:
    """Return the tree of points (n, d), n >= 1, whose leaves hold at most `leaf` of them."""
    n, d = points.shape
    depth = max(0, math.ceil(math.log2(n / leaf)))
    nodes = 2 ** (depth + 1) - 1
    order, bounds = np.empty(n, np.int64), np.empty((nodes, 2), np.int64)
    tree = PointTree(order, bounds, np.empty((nodes, 2, d)), np.empty((nodes, d + 1)))
    build_tree(points, weights, depth, *tree)
    return tree
