"""Robust location and spread of weighted points: medians, l_p medians, MAD."""

from __future__ import annotations

import numpy as np

from streamclust.kernels.medians import group_medians, group_spreads
from streamclust.results import FloatArray, IntArray

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


def quantile(values: FloatArray, share: float) -> FloatArray:
    """Return `np.quantile` along the last axis of *sorted* values, to the bit, for less."""
    last = values.shape[-1] - 1
    place = share * last
    at = int(place)
    low, high = values[..., at], values[..., min(at + 1, last)]
    part = place - at
    if part < 0.5:
        return np.asarray(low + (high - low) * part)
    return np.asarray(high - (high - low) * (1.0 - part))


def lp_medians(
    points: FloatArray,
    weights: FloatArray,
    members: IntArray,
    feature_weights: FloatArray,
    p: float,
) -> FloatArray:
    """Return the l_p median of every group of points 0 .. k - 1, shape (k, n_features).

    It minimises the weighted sum of ||x - c||_p over the group's rows x; p = 1 is the
    coordinate-wise median, for other p the sweeps start there. Rows of group -1 are left out.
    """
    found = np.empty((int(members.max(initial=-1)) + 1, points.shape[1]))
    group_medians(points, weights, members, feature_weights, p, SWEEPS, found)
    return found


def spreads(distances: FloatArray, weights: FloatArray, members: IntArray) -> FloatArray:
    """Return the weighted median of each group's `distances` and their normalised MAD, (k, 2)."""
    told = np.empty((int(members.max(initial=-1)) + 1, 2))
    group_spreads(distances, weights, members, told)
    told[:, 1] *= MADN
    return told


def lp_median(
    points: FloatArray, weights: FloatArray, feature_weights: FloatArray, p: float
) -> FloatArray:
    """Return the `lp_medians` of all points as one group."""
    one = np.zeros(len(points), dtype=np.int64)
    return np.asarray(lp_medians(points, weights, one, feature_weights, p)[0])


def spread(distances: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return the `spreads` of all distances as one group."""
    middle, madn = spreads(distances, weights, np.zeros(len(distances), dtype=np.int64))[0]
    return float(middle), float(madn)
