"""Mergeable summaries: what a part of a batch does to a frozen model, in bounded size.

`summarise` may run anywhere and in any number of parts; `Summary.merge` puts parts together in any
order; `StreamClusterer.apply` learns the whole. However a batch was cut, counts and samples are
equal and sums agree to about 2^-100 of what was added up (`streamclust.mergeable`): which rows are
sampled depends on the hash of their event's id, and where a row belongs on the frozen model alone.

A center is moved by Huber's estimate of location, of which the tracker's online median is the
stochastic form: an event pulls in proportion to its distance up to the cluster's scale, and no
harder beyond it. The sums of pulls and of their weights give one step of iterative reweighting
(Huber 1964; Holland and Welsch 1977).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamclust import snapshot
from streamclust.batch import Batch, natural, uniforms
from streamclust.errors import SnapshotError, StaleSummary
from streamclust.features import LARGEST
from streamclust.frozen import BLOCK, MALFORMED, Frozen
from streamclust.kernels import metric, stream
from streamclust.mergeable import Kept, Sums, floats, kept_of, sums_of
from streamclust.results import FeatureName, FloatArray, IntArray

CANDIDATES = 1024
"""Events outside every fence that are kept, among which new clusters are sought."""
COSTS = ("near", "own", "answered", "relative", "squares")
"""Columns of `Summary.costs`: distances to the nearest center, to the own one, to that of the rule,
in units of the own scale, and the squares of the last."""
BIRTH_SALT = 0x5EED
COUNTS = ("n_known", "capacity", "learned", "refused", "agreed", "measured")
TABLES = ("masses", "pulls", "costs", "sample", "outliers")


@dataclass(frozen=True, slots=True)
class Summary:
    """What some events do to a frozen model.

    Attributes
    ----------
    mark : str
        The state of the model that it belongs to.
    names : tuple
        Features of the samples' rows; the first `n_known` are the model's.
    capacity : int
        How many rows `sample` keeps.
    learned, refused : int
        Events in it, and events that the model does not take.
    agreed, measured : int
        Events inside a fence whose rule gives the same cluster, and whose center has a scale.
    first, last : float
        Earliest and latest time; infinite where no event has one.
    arrivals : int array of shape (k,)
        Events per center, of those whose fence holds the nearest.
    latest : array of shape (k,)
        Latest time of these; -inf where there is none.
    masses : Sums of shape (k + 1, 1)
        Their weights; last those of all other events.
    pulls : Sums of shape (k, 2 d)
        Per center the pulls on each scaled coordinate, then the weights of these pulls.
    costs : Sums of shape (1, 5)
        See `COSTS`.
    sample, outliers : Kept
        Rows ``[features ..., time, weight]`` in the user's units: for the window, and of events
        outside every fence.
    """

    mark: str
    names: tuple[FeatureName, ...]
    n_known: int
    capacity: int
    learned: int
    refused: int
    agreed: int
    measured: int
    first: float
    last: float
    arrivals: IntArray
    latest: FloatArray
    masses: Sums
    pulls: Sums
    costs: Sums
    sample: Kept
    outliers: Kept

    def merge(self, other: Summary) -> Summary:
        """Return the summary of both parts; raises StaleSummary for parts of different states."""
        if self.mark != other.mark:
            raise StaleSummary("these summaries were made with different states of the model")
        new = sorted({*self.names[self.n_known :], *other.names[self.n_known :]}, key=natural)
        names = (*self.names[: self.n_known], *new)
        a, b = self.over(names), other.over(names)
        return replace(
            a,
            learned=a.learned + b.learned,
            refused=a.refused + b.refused,
            agreed=a.agreed + b.agreed,
            measured=a.measured + b.measured,
            first=min(a.first, b.first),
            last=max(a.last, b.last),
            arrivals=a.arrivals + b.arrivals,
            latest=np.maximum(a.latest, b.latest),
            masses=a.masses.merge(b.masses),
            pulls=a.pulls.merge(b.pulls),
            costs=a.costs.merge(b.costs),
            sample=a.sample.merge(b.sample, a.capacity),
            outliers=a.outliers.merge(b.outliers, CANDIDATES),
        )

    def over(self, names: Sequence[FeatureName]) -> Summary:
        """Return it with the samples' rows over other features; nan where they are not known."""
        if tuple(names) == self.names:
            return self
        place, n = {name: j for j, name in enumerate(self.names)}, len(self.names)
        sources = [*(place.get(name, -1) for name in names), n, n + 1]
        sample, outliers = self.sample.columns(sources), self.outliers.columns(sources)
        return replace(self, names=tuple(names), sample=sample, outliers=outliers)

    def to_bytes(self) -> bytes:
        """Return it as bytes, from which `from_bytes` restores it; no code is in them."""
        tables = {name: getattr(self, name).to_state() for name in TABLES}
        plain = {name: getattr(self, name) for name in self.__slots__ if name not in tables}
        return snapshot.encode({"kind": "summary", **plain, "names": list(self.names), **tables})

    @classmethod
    def from_bytes(cls, content: bytes) -> Summary:
        """Return the summary in `content`; SnapshotError where it holds none."""
        try:
            return _restored(snapshot.decode(content))
        except MALFORMED as error:
            raise SnapshotError(f"no summary: {error}") from error


