"""The router keeps the threshold tree in step with the tracker, and compiles it for prediction.

When the engine's queue is empty the tree settles: it follows the tracker's centers all at once, so
that only what changed changes; after a refit new draws may compete where the rule is not faithful
enough; corrections are learned anew, at once where centers came or went or cuts were redrawn, and
after moves where the rule is not faithful; and clusters whose rule reads differently are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamclust.boxes import Intervals
from streamclust.events import (
    CenterDeleted,
    CenterInserted,
    CenterMoved,
    Change,
    RuleChanged,
    SubtreeRebuilt,
)
from streamclust.kernels import stream
from streamclust.kernels.copies import copy_residuals
from streamclust.results import NOISE, FloatArray
from streamclust.tracker import CenterTracker
from streamclust.tree import ThresholdTree

COPIES = 16
"""Residual copies of each recent point, beside it, that corrections are learned from."""
ROWS = 1 << 16
"""Points and copies at the most ..."""
ENTRIES = 1 << 22
"""... and their entries: with many features there are fewer copies."""
FAITHFUL = 0.99
"""Prequential fidelity from which a refit that moved nothing leaves the tree as it is: calm ids."""
RELEARN = 500
"""Events between two lessons in corrections at the least, where centers have only moved ..."""
SLIP = 0.005
"""... and by how much fidelity must have fallen since the last: a lesson that was learned stays."""
BORROW = 30.0
"""Recent points at which a cluster's copies use as many residuals of other clusters as its own."""


