"""A plain oracle for growing corrections: every threshold between two values is tried."""

from itertools import pairwise

import numpy as np


def purity(labels):
    return float((np.bincount(labels).astype(float) ** 2).sum()) / len(labels) if len(labels) else 0


def best_split(points, labels):
    """Feature, threshold of the split of the purest parts (Gini); None where none is purer."""
    best, found = purity(labels) * (1.0 + 1e-12), None
    for f in range(points.shape[1]):
        values = np.unique(points[:, f])
        for low, high in pairwise(values):
            left = points[:, f] <= low
            score = purity(labels[left]) + purity(labels[~left])
            if score > best:
                best, found = score, (f, low + 0.5 * (high - low))
    return found


def grown(points, labels, own, tolerated, most):
    """The nodes of a subtree, parents first: (feature, threshold, children, answer, errors)."""
    nodes, waiting = [], [(np.arange(len(points)), True)]
    while len(nodes) < len(waiting):
        rows, holds_own = waiting[len(nodes)]
        counts = np.bincount(labels[rows])
        answer = 0 if holds_own else int(counts.argmax())
        errors = int((labels[rows] != answer).sum())
        split = None
        if errors > tolerated and len(waiting) + 2 <= most:
            split = best_split(points[rows], labels[rows])
        if split is None:
            nodes.append((0, 0.0, (-1, -1), answer, errors))
            continue
        f, threshold = split
        nodes.append((f, threshold, (len(waiting), len(waiting) + 1), answer, errors))
        left = points[rows, f] <= threshold
        waiting.append((rows[left], holds_own and bool(own[f] <= threshold)))
        waiting.append((rows[~left], holds_own and bool(own[f] > threshold)))
    return nodes