def summarise(
    X: Any, frozen: Frozen, *, ids: Any = None, t: Any = None, w: Any = None, absent: Any = None
) -> Summary:
    """Return what events do to a frozen model.

    Parameters
    ----------
    X : array of shape (n, n_features), data frame, or mapping of names to columns
        Events. A masked entry, or None in a column of objects, is a feature that an event came
        without; a nan is a bad value. A bare array takes the known order, or f0, f1, ...
    frozen : Frozen
        From `StreamClusterer.freeze`.
    ids : array of shape (n,), optional
        What tells events apart: integers or texts. By their hash it is drawn which events are kept
        for refits. Without ids it is the hash of what the event holds; only events that are equal
        in everything then depend on which part they come in.
    t, w : arrays of shape (n,), optional
        Times in seconds, and weights, as in `StreamClusterer.learn_one`.
    absent : bool array of shape (n, n_features), optional
        Features that events came without, beside those that X tells.

    Returns
    -------
    Summary
        Events that the model does not take are counted in `refused`; `Frozen.answer_many` tells
        which and why.

    Raises
    ------
    InvalidPoint
        Where the arguments do not fit one another.
    """
    batch = frozen.read(X, ids=ids, t=t, w=w, absent=absent)
    taken = np.flatnonzero(batch.accepted())
    weights, times, draws = batch.weights[taken], batch.times[taken], batch.draws[taken]
    rows = np.column_stack([batch.values[taken], times, weights])
    timed = times[~np.isnan(times)]
    empty = _empty(frozen, batch)
    owners = _observe(frozen, rows, empty.masses, empty.pulls, empty.costs)
    slots, agreed, measured = owners
    latest = empty.latest
    if not frozen.by_events:
        np.maximum.at(latest, slots[slots >= 0], times[slots >= 0])
    outside = np.flatnonzero(slots < 0) if frozen.assigns else np.zeros(0, dtype=np.int64)
    birth = uniforms(draws[outside], int(frozen.gauges[stream.SEED]) ^ BIRTH_SALT)
    return replace(
        empty,
        learned=len(taken),
        refused=len(batch.refused),
        agreed=agreed,
        measured=measured,
        first=float(timed.min()) if len(timed) else np.inf,
        last=float(timed.max()) if len(timed) else -np.inf,
        arrivals=np.bincount(slots[slots >= 0], minlength=frozen.k).astype(np.int64),
        latest=latest,
        sample=Kept(rows, _keys(frozen, times, weights, draws), draws).first(empty.capacity),
        outliers=Kept(rows[outside], birth, draws[outside]).first(CANDIDATES),
    )


def _empty(frozen: Frozen, batch: Batch) -> Summary:
    """Return the summary of no events."""
    k, d, columns = frozen.k, len(frozen.names), len(batch.names) + 2
    none = Kept(np.zeros((0, columns)), np.zeros(0), np.zeros(0, dtype=np.uint64))
    return Summary(
        mark=frozen.mark,
        names=batch.names,
        n_known=d,
        capacity=frozen.capacity,
        learned=0,
        refused=0,
        agreed=0,
        measured=0,
        first=np.inf,
        last=-np.inf,
        arrivals=np.zeros(k, dtype=np.int64),
        latest=np.full(k, -np.inf),
        masses=Sums.zeros(k + 1, 1),
        pulls=Sums.zeros(k, 2 * d),
        costs=Sums.zeros(1, len(COSTS)),
        sample=none,
        outliers=none,
    )


def _observe(
    frozen: Frozen, rows: FloatArray, masses: Sums, pulls: Sums, costs: Sums
) -> tuple[IntArray, int, int]:
    """Add rows to the sums of their centers; return their slots, and how many agree, have a scale.

    A row belongs to the nearest center whose fence holds, as in the per-event path, else to none.
    """
    d, k = len(frozen.names), frozen.k
    slots = np.full(len(rows), -1, dtype=np.int64)
    agreed = measured = 0
    fences, scales = frozen.stats[:, stream.FENCE], frozen.stats[:, stream.SCALE]
    clusters = frozen.stats[:, stream.CLUSTER]
    for start in range(0, len(rows) if k else 0, BLOCK):
        known = np.ascontiguousarray(rows[start : start + BLOCK, :d])
        points, every = known - frozen.frame[0], np.arange(len(known))
        table = frozen.distances(points)
        inside = np.where(table <= fences, table, np.inf)
        found = np.where(np.isfinite(inside.min(axis=1)), inside.argmin(axis=1), -1)
        leaves = frozen.slots(known, leaves=True)
        slots[start : start + BLOCK] = found
        mine, own = found >= 0, table[every, found]
        agreed += int((clusters[leaves] == clusters[found])[mine].sum())
        scaled = mine & (scales[found] > 0)
        measured += int(scaled.sum())
        relative = np.divide(own, scales[found], out=np.zeros_like(own), where=scaled)
        told = [table.min(axis=1), own, table[every, leaves], relative, relative * relative]
        told[1:3] = (np.where(mine, column, 0.0) for column in told[1:3])
        costs.add(np.column_stack(told), np.zeros(len(known), dtype=np.int64))
        weights = rows[start : start + BLOCK, -1]
        pulls.add(_pulls(frozen, points[mine], found[mine], own[mine], weights[mine]), found[mine])
    masses.add(rows[:, -1:], np.where(slots < 0, k, slots))
    return slots, agreed, measured


