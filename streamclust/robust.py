"""Robust location and spread of weighted points: medians, l_p medians, MAD."""

from __future__ import annotations

import numpy as np

from streamclust.kernels.medians import descend
from streamclust.results import FloatArray

SWEEPS = 20
MADN = 1.4826
"""MAD times this is the standard deviation of a Gaussian."""


def weighted_median(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the lower weighted median of every column of `values`, shape (n,) or (n, d)."""
    columns = np.atleast_2d(values.T)  # sorting runs along rows several times as fast
    order = np.argsort(columns, axis=1)
    mass = np.cumsum(weights[order], axis=1)
    middle = (mass < 0.5 * mass[:, -1:]).sum(axis=1)
    line = np.arange(len(columns))
    return np.asarray(columns[line, order[line, middle]].reshape(values.shape[1:]))


def lp_median(
    points: FloatArray, weights: FloatArray, feature_weights: FloatArray, p: float
) -> FloatArray:
    """Return the minimiser of the weighted sum of ||x - c||_p over the rows x of `points`.

    p = 1 is the coordinate-wise median; for other p the sweeps start there.
    """
    center = weighted_median(points, weights)
    counted = feature_weights > 0
    if p != 1.0 and len(points) > 2 and counted.any():
        scaled = center[counted] * feature_weights[counted]
        rows = np.ascontiguousarray(points[:, counted] * feature_weights[counted])
        descend(rows, weights, scaled, p, SWEEPS)
        center[counted] = scaled / feature_weights[counted]
    return center


def spread(distances: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return the weighted median of `distances` and their normalised MAD around it."""
    middle = float(weighted_median(distances, weights))
    return middle, MADN * float(weighted_median(np.abs(distances - middle), weights))
