"""The reading side: every question that can be asked without changing anything.

Nothing here draws a random number, changes state or emits a record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from streamclust.desk import Desk, address_of
from streamclust.errors import NotReady, UnknownCluster
from streamclust.features import FeatureSpace, table_of
from streamclust.figures import weights_of
from streamclust.kernels import stream
from streamclust.regions import AMBIGUOUS, region, relative_distances
from streamclust.results import (
    NOISE,
    Assignment,
    Cluster,
    Explanation,
    FeatureName,
    FloatArray,
    IntArray,
    Region,
    Rule,
    WhyNot,
)
from streamclust.router import Router
from streamclust.rules import RuleBook
from streamclust.scaling import Scaling
from streamclust.tracker import CenterTracker
from streamclust.windows import Window

REFUSED = -2
"""Stands for a label where an event was refused."""
BLOCK = 4096
"""Rows that the bulk calls convert at a time, so that float32 input is never copied whole."""


class Answers:
    """Answers from the engine's components, which it reads and never changes."""

    def __init__(
        self,
        features: FeatureSpace,
        scaling: Scaling,
        window: Window,
        tracker: CenterTracker,
        router: Router,
    ) -> None:
        self._features = features
        self._scaling = scaling
        self._tracker = tracker
        self._router = router
        self.rules = RuleBook(features, scaling, window, router.tree, tracker)
        self.ratio = AMBIGUOUS
        self._desk: Desk
        self._labels: list[int] = []
        self._clusters: IntArray = np.zeros(0, dtype=np.int64)
        self._standing: FloatArray = np.zeros(2)  # what `kernels.stream.place_at` tells
        self._out = address_of(self._standing)

    def refresh(self, desk: Desk) -> None:
        """Take over where the components' arrays are, after any of them was replaced."""
        clusters = self._tracker.clusters
        self._desk = desk
        self._clusters = np.array(clusters, dtype=np.int64)
        self._labels = [*clusters, REFUSED, NOISE]  # slots -1 and -2 are the last entries

    def predict(self, x: Mapping[FeatureName, Any]) -> int:
        """Return the cluster id of an event, or -1."""
        row = self._features.read(x, 0.0, 1.0)
        if not row:
            fresh = self._resolve(x)[0]
            row = address_of(fresh)
        label = self._labels[stream.assign_at(self._desk.address, row)]
        if label == REFUSED:
            self._resolve(x)
        return label

    def predict_many(self, X: Any) -> IntArray:
        """Return the cluster id of every row, as `predict` does."""
        names, values = table_of(X)
        labels = np.full(len(values), NOISE, dtype=np.int64)
        if self._tracker.k == 0 and not self._features.n_features:
            return labels
        order = self._features.order(names, values.shape[1])
        if order is None:
            loop = (dict(zip(names or (), row, strict=True)) for row in values.tolist())
            labels[:] = [self.predict(x) for x in loop]
            return labels
        ids = np.array(self._labels, dtype=np.int64)
        for start in range(0, len(values), BLOCK):
            rows = self._features.block(values[start : start + BLOCK], order, 0.0, 1.0)
            slots = np.empty(len(rows), dtype=np.int64)
            places = address_of(rows), address_of(slots)
            stop = stream.assign_rows_at(self._desk.address, *places, len(rows))
            if stop < len(rows):
                self._features.refuse(values[start + stop, order], start + stop)
            labels[start : start + len(rows)] = ids[slots]
        return labels

    def assign(self, x: Mapping[FeatureName, Any]) -> Assignment:
        """Return cluster id, region, alternatives and scaled distance of an event."""
        absent: tuple[FeatureName, ...] = ()
        row, read = self._features.row, self._features.read(x, 0.0, 1.0)
        slot = (
            stream.place_at(self._desk.address, read, self.ratio, self._out)
            if read
            else stream.REFUSED
        )
        if slot == stream.REFUSED:
            row, absent = self._resolve(x)
            slot = stream.place_at(self._desk.address, address_of(row), self.ratio, self._out)
        if not self._tracker.k:
            return Assignment(NOISE, Region.COLD, substituted=absent)
        far, rivals = self._standing.tolist()
        if slot < 0:
            return Assignment(NOISE, Region.NOISE, (), far, absent)
        label = self._labels[slot]
        if not rivals:
            return Assignment(label, Region.CORE, (), far, absent)
        where, others = region(label, self._relative(row), self._clusters, self.ratio)
        return Assignment(label, where, others, far, absent)

    def explain(self, x: Mapping[FeatureName, Any]) -> Explanation:
        """Return the conditions and the fence that gave an event its label."""
        row, absent = self._resolve(x)
        self._warm()
        value = row[0, :-2].copy()  # assigning measures the row from the origin
        label = self._labels[self._slot(row)]
        return self.rules.explanation(label, row[0, :-2], value, absent)

    def rule(self, cluster: int) -> Rule:
        """Return boxes and fence of a living cluster."""
        self.living(cluster)
        return self.rules.rule(cluster)

    def why_not(self, x: Mapping[FeatureName, Any], cluster: int) -> WhyNot:
        """Return what keeps an event from a living cluster."""
        row, _ = self._resolve(x)
        self.living(cluster)
        value = row[0, :-2].copy()
        label = self._labels[self._slot(row)]
        return self.rules.why_not(label, cluster, row[0, :-2], value, self._ask)

    def score(self, x: Mapping[FeatureName, Any]) -> float:
        """Return distance over fence, smallest of all clusters; above 1 is noise, 0 while cold."""
        row, _ = self._resolve(x)
        if not self._tracker.k:
            return 0.0
        self._slot(row)
        limits = self._tracker.living_stats[:, stream.FENCE]
        return float(relative_distances(self._distances(row), limits).min())

    def transform(self, x: Mapping[FeatureName, Any]) -> dict[FeatureName, float]:
        """Return the distance to every living cluster in units of its own scale."""
        row, _ = self._resolve(x)
        if not self._tracker.k:
            return {}
        self._slot(row)
        told: dict[FeatureName, float] = {}
        for cluster, far in zip(self._tracker.clusters, self._relative(row).tolist(), strict=True):
            told[cluster] = min(far, told.get(cluster, math.inf))
        return told

    def clusters(self) -> dict[int, Cluster]:
        """Return the living clusters by id."""
        t = self._tracker
        found = {}
        pinned = t.pinned
        for cluster, weight in weights_of(t).items():
            slots = t.slots(cluster)
            s = t.stats[slots]
            heaviest = self.rules.heaviest(cluster)
            found[cluster] = Cluster(
                id=cluster,
                weight=weight,
                size=round(float(s[:, stream.SIZE].sum())),
                centers=tuple(t.ids[slot] for slot in slots),
                born=t.born[slots[0]],
                scale=float(t.stats[heaviest, stream.SCALE]),
                rule=self.rules.rule(cluster),
                name=t.names.get(cluster),
                pinned=cluster in pinned,
            )
        return found

    def centers(self) -> dict[int, dict[FeatureName, float]]:
        """Return the living centers by id, in the user's units."""
        return {c: self.rules.center(slot) for slot, c in enumerate(self._tracker.ids)}

    def _slot(self, row: FloatArray) -> int:
        """Return the slot that answers a row; measure the row from the origin."""
        return stream.assign_at(self._desk.address, address_of(row))

    def _distances(self, row: FloatArray) -> FloatArray:
        """Return the distances of a row that `assign` has measured from the origin."""
        return self._tracker.distances(row[:, :-2], self._scaling.weights).reshape(-1)

    def _relative(self, row: FloatArray) -> FloatArray:
        scales = self._tracker.living_stats[:, stream.SCALE]
        return relative_distances(self._distances(row), scales)

    def _resolve(self, x: Mapping[FeatureName, Any]) -> tuple[FloatArray, tuple[FeatureName, ...]]:
        row, absent, _ = self._features.resolve(x, 0.0, 1.0, self._tracker.tick)
        return row, absent

    def _ask(self, values: FloatArray) -> int:
        """Return the label of a row of values in the user's units."""
        row = np.concatenate([values, [0.0, 1.0]])[None]
        return self._labels[self._slot(row)]

    def living(self, cluster: int) -> None:
        """Raise UnknownCluster unless a cluster of this id lives."""
        if cluster not in self._tracker.clusters:
            living = ", ".join(map(str, dict.fromkeys(self._tracker.clusters))) or "none"
            raise UnknownCluster(f"no living cluster has id {cluster!r}; living: {living}")

    def _warm(self) -> None:
        if not self._tracker.k:
            raise NotReady(
                f"no cluster yet after {self._tracker.tick} events; "
                "there is something to explain once the first refit has found one"
            )
