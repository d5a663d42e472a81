"""Compiled flat-kernel mean shift over a tree of boxes.

A trajectory moves a position to the weighted mean of the points within one bandwidth of it, again
and again (Comaniciu and Meer, "Mean shift", IEEE TPAMI 24(5), 2002). The points stand in a balanced
tree whose nodes know their box, their weight and their weighted sum, so that a ball costs what its
border costs and not what it holds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamclust.kernels.compiled import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


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
        begin, end = bounds[node]
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
            part = order[begin:end].copy()
            values = np.empty(end - begin)
            for at in range(end - begin):
                values[at] = points[part[at], widest]
            ranks = np.argsort(values, kind="mergesort")
            for at in range(end - begin):
                order[begin + at] = part[ranks[at]]
            middle = (begin + end) // 2
            bounds[2 * node + 1, 0], bounds[2 * node + 1, 1] = begin, middle
            bounds[2 * node + 2, 0], bounds[2 * node + 2, 1] = middle, end


@kernel
def _place(boxes: FloatArray, node: int, center: FloatArray, square: float) -> int:
    """Where a node's box lies: 0 outside the ball, 1 across its border, 2 inside."""
    near, far = 0.0, 0.0
    for j in range(center.shape[0]):
        below = boxes[node, 0, j] - center[j]
        above = center[j] - boxes[node, 1, j]
        gap = max(below, above, 0.0)
        reach = max(-below, -above)
        near += gap * gap
        far += reach * reach
    if near > square:
        return 0
    return 2 if far <= square else 1


@kernel
def _scan(
    columns: FloatArray,
    weights: FloatArray,
    begin: int,
    end: int,
    center: FloatArray,
    square: float,
    held: FloatArray,
    out: FloatArray,
) -> None:
    """Add the points of a leaf that are within a ball to `out`; `held` is room for a leaf.

    Column by column and without a branch, so that the compiler handles several points at a time.
    """
    d, n = center.shape[0], end - begin
    for j in range(d):
        column, middle = columns[j, begin:end], center[j]
        if j == 0:
            for i in range(n):
                held[i] = (column[i] - middle) * (column[i] - middle)
        else:
            for i in range(n):
                held[i] += (column[i] - middle) * (column[i] - middle)
    own = weights[begin:end]
    mass = 0.0
    for i in range(n):
        held[i] = own[i] if held[i] <= square else 0.0
    for i in range(n):
        mass += held[i]
    if mass == 0.0:
        return
    out[d] += mass
    whole = n // 4 * 4
    for j in range(d):
        column = columns[j, begin:end]
        a, b, c, e = 0.0, 0.0, 0.0, 0.0
        for i in range(0, whole, 4):
            a += held[i] * column[i]
            b += held[i + 1] * column[i + 1]
            c += held[i + 2] * column[i + 2]
            e += held[i + 3] * column[i + 3]
        for i in range(whole, n):
            a += held[i] * column[i]
        out[j] += (a + b) + (c + e)


@kernel
def _ball(
    columns: FloatArray,
    weights: FloatArray,
    bounds: IntArray,
    boxes: FloatArray,
    sums: FloatArray,
    center: FloatArray,
    square: float,
    stack: IntArray,
    held: FloatArray,
    out: FloatArray,
) -> None:
    """Write the weighted sum of the points within a ball to `out`, and their weight last."""
    d = center.shape[0]
    inner = bounds.shape[0] // 2
    for j in range(d + 1):
        out[j] = 0.0
    stack[0] = 0
    size = 1
    while size > 0:
        size -= 1
        node = stack[size]
        place = _place(boxes, node, center, square)
        if place == 2:
            for j in range(d + 1):
                out[j] += sums[node, j]
        elif place == 1 and node < inner:
            stack[size], stack[size + 1] = 2 * node + 2, 2 * node + 1
            size += 2
        elif place == 1:
            begin, end = bounds[node]
            _scan(columns, weights, begin, end, center, square, held, out)


@kernel
def _mark(
    columns: FloatArray,
    bounds: IntArray,
    boxes: FloatArray,
    center: FloatArray,
    square: float,
    stack: IntArray,
    stamp: int,
    nodes: IntArray,
    seen: IntArray,
    weight: float,
    visits: FloatArray,
) -> None:
    """Add `weight` to the visits of every point within a ball that bears no `stamp` yet."""
    inner = bounds.shape[0] // 2
    stack[0] = 0
    size = 1
    while size > 0:
        size -= 1
        node = stack[size]
        if nodes[node] == stamp:
            continue
        place = _place(boxes, node, center, square)
        if place == 2:
            nodes[node] = stamp
        elif place == 1 and node < inner:
            stack[size], stack[size + 1] = 2 * node + 2, 2 * node + 1
            size += 2
        if place == 2 or (place == 1 and node >= inner):
            for at in range(bounds[node, 0], bounds[node, 1]):
                far = 0.0
                if place == 1:
                    for j in range(center.shape[0]):
                        far += (columns[j, at] - center[j]) ** 2
                if far <= square and seen[at] != stamp:
                    seen[at] = stamp
                    visits[at] += weight


