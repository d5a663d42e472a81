"""Compiled measures of the fusion graph of robust continuous clustering.

Shah and Koltun, "Robust continuous clustering" (PNAS 2017): squared lengths of the edges, their
pulls after every solve, and the largest eigenvalue of the weighted Laplacian, which balances the
two terms.
"""

from __future__ import annotations

import math

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.results import FloatArray, IntArray


@kernel
def edge_squares(first: IntArray, second: IntArray, U: FloatArray, out: FloatArray) -> None:
    """Write the squared length of every edge.

    Parameters
    ----------
    first, second : int array of shape (m,)
        Ends of the edges.
    U : float array of shape (n, d)
    out : float array of shape (m,)
    """
    d = U.shape[1]
    for e in range(first.shape[0]):
        a, b = np.uint64(first[e]), np.uint64(second[e])  # no look at the sign when indexing
        total = 0.0
        for j in range(d):
            gap = U[a, j] - U[b, j]
            total += gap * gap
        out[e] = total


@kernel
def edge_pulls(
    first: IntArray,
    second: IntArray,
    base: FloatArray,
    U: FloatArray,
    truncation: float,
    pulls: FloatArray,
) -> float:
    """Write how strongly every edge pulls under the penalty of Geman and McClure.

    Parameters
    ----------
    first, second : int array of shape (m,)
        Ends of the edges.
    base : float array of shape (m,)
        Weights of the edges.
    U : float array of shape (n, d)
    truncation : float
        Squared length at which an edge pulls a quarter of what a short one does; positive.
    pulls : float array of shape (m,)

    Returns
    -------
    float
        The penalty of all edges.
    """
    d, penalty = U.shape[1], 0.0
    for e in range(first.shape[0]):
        a, b = np.uint64(first[e]), np.uint64(second[e])
        square, other = 0.0, 0.0  # two sums, so that additions need not wait for each other
        for j in range(0, d - 1, 2):
            gap, next_gap = U[a, j] - U[b, j], U[a, j + 1] - U[b, j + 1]
            square += gap * gap
            other += next_gap * next_gap
        if d % 2 == 1:
            square += (U[a, d - 1] - U[b, d - 1]) ** 2
        square += other
        root = truncation / (truncation + square)
        pulls[e] = base[e] * root * root
        penalty += pulls[e] * square + base[e] * truncation * (root - 1.0) * (root - 1.0)
    return penalty


@kernel
def spread(X: FloatArray, U: FloatArray, mass: FloatArray) -> float:
    """The squared distances between the rows of X and U, both of shape (n, d), weighted by mass."""
    total = 0.0
    for i in range(X.shape[0]):
        square = 0.0
        for j in range(X.shape[1]):
            square += (X[i, j] - U[i, j]) ** 2
        total += mass[i] * square
    return total


@kernel
def laplacian_norm(
    first: IntArray,
    second: IntArray,
    pulls: FloatArray,
    vector: FloatArray,
    tolerance: float,
    max_steps: int,
) -> float:
    """The largest eigenvalue of a weighted graph Laplacian, by power iteration.

    Parameters
    ----------
    first, second : int array of shape (m,)
        Ends of the edges.
    pulls : float array of shape (m,)
        Weights, not negative.
    vector : float array of shape (n,)
        The start, not constant over any edge; receives the eigenvector.
    tolerance : float
        Done when a step raises the estimate by less than this share.
    max_steps : int

    Returns
    -------
    float
        A lower bound that is close; 0.0 for a graph without weight.
    """
    n = vector.shape[0]
    image = np.empty(n)
    found = 0.0
    for _ in range(max_steps):
        length = 0.0
        for i in range(n):
            length += vector[i] * vector[i]
            image[i] = 0.0
        if length == 0.0:
            return found
        for e in range(first.shape[0]):
            flow = pulls[e] * (vector[first[e]] - vector[second[e]])
            image[first[e]] += flow
            image[second[e]] -= flow
        reach = 0.0
        for i in range(n):
            reach += image[i] * image[i]
        before = found
        found = math.sqrt(reach / length)
        if found == 0.0:
            return found
        for i in range(n):
            vector[i] = image[i] / math.sqrt(reach)
        if found - before <= tolerance * found:
            return found
    return found
