"""The boxes of a routing table, and the window values that lie next to its thresholds."""

from __future__ import annotations

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.results import FloatArray, IntArray

OPEN = -1  # no node bounds this side


@kernel
def depth(child: IntArray) -> int:
    """Return the most comparisons on a path; nodes come parents first."""
    level = np.ones(child.shape[0], dtype=np.int64)
    most = 0
    for node in range(child.shape[0]):
        most = max(most, level[node])
        for side in range(2):
            if child[node, side] >= 0:
                level[child[node, side]] = level[node] + 1
    return most


@kernel
def edge(threshold: FloatArray, node: int, side: int) -> float:
    """Return the bound that a node sets, infinite where none does; side 0 is the lower one."""
    if node == OPEN:
        return -np.inf if side == 0 else np.inf
    return float(threshold[node])


@kernel
def copy(
    size: int, features: IntArray, bounds: IntArray, to_features: IntArray, to_bounds: IntArray
) -> None:
    """Copy a box. By hand, as everything here: slices would take seconds longer to compile."""
    for i in range(size):
        to_features[i] = features[i]
        to_bounds[i, 0], to_bounds[i, 1] = bounds[i, 0], bounds[i, 1]


@kernel
def join(
    a: int,
    b: int,
    threshold: FloatArray,
    sizes: IntArray,
    features: IntArray,
    bounds: IntArray,
) -> bool:
    """Make box a the union of a and b where that is a box; tell whether it is.

    It is where they differ in one feature only and touch there; that feature is free where the
    union is open on both sides.
    """
    if abs(sizes[a] - sizes[b]) > 1:
        return False
    differing, at, other = -1, -1, -1
    for turn in range(2):
        one, two = (a, b) if turn == 0 else (b, a)
        for i in range(sizes[one]):
            f = features[one, i]
            if f == differing:
                continue
            j = 0
            while j < sizes[two] and features[two, j] != f:
                j += 1
            same = j < sizes[two]
            for side in range(2):
                if same and edge(threshold, bounds[one, i, side], side) != edge(
                    threshold, bounds[two, j, side], side
                ):
                    same = False
            if same:
                continue
            if differing >= 0:
                return False
            differing = f
            held = j if j < sizes[two] else -1
            at, other = (i, held) if turn == 0 else (held, i)
    if differing < 0:
        return True
    if at >= 0 and other >= 0:
        low_a, high_a = bounds[a, at, 0], bounds[a, at, 1]
        low_b, high_b = bounds[b, other, 0], bounds[b, other, 1]
        if edge(threshold, high_a, 1) < edge(threshold, low_b, 0):
            return False
        if edge(threshold, high_b, 1) < edge(threshold, low_a, 0):
            return False
        if edge(threshold, low_b, 0) < edge(threshold, low_a, 0):
            bounds[a, at, 0] = low_b
        if edge(threshold, high_b, 1) > edge(threshold, high_a, 1):
            bounds[a, at, 1] = high_b
        if bounds[a, at, 0] != OPEN or bounds[a, at, 1] != OPEN:
            return True
    if at >= 0:  # free now
        for i in range(at, sizes[a] - 1):
            features[a, i] = features[a, i + 1]
            bounds[a, i, 0], bounds[a, i, 1] = bounds[a, i + 1, 0], bounds[a, i + 1, 1]
        sizes[a] -= 1
    return True


@kernel
def boxes(
    feature: IntArray,
    threshold: FloatArray,
    child: IntArray,
    rank: IntArray,
    n_ranks: int,
    n_features: int,
) -> tuple[IntArray, IntArray, IntArray, IntArray, FloatArray]:
    """Return the boxes whose union is where a table answers each rank.

    Parameters
    ----------
    feature, threshold, child : arrays of shape (m,), (m,), (m, 2)
        As in `nodes.RoutingTable`, parents first.
    rank : int array of shape (m + 1,)
        What each leaf answers, in 0 .. n_ranks - 1.

    Returns
    -------
    counts : int array of shape (n_ranks,)
        Boxes of each rank, told rank by rank, in order of the leaves from left to right.
    sizes : int array of shape (n_boxes,)
        Bounded features of each box.
    features, bounds : int arrays of shape (n,) and (n, 2)
        The features of all boxes, and the nodes whose thresholds bound them below and above, or
        -1: ``threshold[low] < x <= threshold[high]``. A box that the conditions leave empty is
        none, and two of one rank that make up one are told as one.
    edges : float array of shape (n, 2)
        Those thresholds, infinite where there is none.
    """
    m = feature.shape[0]
    levels = depth(child)
    width = max(min(levels, n_features), 1)
    sizes = np.zeros(m + 1, dtype=np.int64)
    features = np.zeros((m + 1, width), dtype=np.int64)
    bounds = np.full((m + 1, width, 2), OPEN, dtype=np.int64)
    answers = np.zeros(m + 1, dtype=np.int64)
    # One entry of the stack is a node and the box above it; the left side is looked at first.
    stack = np.zeros(levels + 2, dtype=np.int64)
    stack_sizes = np.zeros(levels + 2, dtype=np.int64)
    stack_features = np.zeros((levels + 2, width), dtype=np.int64)
    stack_bounds = np.full((levels + 2, width, 2), OPEN, dtype=np.int64)
    box_features = np.zeros(width, dtype=np.int64)
    box_bounds = np.zeros((width, 2), dtype=np.int64)
    top, found = 1, 0
    stack[0] = 0 if m > 0 else ~0
    while top > 0:
        top -= 1
        node, size = stack[top], stack_sizes[top]
        if node < 0:
            answers[found], sizes[found] = rank[~node], size
            copy(size, stack_features[top], stack_bounds[top], features[found], bounds[found])
            found += 1
            continue
        copy(size, stack_features[top], stack_bounds[top], box_features, box_bounds)
        at = 0
        while at < size and box_features[at] != feature[node]:
            at += 1
        if at == size:
            box_features[at] = feature[node]
            box_bounds[at, 0] = box_bounds[at, 1] = OPEN
        for side in range(1, -1, -1):
            limit = edge(threshold, box_bounds[at, side], side)
            if (threshold[node] < limit) if side == 1 else (threshold[node] > limit):
                stack[top], stack_sizes[top] = child[node, side], max(size, at + 1)
                n = stack_sizes[top]
                copy(n, box_features, box_bounds, stack_features[top], stack_bounds[top])
                stack_bounds[top, at, 1 - side] = node
                inner = edge(threshold, box_bounds[at, 1 - side], 1 - side)
                if (inner > threshold[node]) if side == 1 else (inner < threshold[node]):
                    stack_bounds[top, at, 1 - side] = box_bounds[at, 1 - side]
                top += 1
    return collect(found, answers, n_ranks, threshold, sizes, features, bounds)


