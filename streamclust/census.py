"""What a refit makes of the window: its labels, and the clusters and centers that they define."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamclust.kernels import metric
from streamclust.regions import fences
from streamclust.representatives import represent
from streamclust.results import FloatArray, IntArray
from streamclust.robust import lp_medians


@dataclass(frozen=True, slots=True)
class Census:
    """The clusters that a labelling of the window defines, and their centers.

    Attributes
    ----------
    labels : int array of shape (n,)
        Cluster index of each window point, -1 for noise; every index is used.
    members : int array of shape (n,)
        Center index of each window point, -1 for noise; every index is used.
    owners : int array of shape (m,)
        Cluster index of each center, ascending; a cluster's heaviest center comes first.
    positions : array of shape (m, n_features)
        l_p medians of the centers' points, measured from the origin.
    scales, limits : arrays of shape (m,)
        Median distance and fence, scaled.
    masses : array of shape (m,)
        Window weight of each center.
    sizes : int array of shape (m,)
        Window points of each center.
    """

    labels: IntArray
    members: IntArray
    owners: IntArray
    positions: FloatArray
    scales: FloatArray
    limits: FloatArray
    masses: FloatArray
    sizes: IntArray

    @property
    def k(self) -> int:
        """Number of clusters."""
        return int(self.owners[-1]) + 1 if len(self.owners) else 0

    def without(self, gone: Sequence[int]) -> Census:
        """Return the census without some of its clusters, whose points are noise then."""
        if not gone:
            return self
        kept = ~np.isin(self.owners, gone)
        rank = np.append(np.cumsum(kept) - 1, -1)
        members = np.where(np.append(kept, False)[self.members], rank[self.members], -1)
        owners = np.unique(self.owners[kept], return_inverse=True)[1].reshape(-1)
        columns = ("positions", "scales", "limits", "masses", "sizes")
        told = {name: getattr(self, name)[kept] for name in columns}
        labels = np.append(owners, -1)[members]
        return Census(labels=labels, members=members, owners=owners, **told)

    def widen(self, values: FloatArray) -> Census:
        """Return the census with new features at the end, every center at `values`."""
        room = np.tile(values, (len(self.positions), 1))
        return replace(self, positions=np.hstack([self.positions, room]))

    @property
    def cluster_masses(self) -> FloatArray:
        """Window weight of each cluster, shape (k,)."""
        return np.bincount(self.owners, self.masses, minlength=self.k).astype(np.float64)


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

    A cluster that one median misrepresents gets several centers. Clusters whose medians coincide in
    every counted feature are one cluster: no threshold could tell them apart.
    """
    labels = _heaviest(labels, weights, max_clusters)
    if not (labels >= 0).any():
        none, where = np.zeros(0), np.zeros((0, points.shape[1]))
        each = none.astype(np.int64)
        return Census(labels, labels, each, where, none, none, none, each)
    labels, centers = _distinct(labels, points, weights, frame_weights, p)
    members, owners, positions = represent(points, weights, labels, centers, frame_weights, p)
    own = [np.flatnonzero(members == c) for c in range(len(positions))]
    masses = [weights[m] for m in own]
    distances = [
        metric.distance_table(points[m], positions[c : c + 1], frame_weights, p)[:, 0]
        for c, m in enumerate(own)
    ]
    scales, limits = fences(distances, masses)
    sizes = np.array([len(m) for m in own], dtype=np.int64)
    mass = np.array([m.sum() for m in masses])
    return Census(labels, members, owners, positions, scales, limits, mass, sizes)


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


def _distinct(
    labels: IntArray, points: FloatArray, weights: FloatArray, frame_weights: FloatArray, p: float
) -> tuple[IntArray, FloatArray]:
    """Join the clusters whose medians coincide in every counted feature; return the medians too."""
    centers = lp_medians(points, weights, labels, frame_weights, p)
    counted = centers[:, frame_weights > 0]
    if len({place.tobytes() for place in counted + 0.0}) == len(counted):  # -0.0 is 0.0
        return labels, centers
    _, first, same = np.unique(counted, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    labels = np.where(labels >= 0, rank[same.reshape(-1)][labels], -1)
    return labels, lp_medians(points, weights, labels, frame_weights, p)
