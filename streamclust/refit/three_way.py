"""Three-way mean shift: every point is core, boundary or outside.

From "Three-way clustering based on mean shift" (Lv, Xu, Sun, Yang, Pure Mathematics 13(12), 2023):
a point belongs to every mode whose visits reach a given share of its most frequent visitor's. One
such mode: *core*. Several: *boundary*, which the paper calls noise. *Noise* here is outside, label
-1. It holds that every point is in one core, in some boundaries, or outside; that cores are
disjoint; and that no core is empty, which the paper demands and its text does not ensure: a mode
without a core is given up, and its points go to the others.
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from streamclust.refit.base import real, require
from streamclust.refit.mean_shift import Basins, MeanShift
from streamclust.regions import ambiguity
from streamclust.results import BoolArray, FloatArray, IntArray


class ThreeWayMeanShift(MeanShift):
    """Mean shift that says which of its answers are ambiguous.

    Parameters
    ----------
    bandwidth, seeds, least_weight, tolerance
        As in `MeanShift`.
    boundary_ratio : float, optional
        Between 0 and 1, ends excluded (alpha in the paper): how close to the most frequent
        visitor's another mode's visits make a point boundary. Larger: fewer boundary points.
        None: chosen from the data, so that at most about one point in twenty is boundary.

    Attributes
    ----------
    core_, boundary_ : bool arrays of shape (n,)
        Disjoint; a point in neither is noise.
    belongs_ : bool array of shape (n, n_clusters)
        The clusters of every point: one for core, several for boundary, none for noise.
    boundary_ratio_ : float
        The ratio used.
    labels_, n_clusters_, modes_, visits_, bandwidth_, n_features_in_
        As in `MeanShift`; a boundary point is labelled with its most frequent visitor.
    """

    core_: BoolArray
    boundary_: BoolArray
    belongs_: BoolArray
    boundary_ratio_: float

    def __init__(
        self,
        *,
        bandwidth: float | None = None,
        seeds: Literal["bins", "points"] = "bins",
        least_weight: float | None = None,
        tolerance: float = 1e-3,
        boundary_ratio: float | None = None,
    ) -> None:
        super().__init__(
            bandwidth=bandwidth, seeds=seeds, least_weight=least_weight, tolerance=tolerance
        )
        self.boundary_ratio = boundary_ratio

    def fit(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster a window; see `BatchEstimator.fit`."""
        super().fit(X, sample_weight)
        self.belongs_ = belonging(self.visits_, self.labels_, self.boundary_ratio_)
        count = self.belongs_.sum(axis=1)
        self.core_, self.boundary_ = count == 1, count > 1
        return self

    def _settle(self, found: Basins) -> Basins:
        """Give up modes without a core."""
        inside = found.labels >= 0
        if self.boundary_ratio is None:
            first, second = rivals(found.visits[inside])
            self.boundary_ratio_ = ambiguity(second, first)
        else:
            self.boundary_ratio_ = float(self.boundary_ratio)
        while True:
            kept = cores(belonging(found.visits, found.labels, self.boundary_ratio_))
            if kept.all():
                return found
            found = found.only(np.flatnonzero(kept))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        ratio = self.boundary_ratio
        holds = ratio is None or (real(ratio) and ratio < 1.0)
        require("boundary_ratio", ratio, holds, "None, or between 0 and 1, ends excluded")


def belonging(visits: FloatArray, labels: IntArray, ratio: float) -> BoolArray:
    """The clusters of every point, shape (n, k).

    Parameters
    ----------
    visits : float array of shape (n, k)
    labels : int array of shape (n,)
        A point of label -1 belongs to no cluster.
    ratio : float
        Share of the most frequent visitor's visits that suffices.
    """
    found = np.zeros(visits.shape, dtype=bool)
    inside = np.flatnonzero(labels >= 0)
    if len(inside):
        shares = visits[inside]
        found[inside] = (shares >= ratio * shares.max(axis=1, keepdims=True)) & (shares > 0.0)
        found[inside, labels[inside]] = True
    return found


def cores(belongs: BoolArray) -> BoolArray:
    """Which clusters stand: all, or all but the one without a core that has the fewest points.

    Parameters
    ----------
    belongs : bool array of shape (n, k)
    """
    alone = belongs[belongs.sum(axis=1) == 1].any(axis=0)
    stands = np.ones(belongs.shape[1], dtype=bool)
    if not alone.all() and len(stands) > 1:
        size = np.where(alone, np.inf, belongs.sum(axis=0))
        stands[len(size) - 1 - int(np.argmin(size[::-1]))] = False
    return stands


def rivals(visits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The largest and the second largest share of every point; without a second one, nothing."""
    if visits.shape[1] < 2:
        return np.zeros(0), np.zeros(0)
    ordered = np.sort(visits, axis=1)
    return ordered[:, -1], ordered[:, -2]
