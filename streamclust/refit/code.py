"""The length of a clustering's description, and the refinement that shortens it.

Owns what a clustering costs in nats: its clusters told by Gaussian or Student laws, perhaps skewed
ones (points, parameters and labels, see `streamclust.kernels.laws`), and its noise told point by
point by a uniform law over the window's box. The principle is Rissanen's minimum description length
("Modeling by shortest data description", 1978): of two clusterings the shorter one is better, with
no labels and no threshold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamclust.kernels.assignment import number_clusters, reassign
from streamclust.kernels.code import fit_clusters
from streamclust.kernels.groups import Memo, empty_memo
from streamclust.results import FloatArray, IntArray

PLAIN_DIMENSIONS = 8
"""Up to so many features are their own code space."""
CODE_DIMENSIONS = 15
"""Most coordinates of the code space: a full covariance is one number per pair of them."""
RANK = 1e-12
"""A principal variance below this share of the largest one is rounding."""
TAIL = 0.05
"""Share of the rows at each end of a feature that is cut in the choice of coordinates."""
FLOOR = 0.01
"""Added to every variance, as a share of the window's mean variance."""
LEAST = 3.0
"""Weight of the lightest cluster."""
SWEEPS = 8
"""Most reassignments of one refinement."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A clustering of distinct points and the length of its description.

    Attributes
    ----------
    labels : int array of shape (n,)
        0 .. K - 1, or -1.
    length : float
        Nats for the whole window.
    student : bool
        Whether clusters are told by Student's law instead of the Gaussian one.
    """

    labels: IntArray
    length: float
    student: bool

    @property
    def n_clusters(self) -> int:
        """The number of clusters."""
        return int(self.labels.max()) + 1 if self.labels.size else 0


class Laws(NamedTuple):
    """The laws of a clustering, as `fit_clusters` writes them, and the weight of its noise."""

    codes: FloatArray
    means: FloatArray
    whiteners: FloatArray
    offsets: FloatArray
    skews: FloatArray
    outside: float


class Code:
    """The code of a window: measures clusterings of its points.

    Parameters
    ----------
    points : float array of shape (n, p)
        Code space, see `code_space`.
    weights : float array of shape (n,)
        Positive.
    grain : float array of shape (p,), optional
        Variance of rounding along each coordinate, see `code_space`.
    noisy : bool, default True
        Whether a point may be noise; otherwise noise is infinitely long.
    plain : bool, default False
        Whether the coordinates are the features. Then clusters may be skewed along them, which
        principal coordinates mix, and whole clusters may be noise, which is uniform in features.
    """

    def __init__(
        self,
        points: FloatArray,
        weights: FloatArray,
        grain: FloatArray | None = None,
        *,
        noisy: bool = True,
        plain: bool = False,
    ) -> None:
        self.points = points
        self.plain = plain
        self.memo = empty_memo(points.shape[1])
        self.weights = weights
        self.total = float(weights.sum())
        self._measured: dict[tuple[bytes, bool], tuple[float, Laws]] = {}
        self._refined: dict[tuple[bytes, bool], Choice] = {}
        mean = weights @ points / self.total
        variance = float(weights @ ((points - mean) ** 2).mean(axis=1)) / self.total
        rounding = np.zeros(points.shape[1]) if grain is None else grain
        self.floor: FloatArray = FLOOR * variance + rounding
        spans = points.max(axis=0) - points.min(axis=0)
        self.unit = 0.5 * (1 + 2 * points.shape[1]) * math.log1p(self.total)
        self.margin = 0.5 * (2 + points.shape[1]) * math.log1p(self.total)
        volume = float(np.log(np.maximum(spans, np.sqrt(self.floor))).sum())
        self.log_volume = volume if noisy else math.inf

    def measure(self, labels: IntArray, student: bool) -> tuple[float, Laws]:
        """The length of a clustering, and the laws that `reassign` needs."""
        key = (labels.tobytes(), student)
        if key in self._measured:
            return self._measured[key]
        laws = self._laws(self.points, self.weights, labels, student, self.memo)
        length = float(laws.codes.sum()) + self.noise(laws.outside)
        self._measured[key] = length, laws
        return length, laws

    def of_groups(self, groups: Sequence[IntArray], student: bool) -> FloatArray:
        """The code of each of some groups of points as one cluster; they may share points."""
        chosen = np.concatenate(groups)
        named = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        memo = empty_memo(self.points.shape[1])
        return self._laws(self.points[chosen], self.weights[chosen], named, student, memo).codes

    def _laws(
        self, points: FloatArray, weights: FloatArray, labels: IntArray, student: bool, memo: Memo
    ) -> Laws:
        """One law per label."""
        count, p = int(labels.max()) + 1, points.shape[1]
        codes, offsets, whiteners = np.empty(count), np.empty(count), np.empty((count, p, p))
        laws = codes, np.empty((count, p)), whiteners, offsets, np.empty((count, p))
        told = self.total, self.floor, student, self.plain, *memo
        return Laws(*laws, fit_clusters(points, weights, labels, *told, *laws))

    def noise(self, outside: float) -> float:
        """The code of noise of so much weight."""
        if outside <= 0.0:
            return 0.0
        return outside * (self.log_volume - math.log(outside / self.total))

    def noise_density(self, outside: float) -> float:
        """Log density of noise plus the log of its share, at least one point's."""
        return math.log(max(outside, 1.0) / self.total) - self.log_volume

    def best(self, labels: IntArray) -> Choice:
        """The clustering under the law that tells it in fewer nats."""
        gaussian, student = self.measure(labels, False)[0], self.measure(labels, True)[0]
        return Choice(labels, min(gaussian, student), student < gaussian)

    def refine(self, start: Choice) -> Choice:
        """Reassign points to the laws and refit the laws while the description gets shorter.

        What became of a clustering is remembered, as different starts soon meet.
        """
        best, labels, student = start, start.labels, start.student
        met: list[tuple[bytes, bool]] = []
        for _ in range(SWEEPS):
            key = (labels.tobytes(), student)
            if key in self._refined:
                best = min(best, self._refined[key], key=lambda choice: choice.length)
                break
            if key in met or labels.max() < 0:
                break
            met.append(key)
            length, laws = self.measure(labels, student)
            if length < best.length:
                best = Choice(labels, length, student)
            noise = self.noise_density(laws.outside)
            moved = np.empty_like(labels)
            reassign(self.points, self.weights, *laws[1:5], noise, student, LEAST, moved)
            labels = moved
        self._refined.update(dict.fromkeys(met, best))
        return best


