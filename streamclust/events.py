"""Frozen records of what happened: the engine's own events, and the changes that users see.

Every record carries `tick` (events learned so far) and `time` (the stream's clock). A change also
gets a `number`, 1, 2, ..., when it is logged. There is no record per point.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from streamclust.results import FeatureName, FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened inside the engine."""

    tick: int
    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CenterInserted(Event):
    """The tracker has a new center; coordinates are measured from the origin."""

    center: int
    position: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class CenterMoved(Event):
    """A center left the place that the tree knows."""

    center: int
    position: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class CenterDeleted(Event):
    """A center is gone."""

    center: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RefitDue(Event):
    """The window should be clustered anew."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RefitReady(Event):
    """The refit that runs in the background is to be adopted now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeReady(Event):
    """The tree that is renewed in the background is to be used from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Event):
    """Something that users are told."""

    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterBorn(Change):
    """A cluster without a parent: found by a refit, or a group of outliers grown heavy enough."""

    cluster: int
    weight: float
    found_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDied(Change):
    """A cluster is gone, silent for too long or no longer found; its id never returns."""

    cluster: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSplit(Change):
    """One cluster became several; the parent's id stays with the child of largest overlap.

    `overlaps` are the shares of the parent's window points that each child holds.
    """

    parent: int
    children: tuple[int, ...]
    overlaps: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClustersMerged(Change):
    """Several clusters became one; the heaviest parent's id survives.

    `overlaps` are the shares of each parent's window points that the child holds.
    """

    parents: tuple[int, ...]
    child: int
    overlaps: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMoved(Change):
    """A cluster's center moved, by `distance` in scaled units.

    `old` and `new` hold the features that moved most, at most five, in the user's units.
    """

    cluster: int
    distance: float
    old: Mapping[FeatureName, float]
    new: Mapping[FeatureName, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleChanged(Change):
    """The boxes of a cluster changed; `old` is empty for a cluster that had none."""

    cluster: int
    old: str
    new: str


class RuleRedrawn:
    """A `RuleChanged` whose texts are written when somebody reads it: most are never read.

    `old` and `new` are anything that ``str`` writes as it was when the rule changed. No dataclass:
    of these alone many come at once, and a frozen one takes four times as long to make.
    """

    __slots__ = ("cluster", "new", "number", "old", "tick", "time")

    def __init__(self, tick: int, time: float, cluster: int, old: object, new: object) -> None:
        self.tick, self.time, self.cluster = tick, time, cluster
        self.old, self.new, self.number = old, new, 0

    def told(self) -> RuleChanged:
        """Return what users are told."""
        return RuleChanged(
            tick=self.tick,
            time=self.time,
            number=self.number,
            cluster=self.cluster,
            old=str(self.old),
            new=str(self.new),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RefitDone(Change):
    """The window was clustered anew: as it was after event `asked`.

    `reason` is ``"schedule"``, ``"drift"`` (cost or outlier rate rose), ``"initial"`` (a warm
    start) or ``"asked for"``. `weights` are the faded weights of the clusters that live on, by id,
    at most those of the 100 heaviest.
    """

    reason: str
    asked: int
    clusters: int
    noise_share: float
    weights: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefitSkipped(Change):
    """A refit that was due was not made, or its result was not used."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureAdded(Change):
    """New features were seen; they count in distances and rules from the next refit on."""

    features: tuple[FeatureName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtreeRebuilt(Change):
    """Parts of the tree were drawn anew; `rebuilds` counts them, `recourse` the cuts replaced."""

    rebuilds: int
    recourse: int


KINDS: dict[str, type[Change]] = {
    kind.__name__: kind
    for kind in (
        ClusterBorn,
        ClusterDied,
        ClusterSplit,
        ClustersMerged,
        ClusterMoved,
        RuleChanged,
        RefitDone,
        RefitSkipped,
        FeatureAdded,
        SubtreeRebuilt,
    )
}


class Changes(tuple[Change, ...]):
    """The changes that `events_since` returns.

    Attributes
    ----------
    evicted : int
        How many of the changes asked for had already left the bounded log.
    """

    evicted: int = 0


class EventLog:
    """The last `capacity` changes, numbered.

    Parameters
    ----------
    capacity : int
        Number of changes kept; 0 keeps none, they are only numbered and delivered.
    """

    def __init__(self, capacity: int) -> None:
        self._kept: deque[Change | RuleRedrawn] = deque(maxlen=capacity)
        self.last_number = 0

    def __len__(self) -> int:
        return len(self._kept)

    def append(self, change: Change | RuleRedrawn) -> Change | RuleRedrawn:
        """Number and keep a change, which nobody else has seen yet."""
        self.last_number += 1
        # Many come at once, and copies of frozen records take their time.
        object.__setattr__(change, "number", self.last_number)
        self._kept.append(change)
        return change

    def since(self, number: int) -> Changes:
        """Return the changes after `number`; ``.evicted`` tells how many of them are gone."""
        found = Changes(_told(change) for change in self._kept if change.number > number)
        found.evicted = max(0, self.last_number - max(number, 0)) - len(found)
        return found

    def to_state(self) -> dict[str, Any]:
        """Return plain numbers and strings from which `from_state` restores all."""
        told = map(_told, self._kept)
        kept = [{"kind": type(change).__name__, **_plain(change)} for change in told]
        return {"last_number": self.last_number, "kept": kept}

    def from_state(self, state: Mapping[str, Any]) -> None:
        """Take over a state."""
        self._kept.clear()
        self._kept.extend(_change(entry) for entry in state["kept"])
        self.last_number = int(state["last_number"])


def largest_moves(
    names: Sequence[FeatureName], old: FloatArray, new: FloatArray, weights: FloatArray
) -> tuple[dict[FeatureName, float], dict[FeatureName, float]]:
    """Return old and new values of the (at most five) features that moved most when scaled."""
    step = new - old
    order = np.argsort(-np.abs(step) * weights, kind="stable")[:5]
    moved = [j for j in order.tolist() if step[j] != 0.0]
    return {names[j]: float(old[j]) for j in moved}, {names[j]: float(new[j]) for j in moved}


def _told(change: Change | RuleRedrawn) -> Change:
    return change.told() if isinstance(change, RuleRedrawn) else change


def _plain(change: Change) -> dict[str, Any]:
    """Return the fields of a change; a mapping becomes pairs, since its keys may be integers."""
    return {
        name: list(map(list, value.items())) if isinstance(value, Mapping) else value
        for name, value in asdict(change).items()
    }


def _change(entry: Mapping[str, Any]) -> Change:
    kind = KINDS[entry["kind"]]
    values = {}
    for one in fields(kind):
        if one.name == "weights" and one.name not in entry:
            continue  # of a snapshot that is older than the field
        value = entry[one.name]
        if isinstance(value, list):
            pairs = one.name in ("old", "new", "weights")
            value = dict(map(tuple, value)) if pairs else tuple(value)
        values[one.name] = value
    return kind(**values)
