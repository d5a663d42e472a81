"""Compiled flat-kernel mean shift over a tree of boxes.

A trajectory moves a position to the weighted mean of the points within one bandwidth of it, again
and again (Comaniciu and Meer, "Mean shift", IEEE TPAMI 24(5), 2002). The points stand in a balanced
tree whose nodes know their box, their weight and their weighted sum, so that a ball costs what its
border costs and not what it holds.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamclust.kernels.compiled import kernel
from streamclust.results import FloatArray, IntArray

WordArray = NDArray[np.uint64]
GROUP = 64
"""Trajectories that go together: the bits of a word."""
TILE = 256
"""Points looked at in one go, so that what is computed of them stays close to the processor."""
APART = 0.25
"""Trajectories farther apart than this share of the bandwidth look at the points separately."""
SLACK = 1e-9
"""Share of the radius within which rounding could decide on which side of a border a point is."""


@kernel
def _place(boxes: FloatArray, node: int, center: FloatArray, inner: float, outer: float) -> int:
    """Where a node's box lies: 0 outside the outer ball, 2 inside the inner one, 1 otherwise."""
    near, far = 0.0, 0.0
    for j in range(center.shape[0]):
        below = boxes[node, 0, j] - center[j]
        above = center[j] - boxes[node, 1, j]
        gap = max(below, above, 0.0)
        reach = max(-below, -above)
        near += gap * gap
        far += reach * reach
    if near > outer:
        return 0
    return 2 if far <= inner else 1


@kernel
def _measure(
    columns: FloatArray, begin: int, end: int, center: FloatArray, squares: FloatArray
) -> None:
    """Write the squared distances of some points from a center.

    Column by column and without a branch, so that the compiler handles several points at a time.
    """
    first = np.uint64(begin)
    for i in range(np.uint64(end - begin)):
        squares[i] = 0.0
    for j in range(center.shape[0]):
        middle = center[j]
        for i in range(np.uint64(end - begin)):
            gap = columns[j, first + i] - middle
            squares[i] += gap * gap


@kernel
def _add(
    columns: FloatArray,
    weights: FloatArray,
    begin: int,
    end: int,
    square: float,
    held: FloatArray,
    out: FloatArray,
) -> bool:
    """Add the points whose squared distance is small enough to `out`; whether there are any.

    `held` has the squared distances, and receives the weights of those points and zeros.
    """
    d, n = columns.shape[0], end - begin
    first = np.uint64(begin)
    for i in range(np.uint64(n)):
        held[i] = weights[first + i] if held[i] <= square else 0.0
    mass = 0.0
    for i in range(n):
        mass += held[i]
    if mass == 0.0:
        return False
    out[d] += mass
    whole = n // 4 * 4
    for j in range(d):
        a, b, c, e = 0.0, 0.0, 0.0, 0.0
        for i in range(0, whole, 4):
            a += held[i] * columns[j, begin + i]
            b += held[i + 1] * columns[j, begin + i + 1]
            c += held[i + 2] * columns[j, begin + i + 2]
            e += held[i + 3] * columns[j, begin + i + 3]
        for i in range(whole, n):
            a += held[i] * columns[j, begin + i]
        out[j] += (a + b) + (c + e)
    return True


@kernel
def _gather(
    columns: FloatArray,
    weights: FloatArray,
    bounds: IntArray,
    boxes: FloatArray,
    sums: FloatArray,
    center: FloatArray,
    inner: float,
    outer: float,
    bits: np.uint64,
    stack: IntArray,
    held: FloatArray,
    base: FloatArray,
    nodes: WordArray,
    words: WordArray,
    near: IntArray,
    near_columns: FloatArray,
    near_weights: FloatArray,
) -> int:
    """Part the points into those inside the inner ball, those outside the outer one, the others.

    The first are added to `base` and marked with `bits`, by node or by point; the last are copied
    to `near`. Returns how many were copied.
    """
    d, half = center.shape[0], bounds.shape[0] // 2
    for j in range(d + 1):
        base[j] = 0.0
    stack[0] = 0
    size, count = 1, 0
    while size > 0:
        size -= 1
        node = stack[size]
        place = _place(boxes, node, center, inner, outer)
        if place == 2:
            for j in range(d + 1):
                base[j] += sums[node, j]
            nodes[node] |= bits
        elif place == 1 and node < half:
            stack[size], stack[size + 1] = 2 * node + 2, 2 * node + 1
            size += 2
        elif place == 1:
            begin, end = bounds[node, 0], bounds[node, 1]
            _measure(columns, begin, end, center, held)
            if inner < outer:
                for i in range(end - begin):
                    if inner < held[i] <= outer:
                        near[count] = begin + i
                        near_weights[count] = weights[begin + i]
                        for j in range(d):
                            near_columns[j, count] = columns[j, begin + i]
                        count += 1
            if _add(columns, weights, begin, end, inner, held, base):
                first = np.uint64(begin)
                for i in range(np.uint64(end - begin)):
                    words[first + i] |= bits if held[i] > 0.0 else np.uint64(0)
    return count


