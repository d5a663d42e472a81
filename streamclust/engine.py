"""The engine: one queue, one handler table, and the state of the whole.

Events come in at `learn`; one compiled call observes them, and only where something happened do
records enter the queue. A handler changes its own components and returns further records. When the
queue is empty the tree settles, then subscribers are told. No threads, no wall clock, no global
state: same seed, same stream, same bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamclust.answers import BLOCK, Answers
from streamclust.beside import Beside
from streamclust.desk import address_of
from streamclust.errors import InvalidParameter, InvalidPoint, InvariantBroken, StaleSummary
from streamclust.events import (
    CenterDeleted,
    CenterInserted,
    CenterMoved,
    Change,
    ClusterMoved,
    Event,
    EventLog,
    FeatureAdded,
    RefitDone,
    RefitDue,
    RefitReady,
    RefitSkipped,
    RuleChanged,
    RuleRedrawn,
    TreeReady,
    largest_moves,
)
from streamclust.exchange import absorb, freeze
from streamclust.features import LARGEST, FeatureSpace, Order, table_of
from streamclust.figures import bytes_in, figures
from streamclust.frozen import Frozen
from streamclust.kernels import metric, stream
from streamclust.refitting import ASKED, INITIAL, Refitter
from streamclust.results import FeatureName, FloatArray, IntArray
from streamclust.router import Router
from streamclust.scaling import Scaling
from streamclust.summary import Summary
from streamclust.tracker import NEVER, CenterTracker
from streamclust.tree import ThresholdTree
from streamclust.windows import RecentPoints, window_of

MAX_RECORDS = 100_000
"""Records that one event may cause; more is an endless cascade."""
RECENT = 5000
"""Recent points from which corrections of the tree are learned."""
STALE = 256
"""Events after which the medians that stand in for absent features are renewed."""

Handler = Callable[["Engine", Any], Iterable[Event]]


class Engine:
    """A whole model: components, queue, log and subscribers.

    Parameters
    ----------
    settings : mapping
        Checked parameters of `StreamClusterer`, by name.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        s = settings
        seed = int(
            np.random.SeedSequence([abs(s["seed"]), s["seed"] < 0]).generate_state(1, np.uint64)[0]
            >> 11
        )
        decay = np.log(2.0) / s["half_life"] if s["half_life"] is not None else 0.0
        self.settings = settings
        self.by_events = s["time_unit"] == "events"
        self.features = FeatureSpace(missing=s["missing"], max_features=s["max_features"])
        self.scaling = Scaling(s["scale"])
        self.window = window_of(s["window"], s["half_life"])
        self.recent = RecentPoints(RECENT)
        self.tracker = CenterTracker(
            p=s["p"],
            decay=decay,
            by_events=self.by_events,
            lateness=s["max_lateness"],
            seed=seed,
            max_clusters=s["max_clusters"],
            by_tree=s["assign"] == "tree",
            fenced=s["noise"],
            window_decay=self.window.decay,
        )
        tree = ThresholdTree(
            0,
            p=s["p"],
            measure=s["measure"],
            draws=s["draws"],
            leaves_per_center=s["leaves_per_center"],
            seed=seed,
        )
        self.beside = Beside(s["refit_lag"] if s["refit_mode"] == "background" else 0)
        self.router = Router(tree, seed, self.beside)
        self.answers = Answers(self.features, self.scaling, self.window, self.tracker, self.router)
        parts = (self.features, self.scaling, self.window, self.tracker, self.router)
        self.refitter = Refitter(s, seed, self.beside, *parts)
        self.log = EventLog(s["event_log"])
        self._medians_at = 0
        self._desk = self.tracker.desk(
            self.scaling.frame, self.window, self.recent, self.router.table
        )
        self._subscribers: list[tuple[type[Change], Callable[[Change], object]]] = []
        self._refresh()

    def learn(self, x: Mapping[FeatureName, Any], time: float, weight: float) -> None:
        """Learn one event; `time` is nan where it has none."""
        if not (self.by_events and isnan(time)):
            self._check_time(time)
        row = self.features.read(x, time, weight)
        if not row:
            self._check_weight(weight)
            fresh = self._resolve(x, time, weight)
            row = address_of(fresh)
        why = stream.observe_at(self._desk.address, row, 1) & 3
        if why == stream.DONE:
            return
        if why == stream.ALERT:
            self._dispatch(self._alerts())
        elif why == stream.BAD_VALUE:
            self._check_weight(weight)
            self.features.resolve(x, time, weight, self.tracker.tick)

    def learn_many(self, X: Any, times: FloatArray | float, weights: FloatArray | float) -> None:
        """Learn every row of a table, with the same result as `learn` row by row, to the bit."""
        names, values = table_of(X)
        if not len(values):
            return
        n, start = len(values), 0
        if not isinstance(times, float):
            times = np.broadcast_to(times, n)
        if not isinstance(weights, float):
            weights = np.broadcast_to(weights, n)

        if not self.features.n_features:
            self.learn(_first(names, values), *_scalars(times, weights, 0))
            start = 1
        order = self.features.order(names, values.shape[1])
        if order is None:
            for i in range(start, n):
                x = dict(zip(names or (), values[i].tolist(), strict=True))
                self.learn(x, *_scalars(times, weights, i))
            return
        for at in range(start, n, BLOCK):
            block = slice(at, min(n, at + BLOCK))
            rows = self.features.block(
                values[block], order, _cut(times, block), _cut(weights, block)
            )
            timed = not (self.by_events and isinstance(times, float) and isnan(times))
            self._learn_block(rows, values[block], order, at, timed)

    def freeze(self, *, rules: bool = False) -> Frozen:
        """Return the model as it is now, small, for workers elsewhere."""
        clusters = dict.fromkeys(self.tracker.clusters) if rules else ()
        told = {cluster: str(self.answers.rules.rule(cluster)) for cluster in clusters}
        parts = (self.features, self.scaling, self.window, self.tracker, self.router)
        return freeze(*parts, self.answers.ratio, told)

    def apply(self, summary: Summary) -> None:
        """Learn the events of a summary that was made with the model as it is now."""
        features, k = self.features.names, self.tracker.k
        known = summary.names[: summary.n_known] == features and len(summary.arrivals) == k
        if not known or summary.mark != self.freeze().mark:
            raise StaleSummary("this summary was made with another state of the model")
        if not summary.learned:
            return
        self._admit(summary)
        parts = (self.scaling, self.window, self.recent, self.tracker)
        events, alerts = absorb(summary.over(self.features.names), *parts)
        if self._medians_stale():
            self._renew_medians()
        self._dispatch([*events, *self._due(alerts)])

    def _admit(self, summary: Summary) -> None:
        """Take in the new features of a summary, as far as there is room and its sample has any."""
        values = summary.sample.rows
        room = self.features.max_features - self.features.n_features
        first: dict[FeatureName, float] = {}
        for j in range(summary.n_known, len(summary.names)):
            seen = np.flatnonzero(~np.isnan(values[:, j]))
            if seen.size and len(first) < room:
                first[summary.names[j]] = float(values[seen[0], j])
        if first:
            self._take_in(tuple(first), first)

    def start(
        self,
        X: Any,
        times: FloatArray | float,
        weights: FloatArray | float,
        labels: IntArray | None,
        centers: Any,
    ) -> None:
        """Begin warm; see `StreamClusterer.fit_initial`. X or `centers` may be None."""
        if self.tracker.tick or self.tracker.k:
            raise InvalidParameter(
                f"a warm start comes before the first event; {self.tracker.tick} were learned"
            )
        if X is None:
            self._resolve(_first(*table_of(centers)), 0.0, 1.0)
            given = self.refitter.given_centers(self._measured(centers, placed=False))
        else:
            due = int(self.tracker.counts[stream.NEXT_REFIT])
            self.tracker.counts[stream.NEXT_REFIT] = NEVER
            try:
                self.learn_many(X, times, weights)
            finally:
                self.tracker.counts[stream.NEXT_REFIT] = due
            if labels is None and centers is None:
                self._dispatch([self.refitter.due(INITIAL)])
                return
            points = self._measured(X, placed=False)
            masses = np.broadcast_to(weights, len(points)).astype(np.float64)
            among = None if centers is None else self._measured(centers, placed=True)
            given = self.refitter.given_labels(points, masses, labels, among)
        self._dispatch(given)

    def _measured(self, X: Any, *, placed: bool) -> FloatArray:
        """Return a table's points, measured from the origin, which is `placed` among them first."""
        names, values = table_of(X)
        order = self.features.order(names, values.shape[1])
        if order is None:
            raise InvalidPoint(f"got columns {names}; {list(self.features.columns)} are known")
        points = self.features.block(values, order, 0.0, 1.0)[:, :-2]
        wrong = np.flatnonzero(~(np.abs(points) <= LARGEST).all(axis=1))
        if wrong.size:
            self.features.refuse(values[wrong[0], order], int(wrong[0]))
        if not placed:
            self._place(points)
        return points - self.scaling.origin

    def _place(self, points: FloatArray) -> None:
        """Put the origin among points in the user's units, if it has no place yet."""
        if not self.scaling.epoch:
            self.scaling.place(points)
            self.window.shift(self.scaling.origin)
            self.recent.shift(self.scaling.origin)

    def tick(self, time: float) -> None:
        """Let time pass without an event."""
        now = self.tracker.now
        if not now <= time < np.inf:
            raise InvalidPoint(f"got t={time!r}; the clock stands at {now!r} and does not go back")
        self._dispatch(self.tracker.pass_time(time))

    def refit(self) -> RefitDone | RefitSkipped:
        """Refit now; return what came of it."""
        changes = self._dispatch([self.refitter.due(ASKED)])
        return next(c for c in changes if isinstance(c, RefitDone | RefitSkipped))

    def name(self, cluster: int, name: str | None) -> None:
        """Name a living cluster, or take its name."""
        self.answers.living(cluster)
        self.tracker.names.pop(cluster, None)
        if name is not None:
            self.tracker.names[cluster] = name

    def pin(self, cluster: int, pinned: bool) -> None:
        """Pin a living cluster, or let it go."""
        self.answers.living(cluster)
        self.tracker.pin(cluster, pinned)

    def subscribe(
        self, kind: type[Change], callback: Callable[[Change], object]
    ) -> Callable[[], None]:
        """Call `callback` with every change of this kind; return a function that ends it."""
        entry = (kind, callback)
        self._subscribers.append(entry)
        return lambda: self._subscribers.remove(entry) if entry in self._subscribers else None

    # ------------------------------------------------------------ the way of one event

    def _check_weight(self, weight: float) -> None:
        if not 0.0 < weight <= LARGEST:
            raise InvalidPoint(
                f"event {self.tracker.tick + 1}: got w={weight!r}; w > 0 is accepted"
            )

    def _check_time(self, time: float) -> None:
        stamp = float(self.tracker.gauges[stream.STAMP])
        lateness = float(self.tracker.gauges[stream.LATENESS])
        where = f"event {self.tracker.tick + 1}"
        if time < stamp - lateness:
            raise InvalidPoint(
                f"{where}: got t={time!r}, {stamp - time:g} before the latest, {stamp!r}; "
                f"max_lateness={lateness:g} is accepted"
            )
        if np.isinf(time):
            raise InvalidPoint(f"{where}: got t={time!r}; a finite time is accepted")
        if np.isnan(time) and not self.by_events:
            raise InvalidPoint(
                f"{where}: got no t; time_unit='seconds' needs the time of every event"
            )

    def _resolve(self, x: Mapping[FeatureName, Any], time: float, weight: float) -> FloatArray:
        """Read an event with absent or new features, and take in what it brings."""
        tick = self.tracker.tick
        row, absent, new = self.features.resolve(x, time, weight, tick)
        if absent and self.features.missing == "median" and self._medians_stale():
            self._renew_medians()
        if new:
            self._take_in(new, x)
        if new or absent:
            row = self.features.resolve(x, time, weight, tick)[0]
        return row

    def _take_in(self, new: tuple[FeatureName, ...], x: Mapping[FeatureName, Any]) -> None:
        """Make the features `new` of event `x` known to all components."""
        tick = self.tracker.tick
        self.features.admit(new, x, tick)
        self._widen(np.array([float(x[name]) for name in self.features.names[-len(new) :]]))
        if tick:
            self._tell([FeatureAdded(tick=tick, time=self.tracker.now, features=new)])

    def _learn_block(
        self, rows: FloatArray, values: NDArray[Any], order: Order, offset: int, timed: bool
    ) -> None:
        """Learn `rows`, made of `values` in `order`; `offset` is the number of the first.

        `timed` is whether any of them may have a time.
        """
        at, start, size = 0, address_of(rows), rows.strides[0]
        while at < len(rows):
            if timed:
                time = float(rows[at, -2])
                if not self.by_events or not isnan(time):
                    self._check_time(time)
            stopped = stream.observe_at(self._desk.address, start + at * size, len(rows) - at)
            done, why = divmod(stopped, 4)
            at += done
            if why == stream.ALERT:
                self._dispatch(self._alerts())
                at += 1
            elif why == stream.BAD_TIME:
                self._check_time(float(rows[at, -2]))
            elif why == stream.BAD_VALUE:
                self.features.refuse(values[at, order], offset + at)
                raise InvalidPoint(f"row {offset + at}: got w={rows[at, -1]!r}; w > 0 is accepted")

    def _alerts(self) -> list[Event]:
        alerts = int(self.tracker.counts[stream.ALERTS])
        return [*self.tracker.react(self.scaling.weights), *self._due(alerts)]

    def _due(self, alerts: int) -> list[Event]:
        """What the time has come for: refits, and trees that were renewed beside the stream."""
        due = list(self.refitter.wake(alerts))
        if alerts & stream.TREE:
            due.append(TreeReady(tick=self.tracker.tick, time=self.tracker.now))
        return due

    def _refresh(self) -> None:
        """Take over the components' arrays, after any of them was replaced."""
        others = self.scaling.frame, self.window, self.recent, self.router.table
        self._desk.lay(*self.tracker.arrays(*others))
        self.answers.ratio = self.refitter.ratio
        self.answers.refresh(self._desk)

    # ------------------------------------------------------------ the queue

    def _dispatch(self, events: Iterable[Event]) -> list[Change | RuleRedrawn]:
        """Let `events` run through the handlers, settle the tree, and tell the changes."""
        queue = deque(events)
        if not queue:
            return []
        with self.beside.held_back():
            changes = self._settled(queue)
        return self._tell(changes)

    def _settled(self, queue: deque[Event]) -> list[Change | RuleRedrawn]:
        changes: list[Change | RuleRedrawn] = []
        for _ in range(MAX_RECORDS):
            if not queue:
                break
            event = queue.popleft()
            if isinstance(event, Change):
                changes.append(event)
            for handler in HANDLERS.get(type(event), ()):
                queue.extend(handler(self, event))
        else:
            raise InvariantBroken(f"one event caused more than {MAX_RECORDS} records")
        points, weights = self.recent.points(self.tracker.tick), self.scaling.weights
        full, write = self.window.is_full, self.answers.rules.telling
        changes += self.router.settle(self.tracker, points, weights, full, write)
        self._refresh()
        return changes

    def _tell(self, changes: Iterable[Change | RuleRedrawn]) -> list[Change | RuleRedrawn]:
        numbered = [self.log.append(change) for change in changes]
        for change in numbered if self._subscribers else ():
            for kind, callback in list(self._subscribers):
                if not isinstance(change, RuleRedrawn):
                    if isinstance(change, kind):
                        callback(change)
                elif issubclass(RuleChanged, kind):
                    callback(change.told())
        return numbered

    def _on_center(self, event: CenterInserted | CenterMoved | CenterDeleted) -> Iterable[Event]:
        old = self.router.position(event.center) if isinstance(event, CenterMoved) else None
        self.router.plant(event)
        if old is None or not isinstance(event, CenterMoved):
            return ()
        p, weights, origin = self.settings["p"], self.scaling.weights, self.scaling.origin
        before, after = largest_moves(
            self.features.names, old + origin, event.position + origin, weights
        )
        pair = np.array([old, event.position])
        distance = float(metric.distances(pair[:1], pair[1:], weights, float(p))[0])
        told = ClusterMoved(
            tick=event.tick,
            time=event.time,
            cluster=self.tracker.cluster(event.center),
            distance=distance,
            old=before,
            new=after,
        )
        return (told,)

    def _on_due(self, event: RefitDue) -> Iterable[Event]:
        """Make the window whole, then refit; medians are renewed with what comes of it."""
        if not self.window.is_empty:
            self._place(self.window.points())
        points = self.window.points()
        late = bool(np.isnan(points).any())  # a feature came after some of them
        if late:
            self._renew_medians()
            groups = self.tracker.owners(np.nan_to_num(points), self.scaling.weights)
            self.window.fill(self.features.stand_ins - self.scaling.origin, groups)
        told = self.refitter.begin(event)
        if not (late or self.refitter.is_pending):
            self._renew_medians()
        return told

    def _on_ready(self, event: RefitReady) -> Iterable[Event]:
        self._renew_medians()
        return self.refitter.finish(event)

    def _on_tree(self, event: TreeReady) -> Iterable[Event]:
        self.router.install()
        return ()

    # ------------------------------------------------------------ features

    def _widen(self, values: FloatArray) -> None:
        """Give every component room for the features that were just admitted."""
        n = self.features.n_features
        self.scaling.widen(values)
        self.window.widen(n)
        self.recent.widen(n, self.tracker.tick)
        self.tracker.widen(n)
        self.router.widen(self.scaling.weights, self.features.keys)
        self._refresh()

    def _medians_stale(self) -> bool:
        return self.tracker.tick < STALE or self.tracker.tick - self._medians_at >= STALE

    def _renew_medians(self) -> None:
        if self.features.missing == "median":
            self.features.stand_ins = self.window.medians(
                self.scaling.origin, self.features.stand_ins
            )
            self._medians_at = self.tracker.tick

    # ------------------------------------------------------------ figures and state

    def metrics(self) -> dict[str, float | int]:
        """Return live figures of the model by name."""
        told = figures(self.scaling, self.window, self.tracker, self.router.tree)
        return {
            **told,
            **self.refitter.figures(),
            "tree_pending": int(self.router.is_pending),
            "refit_wait": self.beside.waited,
            "refit_wait_longest": self.beside.longest_wait,
            "changes": self.log.last_number,
        }

    def memory_usage(self) -> int:
        """Return the bytes of all arrays: bounded by settings, features and centers."""
        own = sum(int(array.nbytes) for array in self._desk.arrays)
        return own + bytes_in(self.router.tree.to_state())

    def to_state(self) -> dict[str, Any]:
        """Return plain numbers, strings, lists and arrays from which `from_state` restores all."""
        return {
            "features": self.features.to_state(),
            "scaling": self.scaling.to_state(),
            "window": self.window.to_state(),
            "recent": self.recent.to_state(self.tracker.tick),
            "tracker": self.tracker.to_state(),
            "router": self.router.to_state(),
            "log": self.log.to_state(),
            "refitter": self.refitter.to_state(),
            "medians_at": self._medians_at,
        }

    def from_state(self, state: Mapping[str, Any]) -> None:
        """Take over a state; raises ValueError, KeyError or TypeError where it is malformed."""
        self.features.from_state(state["features"])
        n = self.features.n_features
        self.scaling.from_state(state["scaling"], n)
        self.window.from_state(state["window"], n)
        self.tracker.from_state(state["tracker"], n)
        self.recent.from_state(state["recent"], n, self.tracker.tick)
        self.router.widen(self.scaling.weights, self.features.keys)
        self.router.from_state(state["router"], self.tracker)
        self.log.from_state(state["log"])
        self.refitter.from_state(state["refitter"])
        self._medians_at = int(state["medians_at"])
        self._refresh()


def _first(names: list[FeatureName] | None, values: NDArray[Any]) -> dict[FeatureName, Any]:
    """Return the first row of a table as an event; the columns of a bare array are f0, f1, ..."""
    columns = names or [f"f{j}" for j in range(values.shape[1])]
    return dict(zip(columns, values[0].tolist(), strict=True))


def _cut(told: FloatArray | float, block: slice) -> FloatArray | float:
    return told if isinstance(told, float) else told[block]


def _scalars(times: FloatArray | float, weights: FloatArray | float, i: int) -> tuple[float, float]:
    block = slice(i, i + 1)
    return float(np.squeeze(_cut(times, block))), float(np.squeeze(_cut(weights, block)))


HANDLERS: Mapping[type[Event], tuple[Handler, ...]] = {
    CenterInserted: (Engine._on_center,),
    CenterMoved: (Engine._on_center,),
    CenterDeleted: (Engine._on_center,),
    RefitDue: (Engine._on_due,),
    RefitReady: (Engine._on_ready,),
    TreeReady: (Engine._on_tree,),
}
