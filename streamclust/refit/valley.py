"""Which clusters of a description are one cluster to the eye.

A curved cluster is told most shortly by several laws side by side. Owns the question
whether the density dips between two such pieces: along Fisher's direction, the density at their
border is compared with the geometric mean of those inside. Pieces of like local density without a
valley between them are joined, chains included. To choose the pieces first and to join them after
follows Hennig, "Methods for merging Gaussian mixture components" (2010).
"""

from __future__ import annotations

import numpy as np

from streamclust.kernels.valley import border_weight, fisher_line
from streamclust.refit.code import Choice, Code, compact
from streamclust.refit.graph import Graph
from streamclust.results import IntArray

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
    order = np.lexsort((spacing, labels))
    bounds = np.searchsorted(labels, np.arange(k + 1), sorter=order)
    ranked = spacing[order]
    middle = bounds[:-1] + bounds[1:]
    density = 0.5 * (ranked[(middle - 1) // 2] + ranked[middle // 2])
    order = np.argsort(labels, kind="stable")
    piece = np.arange(k)
    for pair in pairs[edges >= TOUCH].tolist():
        one, other = divmod(pair, k)
        if abs(density[one] - density[other]) > ALIKE:
            continue
        sides = (order[bounds[c] : bounds[c + 1]] for c in (one, other))
        if not _valley(code, *sides):
            piece[piece == piece[other]] = piece[one]
    if np.array_equal(piece, np.arange(k)):
        return labels
    return compact(np.where(labels >= 0, piece[labels], -1), code.weights, 0.0)


def _valley(code: Code, one: IntArray, other: IntArray) -> bool:
    """Whether the density dips between two clusters, or cannot be told."""
    members = np.concatenate((one, other))
    points, weights = code.points[members], code.weights[members]
    along = np.empty(len(members))
    fisher_line(points, weights, len(one), float(code.floor.mean()), along)
    order = np.argsort(along, kind="stable")
    width, found, expected = border_weight(along, weights, order, len(one))
    return width <= 0.0 or expected < ENOUGH or found < DIP * expected
