"""Compiled answers by laws: each point to the cluster whose law tells it in fewest nats."""

from __future__ import annotations

import math

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.kernels.laws import DEGREES, FULL, depths, squares
from streamclust.results import FloatArray, IntArray

TILE = 256


@kernel
def nearest_law(
    points: FloatArray,
    means: FloatArray,
    whiteners: FloatArray,
    offsets: FloatArray,
    skews: FloatArray,
    noise: float,
    student: bool,
    labels: IntArray,
) -> None:
    """Give every point to the cluster that tells it in the shortest code, or to noise.

    Parameters
    ----------
    points : float array of shape (n, d)
    means, whiteners, offsets, skews : float arrays of shape (K, d), (K, d, d), (K,), (K, d)
        As `fit_clusters` writes them.
    noise : float
        Log density of noise plus the log of its share; -inf allows no noise.
    student : bool
        Which law.
    labels : int array of shape (n,)
        Receives 0 .. K - 1, or -1.
    """
    n, d = points.shape
    packed = np.empty((d, TILE))
    room = np.empty((3, TILE))
    for begin in range(0, n, TILE):
        count = min(TILE, n - begin)
        best, part, far = room[0, :count], room[1, :count], room[2, :count]
        given = labels[begin : begin + count]
        for at in range(count):
            best[at] = noise
            given[at] = -1
            for j in range(d):
                packed[j, at] = points[begin + at, j]
        for c in range(means.shape[0]):
            if skews[c, 0] > 0.0:
                depths(packed, means[c], whiteners[c], skews[c], student, far)
            else:
                squares(packed, means[c], whiteners[c], FULL, part, far)
                if student:
                    for at in range(count):
                        far[at] = (DEGREES + d) * math.log(1.0 + far[at] / DEGREES)
            for at in range(count):
                value = offsets[c] - 0.5 * far[at]
                if value > best[at]:
                    best[at] = value
                    given[at] = c


@kernel
def reassign(
    points: FloatArray,
    weights: FloatArray,
    means: FloatArray,
    whiteners: FloatArray,
    offsets: FloatArray,
    skews: FloatArray,
    noise: float,
    student: bool,
    least: float,
    labels: IntArray,
) -> None:
    """`nearest_law`, then `number_clusters`: see there; `labels` receives the outcome."""
    nearest_law(points, means, whiteners, offsets, skews, noise, student, labels)
    number_clusters(labels, weights, least, labels)


@kernel
def number_clusters(labels: IntArray, weights: FloatArray, least: float, out: IntArray) -> int:
    """Number clusters by their first point; those of too little weight become noise.

    Parameters
    ----------
    labels : int array of shape (n,)
        Not negative, or -1.
    weights : float array of shape (n,)
    least : float
        A lighter cluster is none.
    out : int array of shape (n,)
        Receives 0 .. K - 1, or -1; may be `labels` itself.

    Returns
    -------
    int
        K.
    """
    top = 0
    for label in labels:
        top = max(top, label + 1)
    mass = np.zeros(top)
    name = np.full(top, -1, np.int64)
    for i in range(labels.shape[0]):
        if labels[i] >= 0:
            mass[labels[i]] += weights[i]
    found = 0
    for i, label in enumerate(labels):
        out[i] = -1
        if label >= 0 and mass[label] >= least:
            if name[label] < 0:
                name[label] = found
                found += 1
            out[i] = name[label]
    return found
