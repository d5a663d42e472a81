"""Both ends of learning by summaries: what a model hands out, and what a summary does to it.

Each figure that the per-event path keeps by running steps gets here what that many steps would
make of it in expectation: running means by the same shares in one product, the rate of arrivals as
if they were spread evenly, the center by Huber's reweighted mean (`streamclust.summary`). A batch
is one moment: where the clock counts events, all of a batch get the time at its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, expm1, inf, log, log1p

import numpy as np

from streamclust.events import Event
from streamclust.features import FeatureSpace
from streamclust.frozen import Frozen
from streamclust.kernels import metric, reservoir, stream
from streamclust.results import FloatArray, IntArray
from streamclust.router import Router
from streamclust.scaling import Scaling
from streamclust.summary import COSTS, Summary
from streamclust.tracker import CenterTracker
from streamclust.windows import RecentPoints, SlidingWindow, Window


def freeze(
    features: FeatureSpace,
    scaling: Scaling,
    window: Window,
    tracker: CenterTracker,
    router: Router,
    ratio: float,
    rules: Mapping[int, str],
) -> Frozen:
    """Return the model of these parts as it is now."""
    told = {"missing": features.missing, "max_features": features.max_features}
    return Frozen(
        {
            "kind": "frozen",
            "features": {**features.to_state(), **told},
            "frame": scaling.frame.copy(),
            "centers": tracker.living.copy(),
            "stats": tracker.living_stats.copy(),
            "table": router.table.copy(),
            "counts": tracker.counts.copy(),
            "gauges": tracker.gauges.copy(),
            "capacity": window.capacity,
            "ratio": ratio,
            "rules": [[cluster, text] for cluster, text in rules.items()],
        }
    )


def absorb(
    summary: Summary,
    scaling: Scaling,
    window: Window,
    recent: RecentPoints,
    tracker: CenterTracker,
) -> tuple[list[Event], int]:
    """Learn a summary of at least one event, whose features all parts have room for.

    The columns of its sample must be those of the model.

    Returns
    -------
    events : list of Event
        Centers that moved, died or were born, in this order.
    alerts : int
        Bits as in ``counts[ALERTS]``: what the per-event path would have stopped for.
    """
    counts, gauges = tracker.counts, tracker.gauges
    span = _pass_clock(summary, counts, gauges)
    _keep(summary, scaling.origin, window, recent, tracker)
    assigned = tracker.k > 0 or gauges[stream.REACH] > 0.0
    events: list[Event] = []
    if tracker.k:
        _judge(summary, counts, gauges)
        events += _move(summary, span, scaling.weights, tracker)
    if assigned:
        outside = summary.learned - int(summary.arrivals.sum())
        noise = outside / summary.learned
        step = faded(summary.learned, stream.SHARE_STEP)
        gauges[stream.NOISE_SHARE] += step * (noise - gauges[stream.NOISE_SHARE])
        counts[stream.OUTLIERS] += outside
        counts[stream.LOOK_OUTLIERS] += outside
    died = tracker.pass_time(float(gauges[stream.NOW]))
    born = _seek_births(summary, scaling, span, tracker) if assigned else []
    alerts = stream.DIED * bool(died) | stream.BORN * bool(born) | stream.MOVED * bool(events)
    tick = int(counts[stream.TICK])
    alerts |= stream.REFIT * bool(tick >= counts[stream.NEXT_REFIT])
    alerts |= stream.LOOK * bool(tick >= counts[stream.NEXT_LOOK])
    alerts |= stream.TREE * bool(tick >= counts[stream.NEXT_TREE])
    counts[stream.ALERTS] = alerts
    return [*events, *died, *born], alerts


def log_left(before: int, n: int, floor: float) -> float:
    """Return the logarithm of what n more steps leave of a running mean of `before` steps.

    Step i has the share ``max(1 / i, floor)``.
    """
    if not before:
        return -inf
    last = min(max(int(1.0 / floor), before), before + n)  # steps up to here are 1 / i
    return log(before / last) + (before + n - last) * log1p(-floor)


def absorbed(before: int, n: int, floor: float) -> float:
    """Return the share of n more steps in a running mean of `before` steps; see `log_left`."""
    return -expm1(log_left(before, n, floor))


def faded(n: int, share: float) -> float:
    """Return the share of n steps in a mean of which each step takes `share`."""
    return -expm1(n * log1p(-share))


def _pass_clock(summary: Summary, counts: IntArray, gauges: FloatArray) -> float:
    """Let the batch's time pass; return how long it took."""
    n, tick, before = summary.learned, int(counts[stream.TICK]), float(gauges[stream.NOW])
    gauges[stream.STAMP] = max(gauges[stream.STAMP], summary.last)
    if gauges[stream.BY_EVENTS]:
        now = before + n
    else:
        now = float(gauges[stream.STAMP])
        before = before if tick else summary.first
    span = now - before
    gauges[stream.NOW] = now
    mass = float(summary.masses.high.sum())
    gauges[stream.MASS] = gauges[stream.MASS] * exp(-gauges[stream.DECAY] * span) + mass
    step = absorbed(max(tick - 1, 0), n, stream.SHARE_STEP)
    gauges[stream.MEAN_GAP] += step * (span / n - gauges[stream.MEAN_GAP])
    counts[stream.TICK] += n
    return span


