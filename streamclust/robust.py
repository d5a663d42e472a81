"""Robust location and spread of weighted points: medians, l_p medians, MAD."""

from __future__ import annotations

import numpy as np

from streamclust.results import FloatArray

SWEEPS = 20
MADN = 1.4826
"""MAD times this is the standard deviation of a Gaussian."""


def weighted_median(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the lower weighted median of every column of `values`, shape (n, ...)."""
    order = np.argsort(values, axis=0, kind="stable")
    ranked = np.take_along_axis(values, order, axis=0)
    mass = np.cumsum(weights[order], axis=0)
    middle = (mass < 0.5 * mass[-1]).sum(axis=0)
    return np.asarray(np.take_along_axis(ranked, middle[None], axis=0)[0])


def lp_median(
    points: FloatArray, weights: FloatArray, feature_weights: FloatArray, p: float
) -> FloatArray:
    """Return the minimiser of the weighted sum of ||x - c||_p over the rows x of `points`.

    p = 1 is the coordinate-wise median; else iteratively re-weighted means, which for p = 2 are
    Weiszfeld's, started there and damped beyond p = 3 where they would overshoot.
    """
    center = weighted_median(points, weights)
    counted = feature_weights > 0
    if p == 1.0 or len(points) < 3 or not counted.any():
        return center
    x = points[:, counted] * feature_weights[counted]
    c = center[counted] * feature_weights[counted]
    damp = min(1.0, 2.0 / p)
    for _ in range(SWEEPS):
        u = np.abs(x - c)
        top = u.max(axis=1, keepdims=True)
        ratio = np.divide(u, top, out=np.zeros_like(u), where=top > 0)
        norm = top[:, 0] * (ratio**p).sum(axis=1) ** (1.0 / p)
        typical = weighted_median(norm, weights)
        if typical == 0.0:  # half of the weight is here: this is the minimiser
            break
        norm = np.maximum(norm, 1e-6 * typical)[:, None]
        pull = weights[:, None] / norm
        if p != 2.0:
            pull = pull * np.maximum(u / norm, 1e-6) ** (p - 2.0)
        total = pull.sum(axis=0)
        step = np.divide((pull * (x - c)).sum(axis=0), total, out=np.zeros_like(c), where=total > 0)
        c = c + damp * step
    center[counted] = c / feature_weights[counted]
    return center


def spread(distances: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Return the weighted median of `distances` and their normalised MAD around it."""
    middle = float(weighted_median(distances, weights))
    return middle, MADN * float(weighted_median(np.abs(distances - middle), weights))
