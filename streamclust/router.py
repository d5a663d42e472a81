"""The router keeps the threshold tree in step with the tracker, and compiles it for prediction.

When the engine's queue is empty the tree settles: it follows the tracker's centers all at once, so
that only what changed changes; clusters whose boxes changed are reported. A *renewal* does the
rest: after a refit that moved centers or has more points to show new draws may compete where the
rule is not faithful enough; what is overdue is drawn anew; corrections are learned anew, at once
where centers came or went or cuts were redrawn, and after moves where the rule is not faithful.
Where refits run in the background renewals do too: a copy of the tree is renewed beside the stream,
takes the tree's place at a fixed time, and follows what changed since. Where many centers move at
once, as when a refit is adopted, that copy follows them, so that no event pays for all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamclust.beside import Beside, Work
from streamclust.events import (
    CenterDeleted,
    CenterInserted,
    CenterMoved,
    Change,
    RuleRedrawn,
    SubtreeRebuilt,
)
from streamclust.kernels import stream
from streamclust.renewal import Lesson, lesson_of, renew, renewed
from streamclust.results import NOISE, FloatArray, IntArray
from streamclust.texts import Telling, Text
from streamclust.tracker import NEVER, CenterTracker
from streamclust.tree import ThresholdTree

FAITHFUL = 0.99
"""Prequential fidelity from which a refit that moved nothing leaves the tree as it is: calm ids."""
RELEARN = 500
"""Events between two lessons in corrections at the least, where centers have only moved ..."""
SLIP = 0.005
"""... and by how much fidelity must have fallen since the last: a lesson that was learned stays."""
MORE = 1.25
"""Recent points, as a multiple of those of the last lesson, from which a new one is worth it."""
SOONER = 4
"""A renewal is used after this part of a refit's lag: it takes about so much less time."""
MOST_MOVES = 8
"""Centers that move at once and are followed at once beside the stream; of more, none is."""

TOLD_LATER = 1 << 20
"""Entries of copies of the window (8 MB) that wait at once for texts to be worked out from them."""

Centers = Mapping[int, Sequence[int]]
"""Ids of the centers of each cluster."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A renewal on its way, and the tree that it began with."""

    tree: ThresholdTree
    lesson: Lesson
    renewed: Work[ThresholdTree]


