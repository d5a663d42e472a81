"""Mean shift with a flat kernel: clusters are modes of density, and points belong by visits.

Trajectories start at every occupied cell of a grid, or at every point, and climb to a mode
(Comaniciu and Meer, IEEE TPAMI 24(5), 2002). A point belongs to the mode whose trajectories pass
it most often: each trajectory counts a point at most once, and counts are shares of the mode's own
trajectories, so that slow trajectories and heavy modes do not outvote others. This repairs the
visit counts of "Three-way clustering based on mean shift" (Lv, Xu, Sun, Yang, Pure Mathematics
13(12), 2023), which counts steps and depends on the order of the starts. The bandwidth, unless
given, is the one whose clustering has the shortest description (`streamclust.refit.hierarchy`).

*Window* and *kernel* of the literature are the ball here. Noise is a point whose own trajectory
ends at a mode that holds too little to be a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from streamclust.kernels.shift import (
    GROUP,
    WordArray,
    add_visits,
    follow_trajectories,
    merge_ends,
)
from streamclust.refit.base import BatchEstimator, checked_window, members, real, require
from streamclust.refit.code import LEAST, Code, Space, code_space
from streamclust.refit.graph import distinct_points
from streamclust.refit.hierarchy import NOISE_SHARE
from streamclust.refit.leaves import point_tree
from streamclust.results import BoolArray, FloatArray, IntArray
from streamclust.robust import weighted_median

FINEST, COARSEST, RUNGS = 0.01, 0.4, 10
"""Automatic bandwidths: they hold from 1 % to 40 % of the weight around the median point."""
FEWEST = 4.0
"""Least weight that the smallest automatic ball holds around the median point."""
SAMPLE = 1000
"""Points that an automatic bandwidth is chosen on, at the most."""
PROBES = 256
"""Points at which distances are measured for automatic bandwidths."""
MAX_STEPS = 300
"""Steps of a trajectory after the first, at the most."""
WORDS = 1 << 23
"""Marks of passed points that are held at a time (64 MB); beyond, trajectories run twice."""


class MeanShift(BatchEstimator):
    """Flat-kernel mean shift with an automatic bandwidth.

    Parameters
    ----------
    bandwidth : float, optional
        Radius of the ball, in the units of X. None: chosen from the data by code length; then the
        shift takes place in the code space, which is X itself up to 8 features and its principal
        coordinates of above-average variance beyond.
    seeds : {"bins", "points"}
        Where trajectories start: at the mean of every occupied cell of a grid as wide as the
        bandwidth and at every point that those do not visit, or at every point.
    least_weight : float, optional
        Weight that a cluster must hold. None: 3, and a cluster must be told more shortly than as
        background noise. 0 keeps every mode.
    tolerance : float, default 1e-3
        A trajectory rests when a step is at most this share of the bandwidth.

    Attributes
    ----------
    labels_ : int array of shape (n,)
        `0 .. n_clusters_ - 1`, or -1 for noise. Clusters are numbered by their lexicographically
        first point.
    n_clusters_ : int
        May be 0.
    modes_ : float array of shape (n_clusters, d)
        Where trajectories come to rest; without a given bandwidth, the mean of the ball there.
    visits_ : float array of shape (n, n_clusters)
        Share of a mode's trajectories that pass a point.
    bandwidth_ : float
        The bandwidth used; 0.0 where none was given and all points are equal.
    n_features_in_ : int
    """

    def __init__(
        self,
        *,
        bandwidth: float | None = None,
        seeds: Literal["bins", "points"] = "bins",
        least_weight: float | None = None,
        tolerance: float = 1e-3,
    ) -> None:
        self.bandwidth = bandwidth
        self.seeds = seeds
        self.least_weight = least_weight
        self.tolerance = tolerance

    def fit(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster a window; see `BatchEstimator.fit`."""
        self._check_parameters()
        rows, weights = checked_window(X, sample_weight)
        heavy = np.flatnonzero(weights > 0.0)
        window = distinct_points(rows[heavy], weights[heavy])
        unit = float(np.abs(window.points).max()) or 1.0
        inputs, mass = window.points / unit, window.weights
        middle = mass @ inputs / mass.sum()
        points = np.ascontiguousarray(inputs - middle)
        bandwidth = 0.0 if self.bandwidth is None else float(self.bandwidth) / unit
        if len(points) == 1:
            one = np.zeros(1, np.int64)
            found = self._settle(Basins(bandwidth, points, one, np.ones((1, 1))))
        else:
            space = code_space(inputs, mass)
            suggested = None
            if self.bandwidth is None:
                suggested, points = self._suggest(space, mass), space.points
                bandwidth = suggested.bandwidth
            if suggested is None or len(suggested.labels) < len(points):
                code = Code(space.points, mass, space.grain)
                suggested = self._basins(Landscape(points, mass), bandwidth, code)
            found = self._settle(suggested)
        member = members(rows, heavy, window.points, window.member)
        self.labels_ = found.labels[member]
        self.visits_ = np.ascontiguousarray(found.visits[member])
        if self.bandwidth is None:  # the code space may have other coordinates
            self.modes_ = unit * _ball_means(inputs, points, mass, found)
        else:
            self.modes_ = unit * (found.modes + middle)
        self.n_clusters_ = len(found.modes)
        self.bandwidth_ = found.bandwidth * unit
        self.n_features_in_ = rows.shape[1]
        return self

    def _suggest(self, space: Space, mass: FloatArray) -> Basins:
        """The clustering of shortest description, of a sample where there are many points."""
        chosen = _spaced(len(space.points), SAMPLE)
        points, weights = np.ascontiguousarray(space.points[chosen]), mass[chosen]
        land, code = Landscape(points, weights), Code(points, weights, space.grain)
        best, shortest = None, np.inf
        for bandwidth in bandwidths(points, weights):
            found = self._basins(land, bandwidth, code)
            length = code.best(found.labels).length if len(found.modes) else np.inf
            if best is None or length < shortest:
                best, shortest = found, length
        assert best is not None  # there is always a bandwidth
        return best

    def _basins(self, land: Landscape, bandwidth: float, code: Code) -> Basins:
        """The clustering at one bandwidth."""
        climb = land.climb(bandwidth, self.tolerance, self.seeds == "points")
        least = LEAST if self.least_weight is None else float(self.least_weight)
        kept = np.flatnonzero(climb.heights >= least)
        visits = land.visits(climb, kept)
        while True:
            stands = np.zeros(len(climb.modes), dtype=bool)
            stands[kept] = True
            labels = np.where(stands[climb.own], assigned(visits), -1)
            worth = self._worth(labels, len(kept), land.weights, code, least)
            if worth.all():
                return _numbered(Basins(bandwidth, climb.modes[kept], labels, visits))
            kept, visits = kept[worth], np.ascontiguousarray(visits[:, worth])

    def _worth(
        self, labels: IntArray, count: int, weights: FloatArray, code: Code, least: float
    ) -> BoolArray:
        """Which clusters are heavy enough, and no background noise."""
        worth = np.zeros(count, dtype=bool)
        background = -code.noise_density(NOISE_SHARE * code.total)
        for c in range(count):
            group = np.flatnonzero(labels == c)
            mass = float(weights[group].sum())
            worth[c] = len(group) > 0 and mass >= least
            if worth[c] and self.least_weight is None and count > 1:
                worth[c] = code.of_groups([group], False)[0] < mass * background
        return worth

    def _settle(self, found: Basins) -> Basins:
        """The last word on the clusters; subclasses tell regions here."""
        return found

    def _check_parameters(self) -> None:
        """Refuse what `fit` could not use."""
        h, least = self.bandwidth, self.least_weight
        require("bandwidth", h, h is None or real(h), "None, or positive and finite")
        require("seeds", self.seeds, self.seeds in ("bins", "points"), "bins, points")
        holds = least is None or least == 0 or real(least)
        require("least_weight", least, holds, "None, or finite and >= 0")
        require("tolerance", self.tolerance, real(self.tolerance), "positive and finite")


