"""Plain Python for `kernels/boxes.py`: boxes as dicts, the neighbours of a bound by sorting."""

from __future__ import annotations

import math

import numpy as np

from streamclust.nodes import RoutingTable

Intervals = dict[int, tuple[float, float]]
FREE = (-math.inf, math.inf)


def all_boxes(table: RoutingTable) -> dict[int, list[Intervals]]:
    """The boxes whose union is where the table answers an id, by id.

    One interval (low, high] per bounded feature; two boxes that differ in one feature only and
    touch there are told as one. One walk, then O(boxes^3) for each id.
    """
    found: dict[int, list[Intervals]] = {int(id): [] for id in table.owner}
    nodes = list(
        zip(table.feature.tolist(), table.threshold.tolist(), table.child.tolist(), strict=True)
    )
    owner = table.owner.tolist()
    stack: list[tuple[int, Intervals]] = [(0 if nodes else -1, {})] if owner else []
    while stack:
        node, box = stack.pop()
        if node < 0:
            found[owner[~node]].append(box)
            continue
        feature, threshold, (left, right) = nodes[node]
        low, high = box.get(feature, (-math.inf, math.inf))
        # A side that the conditions above leave empty holds no point: it is no box.
        if threshold < high:
            stack.append((right, {**box, feature: (max(low, threshold), high)}))
        if threshold > low:
            stack.append((left, {**box, feature: (low, min(high, threshold))}))
    for boxes in found.values():
        while _merge_once(boxes):
            pass
    return found


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
    differing = -1
    for some, others in ((a, b), (b, a)):
        for i, bounds in some.items():
            if i != differing and others.get(i) != bounds:
                if differing >= 0:
                    return None
                differing = i
    if differing < 0:
        return a
    (low_a, high_a), (low_b, high_b) = a.get(differing, FREE), b.get(differing, FREE)
    if high_a < low_b or high_b < low_a:
        return None
    whole = (min(low_a, low_b), max(high_a, high_b))
    return {j: v for j, v in {**a, differing: whole}.items() if v != FREE}


def near(points, origin, feature, bound):
    found = []
    for f, limit in zip(feature.tolist(), bound.tolist(), strict=True):
        column = origin[f] + points[:, f]
        column = np.sort(column[~np.isnan(column)])
        at = np.searchsorted(column, limit, side="right")
        found.append(
            (column[at - 1] if at else -math.inf, column[at] if at < len(column) else math.inf)
        )
    return np.array(found).reshape(-1, 2)
