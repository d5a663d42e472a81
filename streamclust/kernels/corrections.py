"""Growing and pruning one correction subtree: which center's points fall where in one leaf."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamclust.kernels.compiled import kernel
from streamclust.results import FloatArray, IntArray

CellArray: TypeAlias = NDArray[np.uint32]

GRID = 8
"""Parts of the range of some values, per value: most hold none, and where none is, none is sought.
"""


@kernel
def cells_of(
    points: FloatArray,
    features: IntArray,
    common: IntArray,
    others: IntArray,
    order: IntArray,
    cells: CellArray,
) -> None:
    """Say between which points of other labels every point lies, feature by feature.

    The best cut lies next to a point whose label differs from its neighbour's (Fayyad and Irani,
    "On the handling of continuous-valued attributes in decision tree generation", Machine Learning
    8, 1992), so of the points of the commonest label it matters alone between which others they
    lie. Cell 2 i + 1 is the i-th value of the others, even cells are what lies between.

    Parameters
    ----------
    points : float array of shape (n, d)
    features : int array of shape (m,)
    common, others : int arrays of shape (c,) and (s,), s > 0
        Rows of `points` of the commonest label, and of all others.
    order : int array of shape (m, s)
        The others, sorted by each feature.
    cells : uint32 array of shape (c + s, m), written
        Of the common points first, then of the others.
    """
    c, s = common.size, others.size
    known, starts = np.empty(s), np.empty(GRID * s + 2, dtype=np.int32)
    for f in range(features.size):
        feature, n = features[f], 0
        for i in order[f]:
            value = points[others[i], feature]
            if n == 0 or value > known[n - 1]:
                known[n] = value
                n += 1
            cells[c + i, f] = 2 * n - 1
        lowest, highest = known[0], known[n - 1]
        # Where a value is among those known, its share of their range nearly tells.
        rate = GRID * n / (highest - lowest)
        if not rate < np.inf:
            rate = 0.0
        starts[: GRID * n + 2] = 0
        for i in range(n):
            starts[1 + int((known[i] - lowest) * rate)] += 1
        for i in range(GRID * n + 1):
            starts[i + 1] += starts[i]
        for i in range(c):
            value = points[common[i], feature]
            at = int((min(max(value, lowest), highest) - lowest) * rate)
            low, high = starts[at], starts[at + 1]
            while low < high:
                middle = (low + high) >> 1
                if known[middle] < value:
                    low = middle + 1
                else:
                    high = middle
            low = min(low, n - 1)
            cells[i, f] = 2 * low + (1 if known[low] <= value else 0) + (known[low] < value)


@kernel
def narrowed(cells: CellArray, order: IntArray, above: int, kept: CellArray) -> int:
    """Number the cells of one feature anew, after most of the others may have gone elsewhere.

    Parameters
    ----------
    cells : uint32 array of shape (n,)
    order : int array of shape (s,)
        The others that are left, sorted.
    above : int
        How many others there were.
    kept : int array of shape (2 above + 1,), written
        The new number of every cell.

    Returns
    -------
    int
        How many cells there are now.
    """
    at, n = 0, 0
    for i in order:
        cell = cells[i]
        if cell >= at:
            kept[at:cell] = n
            kept[cell] = n + 1
            at, n = cell + 1, n + 2
    kept[at : 2 * above + 1] = n
    return n + 1


@kernel
def best_split(
    cells: CellArray,
    labels: IntArray,
    rows: IntArray,
    order: IntArray,
    above: int,
    counts: IntArray,
    kept: CellArray,
    held: CellArray,
    left: IntArray,
) -> tuple[int, int]:
    """The split of a node that leaves its parts purest (Gini): a line, and the first cell above it.

    Parameters
    ----------
    cells : uint32 array of shape (n, m), numbered anew
        See `cells_of`.
    labels : int array of shape (n,)
    rows : int array of shape (r,)
        The node's common points.
    order : int array of shape (m, s)
        The node's other points, sorted by each feature.
    above : int
        How many others the node's parent has.
    counts : int array of shape (n_labels,)
        Labels in the node.
    kept, held : int arrays of shape (m, >= 2 above + 1), scratch
    left : int array of shape (n_labels,), scratch

    Returns
    -------
    line, cell : int
        The line is -1 if nothing separates the node's points.
    """
    m, s = order.shape
    size, common = rows.size + s, labels[0]
    whole = 0.0
    for label in range(counts.size):
        whole += float(counts[label]) * counts[label]
    line, cell = -1, 0
    best = whole / size * (1.0 + 1e-12)
    if s == 0:
        return line, cell
    for f in range(m):
        held[f, : narrowed(cells[:, f], order[f], above, kept[f])] = 0
    for row in rows:
        for f in range(m):
            new = kept[f, cells[row, f]]
            cells[row, f] = new
            held[f, new] += 1
    for f in range(m):
        left[:] = 0
        squares_left, squares_right, n_left, at, here = 0.0, whole, 0, 0, 0
        while n_left < size:
            n = held[f, here]
            if n > 0:
                if n_left > 0:
                    score = squares_left / n_left + squares_right / (size - n_left)
                    if score > best:
                        best, line, cell = score, f, here
                squares_left += float(n) * (2.0 * left[common] + n)
                squares_right -= float(n) * (2.0 * (counts[common] - left[common]) - n)
                left[common] += n
                n_left += n
            fresh = n == 0 and n_left > 0
            while at < s and kept[f, cells[order[f, at], f]] == here:
                row = order[f, at]
                if fresh:
                    score = squares_left / n_left + squares_right / (size - n_left)
                    if score > best:
                        best, line, cell = score, f, here
                    fresh = False
                label = labels[row]
                squares_left += 2.0 * left[label] + 1.0
                squares_right -= 2.0 * (counts[label] - left[label]) - 1.0
                left[label] += 1
                n_left += 1
                at += 1
            here += 1
    for row in order[0]:
        for f in range(m):
            cells[row, f] = kept[f, cells[row, f]]
    return line, cell


@kernel
def partition(rows: IntArray, cells: CellArray, cell: int, scratch: IntArray) -> int:
    """Put the rows below a cell first, in the order that they have; answers their number."""
    at, rest = 0, 0
    for row in rows:
        if cells[row] < cell:
            rows[at] = row
            at += 1
        else:
            scratch[rest] = row
            rest += 1
    rows[at:] = scratch[:rest]
    return at


@kernel
def worths(child: IntArray, errors: IntArray, worth: FloatArray) -> None:
    """The errors per added leaf at which each inner node stops paying (weakest-link pruning).

    Source: Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, section 3.3.

    Parameters
    ----------
    child : int array of shape (n, 2)
        Parents before children; -1 at leaves.
    errors : int array of shape (n,)
    worth : float array of shape (n,), written
        The tree pruned at price a keeps exactly the inner nodes with a worth above a; 0 at leaves.
    """
    n = errors.size
    inner = np.empty(n, dtype=np.bool_)
    leaves, below = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for node in range(n):
        inner[node] = child[node, 0] >= 0
        worth[node] = 0.0
    price = 0.0
    while inner[0]:
        weakest, least = 0, np.inf
        for node in range(n - 1, -1, -1):
            if inner[node]:
                a, b = child[node, 0], child[node, 1]
                leaves[node], below[node] = leaves[a] + leaves[b], below[a] + below[b]
                gain = (errors[node] - below[node]) / (leaves[node] - 1.0)
                if gain < least or (gain == least and leaves[node] > leaves[weakest]):
                    weakest, least = node, gain
            else:
                leaves[node], below[node] = 1, errors[node]
        price = max(price, least)
        inner[weakest] = False
        worth[weakest] = price
        for node in range(weakest, n):
            # Whatever still hung below the pruned node goes with it, at the same price.
            if child[node, 0] >= 0 and not inner[node]:
                for side in range(2):
                    under = child[node, side]
                    if inner[under]:
                        inner[under] = False
                        worth[under] = price


@kernel
def grow(
    points: FloatArray,
    features: IntArray,
    common: IntArray,
    others: IntArray,
    order: IntArray,
    labels: IntArray,
    n_labels: int,
    own: FloatArray,
    tolerated: float,
    feature: IntArray,
    threshold: FloatArray,
    child: IntArray,
    answer: IntArray,
    errors: IntArray,
    worth: FloatArray,
) -> int:
    """Grow a subtree until no part holds more than `tolerated` errors.

    Parameters
    ----------
    points : float array of shape (n, d)
    features : int array of shape (m,)
        Which features may be cut.
    common, others : int arrays of shape (c,) and (s,)
        The leaf's rows of `points`: those of the commonest label, and all others.
    order : int array of shape (m, s), destroyed
        The others, sorted by each feature.
    labels : int array of shape (c + s,)
        Of these, common ones first; 0 is the leaf's own center.
    n_labels : int
    own : float array of shape (d,)
        The own center: the part that holds it answers 0 whatever its points say.
    tolerated : float
    feature, threshold, child, answer, errors : arrays of length (or rows) N, written
        The nodes, parents first; a child of -1 means a leaf. `errors` counts the points that a node
        would misname as a leaf.
    worth : float array of shape (N,), written
        See `worths`.

    Returns
    -------
    int
        The number of nodes, at most N.
    """
    c, s, m = common.size, others.size, features.size
    capacity = feature.size
    cells = np.empty((c + s, m), dtype=np.uint32)
    cells_of(points, features, common, others, order, cells)
    order += c
    kept = np.empty((m, 2 * s + 1), dtype=np.uint32)
    held = np.empty((m, 2 * s + 1), dtype=np.uint32)
    rows, scratch = np.arange(c), np.empty(c + s, dtype=np.int64)
    bounds = np.zeros((capacity, 5), dtype=np.int64)  # of rows, of others; others of the parent
    holds_own = np.zeros(capacity, dtype=np.bool_)
    counts, left = np.zeros(n_labels, dtype=np.int64), np.zeros(n_labels, dtype=np.int64)
    bounds[0, 1], bounds[0, 3], bounds[0, 4], holds_own[0] = c, s, s, True
    n_nodes, node = 1, 0
    while node < n_nodes:
        begin, end, first, last, above = bounds[node]
        counts[:] = 0
        counts[labels[0]] = end - begin
        for j in range(first, last):
            counts[labels[order[0, j]]] += 1
        answer[node] = 0 if holds_own[node] else np.argmax(counts)
        errors[node] = end - begin + last - first - counts[answer[node]]
        child[node, 0] = child[node, 1] = -1
        if errors[node] > tolerated and n_nodes + 2 <= capacity:
            mine, rest = rows[begin:end], order[:, first:last]
            line, cell = best_split(cells, labels, mine, rest, above, counts, kept, held, left)
            if line >= 0:
                middle = begin + partition(mine, cells[:, line], cell, scratch)
                split = first
                for f in range(m):
                    split = first + partition(rest[f], cells[:, line], cell, scratch)
                low, high = -np.inf, np.inf
                if split > first:
                    low = points[others[order[line, split - 1] - c], features[line]]
                if split < last:
                    high = points[others[order[line, split] - c], features[line]]
                for j in range(begin, middle):
                    low = max(low, points[common[rows[j]], features[line]])
                for j in range(middle, end):
                    high = min(high, points[common[rows[j]], features[line]])
                cut = low + 0.5 * (high - low)
                if cut >= high:
                    cut = low
                feature[node], threshold[node] = features[line], cut
                below = own[features[line]] <= cut
                for side in range(2):
                    child[node, side] = n_nodes
                    holds_own[n_nodes] = holds_own[node] and below == (side == 0)
                    n_nodes += 1
                bounds[n_nodes - 2] = begin, middle, first, split, last - first
                bounds[n_nodes - 1] = middle, end, split, last, last - first
        node += 1
    worths(child[:n_nodes], errors[:n_nodes], worth)
    return n_nodes