@dataclass(frozen=True, slots=True)
class Basins:
    """A clustering by modes.

    Attributes
    ----------
    bandwidth : float
    modes : float array of shape (k, d)
    labels : int array of shape (n,)
        0 .. k - 1, or -1.
    visits : float array of shape (n, k)
    """

    bandwidth: float
    modes: FloatArray
    labels: IntArray
    visits: FloatArray

    def only(self, kept: IntArray) -> Basins:
        """Some of the clusters; points of the others go to the kept one that visits them most."""
        visits = np.ascontiguousarray(self.visits[:, kept])
        labels = np.where(self.labels >= 0, assigned(visits), -1)
        return _numbered(Basins(self.bandwidth, self.modes[kept], labels, visits))


@dataclass(frozen=True, slots=True)
class Climb:
    """Trajectories at one bandwidth.

    Attributes
    ----------
    bandwidth, tolerance : float
    starts : float array of shape (s, d)
    shares : float array of shape (s,)
        Weight of the points that a trajectory stands for.
    modes : float array of shape (m, d)
        Densest first.
    heights : float array of shape (m,)
        Weight of the ball around each mode.
    led : int array of shape (s,)
        The mode of each trajectory.
    own : int array of shape (n,)
        The mode of each point's own trajectory.
    trails : list of (int array of shape (r,), uint64 array)
        Trajectories that ran together, and which points they passed; empty where there was no
        room to keep them.
    """

    bandwidth: float
    tolerance: float
    starts: FloatArray
    shares: FloatArray
    modes: FloatArray
    heights: FloatArray
    led: IntArray
    own: IntArray
    trails: list[tuple[IntArray, WordArray]]