class Router:
    """A threshold tree and what prediction needs of it.

    Parameters
    ----------
    tree : ThresholdTree
    seed : int
        What residual copies depend on.
    beside : Beside
        Where renewals are made.

    Attributes
    ----------
    tree : ThresholdTree
        Its centers are measured from the scaling's origin.
    table : array of shape (n_nodes, 4)
        The tree as `kernels.routing.route` takes it.
    """

    def __init__(self, tree: ThresholdTree, seed: int, beside: Beside) -> None:
        self.tree = tree
        self._seed = seed
        self._beside = beside
        self._features: tuple[FloatArray, NDArray[np.uint64]] | None = None
        self._texts: dict[int, Text] = {}
        self._tellings: deque[Telling] = deque()  # which hold copies of the window
        self._prints: dict[int, bytes] = {}  # of the boxes of clusters
        self._clusters: list[int] = []  # of the centers
        self._settled = (tree.version, tree.recourse, tree.rebuilds)
        self._coming: dict[int, FloatArray] = {}
        self._apart: set[int] | None = set()  # what the tree may know elsewhere; None: any center
        self._since: set[int] | None = None  # what a tree that is being renewed may
        self._stale = self._looked = self._at_once = self._arrived = False
        self._moved = False
        self._corrected = 0
        self._peak = 0.0
        self._pending: Pending | None = None
        self._again = self._reconsider = False  # what the next renewal is wanted for
        self._left: dict[int, FloatArray] = {}  # moves that were left to a renewal ...
        self._late: set[int] = set()  # ... and those of them to the next but the pending one
        self.table: FloatArray
        self.compile([])

    @property
    def is_pending(self) -> bool:
        """Whether a renewal is on its way."""
        return self._pending is not None

    def plant(self, event: CenterInserted | CenterMoved | CenterDeleted) -> None:
        """Note one change of the tracker's centers; the tree follows when it settles."""
        self._stale = True
        if isinstance(event, CenterDeleted):
            self._coming.pop(event.center, None)
        else:
            self._coming[event.center] = event.position
            for planted in (self._apart, self._since):
                if planted is not None:
                    planted.add(event.center)

    def position(self, center: int) -> FloatArray:
        """Return where a center was planted last."""
        for planted in (self._coming, self._left):
            if center in planted:
                return planted[center].copy()
        return self.tree.center(center)

    def look(
        self, tracker: CenterTracker, points: FloatArray, slots: IntArray, at_once: bool
    ) -> None:
        """Give the tree the window, and of each point the slot of the center that it belongs to.

        `at_once` is whether the tree may not be renewed later.
        """
        ids = np.array([*tracker.ids, NOISE], dtype=np.int64)  # slot -1 is the last entry
        self.tree.set_window(points, ids[slots])
        self._looked, self._at_once = True, at_once

    def settle(
        self,
        tracker: CenterTracker,
        points: FloatArray,
        weights: FloatArray,
        full: bool,
        write: Callable[[Centers], Telling],
    ) -> tuple[Change | RuleRedrawn, ...]:
        """Bring everything that depends on the tree up to date, if it changed.

        Parameters
        ----------
        points : array of shape (n, n_features)
            Recent points, measured from the origin.
        weights : array of shape (n_features,)
            Scaling weights.
        full : bool
            Whether the window is.
        write : function from the centers of clusters to the clusters' texts
        """
        if self._arrived:
            self._take(tracker)
        rebuilds, known = self.tree.rebuilds, self.tree.ids
        inline = self._at_once or not self._beside
        if self._stale:
            self._follow(tracker, known, inline)
        fidelity = float(tracker.gauges[stream.FIDELITY])
        unfaithful = not fidelity >= FAITHFUL
        self._peak = max(self._peak, fidelity)
        self._moved |= self._stale
        # Of as many points around centers that stayed where they are nothing new is learned.
        news = self._moved or len(points) >= MORE * min(self._corrected, len(points))
        improvable = self._looked and unfaithful and news
        redrawn = self.tree.rebuilds > rebuilds or self.tree.ids != known
        self._again |= redrawn or improvable
        self._reconsider |= improvable
        slipped = unfaithful and fidelity < self._peak - SLIP
        drifted = self._moved and slipped and tracker.tick >= self._corrected + RELEARN
        if inline:
            self._drop(tracker)
        wanted = self._again or drifted
        if self._pending is None and (wanted or (not inline and self.tree.is_overdue)):
            lesson = self._lesson(tracker, points, weights)
            if inline:
                renew(self.tree, lesson)
            else:
                tracker.counts[stream.NEXT_TREE] = self._beside.due(tracker.tick, full, SOONER)
                self._submit(self.tree.copied(), lesson.kept())
                self._late = set()
        self._stale = self._looked = self._at_once = False
        self._coming = {}
        return self._told(tracker, write)

    def _follow(self, tracker: CenterTracker, known: list[int], inline: bool) -> None:
        """Let the tree have the tracker's centers, or leave their moves to the next renewal."""
        placed = dict(zip(tracker.ids, tracker.placed, strict=False))
        moved = {c: place for c, place in self._coming.items() if c in known}
        if inline:
            self._left, self._late = {}, set()
        elif len(moved) > MOST_MOVES:
            self._left.update(moved)
            self._late.update(moved)
            self._again = True
        else:
            self._late.difference_update(moved)
            self._left = {c: place for c, place in self._left.items() if c not in moved}
        self._left = {c: p for c, p in self._left.items() if c in placed and c in known}
        self._late.intersection_update(self._left)
        placed.update((center, self.tree.center(center)) for center in self._left)
        among = None if self._apart is None else self._apart.difference(self._left)
        self.tree.follow(placed, among=among, rebuild=inline)
        self._apart = set(self._left)

    def _lesson(self, tracker: CenterTracker, points: FloatArray, weights: FloatArray) -> Lesson:
        """Return what the tree is to be renewed from now."""
        stats = tracker.living_stats
        lesson = Lesson(
            tick=tracker.tick,
            reconsider=self._reconsider,
            ids=np.array(tracker.ids, dtype=np.int64),
            placed=tracker.placed[: tracker.k],
            centers=tracker.living,
            scales=np.ascontiguousarray(stats[:, stream.SCALE]),
            fences=np.ascontiguousarray(stats[:, stream.FENCE]),
            weights=weights,
            points=points,
            p=float(tracker.gauges[stream.P]),
            seed=self._seed,
        )
        self._moved, self._corrected = False, tracker.tick
        self._peak = float(tracker.gauges[stream.FIDELITY])
        self._again = self._reconsider = False
        return lesson

    def _submit(self, tree: ThresholdTree, lesson: Lesson) -> None:
        self._pending = Pending(tree, lesson, self._beside.begin(renewed, tree, lesson))
        self._since = set()

    def install(self) -> None:
        """Take the renewed tree when all settles: until then the old one says where centers are."""
        self._arrived = True

    def _take(self, tracker: CenterTracker) -> None:
        """Take the renewed tree, which has yet to follow what changed since."""
        assert self._pending is not None
        pending, self._arrived = self._pending, False
        self._drop(tracker)
        self.tree.become(self._beside.result(pending.renewed), pending.tree)
        if self._features is not None:
            self.tree.set_features(*self._features)
        self._left, self._late = {c: self._left[c] for c in sorted(self._late)}, set()
        if self._apart is not None:
            self._apart = None if self._since is None else self._apart | self._since
        self._stale, self._moved = self._stale or self._moved, True
        self._peak = float(tracker.gauges[stream.FIDELITY])

    def _drop(self, tracker: CenterTracker) -> None:
        """Wait for no renewal."""
        self._pending = None
        tracker.counts[stream.NEXT_TREE] = NEVER

    def _told(
        self, tracker: CenterTracker, write: Callable[[Centers], Telling]
    ) -> tuple[Change | RuleRedrawn, ...]:
        """Compile the tree and tell what changed in it since this was called last."""
        before, tick, time = self._settled, tracker.tick, tracker.now
        clusters = tracker.clusters
        if self.tree.version == before[0] and clusters == self._clusters:
            return ()
        self._clusters = clusters
        self.compile(tracker.ids)
        changes: list[Change | RuleRedrawn] = []
        if self.tree.rebuilds > before[2]:
            changes.append(
                SubtreeRebuilt(
                    tick=tick,
                    time=time,
                    rebuilds=self.tree.rebuilds - before[2],
                    recourse=self.tree.recourse - before[1],
                )
            )
        centers = _centers(tracker.ids, clusters)
        prints = self._fingerprints(centers)
        redrawn = {c: own for c, own in centers.items() if prints[c] != self._prints.get(c)}
        texts = self._write(redrawn, write) if redrawn else {}
        changes += [
            RuleRedrawn(tick, time, c, self._texts.get(c, ""), new) for c, new in texts.items()
        ]
        self._texts = {c: texts.get(c) or self._texts[c] for c in centers}
        self._prints = prints
        self._settled = (self.tree.version, self.tree.recourse, self.tree.rebuilds)
        return tuple(changes)

    def _write(self, redrawn: Centers, write: Callable[[Centers], Telling]) -> Mapping[int, Text]:
        telling = write(redrawn)
        texts = telling.texts
        if not self._beside:
            telling.work()
            return texts
        left = self._tellings
        while left and left[0].is_done:
            left.popleft()
        while left and (1 + len(left)) * telling.size > TOLD_LATER:
            left.popleft().work()
        left.append(telling)
        self._beside.begin(telling.work)
        return texts

    def compile(self, centers: Sequence[int]) -> None:
        """Renew `table`; `centers` tells which center is in each of the tracker's slots."""
        feature, threshold, child, owner = self.tree.table()
        if not len(feature):  # no cut: one node whose two sides are the one leaf
            feature, threshold = np.zeros(1, dtype=np.int64), np.zeros(1)
            child = np.full((1, 2), -1, dtype=np.int64)
        self.table = np.empty((len(feature), 4))
        self.table[:, 0], self.table[:, 1], self.table[:, 2:] = feature, threshold, child
        if len(owner):
            ids = np.array(centers, dtype=np.int64)
            order = ids.argsort()
            slots = order[ids[order].searchsorted(owner)]
            self.table[:, 2:] = np.where(child < 0, ~slots[~child], child)

    def _fingerprints(self, centers: Centers) -> dict[int, bytes]:
        """Return what tells whether the boxes of a cluster are other ones than before."""
        own = self.tree.outline().prints
        return {
            c: own[some[0]] if len(some) == 1 else b"".join([own[one] for one in some])
            for c, some in centers.items()
        }

    def widen(self, weights: FloatArray, keys: NDArray[np.uint64]) -> None:
        """Tell the tree the features' weights; new features come at the end."""
        self._features = weights.copy(), keys
        self.tree.set_features(weights, keys)

    def to_state(self) -> dict[str, Any]:
        """Return plain numbers, strings and arrays from which `from_state` restores all."""
        pending = self._pending
        return {
            "tree": self.tree.to_state(),
            "texts": [[c, str(text)] for c, text in self._texts.items()],
            "settled": list(self._settled),
            "moved": self._moved,
            "corrected": self._corrected,
            "peak": self._peak,
            "again": self._again,
            "reconsider": self._reconsider,
            "left": sorted(self._left),
            "late": sorted(self._late),
            "pending": None
            if pending is None
            else {"tree": pending.tree.to_state(), "lesson": pending.lesson.to_state()},
        }

    def from_state(self, state: dict[str, Any], tracker: CenterTracker) -> None:
        """Take over a state; raises ValueError where it does not fit the tracker.

        A renewal on its way is begun again, with the same result.
        """
        self.tree.from_state(state["tree"])
        if sorted(self.tree.ids) != sorted(tracker.ids):
            raise ValueError("tree and tracker hold different centers")
        self._texts = {int(c): Text(str(text)) for c, text in state["texts"]}
        self._clusters = tracker.clusters
        self._prints = self._fingerprints(_centers(tracker.ids, self._clusters))
        self._moved, self._corrected = bool(state["moved"]), int(state["corrected"])
        self._peak = float(state["peak"])
        self._again, self._reconsider = bool(state["again"]), bool(state["reconsider"])
        left = [int(c) for c in state["left"]]
        self._left = {c: tracker.placed[tracker.slot(c)].copy() for c in left}
        self._late = {int(c) for c in state["late"]}
        self._apart = set(left)
        if not self._late <= set(left):
            raise ValueError("moves are late that were not left")
        version, recourse, rebuilds = (int(v) for v in state["settled"])
        self._settled = (version, recourse, rebuilds)
        self.compile(tracker.ids)
        self._pending = None
        if (state["pending"] is None) != (tracker.counts[stream.NEXT_TREE] == NEVER):
            raise ValueError("a renewal without a date, or a date without a renewal")
        if state["pending"] is not None:
            tree = ThresholdTree(0)
            tree.from_state(state["pending"]["tree"])
            self._submit(tree, lesson_of(state["pending"]["lesson"]))
            self._since = None


def _centers(centers: Sequence[int], clusters: Sequence[int]) -> dict[int, list[int]]:
    """Return the ids of every living cluster's centers."""
    found: dict[int, list[int]] = {}
    for center, cluster in zip(centers, clusters, strict=True):
        found.setdefault(cluster, []).append(center)
    return found
