"""Rules in the user's units: what the tree's cuts and the tracker's fences say to a reader.

The tree compares coordinates measured from the origin. The printed threshold is the largest float64
for which that comparison holds, so the printed rule and the used path never differ.
"""

from __future__ import annotations

import math
import struct

import numpy as np

from streamclust.features import FeatureSpace
from streamclust.kernels import stream
from streamclust.results import Box, Condition, Explanation, FeatureName, Fence, FloatArray, Rule
from streamclust.scaling import Scaling
from streamclust.tracker import CenterTracker
from streamclust.tree import ThresholdTree


class RuleBook:
    """Reads rules off a tree and a tracker; owns no state of its own."""

    def __init__(
        self, features: FeatureSpace, scaling: Scaling, tree: ThresholdTree, tracker: CenterTracker
    ) -> None:
        self._features = features
        self._scaling = scaling
        self._tree = tree
        self._tracker = tracker

    def rule(self, cluster: int) -> Rule:
        """Return boxes and fence of a living cluster."""
        return Rule(cluster, self.boxes(cluster), self.fence(self._tracker.slot(cluster)))

    def boxes(self, cluster: int) -> tuple[Box, ...]:
        """Return one interval per bounded feature for every leaf group that answers `cluster`."""
        return tuple(
            Box(
                {
                    self._features.names[j]: (self._threshold(j, low), self._threshold(j, high))
                    for j, (low, high) in box.items()
                }
            )
            for box in self._tree.boxes(cluster)
        )

    def text(self, cluster: int) -> str:
        """Return the boxes of a living cluster as one line."""
        boxes = self.boxes(cluster)
        return " or ".join(f"({box})" if len(boxes) > 1 else str(box) for box in boxes)

    def conditions(self, point: FloatArray) -> tuple[Condition, ...]:
        """Return the comparisons that the tree makes on `point`, root to leaf."""
        return tuple(
            Condition(self._features.names[j], ">" if right else "<=", self._threshold(j, cut))
            for j, right, cut in self._tree.path(point)
        )

    def fence(self, slot: int, distance: float | None = None) -> Fence:
        """Return the fence of the cluster in `slot`, with the distance of a point if told."""
        tracker = self._tracker
        limit = float(tracker.stats[slot, stream.FENCE])
        return Fence(tracker.ids[slot], self.center(slot), limit, distance)

    def center(self, slot: int) -> dict[FeatureName, float]:
        """Return the center in `slot` in the user's units."""
        position = self._scaling.origin + self._tracker.centers[slot]
        told = dict(zip(self._features.names, position.tolist(), strict=True))
        return {name: told[name] for name in self._features.columns}

    def explanation(
        self, label: int, point: FloatArray, substituted: tuple[FeatureName, ...]
    ) -> Explanation:
        """Say why `point` got `label`.

        The fence shown is the answer's own where it holds, else the nearest one that does, else
        (noise) that of the nearest cluster.
        """
        tracker = self._tracker
        distances = tracker.distances(point[None], self._scaling.weights)[0]
        holds = distances <= tracker.living_stats[:, stream.FENCE]
        leaf = self._tree.route(point)
        shown = tracker.slot(label) if label >= 0 else -1
        if shown < 0 or not holds[shown]:
            shown = int(
                np.where(holds, distances, np.inf).argmin() if holds.any() else distances.argmin()
            )
        fence = self.fence(shown, float(distances[shown]))
        by_rule = label in (leaf, -1)
        return Explanation(label, self.conditions(point), fence, by_rule, substituted)

    def _threshold(self, feature: int, cut: float) -> float:
        return cut if math.isinf(cut) else last_below(cut, float(self._scaling.origin[feature]))


def last_below(cut: float, origin: float) -> float:
    """Return the largest float64 x for which ``x - origin <= cut``, as rounded arithmetic says."""
    guess = cut + origin
    for _ in range(4):
        if guess - origin > cut:
            guess = math.nextafter(guess, -math.inf)
        elif math.nextafter(guess, math.inf) - origin <= cut:
            guess = math.nextafter(guess, math.inf)
        else:
            return guess
    low, high = _rank(-np.finfo(float).max), _rank(np.finfo(float).max)
    while high - low > 1:
        middle = (low + high) // 2
        if _value(middle) - origin <= cut:
            low = middle
        else:
            high = middle
    return _value(low)


def _rank(value: float) -> int:
    """Return the place of a float64 in the order of all float64."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits) if bits >= 0 else -(int(bits) & 0x7FFFFFFFFFFFFFFF)


def _value(rank: int) -> float:
    bits = rank if rank >= 0 else -rank | -0x8000000000000000
    (value,) = struct.unpack("<d", struct.pack("<q", bits))
    return float(value)
