"""Growing and pruning one correction subtree: which center's points fall where in one leaf."""

from __future__ import annotations

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.results import FloatArray, IntArray


@kernel
def best_split(
    columns: FloatArray,
    labels: IntArray,
    order: IntArray,
    begin: int,
    end: int,
    counts: IntArray,
    left: IntArray,
) -> tuple[int, float, int]:
    """The split of a node that leaves its parts purest (Gini), as (column, threshold, size left).

    Parameters
    ----------
    columns : float array of shape (m, n)
        The points' values, one line per feature.
    labels : int array of shape (n,)
    order : int array of shape (m, n)
        Entries ``begin:end`` are the node's points, sorted by each feature.
    counts : int array of shape (n_labels,)
        Labels in the node.
    left : int array of shape (n_labels,), scratch

    Returns
    -------
    column : int
        Line of `columns`, or -1 if nothing separates the node's points.
    """
    size = end - begin
    whole = 0.0
    for label in range(counts.size):
        whole += float(counts[label]) * counts[label]
    column, threshold, cut = -1, 0.0, 0
    best = whole / size * (1.0 + 1e-12)
    for f in range(columns.shape[0]):
        left[:] = 0
        squares_left, squares_right = 0.0, whole
        for j in range(begin, end - 1):
            row = order[f, j]
            label = labels[row]
            squares_left += 2.0 * left[label] + 1.0
            squares_right -= 2.0 * (counts[label] - left[label]) - 1.0
            left[label] += 1
            low, high = columns[f, row], columns[f, order[f, j + 1]]
            if low < high:
                n_left = j + 1 - begin
                score = squares_left / n_left + squares_right / (size - n_left)
                if score > best:
                    best, column, cut = score, f, n_left
                    threshold = low + 0.5 * (high - low)
                    if threshold >= high:
                        threshold = low
    return column, threshold, cut


@kernel
def partition(
    order: IntArray, begin: int, end: int, goes_left: np.ndarray, scratch: IntArray
) -> None:
    """Part every feature's order of the rows ``begin:end``, keeping it sorted on both sides."""
    for f in range(order.shape[0]):
        at, rest = begin, 0
        for j in range(begin, end):
            row = order[f, j]
            if goes_left[row]:
                order[f, at] = row
                at += 1
            else:
                scratch[rest] = row
                rest += 1
        order[f, at:end] = scratch[:rest]


@kernel
def grow(
    columns: FloatArray,
    labels: IntArray,
    n_labels: int,
    order: IntArray,
    own: FloatArray,
    tolerated: float,
    feature: IntArray,
    threshold: FloatArray,
    child: IntArray,
    answer: IntArray,
    errors: IntArray,
) -> int:
    """Grow a subtree until no part holds more than `tolerated` errors.

    Parameters
    ----------
    columns : float array of shape (m, n)
        The points' values, one line per feature.
    labels : int array of shape (n,)
        0 is the leaf's own center.
    n_labels : int
    order : int array of shape (m, n), destroyed
        Points sorted by each feature.
    own : float array of shape (m,)
        The own center's values: the part that holds it answers 0 whatever its points say.
    tolerated : float
    feature, threshold, child, answer, errors : arrays of length (or rows) N, written
        The nodes, parents first; `feature` tells lines; a child of -1 means a leaf. `errors` counts
        the points that a node would misname as a leaf.

    Returns
    -------
    int
        The number of nodes, at most N.
    """
    n = columns.shape[1]
    capacity = feature.size
    begins, ends = np.zeros(capacity, dtype=np.int64), np.zeros(capacity, dtype=np.int64)
    holds_own = np.zeros(capacity, dtype=np.bool_)
    counts, left = np.zeros(n_labels, dtype=np.int64), np.zeros(n_labels, dtype=np.int64)
    goes_left, scratch = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.int64)
    ends[0], holds_own[0] = n, True
    n_nodes, node = 1, 0
    while node < n_nodes:
        begin, end = begins[node], ends[node]
        counts[:] = 0
        for j in range(begin, end):
            counts[labels[order[0, j]]] += 1
        answer[node] = 0 if holds_own[node] else np.argmax(counts)
        errors[node] = end - begin - counts[answer[node]]
        child[node, 0] = child[node, 1] = -1
        if errors[node] > tolerated and n_nodes + 2 <= capacity:
            column, cut, size = best_split(columns, labels, order, begin, end, counts, left)
            if column >= 0:
                for j in range(begin, end):
                    goes_left[order[column, j]] = j - begin < size
                partition(order, begin, end, goes_left, scratch)
                feature[node], threshold[node] = column, cut
                child[node, 0], child[node, 1] = n_nodes, n_nodes + 1
                begins[n_nodes], ends[n_nodes] = begin, begin + size
                begins[n_nodes + 1], ends[n_nodes + 1] = begin + size, end
                holds_own[n_nodes] = holds_own[node] and own[column] <= cut
                holds_own[n_nodes + 1] = holds_own[node] and own[column] > cut
                n_nodes += 2
        node += 1
    return n_nodes


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