@kernel
def _middle(ends: FloatArray, team: IntArray, low: int, high: int, center: FloatArray) -> int:
    """Write the middle of the box around some positions; return its widest direction."""
    widest, width = 0, -1.0
    for j in range(center.shape[0]):
        least, most = np.inf, -np.inf
        for at in range(low, high):
            least = min(least, ends[team[at], j])
            most = max(most, ends[team[at], j])
        center[j] = 0.5 * (least + most)
        if most - least > width:
            widest, width = j, most - least
    return widest


@kernel
def _reach(
    ends: FloatArray, team: IntArray, low: int, high: int, begin: int, center: FloatArray
) -> tuple[float, np.uint64]:
    """The largest distance of some positions from a center, and their bits."""
    reach, bits = 0.0, np.uint64(0)
    for at in range(low, high):
        far = 0.0
        for j in range(center.shape[0]):
            far += (ends[team[at], j] - center[j]) ** 2
        reach = max(reach, far)
        bits |= np.uint64(1) << np.uint64(team[at] - begin)
    return math.sqrt(reach), bits


@kernel
def _sort(ends: FloatArray, team: IntArray, low: int, high: int, along: int) -> None:
    """Put some positions into order along one direction."""
    for i in range(low + 1, high):
        one, at = team[i], i
        while at > low and ends[team[at - 1], along] > ends[one, along]:
            team[at] = team[at - 1]
            at -= 1
        team[at] = one


