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
from streamclust.census import boundary_ratio, label_window, take_census
from streamclust.errors import InvalidPoint, InvariantBroken
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
    RefitSkipped,
    largest_moves,
)
from streamclust.features import LARGEST, FeatureSpace, Order, table_of
from streamclust.figures import bytes_in, figures
from streamclust.identity import lineage, match
from streamclust.kernels import stream
from streamclust.refit.offered import build
from streamclust.results import FeatureName, FloatArray, IntArray
from streamclust.router import Router
from streamclust.scaling import Scaling
from streamclust.tracker import CenterTracker
from streamclust.tree import ThresholdTree
from streamclust.windows import Reservoir, SlidingWindow

WARM_UP = 40
"""Events before anything is clustered."""
LONGEST = 20_000
"""Events between two refits at the most; below it the interval grows with the events so far."""
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
        self.window = Reservoir(s["window"], decay)
        self.recent = SlidingWindow(RECENT)
        self.tracker = CenterTracker(
            p=s["p"],
            decay=decay,
            by_events=self.by_events,
            lateness=s["max_lateness"],
            seed=seed,
            max_clusters=s["max_clusters"],
            by_tree=s["assign"] == "tree",
            fenced=s["noise"],
        )
        tree = ThresholdTree(
            0,
            p=s["p"],
            measure=s["measure"],
            draws=s["draws"],
            leaves_per_center=s["leaves_per_center"],
            seed=seed,
        )
        self.router = Router(tree, seed)
        self.answers = Answers(self.features, self.scaling, self.window, self.tracker, self.router)
        self.estimator = build(s["refit"], s["n_clusters"], seed)
        self.log = EventLog(s["event_log"])
        self.refits = 0
        self._medians_at = 0
        self._subscribers: list[tuple[type[Change], Callable[[Change], object]]] = []
        self.tracker.counts[stream.NEXT_REFIT] = WARM_UP
        self._refresh()

    def learn(self, x: Mapping[FeatureName, Any], time: float, weight: float) -> None:
        """Learn one event; `time` is nan where it has none."""
        if not (self.by_events and isnan(time)):
            self._check_time(time)
        row = self.features.read(x, time, weight)
        if row is None:
            self._check_weight(weight)
            row = self._resolve(x, time, weight)
        _, why = stream.observe(row, *self._view)
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
            columns = names or [f"f{j}" for j in range(values.shape[1])]
            first = dict(zip(columns, values[0].tolist(), strict=True))
            self.learn(first, *_scalars(times, weights, 0))
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
            self._learn_block(rows, values[block], order, at)

    def tick(self, time: float) -> None:
        """Let time pass without an event."""
        now = self.tracker.now
        if not now <= time < np.inf:
            raise InvalidPoint(f"got t={time!r}; the clock stands at {now!r} and does not go back")
        self._dispatch(self.tracker.pass_time(time))

    def refit(self, reason: str) -> RefitDone | RefitSkipped:
        """Refit now; return what came of it."""
        changes = self._dispatch([self._due(reason)])
        return next(c for c in changes if isinstance(c, RefitDone | RefitSkipped))

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
            self.features.admit(new, x, tick)
            self._widen(np.array([float(x[name]) for name in self.features.names[-len(new) :]]))
            if tick:
                self._tell([FeatureAdded(tick=tick, time=self.tracker.now, features=new)])
        if new or absent:
            row = self.features.resolve(x, time, weight, tick)[0]
        return row

    def _learn_block(
        self, rows: FloatArray, values: NDArray[Any], order: Order, offset: int
    ) -> None:
        """Learn `rows`, made of `values` in `order`; `offset` is the number of the first."""
        at, timed = 0, not self.by_events or not np.isnan(rows[:, -2]).all()
        while at < len(rows):
            if timed:
                time = float(rows[at, -2])
                if not self.by_events or not isnan(time):
                    self._check_time(time)
            done, why = stream.observe(rows[at:], *self._view)
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
        found = list(self.tracker.react(self.scaling.weights))
        if int(self.tracker.counts[stream.ALERTS]) & stream.REFIT:
            found.append(self._due("schedule"))
        return found

    def _due(self, reason: str) -> RefitDue:
        return RefitDue(tick=self.tracker.tick, time=self.tracker.now, reason=reason)

    def _refresh(self) -> None:
        """Take over the components' arrays, after any of them was replaced."""
        self._view = self.tracker.view(
            self.scaling.frame, self.window, self.recent, self.router.table
        )
        self.answers.refresh()

    # ------------------------------------------------------------ the queue

    def _dispatch(self, events: Iterable[Event]) -> list[Change]:
        """Let `events` run through the handlers, settle the tree, and tell the changes."""
        queue = deque(events)
        changes: list[Change] = []
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
        changes += self.router.settle(self.tracker, points, weights, self.answers.rules.texts)
        self._refresh()
        return self._tell(changes)

    def _tell(self, changes: Iterable[Change]) -> list[Change]:
        numbered = [self.log.append(change) for change in changes]
        for change in numbered:
            for kind, callback in list(self._subscribers):
                if isinstance(change, kind):
                    callback(change)
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
        distance = float(stream.distance(old, event.position, weights, float(p)))
        told = ClusterMoved(
            tick=event.tick,
            time=event.time,
            cluster=event.center,
            distance=distance,
            old=before,
            new=after,
        )
        return (told,)

    def _on_refit(self, event: RefitDue) -> Iterable[Event]:
        """Cluster the window anew and let the tracker adopt what was found."""
        tick, now, tracker = event.tick, event.time, self.tracker
        tracker.counts[stream.NEXT_REFIT] = tick + self._interval(tick)
        if self.window.is_empty:
            return (RefitSkipped(tick=tick, time=now, reason="no events yet"),)
        points, renewed, old = self._prepare_window()
        weights, p = self.scaling.weights, float(self.settings["p"])
        if self.estimator is None:
            tracker.seek_births(points, weights)
            return (RefitSkipped(tick=tick, time=now, reason="refit=None"),)
        mass = self.window.weights(now)
        X = np.clip(points * weights, -stream.CLIP, stream.CLIP)[:, weights > 0]
        incumbent = old if self.window.is_full and tracker.k else None
        labels = label_window(self.estimator, X, mass, incumbent)
        census = take_census(points, mass, labels, weights, p, self.settings["max_clusters"])
        if not census.k:
            return (RefitSkipped(tick=tick, time=now, reason="no cluster found"),)
        matching = match(tracker.ids, old, census.labels, census.k, mass)
        ids = [matching.survivors.get(c, -1) for c in range(census.k)]
        ids = [tracker.new_id() if c < 0 else c for c in ids]
        calm = self.window.is_full and not renewed
        events = tracker.adopt(
            ids,
            tracker.keep_places(ids, census.positions, census.scales, weights)
            if calm
            else census.positions,
            census.scales,
            census.limits,
            census.sizes,
            census.masses / mass.sum(),
            spared=matching.unseen,
        )
        self.router.look(tracker, points, weights)
        self.refits += 1
        if self.settings["boundary_ratio"] is None:
            self.answers.ratio = boundary_ratio(
                tracker.distances(points, weights), tracker.living_stats, self.estimator
            )
        done = RefitDone(
            tick=tick,
            time=now,
            reason=event.reason,
            clusters=census.k,
            noise_share=float(mass[census.labels < 0].sum() / mass.sum()),
        )
        return (*events, *lineage(matching, ids, census.masses, tick, now), done)

    def _interval(self, tick: int) -> int:
        """Return the events until the next refit on schedule.

        A half of those so far while the window fills, then as many again: intervals grow by a
        factor, so the schedule depends on nothing but the window.
        """
        grown = tick if self.window.is_full else tick // 2
        return min(max(grown, WARM_UP // 2), LONGEST)

    def _prepare_window(self) -> tuple[FloatArray, bool, IntArray]:
        """Renew origin, medians and scale; return points, whether the scale is new, old owners."""
        window, scaling, tracker = self.window, self.scaling, self.tracker
        if not scaling.epoch:
            scaling.place(window.points())
            window.shift(scaling.origin)
            self.recent.shift(scaling.origin)
        self._renew_medians()
        window.fill(self.features.stand_ins - scaling.origin)
        points = window.points().copy()
        old = tracker.owners(points, scaling.weights)
        renewed = scaling.freeze(points)
        self.router.widen(scaling.weights, self.features.keys)
        return points, renewed, old

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
        return {**told, "refits": self.refits, "changes": self.log.last_number}

    def memory_usage(self) -> int:
        """Return the bytes of all arrays: bounded by settings, features and centers."""
        own = sum(int(array.nbytes) for array in self._view)
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
            "refits": self.refits,
            "ratio": self.answers.ratio,
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
        self.refits, self._medians_at = int(state["refits"]), int(state["medians_at"])
        self.answers.ratio = float(state["ratio"])
        self._refresh()


def _cut(told: FloatArray | float, block: slice) -> FloatArray | float:
    return told if isinstance(told, float) else told[block]


def _scalars(times: FloatArray | float, weights: FloatArray | float, i: int) -> tuple[float, float]:
    block = slice(i, i + 1)
    return float(np.squeeze(_cut(times, block))), float(np.squeeze(_cut(weights, block)))


HANDLERS: Mapping[type[Event], tuple[Handler, ...]] = {
    CenterInserted: (Engine._on_center,),
    CenterMoved: (Engine._on_center,),
    CenterDeleted: (Engine._on_center,),
    RefitDue: (Engine._on_refit,),
}
