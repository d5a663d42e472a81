"""Which center points belong to: the nearest one whose fence holds, or the nearest of all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamclust.kernels import metric
from streamclust.results import FloatArray, IntArray


class Standing(NamedTuple):
    """How points stand to centers; see `kernels.metric.stand`."""

    holders: IntArray
    nearest: FloatArray


def standing(
    points: FloatArray,
    centers: FloatArray,
    fences: FloatArray,
    scales: FloatArray,
    groups: IntArray,
    weights: FloatArray,
    p: float,
) -> Standing:
    """Return how points (n, d) stand to centers (k, d) with fences, scales and groups (k,)."""
    n = len(points)
    told = Standing(np.empty(n, dtype=np.int64), np.empty((n, 2)))
    metric.stand(
        np.ascontiguousarray(points),
        np.ascontiguousarray(centers),
        np.ascontiguousarray(fences),
        np.ascontiguousarray(scales),
        groups,
        weights,
        p,
        *told,
    )
    return told


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
    groups = np.arange(len(centers))
    return standing(points, centers, fences, np.ones(len(centers)), groups, weights, p).holders


def nearest(
    points: FloatArray, hints: IntArray, centers: FloatArray, weights: FloatArray, p: float
) -> IntArray:
    """Return the row of the nearest center of every point; `hints` are guesses of it."""
    apart = metric.distance_table(centers, centers, weights, p)
    order = apart.argsort(axis=1, kind="stable")
    return metric.nearest_slots(points, hints, centers, apart, order, weights, p)
