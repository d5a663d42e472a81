"""Frozen per-feature weights: what makes features of different units comparable.

The scale of a feature is a quarter of its guarded range in the window. It is frozen until a refit
finds that it drifted, so that distances and thresholds do not creep. State stays in the user's
units; only distances are weighted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from streamclust.results import FloatArray
from streamclust.robust import quantile

DRIFT = 1.25
"""A frozen scale is renewed when that of any feature has changed by more than this factor."""


class Scaling:
    """Origin and weight of every feature.

    Parameters
    ----------
    kind : {"robust", "standard", "none"}
        ``robust``: guarded range quarter; ``standard``: standard deviation; ``none``: weights 1.

    Attributes
    ----------
    frame : array of shape (2, n_features)
        The origin (user's units) and the weight (reciprocal of the scale; 0: the feature does not
        count). Coordinates are measured from the origin, a data value, so that a shift of all data
        that is exact in floating point changes no bit of any answer.
    epoch : int
        Counts the renewals of the weights.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.frame: FloatArray = np.zeros((2, 0))
        self.epoch = 0

    @property
    def origin(self) -> FloatArray:
        """The origin of every feature, in the user's units."""
        return np.asarray(self.frame[0])

    @property
    def weights(self) -> FloatArray:
        """The weight of every feature in distances."""
        return np.asarray(self.frame[1])

    def widen(self, values: FloatArray) -> None:
        """Make room for new features, whose first `values` are their origins once one is placed.

        They have weight 0 until the next freeze.
        """
        origin = values if self.epoch else np.zeros_like(values)
        self.frame = np.hstack([self.frame, [origin, np.zeros_like(values)]])

    def place(self, points: FloatArray) -> None:
        """Put the origin at the lower median of `points` of shape (n, n_features)."""
        middle = (len(points) - 1) // 2
        self.frame[0] = np.partition(points, middle, axis=0)[middle]

    def proposed(self, points: FloatArray) -> FloatArray:
        """Return the weights that a window suggests where they drifted, else those that hold."""
        return proposed(self.kind, points, self.weights if self.epoch else None)

    def freeze(self, weights: FloatArray) -> bool:
        """Measure with these weights from now on; tell whether they are others than before."""
        if self.epoch and np.array_equal(weights, self.weights):
            return False
        self.frame[1] = weights
        self.epoch += 1
        return True

    def to_state(self) -> dict[str, Any]:
        """Return plain numbers and arrays from which `from_state` restores all."""
        return {"frame": self.frame.copy(), "epoch": self.epoch}

    def from_state(self, state: dict[str, Any], n_features: int) -> None:
        """Take over a state; raises ValueError where it does not fit the features."""
        frame = np.array(state["frame"], dtype=np.float64)
        if frame.shape != (2, n_features) or not np.all(frame[1] >= 0):
            raise ValueError("the scaling frame does not fit the features")
        self.frame, self.epoch = frame, int(state["epoch"])


def proposed(kind: str, points: FloatArray, old: FloatArray | None) -> FloatArray:
    """Return the weights that a window suggests, or the old ones where none has drifted."""
    if kind == "none":
        scales = np.ones(points.shape[1])
    elif kind == "standard":
        scales = points.std(axis=0)
    else:
        scales = guarded_scale(points)
    fresh = np.divide(1.0, scales, out=np.zeros_like(scales), where=scales > 0)
    fresh[~np.isfinite(fresh)] = 0.0
    if old is not None and np.all((fresh <= DRIFT * old) & (old <= DRIFT * fresh)):
        return old.copy()
    return fresh


def guarded_scale(points: FloatArray) -> FloatArray:
    """Return a quarter of the guarded range of every column of `points`.

    The range is cut two inner ranges (5 % to 95 %) outside the inner range, so that wild values do
    not stretch it; an inner range of zero (a feature that is mostly constant) leaves it uncut.
    """
    ranked = np.sort(points.T, axis=1)
    low, inner_low, inner_high, high = (quantile(ranked, share) for share in (0, 0.05, 0.95, 1))
    inner = inner_high - inner_low
    guarded = inner > 0
    low = np.where(guarded, np.maximum(low, inner_low - 2 * inner), low)
    high = np.where(guarded, np.minimum(high, inner_high + 2 * inner), high)
    return np.asarray((high - low) / 4.0, dtype=np.float64)