@kernel
def _widest(bounds: IntArray) -> int:
    """The number of points of the fullest leaf."""
    widest = 0
    for node in range(bounds.shape[0] // 2, bounds.shape[0]):
        widest = max(widest, bounds[node, 1] - bounds[node, 0])
    return widest


@kernel
def run_trajectories(
    columns: FloatArray,
    weights: FloatArray,
    bounds: IntArray,
    boxes: FloatArray,
    sums: FloatArray,
    starts: FloatArray,
    bandwidth: float,
    tolerance: float,
    max_steps: int,
    ends: FloatArray,
    masses: FloatArray,
    modes: IntArray,
    shares: FloatArray,
    visits: FloatArray,
) -> int:
    """Follow every start to where it comes to rest, and count the visits on the way.

    Parameters
    ----------
    columns : float array of shape (d, n)
        The points' coordinates.
    weights : float array of shape (n,)
        Both in the order of the leaves.
    bounds, boxes, sums
        As `build_tree` wrote them.
    starts : float array of shape (s, d)
    bandwidth : float
        Radius of the ball, its border included.
    tolerance : float
        A trajectory rests when a step is at most so long.
    max_steps : int
        Further steps after the first, at the most.
    ends : float array of shape (s, d)
        Receives the resting positions.
    masses : float array of shape (s,)
        Receives the weight of the last ball; 0.0 where a start sees no point.
    modes : int array of shape (s,)
        Row of `visits` of every trajectory; negative ones are not counted.
    shares : float array of shape (s,)
        What a trajectory adds to the points that it visits, each once.
    visits : float array of shape (rows, n)
        Is added to; in the order of the leaves.

    Returns
    -------
    int
        Balls taken.
    """
    d, n = columns.shape
    square = bandwidth * bandwidth
    depth = 1
    while 2**depth <= bounds.shape[0]:
        depth += 1
    stack = np.empty(2 * depth + 2, np.int64)
    nodes = np.full(bounds.shape[0], -1, np.int64)
    seen = np.full(n, -1, np.int64)
    found = np.empty(d + 1)
    held = np.empty(_widest(bounds))
    balls = 0
    for s in range(starts.shape[0]):
        center = starts[s].copy()
        masses[s] = 0.0
        for _ in range(max_steps + 1):
            _ball(columns, weights, bounds, boxes, sums, center, square, stack, held, found)
            balls += 1
            if found[d] <= 0.0:
                break
            if modes[s] >= 0:
                row = visits[modes[s]]
                _mark(columns, bounds, boxes, center, square, stack, s, nodes, seen, shares[s], row)
            masses[s] = found[d]
            step = 0.0
            for j in range(d):
                mean = found[j] / found[d]
                step += (mean - center[j]) ** 2
                center[j] = mean
            if step <= tolerance * tolerance:
                break
        ends[s] = center
    return balls


@kernel
def merge_ends(
    ends: FloatArray, order: IntArray, bandwidth: float, modes: IntArray, kept: IntArray
) -> int:
    """Let every resting position stand for those within one bandwidth that come after it.

    Parameters
    ----------
    ends : float array of shape (s, d)
    order : int array of shape (s,)
        Heaviest ball first.
    bandwidth : float
    modes : int array of shape (s,)
        Receives the mode nearest to each position: an index into `kept`.
    kept : int array of shape (s,)
        Receives the positions that stand.

    Returns
    -------
    int
        How many stand.
    """
    square = bandwidth * bandwidth
    count = 0
    for s in order:
        alone = True
        for m in range(count):
            far = 0.0
            for j in range(ends.shape[1]):
                far += (ends[s, j] - ends[kept[m], j]) ** 2
            if far <= square:
                alone = False
                break
        if alone:
            kept[count] = s
            count += 1
    for s in range(ends.shape[0]):
        best = np.inf
        for m in range(count):
            far = 0.0
            for j in range(ends.shape[1]):
                far += (ends[s, j] - ends[kept[m], j]) ** 2
            if far < best:
                best = far
                modes[s] = m
    return count