@dataclass(frozen=True, slots=True)
class Space:
    """Coordinates in which clusterings are measured.

    Attributes
    ----------
    points : float array of shape (n, p)
        Centred.
    grain : float array of shape (p,)
        Variance of what rounding has taken from the points.
    """

    points: FloatArray
    grain: FloatArray


def code_space(X: FloatArray, weights: FloatArray) -> Space:
    """The coordinates in which clusterings are measured.

    All features when there are at most 8; otherwise the principal coordinates of above-average
    variance, at least 2 and at most 15 and an eighth of the total weight. That variance is measured
    with every feature cut to its inner range, so that a few wild values choose no coordinate. The
    range is that of the rows: heaps of equal points must not make a feature constant. Of more
    features than points their principal coordinates are cut instead.

    A feature of few values is told no finer than they are: without that, clusters in which it is
    constant would be all but free, and counts and answers of yes and no would be cut to pieces.

    Parameters
    ----------
    X : float array of shape (n, d)
        Pairwise distinct.
    weights : float array of shape (n,)
    """
    total = float(weights.sum())
    centred = X - weights @ X / total
    grain = _grain(X)
    if X.shape[1] <= PLAIN_DIMENSIONS:
        return Space(np.ascontiguousarray(centred), grain)
    axes = np.eye(X.shape[1])
    if X.shape[1] > len(X):  # distances depend on as many coordinates as there are points
        values, basis = np.linalg.eigh(centred @ centred.T)
        length = np.sqrt(np.maximum(values, 0.0))
        axes = centred.T @ (basis / np.maximum(length, RANK * length[-1]))
        X = centred = basis * length
    low, high = np.quantile(X, (TAIL, 1.0 - TAIL), axis=0)
    tame = np.clip(X, low, high)
    tame -= weights @ tame / total
    scaled = (tame if (low < high).any() else centred) * np.sqrt(weights)[:, None]
    values, basis = np.linalg.eigh(scaled.T @ scaled)
    rank = int((values > RANK * values[-1]).sum())
    wanted = int((values > values.mean()).sum())
    most = max(2, min(CODE_DIMENSIONS, int(total / 8)))
    chosen = basis[:, ::-1][:, : min(rank, most, max(2, wanted))]
    return Space(np.ascontiguousarray(centred @ chosen), grain @ (axes @ chosen) ** 2)


def _grain(X: FloatArray) -> FloatArray:
    """Variance of rounding of every feature: that of a uniform law between neighbouring values.

    Only values that several rows share are looked at, so that noise between them does not hide
    them; a feature most of whose rows share theirs with no other is not rounded. The distance of
    neighbours is the median one, so that wild values do not coarsen a feature.
    """
    if len(X) == 1:
        return np.zeros(X.shape[1])
    values = np.sort(X.T, axis=1)
    same = values[:, 1:] == values[:, :-1]
    edge = np.zeros((X.shape[1], 1), np.bool_)
    after, before = np.concatenate((same, edge), axis=1), np.concatenate((edge, same), axis=1)
    found = np.zeros(X.shape[1])
    for j in np.flatnonzero((after | before).mean(axis=1) > 0.5):
        shared = values[j, after[j] & ~before[j]]  # each once
        steps = np.sort(np.diff(shared))
        if len(steps):
            found[j] = steps[len(steps) // 2] ** 2 / 12.0
    return found


def without_rank(centred: FloatArray) -> FloatArray:
    """Centred points of more features than points in as many principal coordinates as points."""
    if centred.shape[1] <= len(centred):
        return np.ascontiguousarray(centred)
    values, basis = np.linalg.eigh(centred @ centred.T)
    return np.ascontiguousarray(basis * np.sqrt(np.maximum(values, 0.0)))


def compact(labels: IntArray, weights: FloatArray, least: float = LEAST) -> IntArray:
    """Number the clusters 0 .. K - 1 by their first point; too light ones become noise."""
    out = np.empty(len(labels), np.int64)
    number_clusters(labels, weights, least, out)
    return out
