"""What a refit makes of the window: its labels, and the clusters that they define."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamclust.kernels import stream
from streamclust.regions import SHARE, ambiguity, fences
from streamclust.results import FloatArray, IntArray
from streamclust.robust import lp_median


@dataclass(frozen=True, slots=True)
class Census:
    """The clusters that a labelling of the window defines.

    Attributes
    ----------
    labels : int array of shape (n,)
        Cluster index of each window point, -1 for noise; every index is used.
    positions : array of shape (k, n_features)
        l_p medians, measured from the origin.
    scales, limits : arrays of shape (k,)
        Median distance and fence, scaled.
    masses : array of shape (k,)
        Window weight of each cluster.
    sizes : int array of shape (k,)
        Window points of each cluster.
    """

    labels: IntArray
    positions: FloatArray
    scales: FloatArray
    limits: FloatArray
    masses: FloatArray
    sizes: IntArray

    @property
    def k(self) -> int:
        """Number of clusters."""
        return len(self.positions)


def label_window(
    estimator: Any, X: FloatArray, weights: FloatArray, incumbent: IntArray | None
) -> IntArray:
    """Fit an estimator to the window and return its labels, -1 for noise.

    Parameters
    ----------
    estimator : object
        With ``fit(X)`` and then ``labels_``, as in scikit-learn. It is given ``sample_weight`` and
        ``incumbent`` (the labels before the refit) where its `fit` names them.
    X : array of shape (n, n_counted_features)
        Scaled coordinates.
    """
    if not X.shape[1]:
        return np.zeros(len(X), dtype=np.int64)
    named = inspect.signature(estimator.fit).parameters
    told = {"sample_weight": weights, "incumbent": incumbent}
    estimator.fit(X, **{name: value for name, value in told.items() if name in named})
    labels = np.asarray(estimator.labels_)
    if labels.shape != (len(X),) or labels.dtype.kind not in "iu":
        raise TypeError(
            f"{type(estimator).__name__}.labels_ has shape {labels.shape} and type {labels.dtype}; "
            f"{len(X)} integers are needed"
        )
    return labels.astype(np.int64)


def take_census(
    points: FloatArray,
    weights: FloatArray,
    labels: IntArray,
    frame_weights: FloatArray,
    p: float,
    max_clusters: int,
) -> Census:
    """Return the clusters of a labelled window; the lightest beyond `max_clusters` become noise.

    Clusters whose medians coincide in every counted feature are one cluster: no threshold could
    tell them apart.
    """
    labels = _heaviest(labels, weights, max_clusters)
    positions = _medians(points, weights, labels, frame_weights, p)
    counted = positions[:, frame_weights > 0]
    _, first, same = np.unique(counted, axis=0, return_index=True, return_inverse=True)
    if len(first) < len(positions):
        rank = np.argsort(np.argsort(first))
        labels = np.where(labels >= 0, rank[same.reshape(-1)][labels], -1)
        positions = _medians(points, weights, labels, frame_weights, p)
    k = len(positions)
    members = [np.flatnonzero(labels == c) for c in range(k)]
    masses = [weights[m] for m in members]
    distances = [
        stream.distance_table(points[m], positions[c : c + 1], frame_weights, p)[:, 0]
        for c, m in enumerate(members)
    ]
    scales, limits = fences(distances, masses)
    sizes = np.array([len(m) for m in members], dtype=np.int64)
    return Census(labels, positions, scales, limits, np.array([m.sum() for m in masses]), sizes)


def boundary_ratio(distances: FloatArray, stats: FloatArray, estimator: Any = None) -> float:
    """Return the boundary ratio that distances of shape (n, k) to the living centers suggest.

    A three-way estimator says how many points of the window are boundary.
    """
    told = getattr(estimator, "boundary_", None)
    share = SHARE if told is None else float(np.mean(told))
    scales = stats[:, stream.SCALE]
    inside = (distances <= stats[:, stream.FENCE]).any(axis=1)
    relative = relative_distances(distances[inside], scales)
    if relative.shape[1] < 2:
        return ambiguity(np.zeros(0), np.zeros(0), share)
    first, second = np.partition(relative, 1, axis=1)[:, :2].T
    return ambiguity(first, second, share)


def relative_distances(distances: FloatArray, scales: FloatArray) -> FloatArray:
    """Return distances in units of each cluster's scale; 0 / 0 is 0."""
    if scales.all():
        return np.asarray(distances / scales)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = distances / scales
    return np.asarray(np.where(distances == 0, 0.0, relative))


def _heaviest(labels: IntArray, weights: FloatArray, most: int) -> IntArray:
    """Renumber labels 0 .. k - 1 in order of first label, keeping the `most` heaviest."""
    used, index = np.unique(labels[labels >= 0], return_inverse=True)
    mass = np.bincount(index, weights[labels >= 0], minlength=len(used))
    kept = np.sort(np.argsort(-mass, kind="stable")[:most])
    renumber = np.full(len(used), -1)
    renumber[kept] = np.arange(len(kept))
    result = np.full(len(labels), -1, dtype=np.int64)
    result[labels >= 0] = renumber[index]
    return result


def _medians(
    points: FloatArray, weights: FloatArray, labels: IntArray, frame_weights: FloatArray, p: float
) -> FloatArray:
    k = int(labels.max()) + 1
    found = [lp_median(points[m], weights[m], frame_weights, p) for m in _masks(labels, k)]
    return np.array(found).reshape(k, points.shape[1])


def _masks(labels: IntArray, k: int) -> list[np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    return [labels == c for c in range(k)]
