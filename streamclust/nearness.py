"""Which center points belong to: the nearest one whose fence holds, or the nearest of all."""

from __future__ import annotations

import numpy as np

from streamclust.kernels import stream
from streamclust.results import FloatArray, IntArray


def owners(
    points: FloatArray, centers: FloatArray, fences: FloatArray, weights: FloatArray, p: float
) -> IntArray:
    """Return the row of the nearest center whose fence holds, or -1, of every point.

    Parameters
    ----------
    points : array of shape (n, d)
    centers, fences : arrays of shape (k, d) and (k,)
    weights : array of shape (d,)
    """
    if not len(centers):
        return np.full(len(points), -1, dtype=np.int64)
    return holders(stream.distance_table(points, centers, weights, p), fences)


def holders(distances: FloatArray, fences: FloatArray) -> IntArray:
    """Return `owners` from the distances of points to centers, shape (n, k)."""
    inside = np.where(distances <= fences, distances, np.inf)
    return np.where(np.isfinite(inside.min(axis=1)), inside.argmin(axis=1), -1)


def nearest(
    points: FloatArray, hints: IntArray, centers: FloatArray, weights: FloatArray, p: float
) -> IntArray:
    """Return the row of the nearest center of every point; `hints` are guesses of it."""
    apart = stream.distance_table(centers, centers, weights, p)
    order = apart.argsort(axis=1, kind="stable")
    return stream.nearest_slots(points, hints, centers, apart, order, weights, p)
