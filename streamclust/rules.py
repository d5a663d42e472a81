"""Rules in the user's units: what the tree's cuts and the tracker's fences say to a reader."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from streamclust.boxes import Intervals
from streamclust.features import FeatureSpace
from streamclust.kernels import stream
from streamclust.results import (
    Box,
    Condition,
    Explanation,
    FeatureName,
    Fence,
    FloatArray,
    Rule,
    WhyNot,
)
from streamclust.scaling import Scaling
from streamclust.texts import Digits, Telling, last_below
from streamclust.tracker import CenterTracker
from streamclust.tree import ThresholdTree
from streamclust.windows import Window

Ask = Callable[[FloatArray], int]


class RuleBook:
    """Reads rules off a tree and a tracker; owns no state of its own."""

    def __init__(
        self,
        features: FeatureSpace,
        scaling: Scaling,
        window: Window,
        tree: ThresholdTree,
        tracker: CenterTracker,
    ) -> None:
        self._window = window
        self._features = features
        self._scaling = scaling
        self._tree = tree
        self._tracker = tracker

    def rule(self, cluster: int) -> Rule:
        """Return boxes and fence of a living cluster."""
        boxes = self.boxes(cluster)
        fence = self.fence(self.heaviest(cluster))
        return Rule(cluster, boxes, fence, _lines(boxes, self._digits()))

    def boxes(self, cluster: int) -> tuple[Box, ...]:
        """Return one interval per bounded feature for every leaf group that answers `cluster`."""
        known: dict[tuple[int, float], float] = {}  # the boxes of one tree share their bounds
        boxes = []
        for box in self._intervals(cluster):
            told = {}
            for j, cuts in box.items():
                for cut in cuts:
                    if (j, cut) not in known:
                        known[j, cut] = self._threshold(j, cut)
                told[self._features.names[j]] = (known[j, cuts[0]], known[j, cuts[1]])
            boxes.append(Box(told))
        return tuple(sorted(boxes, key=lambda box: box.n_bounds))

    def telling(self, centers: Mapping[int, Sequence[int]]) -> Telling:
        """Return the boxes of clusters in one line each, to be written when somebody reads them.

        Parameters
        ----------
        centers : mapping of cluster id to the ids of its centers
        """
        names, origin = self._features.names, self._scaling.origin
        outline, table = self._tree.outline(), self._tree.table()
        return Telling(outline, table, centers, names, origin, self._window.points())

    def tree(self) -> dict[str, Any]:
        """Return the tree as nested dicts, every threshold in the user's units; empty while cold.

        As `export.nested`, with ``"cluster"`` beside the center of a leaf and ``"told"``, the
        threshold in few digits, beside that of a node.
        """
        digits = self._digits()

        def told(part: dict[str, Any]) -> dict[str, Any]:
            if "center" in part:
                slot = self._tracker.slot(part["center"])
                return {"cluster": self._tracker.clusters[slot], "center": part["center"]}
            name = self._features.names[part["feature"]]
            bound = self._threshold(part["feature"], part["threshold"])
            sides = {side: told(part[side]) for side in ("left", "right")}
            return {"feature": name, "threshold": bound, "told": digits(name, bound), **sides}

        plain = self._tree.as_dict()
        return told(plain) if plain else {}

    def points(self) -> dict[FeatureName, FloatArray]:
        """Return the window's columns in the user's units, by feature, each of shape (n,)."""
        values = self._scaling.origin + self._window.points()
        return dict(zip(self._features.names, values.T.copy(), strict=True))

    def why_not(
        self, label: int, cluster: int, point: FloatArray, value: FloatArray, ask: Ask
    ) -> WhyNot:
        """Say what keeps `point` from `cluster`.

        Parameters
        ----------
        label : int
            The answer for `point`.
        cluster : int
            A living cluster.
        point, value : arrays of shape (n_features,)
            Measured from the origin, and in the user's units.
        ask : function from a row of the user's values to its label
        """
        best: tuple[float, dict[FeatureName, float], FloatArray] | None = None
        fewest: tuple[tuple[int, float], tuple[Condition, ...]] | None = None
        for box in self._intervals(cluster):
            missed = {j: bounds for j, bounds in box.items() if not _inside(point[j], *bounds)}
            conditions, cost, moved = [], 0.0, value.copy()
            for j, (low, high) in missed.items():
                above = bool(point[j] > high)
                bound = self._threshold(j, high if above else low)
                conditions.append(Condition(self._features.names[j], "<=" if above else ">", bound))
                moved[j] = bound if above else math.nextafter(bound, math.inf)
                cost += abs(moved[j] - value[j]) * self._scaling.weights[j]
            if fewest is None or (len(missed), cost) < fewest[0]:
                fewest = ((len(missed), cost), tuple(conditions))
            if len(missed) == 1 and (best is None or cost < best[0]) and ask(moved) == cluster:
                (j,) = missed
                best = (cost, {self._features.names[j]: float(moved[j])}, moved)
        change = {} if label == cluster else best[1] if best else None
        shown = best[2] - self._scaling.origin if best and change else point
        distances = self._tracker.distances(shown[None], self._scaling.weights)[0]
        slot = min(self._tracker.slots(cluster), key=lambda s: float(distances[s]))
        told = () if label == cluster or fewest is None else fewest[1]
        fence = self.fence(slot, float(distances[slot]))
        line = Box.of(told).text(self._digits(value))
        return WhyNot(cluster, label, change, told, fence, line)

    def conditions(self, point: FloatArray) -> tuple[Condition, ...]:
        """Return the comparisons that the tree makes on `point`, root to leaf."""
        return tuple(
            Condition(self._features.names[j], ">" if right else "<=", self._threshold(j, cut))
            for j, right, cut in self._tree.path(point)
        )

    def fence(self, slot: int, distance: float | None = None) -> Fence:
        """Return the fence of the center in `slot`, with the distance of a point if told."""
        tracker = self._tracker
        limit = float(tracker.stats[slot, stream.FENCE])
        return Fence(tracker.clusters[slot], self.center(slot), limit, distance)

    def center(self, slot: int) -> dict[FeatureName, float]:
        """Return the center in `slot` in the user's units."""
        position = self._scaling.origin + self._tracker.centers[slot]
        told = dict(zip(self._features.names, position.tolist(), strict=True))
        return {name: told[name] for name in self._features.columns}

    def explanation(
        self,
        label: int,
        point: FloatArray,
        value: FloatArray,
        substituted: tuple[FeatureName, ...],
    ) -> Explanation:
        """Say why `point` got `label`; `value` is the point in the user's units.

        The fence shown is the answer's own where it holds, else the nearest one that does, else
        (noise) that of the nearest cluster.
        """
        tracker = self._tracker
        distances = tracker.distances(point[None], self._scaling.weights)[0]
        holds = distances <= tracker.living_stats[:, stream.FENCE]
        leaf = tracker.clusters[tracker.slot(self._tree.route(point))]
        own = np.zeros(tracker.k, dtype=bool)
        own[tracker.slots(label)] = True
        best = next((m for m in (holds & own, holds) if m.any()), np.ones_like(holds))
        shown = int(np.where(best, distances, np.inf).argmin())
        fence = self.fence(shown, float(distances[shown]))
        by_rule = label in (leaf, -1)
        conditions = self.conditions(point)
        line = Box.of(conditions).text(self._digits(value))
        return Explanation(label, conditions, fence, line, by_rule, substituted)

    def heaviest(self, cluster: int) -> int:
        """Return the slot of a living cluster's heaviest center."""
        slots = self._tracker.slots(cluster)
        return max(slots, key=lambda slot: float(self._tracker.stats[slot, stream.WEIGHT]))

    def _intervals(self, cluster: int) -> list[Intervals]:
        """Return the boxes of a cluster: those of all its centers."""
        centers = [self._tracker.ids[slot] for slot in self._tracker.slots(cluster)]
        return [box for center in centers for box in self._tree.boxes(center)]

    def _digits(self, value: FloatArray | None = None) -> Digits:
        return Digits(self._features.names, self._scaling.origin, self._window.points(), value)

    def _threshold(self, feature: int, cut: float) -> float:
        return cut if math.isinf(cut) else last_below(cut, float(self._scaling.origin[feature]))


def _lines(boxes: tuple[Box, ...], digits: Digits) -> tuple[str, ...]:
    return tuple(box.text(digits) for box in boxes)


def _inside(value: float, low: float, high: float) -> bool:
    return low < value <= high
