"""Reading rules off a routing table: paths, boxes, and what would change an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from streamclust.kernels.boxes import boxes
from streamclust.nodes import RoutingTable
from streamclust.results import FloatArray, IntArray

Intervals = dict[int, tuple[float, float]]


class Boxes(NamedTuple):
    """Where a table answers each of some centers, as flat arrays.

    Attributes
    ----------
    counts : int array of shape (k,)
        Boxes of each center, told center by center.
    sizes : int array of shape (n_boxes,)
        Bounded features of each box.
    features : int array of shape (n,)
    nodes : int array of shape (n, 2)
        The nodes whose thresholds bound the feature below and above, or -1.
    edges : float array of shape (n, 2)
        Those thresholds: the interval (low, high], infinite where it is open.
    """

    counts: IntArray
    sizes: IntArray
    features: IntArray
    nodes: IntArray
    edges: FloatArray

    def spans(self) -> list[tuple[int, int, int, int]]:
        """Of each center: where its boxes begin and end, and where their features do."""
        ends = np.concatenate([[0], np.cumsum(self.counts)])
        starts = np.concatenate([[0], np.cumsum(self.sizes)])[ends]
        cuts = zip(ends.tolist(), starts.tolist(), strict=True)
        return [(a[0], b[0], a[1], b[1]) for a, b in pairwise(cuts)]


class Outline(NamedTuple):
    """The boxes of every center of a tree.

    Attributes
    ----------
    places : mapping of center id to its place in `boxes`
    boxes : Boxes
    prints : mapping of center id to bytes that differ where its boxes do
    """

    places: Mapping[int, int]
    boxes: Boxes
    prints: Mapping[int, bytes]


def outline_of(table: RoutingTable, ids: Sequence[int], n_features: int) -> Outline:
    """Return the outline of a table whose leaves have these ids."""
    boxes = boxes_of(table, ids, n_features)
    sizes, features, edges = (a.tobytes() for a in (boxes.sizes, boxes.features, boxes.edges))
    prints = {
        id: sizes[8 * a : 8 * b] + features[8 * c : 8 * d] + edges[16 * c : 16 * d]
        for id, (a, b, c, d) in zip(ids, boxes.spans(), strict=True)
    }
    return Outline({id: place for place, id in enumerate(ids)}, boxes, prints)


def boxes_of(table: RoutingTable, ids: Sequence[int], n_features: int) -> Boxes:
    """Return the boxes whose union is where a table answers each of the ids of its leaves.

    Two boxes of one id that differ in one feature only and touch there are told as one.
    """
    if not table.owner.size:
        none = np.zeros(0, dtype=np.int64)
        return Boxes(none, none, none, none.reshape(0, 2), np.zeros((0, 2)))
    known = np.array(ids, dtype=np.int64)
    order = np.argsort(known)
    rank = order[np.searchsorted(known[order], table.owner)]
    return Boxes(*boxes(table.feature, table.threshold, table.child, rank, len(known), n_features))


def path_of(table: RoutingTable, x: FloatArray) -> list[tuple[int, bool, float]]:
    """The comparisons that route `x`, root to leaf: (feature, ``x > threshold``, threshold)."""
    path: list[tuple[int, bool, float]] = []
    node = 0 if table.feature.size else -1
    while node >= 0:
        feature, threshold = int(table.feature[node]), float(table.threshold[node])
        right = bool(x[feature] > threshold)
        path.append((feature, right, threshold))
        node = int(table.child[node, int(right)])
    return path


def depth_of(table: RoutingTable) -> int:
    """The most comparisons on a path."""
    depth, level = 0, [0] if table.feature.size else []
    while level:
        depth += 1
        level = [int(c) for node in level for c in table.child[node] if c >= 0]
    return depth


def all_boxes(table: RoutingTable, n_features: int) -> dict[int, list[Intervals]]:
    """Return `boxes_of` every id of a table as dicts: an interval (low, high] per feature."""
    ids = np.unique(table.owner).tolist()
    flat = boxes_of(table, ids, n_features)
    edges, features = flat.edges.tolist(), flat.features.tolist()
    found: dict[int, list[Intervals]] = {}
    for id, (first, last, begin, end) in zip(ids, flat.spans(), strict=True):
        told = zip(features[begin:end], edges[begin:end], strict=True)
        pairs = ((feature, (low, high)) for feature, (low, high) in told)
        found[id] = [dict(islice(pairs, size)) for size in flat.sizes[first:last].tolist()]
    return found