@kernel
def collect(
    found: int,
    answers: IntArray,
    n_ranks: int,
    threshold: FloatArray,
    sizes: IntArray,
    features: IntArray,
    bounds: IntArray,
) -> tuple[IntArray, IntArray, IntArray, IntArray, FloatArray]:
    """Join what makes up one box, rank by rank, and lay the rest out flat; see `boxes`."""
    counts = np.zeros(n_ranks, dtype=np.int64)
    for box in range(found):
        counts[answers[box]] += 1
    order, begins = np.empty(found, dtype=np.int64), np.zeros(n_ranks, dtype=np.int64)
    for r in range(1, n_ranks):
        begins[r] = begins[r - 1] + counts[r - 1]
    filled = begins.copy()
    for box in range(found):
        order[filled[answers[box]]] = box
        filled[answers[box]] += 1
    for r in range(n_ranks):
        mine = order[begins[r] : begins[r] + counts[r]]
        i = 0
        while i < counts[r]:
            j, joined = i + 1, False
            while j < counts[r] and not joined:
                joined = join(mine[i], mine[j], threshold, sizes, features, bounds)
                j += 1
            if joined:
                counts[r] -= 1
                for later in range(j - 1, counts[r]):
                    mine[later] = mine[later + 1]
                i = 0
            else:
                i += 1
    n_boxes, n = 0, 0
    for r in range(n_ranks):
        for i in range(begins[r], begins[r] + counts[r]):
            n_boxes, n = n_boxes + 1, n + sizes[order[i]]
    flat_sizes = np.empty(n_boxes, dtype=np.int64)
    flat_features = np.empty(n, dtype=np.int64)
    flat_bounds, edges = np.empty((n, 2), dtype=np.int64), np.empty((n, 2))
    at, n = 0, 0
    for r in range(n_ranks):
        for i in range(begins[r], begins[r] + counts[r]):
            box = order[i]
            size = sizes[box]
            flat_sizes[at] = size
            copy(size, features[box], bounds[box], flat_features[n:], flat_bounds[n:])
            for entry in range(n, n + size):
                for side in range(2):
                    edges[entry, side] = edge(threshold, flat_bounds[entry, side], side)
            at, n = at + 1, n + size
    return counts, flat_sizes, flat_features, flat_bounds, edges


@kernel
def neighbours(
    points: FloatArray,
    origin: FloatArray,
    feature: IntArray,
    bound: FloatArray,
    near: FloatArray,
) -> None:
    """Tell the window values on either side of every bound: the largest at most it, and the next.

    Parameters
    ----------
    points : float array of shape (n, d)
        Measured from `origin` (d,); nan is no value.
    feature, bound : arrays of shape (m,)
        Sorted by feature, and within one by bound; bounds are in the user's units.
    near : float array of shape (m, 2), written
        Infinite where there is no value.
    """
    m = feature.shape[0]
    for i in range(m):
        near[i, 0], near[i, 1] = -np.inf, np.inf
    begin = 0
    while begin < m:
        f, end = feature[begin], begin
        while end < m and feature[end] == f:
            end += 1
        for row in range(points.shape[0]):
            value = origin[f] + points[row, f]
            if np.isnan(value):
                continue
            low, high = begin, end  # the first bound that is at least the value
            while low < high:
                middle = (low + high) // 2
                if bound[middle] < value:
                    low = middle + 1
                else:
                    high = middle
            if low < end:
                near[low, 0] = max(near[low, 0], value)
            if low > begin:
                near[low - 1, 1] = min(near[low - 1, 1], value)
        for i in range(begin + 1, end):
            near[i, 0] = max(near[i, 0], near[i - 1, 0])
        for i in range(end - 2, begin - 1, -1):
            near[i, 1] = min(near[i, 1], near[i + 1, 1])
        begin = end
