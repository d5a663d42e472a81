"""Compiled look at the border of two clusters: the line that parts them best, and its density."""

from __future__ import annotations

import math

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.results import FloatArray, IntArray


@kernel
def _solve(square: FloatArray, side: FloatArray) -> None:
    """Replace `side` by the solution for a positive definite matrix, whose lower half is used."""
    d = side.shape[0]
    for i in range(d):
        for j in range(i + 1):
            total = square[i, j]
            for m in range(j):
                total -= square[i, m] * square[j, m]
            square[i, j] = math.sqrt(total) if i == j else total / square[j, j]
    for i in range(d):
        for m in range(i):
            side[i] -= square[i, m] * side[m]
        side[i] /= square[i, i]
    for i in range(d - 1, -1, -1):
        for m in range(i + 1, d):
            side[i] -= square[m, i] * side[m]
        side[i] /= square[i, i]


@kernel
def fisher_line(
    points: FloatArray, weights: FloatArray, first: int, floor: float, along: FloatArray
) -> None:
    """Project two clusters onto the direction that parts them best.

    That is Fisher's, with their common covariance drawn towards a sphere.

    Parameters
    ----------
    points : float array of shape (n, p)
        Those of one cluster, then those of the other.
    weights : float array of shape (n,)
    first : int
        How many belong to the first one; both have some.
    floor : float
        Least variance, in squared units of the points; positive.
    along : float array of shape (n,)
        Receives the projections, which rise from the first to the second cluster.
    """
    n, p = points.shape
    scatter, direction, step, mean = np.zeros((p, p)), np.zeros(p), np.empty(p), np.empty(p)
    weight = 0.0
    for side in range(2):
        begin, end = (0, first) if side == 0 else (first, n)
        mass = 0.0
        for j in range(p):
            mean[j] = 0.0
        for i in range(begin, end):
            mass += weights[i]
            for j in range(p):
                mean[j] += weights[i] * points[i, j]
        for j in range(p):
            mean[j] /= mass
        weight += mass
        for i in range(begin, end):
            for j in range(p):
                step[j] = points[i, j] - mean[j]
                for m in range(j + 1):
                    scatter[j, m] += weights[i] * step[j] * step[m]
        for j in range(p):
            direction[j] = mean[j] - direction[j]
    trace = 0.0
    for j in range(p):
        trace += scatter[j, j]
    for j in range(p):
        scatter[j, j] += 0.5 * (p + 2) * trace / (weight * p) + floor * weight * 1e-6
    _solve(scatter, direction)
    for i in range(n):
        along[i] = 0.0
        for j in range(p):
            along[i] += points[i, j] * direction[j]


@kernel
def _middle_half(
    along: FloatArray, weights: FloatArray, order: IntArray, begin: int, end: int
) -> tuple[float, float]:
    """The width of the interval that holds the middle half of a cluster's weight, and the weight.

    Between points the distribution is interpolated; each has half of its weight below it.
    """
    mass = 0.0
    for i in range(begin, end):
        mass += weights[i]
    low, high = np.inf, np.inf
    total, below, last, value = 0.0, 0.0, 0.0, 0.0
    for i in order:
        if i < begin or i >= end:
            continue
        is_first = total == 0.0
        total += weights[i]
        before, below = below, (total - 0.5 * weights[i]) / mass
        last, value = value, along[i]
        if low == np.inf and below > 0.25:
            part = 1.0 if is_first else (0.25 - before) / (below - before)
            low = value if is_first else last + part * (value - last)
        if high == np.inf and below > 0.75:
            part = 1.0 if is_first else (0.75 - before) / (below - before)
            high = value if is_first else last + part * (value - last)
    if high == np.inf:
        high = value
    if low == np.inf:
        low = value
    return high - low, mass


@kernel
def border_weight(
    along: FloatArray, weights: FloatArray, order: IntArray, first: int
) -> tuple[float, float, float]:
    """Compare the density at the border of two clusters with the geometric mean of those inside.

    Parameters
    ----------
    along : float array of shape (n,)
        As `fisher_line` writes it.
    weights : float array of shape (n,)
    order : int array of shape (n,)
        Sorts `along`.
    first : int
        How many points belong to the first cluster.

    Returns
    -------
    width : float
        How wide the border is: half as wide as the middle half of the narrower cluster.
    found : float
        The weight that it holds.
    expected : float
        The weight that it would hold if it were as dense as the inside; 0.0 where width is.
    """
    n = along.shape[0]
    one, mass = _middle_half(along, weights, order, 0, first)
    other, rest = _middle_half(along, weights, order, first, n)
    width = 0.5 * one if one < other else 0.5 * other
    if width <= 0.0:
        return width, 0.0, 0.0
    wrong, least, cut = 0.0, np.inf, 0
    for at in range(n - 1):
        i = order[at]
        wrong += -weights[i] if i < first else weights[i]
        if wrong < least:
            least, cut = wrong, at
    border = 0.5 * (along[order[cut]] + along[order[cut + 1]])
    found = 0.0
    for i in range(n):
        if abs(along[i] - border) <= 0.5 * width:
            found += weights[i]
    return width, found, 0.5 * math.sqrt(mass * rest / (one * other)) * width
