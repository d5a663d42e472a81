"""Fences and regions: how far a cluster reaches, and who is core, boundary or noise.

A fence is median + 4 MADN of the distances of a cluster's window points to its center: it tolerates
noise inside the cluster, where high quantiles collapse. The three-way paper calls an ambiguous
point "noise"; here that is *boundary*, and *noise* is outside every fence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamclust.results import FloatArray, IntArray, Region
from streamclust.robust import quantile, spreads

REACH = 4.0
"""Normalised MADs beyond the median distance at which the fence stands."""
PRIOR = 5.0
"""Points' worth of trust in the typical relative spread when a cluster is small."""
AMBIGUOUS = 0.75
"""Least ratio of the two smallest distances (in units of the clusters' scales) that can be called
ambiguous; the data may raise it."""
SHARE = 0.05
"""At most one point in twenty is called boundary."""


def fences(distances: list[FloatArray], weights: list[FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Return scale and fence of every cluster.

    Parameters
    ----------
    distances, weights : lists of arrays
        Per cluster, the distances of its points to its center, in scaled units, and their weights.

    Returns
    -------
    scale, limit : arrays of shape (n_clusters,)
        Median distance, and median + REACH * MADN. The MADN of a small cluster is drawn towards
        the typical ratio of MADN to median of all clusters.
    """
    sizes = np.array([len(d) for d in distances], dtype=np.int64)
    members = np.repeat(np.arange(len(sizes)), sizes)
    scale, madn = spreads(np.concatenate(distances), np.concatenate(weights), members).T
    mass = np.array([float(w.sum()) for w in weights])
    positive = scale > 0
    if positive.any():
        typical = float(np.average(madn[positive] / scale[positive], weights=mass[positive]))
        madn = (mass * madn + PRIOR * typical * scale) / (mass + PRIOR)
    return scale, scale + REACH * madn


def ambiguity(first: FloatArray, second: FloatArray, share: float | None = None) -> float:
    """Return the boundary ratio that the window suggests.

    Parameters
    ----------
    first, second : arrays of shape (n,)
        Relative distances of each point to its nearest and second nearest cluster, infinite where
        there is none.
    share : float, optional
        How many of the points may be called boundary, if it is not SHARE.

    Returns
    -------
    float
        The quantile of their ratio that leaves `share` above it, but at least AMBIGUOUS: no point
        that is clear is called boundary.
    """
    clear = np.zeros_like(first)
    ratio = np.divide(first, second, out=clear, where=(second > 0) & np.isfinite(first))
    most = 1.0 - (SHARE if share is None else share)
    return max(AMBIGUOUS, float(quantile(np.sort(ratio), most))) if len(ratio) else AMBIGUOUS


def relative_distances(distances: FloatArray, scales: FloatArray) -> FloatArray:
    """Return distances in units of each cluster's scale; 0 / 0 is 0."""
    if scales.all():
        return np.asarray(distances / scales)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = distances / scales
    return np.asarray(np.where(distances == 0, 0.0, relative))


def region(
    label: int, relative: FloatArray, clusters: Sequence[int] | IntArray, ratio: float
) -> tuple[Region, tuple[int, ...]]:
    """Return the region of a point and the other clusters it might belong to, nearest first.

    Parameters
    ----------
    label : int
        The answer, -1 for noise.
    relative : array of shape (k,)
        Distance to each center in units of that cluster's scale.
    clusters : sequence or array of int
        Id of the cluster of each center; the distance to a cluster is that to its nearest center.
    ratio : float
        A rival counts whose relative distance is at most that of the answer over `ratio`.
    """
    if label < 0:
        return Region.NOISE, ()
    own = np.asarray(clusters) == label
    near = (relative * ratio <= relative[own].min()) & ~own
    if not near.any():
        return Region.CORE, ()
    (slots,) = near.nonzero()
    slots = slots[np.argsort(relative[slots], kind="stable")]
    return Region.BOUNDARY, tuple(dict.fromkeys(int(clusters[slot]) for slot in slots))