@kernel
def follow_trajectories(
    columns: FloatArray,
    weights: FloatArray,
    bounds: IntArray,
    boxes: FloatArray,
    sums: FloatArray,
    bandwidth: float,
    tolerance: float,
    max_steps: int,
    ends: FloatArray,
    masses: FloatArray,
    trails: WordArray,
) -> int:
    """Follow starts to where they come to rest, and note which points they pass.

    Starts go in groups of 64, and close ones of a group look at the points together: what all of
    their balls hold is added once, and each one only looks at what is near the borders.

    Parameters
    ----------
    columns : float array of shape (d, n)
        The points' coordinates.
    weights : float array of shape (n,)
        Positive. Both in the order of the leaves.
    bounds, boxes, sums
        As `streamclust.kernels.leaves.build_tree` wrote them.
    bandwidth : float
        Radius of the ball, its border included.
    tolerance : float
        A trajectory rests when a step is at most so long.
    max_steps : int
        Further steps after the first, at the most.
    ends : float array of shape (s, d)
        The starts, neighbours side by side; receives the resting positions.
    masses : float array of shape (s,)
        Receives the weight of the last ball; 0.0 where a start sees no point.
    trails : uint64 array of shape (groups, n)
        Receives, for every group and point, a bit for each of the 64 starts that passed it.

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
    stack, nodes = np.empty(2 * depth + 2, np.int64), np.empty(bounds.shape[0], np.uint64)
    ranges, team = np.empty((GROUP, 2), np.int64), np.empty(GROUP, np.int64)
    center, base, found = np.empty(d), np.empty(d + 1), np.empty(d + 1)
    widest = TILE
    for node in range(bounds.shape[0] // 2, bounds.shape[0]):
        widest = max(widest, bounds[node, 1] - bounds[node, 0])
    held = np.empty(widest)
    near, near_words = np.empty(n, np.int64), np.empty(n, np.uint64)
    near_columns, near_weights = np.empty((d, n)), np.empty(n)
    balls = 0
    for group in range(trails.shape[0]):
        begin, end = group * GROUP, min((group + 1) * GROUP, ends.shape[0])
        words = trails[group]
        for i in range(n):
            words[i] = 0
        for i in range(nodes.shape[0]):
            nodes[i] = 0
        size = end - begin
        for i in range(size):
            team[i] = begin + i
            masses[begin + i] = 0.0
        for _ in range(max_steps + 1):
            going = 0
            ranges[0, 0], ranges[0, 1] = 0, size
            waiting = 1 if size > 0 else 0
            while waiting > 0:
                waiting -= 1
                low, high = ranges[waiting, 0], ranges[waiting, 1]
                along = _middle(ends, team, low, high, center)
                reach, bits = _reach(ends, team, low, high, begin, center)
                if high - low > 1 and reach > APART * bandwidth:
                    _sort(ends, team, low, high, along)
                    middle = (low + high) // 2
                    ranges[waiting, 0], ranges[waiting, 1] = middle, high
                    ranges[waiting + 1, 0], ranges[waiting + 1, 1] = low, middle
                    waiting += 2
                    continue
                inner, outer = square, square
                if reach > 0.0:
                    reach += SLACK * (bandwidth + reach)
                    inner = (bandwidth - reach) ** 2 if reach < bandwidth else -1.0
                    outer = (bandwidth + reach) ** 2
                count = _gather(
                    columns,
                    weights,
                    bounds,
                    boxes,
                    sums,
                    center,
                    inner,
                    outer,
                    bits,
                    stack,
                    held,
                    base,
                    nodes,
                    words,
                    near,
                    near_columns,
                    near_weights,
                )
                for i in range(count):
                    near_words[i] = 0
                for at in range(low, high):
                    s = team[at]
                    bit = np.uint64(1) << np.uint64(s - begin)
                    for j in range(d + 1):
                        found[j] = base[j]
                    for first in range(0, count, TILE):
                        last = min(first + TILE, count)
                        _measure(near_columns, first, last, ends[s], held)
                        if _add(near_columns, near_weights, first, last, square, held, found):
                            lead = np.uint64(first)
                            for i in range(np.uint64(last - first)):
                                near_words[lead + i] |= bit if held[i] > 0.0 else np.uint64(0)
                    balls += 1
                    if found[d] <= 0.0:
                        continue
                    masses[s] = found[d]
                    step = 0.0
                    for j in range(d):
                        mean = found[j] / found[d]
                        step += (mean - ends[s, j]) ** 2
                        ends[s, j] = mean
                    if step > tolerance * tolerance:
                        team[going] = s
                        going += 1
                for i in range(count):
                    words[near[i]] |= near_words[i]
            size = going
        _hand_down(bounds, nodes, words)
    return balls


@kernel
def _hand_down(bounds: IntArray, nodes: WordArray, words: WordArray) -> None:
    """Mark points with what their nodes are marked with."""
    half = bounds.shape[0] // 2
    for node in range(bounds.shape[0]):
        if node < half:
            nodes[2 * node + 1] |= nodes[node]
            nodes[2 * node + 2] |= nodes[node]
        elif nodes[node] != 0:
            for at in range(bounds[node, 0], bounds[node, 1]):
                words[at] |= nodes[node]


@kernel
def add_visits(trails: WordArray, modes: IntArray, shares: FloatArray, visits: FloatArray) -> None:
    """Add the shares of trajectories to the points that they passed.

    Parameters
    ----------
    trails : uint64 array of shape (groups, n)
        As `follow_trajectories` wrote them.
    modes : int array of shape (s,)
        Row of `visits` of every trajectory; negative ones are not counted.
    shares : float array of shape (s,)
        What a trajectory adds to the points that it passed, each once.
    visits : float array of shape (rows, n)
        Is added to; in the order of the leaves.
    """
    n = trails.shape[1]
    for group in range(trails.shape[0]):
        begin, end = group * GROUP, min((group + 1) * GROUP, modes.shape[0])
        for first in range(0, n, TILE):
            last, passed = min(first + TILE, n), np.uint64(0)
            for at in range(first, last):
                passed |= trails[group, at]
            for s in range(begin, end):
                bit = np.uint64(1) << np.uint64(s - begin)
                if modes[s] < 0 or not passed & bit:
                    continue
                row, share = np.uint64(modes[s]), shares[s]
                for at in range(np.uint64(first), np.uint64(last)):
                    visits[row, at] += share if trails[group, at] & bit else 0.0


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
