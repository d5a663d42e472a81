"""Which clusters of a description are one cluster to the eye.

A curved cluster is told most shortly by several laws side by side. Owns the question
whether the density dips between two such pieces: along Fisher's direction, the density at their
border is compared with the geometric mean of those inside. Pieces of like local density without a
valley between them are joined, chains included. To choose the pieces first and to join them after
follows Hennig, "Methods for merging Gaussian mixture components" (2010).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from streamclust.refit.code import Choice, Code, compact
from streamclust.refit.graph import Graph

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

DIP = 0.5
"""A border at least half so dense as the inside is no valley. Two equal Gaussians reach that at 3.4
standard deviations apart; they become bimodal at 2."""
ALIKE = 0.3
"""Most difference of the two sides' median log neighbour distance: a dense cluster in the flank of
a thin one shows no valley either, but is another cluster."""
ENOUGH = 6.0
"""Weight that the border would hold without a dip; with less nothing can be told."""
TOUCH = 3
"""Edges of the neighbour graph between two pieces, at least."""


def join_without_valley(choice: Choice, code: Code, graph: Graph) -> IntArray:
    """The labels of a description with its pieces joined into clusters.

    Parameters
    ----------
    choice : Choice
    code : Code
    graph : Graph

    Returns
    -------
    int array of shape (n,)
        0 .. K - 1, or -1.
    """
    labels, k = choice.labels, choice.n_clusters
    ends = np.concatenate((graph.first, graph.second))
    degree = np.bincount(ends, minlength=graph.n)
    reach = np.bincount(ends, np.concatenate((graph.lengths, graph.lengths)), minlength=graph.n)
    spacing = np.log(np.maximum(reach, np.finfo(float).tiny) / degree)
    a, b = labels[graph.first], labels[graph.second]
    across = (a >= 0) & (b >= 0) & (a != b)
    low, high = np.minimum(a, b)[across], np.maximum(a, b)[across]
    pairs, edges = np.unique(low * k + high, return_counts=True)
    members = [np.flatnonzero(labels == c) for c in range(k)]
    density = np.array([np.median(spacing[own]) for own in members])
    joined = [
        (int(pair) // k, int(pair) % k)
        for pair in pairs[edges >= TOUCH]
        if abs(density[pair // k] - density[pair % k]) <= ALIKE
        and not _valley(code, members[pair // k], members[pair % k])
    ]
    if not joined:
        return labels
    rows, columns = np.array(joined).T
    links = coo_array((np.ones(len(joined)), (rows, columns)), shape=(k, k))
    _, piece = connected_components(links, directed=False)
    told = np.where(labels >= 0, piece[labels], -1).astype(np.int64)
    return compact(told, code.weights, 0.0)


def _valley(code: Code, one: IntArray, other: IntArray) -> bool:
    """Whether the density dips between two clusters, or cannot be told."""
    direction = _fisher(code, one, other)
    a, b = code.points[one] @ direction, code.points[other] @ direction
    wa, wb = code.weights[one], code.weights[other]
    along, weights = np.concatenate((a, b)), np.concatenate((wa, wb))
    order = np.argsort(along, kind="stable")
    wrong = np.cumsum(np.concatenate((-wa, wb))[order])[:-1]
    cut = int(np.argmin(wrong))
    border = 0.5 * (along[order[cut]] + along[order[cut + 1]])
    width_a, width_b = _middle_half(a, wa), _middle_half(b, wb)
    if min(width_a, width_b) <= 0.0:
        return True
    inside = 0.5 * math.sqrt(wa.sum() * wb.sum() / (width_a * width_b))
    width = 0.5 * min(width_a, width_b)
    found = float(weights[np.abs(along - border) <= 0.5 * width].sum())
    expected = float(inside * width)
    return expected < ENOUGH or found < DIP * expected


def _fisher(code: Code, one: IntArray, other: IntArray) -> FloatArray:
    """The direction that parts two clusters best, their common covariance drawn to a sphere."""
    p = code.points.shape[1]
    means = []
    scatter = np.zeros((p, p))
    weight = 0.0
    for own in (one, other):
        share = code.weights[own]
        means.append(share @ code.points[own] / share.sum())
        step = code.points[own] - means[-1]
        scatter += (share[:, None] * step).T @ step
        weight += float(share.sum())
    prior = 0.5 * (p + 2)
    sphere = prior * np.trace(scatter) / (weight * p) + float(code.floor.mean()) * weight * 1e-6
    direction: FloatArray = np.linalg.solve(scatter + sphere * np.eye(p), means[1] - means[0])
    return direction


def _middle_half(values: FloatArray, weights: FloatArray) -> float:
    """The width of the interval that holds the middle half of the weight."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order]) - 0.5 * weights[order]
    low, high = np.interp((0.25, 0.75), below / weights.sum(), values[order])
    return float(high - low)