class Landscape:
    """Distinct points in a tree, ready for trajectories at any bandwidth.

    Parameters
    ----------
    points : float array of shape (n, d)
        Pairwise distinct, in a canonical order.
    weights : float array of shape (n,)
        Positive.
    """

    def __init__(self, points: FloatArray, weights: FloatArray) -> None:
        self.points, self.weights = points, weights
        self._tree = point_tree(points, weights)
        self._order = self._tree.order
        self._columns = np.ascontiguousarray(points[self._order].T)
        self._weights = np.ascontiguousarray(weights[self._order])

    def climb(self, bandwidth: float, tolerance: float, every: bool) -> Climb:
        """Follow trajectories from every cell or point to the modes."""
        n = len(self.points)
        starts, cell = (self.points, np.arange(n)) if every else self._cells(bandwidth)
        ends, heights, trails, seen = self._run(starts, bandwidth, tolerance)
        missed = np.empty(0, np.int64) if every else np.flatnonzero(~seen)
        if len(missed):
            cell[missed] = len(starts) + np.arange(len(missed))
            late, high, more, _ = self._run(self.points[missed], bandwidth, tolerance)
            ends, heights = np.concatenate((ends, late)), np.concatenate((heights, high))
            trails = trails + [(len(starts) + which, passed) for which, passed in more]
            starts = np.ascontiguousarray(np.concatenate((starts, self.points[missed])))
        order = np.lexsort((*ends.T[::-1], heights))[::-1].copy()
        led, kept = np.zeros(len(ends), np.int64), np.empty(len(ends), np.int64)
        count = merge_ends(ends, order, bandwidth, led, kept)
        kept = kept[:count]
        shares = np.bincount(cell, self.weights, len(starts)).astype(np.float64)
        modes = ends[kept]
        return Climb(
            bandwidth, tolerance, starts, shares, modes, heights[kept], led, led[cell], trails
        )

    def visits(self, climb: Climb, kept: IntArray) -> FloatArray:
        """Share of the trajectories of each kept mode that pass a point, shape (n, k)."""
        name = np.full(len(climb.modes), -1, np.int64)
        name[kept] = np.arange(len(kept))
        to = name[climb.led]
        visits = np.zeros((len(kept), len(self.points)))
        for which, kept_trails in climb.trails:
            trails = kept_trails
            if not len(trails):
                trails = self._follow(climb.starts[which], climb.bandwidth, climb.tolerance)[2]
            add_visits(trails, to[which], climb.shares[which], visits)
        counted = to >= 0
        total = np.bincount(to[counted], climb.shares[counted], len(kept))
        visits /= np.where(total > 0.0, total, 1.0)[:, None]
        return np.ascontiguousarray(visits.T)[np.argsort(self._order)]

    def _cells(self, bandwidth: float) -> tuple[FloatArray, IntArray]:
        """The mean point of every occupied cell, and the cell of every point."""
        least = self.points.min(axis=0)
        cells = np.floor((self.points - least) / bandwidth)
        found = distinct_points(cells, self.weights)
        sums = [np.bincount(found.member, self.weights * column) for column in self.points.T]
        means = np.stack(sums, axis=1) / found.weights[:, None]
        return np.ascontiguousarray(means), found.member

    def _run(
        self, starts: FloatArray, bandwidth: float, tolerance: float
    ) -> tuple[FloatArray, FloatArray, list[tuple[IntArray, WordArray]], BoolArray]:
        """Ends, last balls and trails of trajectories, and which points any of them passed."""
        n = len(self.points)
        ends, heights = np.empty_like(starts), np.empty(len(starts))
        order = point_tree(starts, np.ones(len(starts))).order
        size = GROUP * max(1, WORDS // n)
        trails: list[tuple[IntArray, WordArray]] = []
        seen = np.zeros(n, dtype=bool)
        for begin in range(0, len(starts), size):
            which = order[begin : begin + size]
            ends[which], heights[which], passed = self._follow(starts[which], bandwidth, tolerance)
            seen[self._order] |= passed.any(axis=0)
            trails.append((which, passed if len(starts) <= size else passed[:0]))
        return ends, heights, trails, seen

    def _follow(
        self, starts: FloatArray, bandwidth: float, tolerance: float
    ) -> tuple[FloatArray, FloatArray, WordArray]:
        """Ends, last balls and passed points of trajectories, neighbours side by side."""
        ends, heights = starts.copy(), np.empty(len(starts))
        passed = np.empty((-(-len(starts) // GROUP), len(self.points)), np.uint64)
        follow_trajectories(
            self._columns,
            self._weights,
            *self._tree[1:],
            bandwidth,
            tolerance * bandwidth,
            MAX_STEPS,
            ends,
            heights,
            passed,
        )
        return ends, heights, passed


def bandwidths(points: FloatArray, weights: FloatArray) -> list[float]:
    """Bandwidths to try, coarsest first.

    Medians, over points, of the radius that holds a given share of the weight.

    Parameters
    ----------
    points : float array of shape (n, d)
    weights : float array of shape (n,)
    """
    n, total = len(points), float(weights.sum())
    probes = _spaced(n, PROBES)
    least = min(COARSEST, max(FINEST, FEWEST / total))
    wanted = total * np.geomspace(COARSEST, least, RUNGS)
    far = np.zeros((len(probes), n))
    for column in points.T:
        far += (column[probes, None] - column) ** 2
    order = np.argsort(far, axis=1)
    held = np.cumsum(weights[order], axis=1)
    at = np.stack([np.minimum((held < share).sum(axis=1), n - 1) for share in wanted], axis=1)
    far = np.take_along_axis(far, np.take_along_axis(order, at, axis=1), axis=1)
    radii = np.sqrt(far)
    found = weighted_median(radii, weights[probes])
    ladder = sorted({float(h) for h in found if h > 0.0}, reverse=True)
    spread = float(np.sqrt(((points - points[0]) ** 2).sum(axis=1).max()))
    return ladder or [spread or 1.0]


def assigned(visits: FloatArray) -> IntArray:
    """The mode that visits each point most often, the densest among equals; -1 where none does."""
    if not visits.shape[1]:
        return np.full(len(visits), -1, np.int64)
    best = np.argmax(visits, axis=1)
    return np.where(visits[np.arange(len(visits)), best] > 0.0, best, -1).astype(np.int64)


def _spaced(n: int, most: int) -> IntArray:
    """At most so many of n positions, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.int64)


def _ball_means(
    inputs: FloatArray, points: FloatArray, mass: FloatArray, found: Basins
) -> FloatArray:
    """The modes in the coordinates of the window: the mean of each mode's ball."""
    modes = np.empty((len(found.modes), inputs.shape[1]))
    for m, mode in enumerate(found.modes):
        far = np.sqrt(((points - mode) ** 2).sum(axis=1))
        ball = mass * (far <= max(found.bandwidth, float(far.min())))
        modes[m] = ball @ inputs / ball.sum()
    return modes


def _numbered(found: Basins) -> Basins:
    """The same clusters in order of first point; empty ones go last."""
    k = len(found.modes)
    first = np.full(k, len(found.labels))
    for c in range(k):
        group = np.flatnonzero(found.labels == c)
        first[c] = group[0] if len(group) else len(found.labels)
    order = np.argsort(first, kind="stable")
    name = np.empty(k, np.int64)
    name[order] = np.arange(k)
    labels = np.where(found.labels >= 0, name[found.labels] if k else -1, -1)
    return Basins(found.bandwidth, found.modes[order], labels, np.take(found.visits, order, axis=1))
