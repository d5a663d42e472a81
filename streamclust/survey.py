"""What a refit looks at and what it finds: a sample of the window, and a survey of the sample.

A survey depends on its sample alone, so it may be made in a thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import bdtr

from streamclust.census import Census, label_window, take_census
from streamclust.kernels import metric
from streamclust.results import FloatArray, IntArray

LOST = 0.4
"""Share of a cluster nearer to others from which it is the background of those."""
HEAP = 10.0
"""Weight that a heap of points has at least."""
TINY = float(np.finfo(float).tiny)
DEAD = 0.1
"""Part of its rate at which a cluster is as good as silent."""
CHANCE = 1e-6
"""A silence of this probability is the end of a cluster."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The window as a refit sees it.

    Attributes
    ----------
    tick : int
        Events learned when it was taken.
    reason : str
        Why a refit was due.
    points : array of shape (n, n_features)
        Measured from the origin.
    times : array of shape (n,)
        Time of each point.
    masses : array of shape (n,)
        Weight of each point.
    weights : array of shape (n_features,)
        Scaling weights that the refit uses.
    owners : int array of shape (n,)
        Id of the cluster of each point by the centers of that time, or -1.
    centers : mapping of center id to its position at that time
    full : bool
        Whether the window was full.
    """

    tick: int
    reason: str
    points: FloatArray
    times: FloatArray
    masses: FloatArray
    weights: FloatArray
    owners: IntArray
    centers: Mapping[int, FloatArray]
    full: bool

    def widen(self, values: FloatArray) -> Sample:
        """Return the sample with new features at the end, at `values` and of weight 0."""
        points = np.hstack([self.points, np.tile(values, (len(self.points), 1))])
        weights = np.concatenate([self.weights, np.zeros_like(values)])
        room = np.zeros_like(values)
        centers = {id: np.concatenate([place, room]) for id, place in self.centers.items()}
        return replace(self, points=points, weights=weights, centers=centers)


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found in a sample.

    Attributes
    ----------
    census : Census
    ambiguous : float or None
        Share of boundary points, where the estimator is a three-way one.
    """

    census: Census
    ambiguous: float | None = None


def make_survey(
    estimator: Any, sample: Sample, p: float, max_clusters: int, told: bool = False
) -> Survey:
    """Let an estimator find clusters in a sample; `told` is whether it was told how many."""
    X = np.clip(sample.points * sample.weights, -metric.CLIP, metric.CLIP)[:, sample.weights > 0]
    incumbent = None
    if sample.full and sample.centers:
        known, places = np.unique(sample.owners, return_inverse=True)
        incumbent = (places - (known[0] < 0)).astype(np.int64)
    labels = label_window(estimator, X, sample.masses, incumbent)
    boundary = getattr(estimator, "boundary_", None)
    found = survey_of_labels(sample, labels, p, max_clusters)
    if not told:
        found = replace(found, census=without_background(found.census, sample, p))
    return found if boundary is None else replace(found, ambiguous=float(np.mean(boundary)))


def without_background(census: Census, sample: Sample, p: float) -> Census:
    """Return the census without clusters much of which lies nearer to others; they are noise.

    Heavy-tailed noise can be described as one wide cluster around all others. No center of it would
    answer for it, and its fence would let everything in.
    """
    while census.k > 1:
        table = metric.distance_table(sample.points, census.positions, sample.weights, p)
        kept = census.labels >= 0
        lost = kept & (census.owners[table.argmin(axis=1)] != census.labels)
        mass = np.bincount(census.labels[kept], sample.masses[kept], minlength=census.k)
        share = np.bincount(census.labels[lost], sample.masses[lost], minlength=census.k) / mass
        worst = int(share.argmax())
        if share[worst] <= LOST:
            break
        census = census.without([worst])
    return census


def silent(census: Census, cluster: int, sample: Sample) -> bool:
    """Whether a cluster has got no points for so long that it must have ended.

    Up to a tenth of its points may be strays that came later. Its rate has fallen to a tenth, and
    if it went on getting its share of the points, so few among all that came since would be as
    improbable as the silence at which a living cluster dies.
    """
    mine = census.labels == cluster
    times, n = np.sort(sample.times[mine]), int(np.count_nonzero(mine))
    for strays in {0, n // 100, n // 30, n // 10}:
        since = int(np.count_nonzero(sample.times > times[n - 1 - strays]))
        share = min((n - strays) / (len(mine) - since), 1.0)
        if strays <= DEAD * share * since and bdtr(strays, since, share) < CHANCE:
            return True
    return False


def faint(census: Census, cluster: int, sample: Sample, p: float) -> bool:
    """Whether a cluster is no denser than the noise around it.

    As for a birth from outliers, the shell between its fences and twice as far must hold less than
    half of its weight; uniform noise holds more.
    """
    noise = np.flatnonzero(census.labels < 0)
    slots = np.flatnonzero(census.owners == cluster)
    table = metric.distance_table(sample.points[noise], census.positions[slots], sample.weights, p)
    shell = (table <= 2.0 * census.limits[slots]).any(axis=1)
    shell &= (table > census.limits[slots]).all(axis=1)
    return bool(sample.masses[noise[shell]].sum() > 0.5 * census.masses[slots].sum())


def valley(sample: Sample, among: IntArray, a: FloatArray, b: FloatArray) -> bool:
    """Whether the newer half of some points lie in two heaps, around the centers a and b.

    Along the line from a to b, the middle third then holds less than half of what lies within a
    third of its length around either center. One Gaussian that is cut in two does not look so.
    """
    newer = among[sample.times[among] >= np.median(sample.times)]
    line = (b - a) * sample.weights
    along = ((sample.points[newer] - a) * sample.weights) @ line / max(float(line @ line), TINY)
    ends = np.array([-1.0, 1.0, 2.0, 4.0]) / 3.0
    place, mass = np.searchsorted(ends, along), sample.masses[newer]
    left, middle, right = (float(mass[place == third].sum()) for third in (1, 2, 3))
    return min(left, right) >= HEAP and middle < 0.5 * min(left, right)


def survey_of_labels(sample: Sample, labels: IntArray, p: float, max_clusters: int) -> Survey:
    """Return the clusters that a user's labels make of a sample, -1 for noise."""
    return Survey(
        take_census(sample.points, sample.masses, labels, sample.weights, p, max_clusters)
    )


def survey_of_centers(sample: Sample, p: float) -> Survey:
    """Return one cluster around every point of a sample, which are given centers.

    Nothing is known of their extent: a fence stands half way to the nearest other center, and the
    scale is a third of that, as it is for a Gaussian of a few features.
    """
    k = len(sample.points)
    apart = metric.distance_table(sample.points, sample.points, sample.weights, p)
    np.fill_diagonal(apart, np.inf)
    limits, each = apart.min(axis=1) / 2.0, np.arange(k)
    sizes = np.zeros(k, dtype=np.int64)
    return Survey(
        Census(each, each, each, sample.points, limits / 3.0, limits, sample.masses, sizes)
    )
