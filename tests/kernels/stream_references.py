"""Plain NumPy twins of the stream kernels: slow, independent, easy to read."""

from __future__ import annotations

import numpy as np

from tests.kernels.metric_references import distance

MASK = (1 << 64) - 1


def uniform(seed, tick):
    z = (seed + tick * 0x9E3779B97F4A7C15) & MASK
    for _ in range(2):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
    return ((z >> 11) + 0.5) / 2.0**53


def leaf(row, table):
    at = 0
    while at >= 0:
        feature, threshold, left, right = table[at].tolist()
        at = int(left if row[int(feature)] <= threshold else right)
    return -at - 1


def answer(row, centers, fences, weights, p, tree, by_tree, fenced):
    """The slot that `assign` should give to a row measured from the origin."""
    distances = np.array([distance(row, c, weights, p) for c in centers])
    holds = distances <= fences
    if by_tree:
        return leaf(row, tree) if not fenced or holds.any() else -1
    if holds.any():
        return int(np.where(holds, distances, np.inf).argmin())
    return -1 if fenced else int(distances.argmin())


def direction(u, p):
    """Steepest ascent of ||u||_p, of l_p length 1."""
    g = np.abs(u) ** (p - 1) * np.sign(u)
    return g / (np.abs(g) ** p).sum() ** (1 / p)