def _keep(
    summary: Summary,
    origin: FloatArray,
    window: Window,
    recent: RecentPoints,
    tracker: CenterTracker,
) -> None:
    """Offer the sampled rows to the window, and fill the ring of recent points with them."""
    now, n, tick = tracker.now, summary.learned, tracker.tick
    kept = summary.sample
    rows = kept.rows.copy()
    rows[:, :-2] -= origin
    keys: FloatArray = kept.keys
    if tracker.gauges[stream.BY_EVENTS]:
        rows[:, -2] = now
        keys = kept.keys - float(window.decay) * now if np.isfinite(window.decay) else keys
    if isinstance(window, SlidingWindow):  # the newest are kept; within a batch, the first by draw
        keys = np.arange(len(rows), dtype=np.float64) - tick
    for row, key in zip(rows, keys.tolist(), strict=True):
        reservoir.admit(row, key, window.slots, window.heap)
    places = np.arange(tick - min(n, recent.capacity), tick) % recent.capacity
    recent.rows[places] = np.resize(rows[:, :-2], (len(places), rows.shape[1] - 2))


def _judge(summary: Summary, counts: IntArray, gauges: FloatArray) -> None:
    """Keep cost, fidelity and price, and what evidence of drift is read from."""
    inside, n = int(summary.arrivals.sum()), summary.learned
    told = dict(zip(COSTS, summary.costs.high[0].tolist(), strict=True))
    step = faded(n, stream.SHARE_STEP)
    gauges[stream.COST] += step * (told["near"] / n - gauges[stream.COST])
    if not inside:
        return
    seen = int(counts[stream.INSIDERS])
    step = absorbed(seen, inside, stream.RULE_STEP)
    for gauge, mean in (
        (stream.FIDELITY, summary.agreed / inside),
        (stream.INSIDE_COST, told["own"] / inside),
        (stream.RULE_COST, told["answered"] / inside),
    ):
        gauges[gauge] += step * (mean - gauges[gauge])
    counts[stream.INSIDERS] += inside
    counts[stream.LOOK_INSIDERS] += summary.measured
    gauges[stream.LOOK_COST] += told["relative"]
    gauges[stream.LOOK_SQUARES] += told["squares"]


def _move(
    summary: Summary, span: float, weights: FloatArray, tracker: CenterTracker
) -> list[Event]:
    """Let the events of every center arrive; return the centers that left their place."""
    d, gauges = len(weights), tracker.gauges
    told, p = tracker.counts, float(gauges[stream.P])
    events: list[Event] = []
    n_known = summary.n_known
    for slot in np.flatnonzero(summary.arrivals).tolist():
        n, s = int(summary.arrivals[slot]), tracker.stats[slot]
        steps = float(s[stream.STEPS])
        late = tracker.now if gauges[stream.BY_EVENTS] else float(summary.latest[slot])
        arrive_many(s, n, float(summary.masses.high[slot, 0]), late, span, gauges)
        pull, hold = np.split(summary.pulls.high[slot], 2)
        left = log_left(int(steps) + 1, n, stream.STEP_FLOOR)
        some = (hold > 0) & (weights[:n_known] > 0)
        share = -np.expm1(left * hold[some] / n)
        step = np.zeros(d)
        step[:n_known][some] = share * pull[some] / hold[some] / weights[:n_known][some]
        tracker.centers[slot] += step
        moved = metric.distance(tracker.centers[slot], tracker.placed[slot], weights, p)
        if moved > stream.MOVE_SHARE * s[stream.SCALE]:
            told[stream.ALERTS], told[stream.MOVED_SLOT] = stream.MOVED, slot
            events += tracker.react(weights)
    return events