class Router:
    """A threshold tree and what prediction needs of it.

    Attributes
    ----------
    tree : ThresholdTree
        Its centers are measured from the scaling's origin.
    table : array of shape (n_nodes, 4)
        The tree as `kernels.stream.route` takes it.
    """

    def __init__(self, tree: ThresholdTree, seed: int) -> None:
        self.tree = tree
        self._seed = seed
        self._texts: dict[int, str] = {}
        self._boxes: dict[int, list[Intervals]] = {}  # of clusters
        self._settled = (tree.version, tree.recourse, tree.rebuilds)
        self._looked = False
        self._coming: dict[int, FloatArray] = {}
        self._stale = False
        self._moved = False
        self._corrected = 0
        self._peak = 0.0
        self.table: FloatArray
        self.compile({})

    def plant(self, event: CenterInserted | CenterMoved | CenterDeleted) -> None:
        """Note one change of the tracker's centers; the tree follows when it settles."""
        self._stale = True
        if isinstance(event, CenterDeleted):
            self._coming.pop(event.center, None)
        else:
            self._coming[event.center] = event.position

    def position(self, center: int) -> FloatArray:
        """Return where a center was planted last."""
        if center in self._coming:
            return self._coming[center].copy()
        return self.tree.center(center)

    def look(self, tracker: CenterTracker, points: FloatArray, weights: FloatArray) -> None:
        """Give the tree the window, each point owned by the nearest center whose fence holds."""
        ids = np.array([*tracker.ids, NOISE], dtype=np.int64)  # slot -1 is the last entry
        self.tree.set_window(points, ids[tracker.owners(points, weights)])
        self._looked = True

    def settle(
        self,
        tracker: CenterTracker,
        points: FloatArray,
        weights: FloatArray,
        write: Callable[[Iterable[int]], dict[int, str]],
    ) -> tuple[Change, ...]:
        """Bring everything that depends on the tree up to date, if it changed.

        Parameters
        ----------
        points : array of shape (n, n_features)
            Recent points, measured from the origin.
        weights : array of shape (n_features,)
            Scaling weights.
        write : function from cluster ids to their boxes, each cluster's as one line
        """
        before, known = self._settled, self.tree.ids
        if self._stale:
            self.tree.follow(dict(zip(tracker.ids, tracker.placed, strict=False)))
        fidelity = float(tracker.gauges[stream.FIDELITY])
        unfaithful = not fidelity >= FAITHFUL
        self._peak = max(self._peak, fidelity)
        improvable = self._looked and unfaithful
        if improvable:
            self.tree.reconsider()
        tick, time = tracker.tick, tracker.now
        redrawn = self.tree.rebuilds > before[2] or self.tree.ids != known
        self._moved |= self._stale
        self._stale, self._looked, self._coming = False, False, {}
        slipped = unfaithful and fidelity < self._peak - SLIP
        drifted = self._moved and slipped and tick >= self._corrected + RELEARN
        if redrawn or improvable or drifted:
            # A coordinate that was never seen belongs to a feature that does not count yet.
            self._correct(tracker, np.nan_to_num(points), weights)
            self._moved, self._corrected, self._peak = False, tick, fidelity
        if self.tree.version == before[0]:
            return ()
        self.compile({c: s for s, c in enumerate(tracker.ids)})
        changes: list[Change] = []
        if self.tree.rebuilds > before[2]:
            changes.append(
                SubtreeRebuilt(
                    tick=tick,
                    time=time,
                    rebuilds=self.tree.rebuilds - before[2],
                    recourse=self.tree.recourse - before[1],
                )
            )
        boxes, clusters = self._read(tracker), list(dict.fromkeys(tracker.clusters))
        texts = write(c for c in clusters if boxes[c] != self._boxes.get(c))
        changes += [
            RuleChanged(tick=tick, time=time, cluster=c, old=self._texts.get(c, ""), new=new)
            for c, new in texts.items()
            if new != self._texts.get(c)
        ]
        self._texts = {c: texts.get(c, self._texts.get(c, "")) for c in clusters}
        self._boxes = boxes
        self._settled = (self.tree.version, self.tree.recourse, self.tree.rebuilds)
        return tuple(changes)

    def compile(self, slots: dict[int, int]) -> None:
        """Renew `table`; `slots` tells the tracker's slot of every center."""
        feature, threshold, child, owner = self.tree.table()
        leaf = np.array([slots[int(c)] for c in owner], dtype=np.int64)
        if not len(feature):  # no cut: one node whose two sides are the one leaf
            feature, threshold = np.zeros(1, dtype=np.int64), np.zeros(1)
            child = np.full((1, 2), -1, dtype=np.int64)
        below = child.copy()
        if len(leaf):
            below[child < 0] = ~leaf[~child[child < 0]]
        self.table = np.column_stack([feature, threshold, below])

    def _read(self, tracker: CenterTracker) -> dict[int, list[Intervals]]:
        """Return the boxes of every living cluster."""
        boxes: dict[int, list[Intervals]] = {}
        for center, cluster in zip(tracker.ids, tracker.clusters, strict=True):
            boxes.setdefault(cluster, []).extend(self.tree.boxes(center))
        return boxes

    def widen(self, weights: FloatArray, keys: NDArray[np.uint64]) -> None:
        """Tell the tree the features' weights; new features come at the end."""
        self.tree.set_features(weights, keys)

    def _correct(self, tracker: CenterTracker, points: FloatArray, weights: FloatArray) -> None:
        """Learn corrections from recent points and residual copies, labelled by the centers.

        Rows, not leaves, limit what corrections can learn, and labels are free: residuals of a
        cluster's points, mixed so that their covariance stays, make more points around its center.
        A cluster of few recent points borrows residuals of others, in units of its own scale:
        shapes of twenty points say too little about where its border runs.
        """
        slots = tracker.owners(points, weights)
        points, slots = points[slots >= 0], slots[slots >= 0]
        if tracker.k < 2 or not len(points):
            return
        n, d = points.shape
        n_rows = max(n, min((1 + COPIES) * n, ROWS, ENTRIES // d))
        sizes = np.bincount(slots, minlength=tracker.k)
        copies = np.empty((n_rows - n, d))
        copy_residuals(
            points,
            slots,
            tracker.centers,
            np.ascontiguousarray(tracker.stats[:, stream.SCALE]),
            np.asarray(BORROW / (sizes + BORROW), dtype=np.float64),
            self._seed,
            tracker.tick,
            copies,
        )
        every = np.concatenate([points, copies])
        hints = np.resize(slots, n_rows)
        labels = np.array(tracker.ids)[tracker.nearest(every, hints, weights)]
        self.tree.correct(every, labels)

    def to_state(self) -> dict[str, Any]:
        """Return plain numbers, strings and arrays from which `from_state` restores all."""
        return {
            "tree": self.tree.to_state(),
            "texts": [[c, text] for c, text in self._texts.items()],
            "settled": list(self._settled),
            "moved": self._moved,
            "corrected": self._corrected,
            "peak": self._peak,
        }

    def from_state(self, state: dict[str, Any], tracker: CenterTracker) -> None:
        """Take over a state; raises ValueError where it does not fit the tracker."""
        self.tree.from_state(state["tree"])
        if sorted(self.tree.ids) != sorted(tracker.ids):
            raise ValueError("tree and tracker hold different centers")
        self._texts = {int(c): str(text) for c, text in state["texts"]}
        self._boxes = self._read(tracker)
        self._moved, self._corrected = bool(state["moved"]), int(state["corrected"])
        self._peak = float(state["peak"])
        version, recourse, rebuilds = (int(v) for v in state["settled"])
        self._settled = (version, recourse, rebuilds)
        self.compile({c: s for s, c in enumerate(tracker.ids)})
