"""Reading rules off a routing table: paths, boxes, and what would change an answer."""

from __future__ import annotations

import math

from streamclust.nodes import RoutingTable
from streamclust.results import FloatArray

Intervals = dict[int, tuple[float, float]]


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


def boxes_of(table: RoutingTable, id: int) -> list[Intervals]:
    """The boxes whose union is where the table answers `id`.

    One interval (low, high] per bounded feature; two boxes that differ in one feature only and
    touch there are told as one. O(nodes + boxes^3).
    """
    boxes: list[Intervals] = []
    stack: list[tuple[int, Intervals]] = [(0 if table.feature.size else -1, {})]
    if not table.owner.size:
        return boxes
    while stack:
        node, box = stack.pop()
        if node < 0:
            if table.owner[~node] == id:
                boxes.append(box)
            continue
        feature, threshold = int(table.feature[node]), float(table.threshold[node])
        low, high = box.get(feature, (-math.inf, math.inf))
        # A side that the conditions above leave empty holds no point: it is no box.
        if threshold < high:
            stack.append((int(table.child[node, 1]), {**box, feature: (max(low, threshold), high)}))
        if threshold > low:
            stack.append((int(table.child[node, 0]), {**box, feature: (low, min(high, threshold))}))
    while _merge_once(boxes):
        pass
    return boxes


def _merge_once(boxes: list[Intervals]) -> bool:
    for a in range(len(boxes)):
        for b in range(a + 1, len(boxes)):
            merged = _merged(boxes[a], boxes[b])
            if merged is not None:
                boxes[a] = merged
                del boxes[b]
                return True
    return False


def _merged(a: Intervals, b: Intervals) -> Intervals | None:
    """The one box that is the union of two, if there is one."""
    free = (-math.inf, math.inf)
    differing = [i for i in {**a, **b} if a.get(i, free) != b.get(i, free)]
    if len(differing) > 1:
        return None
    if not differing:
        return a
    i = differing[0]
    (low_a, high_a), (low_b, high_b) = a.get(i, free), b.get(i, free)
    if high_a < low_b or high_b < low_a:
        return None
    whole = (min(low_a, low_b), max(high_a, high_b))
    return {j: v for j, v in {**a, i: whole}.items() if v != free}