def arrive_many(
    s: FloatArray, n: int, mass: float, late: float, span: float, gauges: FloatArray
) -> None:
    """Let n events of some mass arrive at a center of figures `s`, evenly within `span`.

    `late` is the time of the last. What `kernels.stream.arrive` keeps of each is kept of all.
    """
    since, known = max(late - float(s[stream.LAST]), 0.0), float(s[stream.GAP])
    s[stream.WEIGHT] = s[stream.WEIGHT] * exp(-gauges[stream.DECAY] * since) + mass
    mean = since / n
    taken = absorbed(int(s[stream.STEPS]) + 1, n, stream.STEP_FLOOR)
    s[stream.GAP] += taken * ((min(mean, stream.GAP_LIMIT * known) if known > 0 else mean) - known)
    if known > 0.0:  # by the mean gap at the end: that of each arrival adapts meanwhile
        halving = stream.RATE_GAPS * float(s[stream.GAP])
        each, all_of_them = (-expm1(-log(2.0) * t / halving) for t in (span / n, span))
        fresh = all_of_them / each if each > 0.0 else float(n)
        s[stream.RATE] = s[stream.RATE] * 2.0 ** (-since / halving) + fresh
    s[stream.LAST] = max(float(s[stream.LAST]), late)
    if s[stream.RATE] >= 0.5 * stream.RATE_LEVEL:
        s[stream.STEADY] = s[stream.LAST]
    s[stream.SIZE] += n
    s[stream.STEPS] += n


def _seek_births(
    summary: Summary, scaling: Scaling, span: float, tracker: CenterTracker
) -> list[Event]:
    """Offer the sampled outliers to the outlier store, in order of rank; return the births.

    Where a batch has more outliers than a summary keeps, the sample is a thinned stream: a group
    has to be heavy enough in it. Those that a newborn's fence holds arrive at it, and stand for
    their share of all.
    """
    rows = summary.outliers.rows.copy()
    if not len(rows):
        return []
    rows[:, :-2] -= scaling.origin
    rows = np.ascontiguousarray(np.nan_to_num(rows))  # a new feature does not count yet
    counts, gauges, weights = tracker.counts, tracker.gauges, scaling.weights
    outside = summary.learned - int(summary.arrivals.sum())
    events: list[Event] = []
    newborns: dict[int, list[float]] = {}
    unbounded = np.zeros(0)
    for row in rows:
        p, k = float(gauges[stream.P]), tracker.k
        inside = -1
        if newborns:
            living = tracker.centers, tracker.stats, k, p
            inside = stream.nearest(row, weights, *living, 0, unbounded, unbounded)[2]
        if inside >= 0 and tracker.ids[inside] in newborns:
            newborns[tracker.ids[inside]].append(float(row[-1]))
            continue
        touched, around = stream.store_outlier(row, weights, tracker.micro, counts, gauges)
        store = tracker.centers, tracker.stats, tracker.micro
        if stream.gather(touched, around, weights, *store, counts, gauges):
            counts[stream.ALERTS] = stream.BORN
            found = tracker.react(weights)
            events += found
            if found:
                newborns[tracker.ids[-1]] = []
    stands_for = outside / len(rows)
    for center, masses in newborns.items():
        if masses:
            s = tracker.stats[tracker.slot(center)]
            n = max(1, round(stands_for * len(masses)))
            s[stream.LAST] = tracker.now - span
            arrive_many(s, n, stands_for * sum(masses), tracker.now, span, gauges)
    return events