def _pulls(
    frozen: Frozen, points: FloatArray, slots: IntArray, far: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return pulls on each scaled coordinate of the own center and their weights, (n, 2 d).

    The direction is that of `kernels.stream.step`, |u|^(p-1) sign(u) normalised in l_p, and its
    length the distance up to the cluster's scale; no coordinate is pulled beyond the point.
    """
    p = float(frozen.gauges[stream.P])
    length = np.minimum(frozen.stats[slots, stream.SCALE], far)
    u = np.clip((points - frozen.centers[slots]) * frozen.frame[1], -metric.CLIP, metric.CLIP)
    share = np.divide(length, far, out=np.ones_like(far), where=far > 0)
    hold = np.repeat(share[:, None], u.shape[1], axis=1)
    if p != 2.0:
        part = np.abs(u) / np.where(far > 0, far, 1.0)[:, None]
        norm = (part ** ((p - 1.0) * p)).sum(axis=1) ** (1.0 / p)
        size = length[:, None] * part ** (p - 1.0) / np.where(norm > 0, norm, 1.0)[:, None]
        hold = np.minimum(np.divide(size, np.abs(u), out=np.ones_like(u), where=u != 0), 1.0)
    hold = hold * weights[:, None]
    return np.hstack([hold * u, hold])


def _keys(frozen: Frozen, times: FloatArray, weights: FloatArray, draws: Any) -> FloatArray:
    """Return the windows' keys but for what the clock adds where it counts events."""
    decay = frozen.gauges[stream.WINDOW_DECAY]
    chance = uniforms(draws, int(frozen.gauges[stream.SEED]))
    if not decay < np.inf:  # a sliding window
        return chance
    keys = np.log(-np.log(chance)) - np.log(weights)
    return keys if frozen.by_events else keys - decay * times


def _restored(state: Mapping[str, Any]) -> Summary:
    """Return the summary in a decoded state; ValueError where its parts do not fit each other."""
    if state["kind"] != "summary":
        raise ValueError("it is of another kind")
    names, arrivals = tuple(state["names"]), np.asarray(state["arrivals"])
    counts: dict[str, int] = {name: state[name] for name in COUNTS}
    n_known, capacity, learned, _, agreed, measured = counts.values()
    k, columns = len(arrivals), len(names) + 2
    within = sum(arrivals.tolist())
    latest = floats(state["latest"], (k,), "latest", finite=False)
    first, last = float(state["first"]), float(state["last"])
    sample = kept_of(state["sample"], columns, capacity)
    outliers = kept_of(state["outliers"], columns, CANDIDATES)
    fits = (
        all(type(n) is int and 0 <= n < 2**62 for n in counts.values())
        and isinstance(state["mark"], str)
        and all(type(name) in (int, str) for name in names)
        and len(set(names)) == len(names) >= n_known
        and [*names[n_known:]] == sorted(names[n_known:], key=natural)
        and arrivals.dtype == np.int64
        and arrivals.ndim == 1
        and np.all((arrivals >= 0) & (arrivals <= learned))
        and measured <= within <= learned
        and agreed <= within
        and len(sample) == min(learned, capacity)
        and len(outliers) <= learned - within
        and not np.isnan(latest).any()
        and not np.isnan([first, last]).any()
        and (-np.inf < first <= last < np.inf or first == np.inf == -last)
        and all(_sound(kept.rows, n_known) for kept in (sample, outliers))
    )
    if not fits:
        raise ValueError("its parts do not fit each other")
    return Summary(
        mark=state["mark"],
        names=names,
        **counts,
        first=first,
        last=last,
        arrivals=arrivals,
        latest=latest,
        masses=sums_of(state["masses"], k + 1, 1),
        pulls=sums_of(state["pulls"], k, 2 * n_known),
        costs=sums_of(state["costs"], 1, len(COSTS)),
        sample=sample,
        outliers=outliers,
    )


def _sound(rows: FloatArray, n_known: int) -> bool:
    """Whether rows hold what an event may hold: a model learns them without another look."""
    known, weights = np.abs(rows[:, :n_known]), rows[:, -1]
    values = np.abs(rows[:, n_known:-2])
    sizes = np.all(known <= LARGEST) and not np.any(values > LARGEST)
    return bool(sizes and np.all((weights > 0) & (weights <= LARGEST)))
