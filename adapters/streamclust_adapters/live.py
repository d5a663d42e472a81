"""What is live: one view of clusters, noise, changes and answers, whoever shows it.

A terminal and a page are drawn from the same `View`. Everything in it is bounded, and nothing in it
is shared with the model, so that it may be read on another thread.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Protocol

from streamclust.events import (
    ClusterMoved,
    RefitDone,
    RefitSkipped,
    RuleChanged,
    SubtreeRebuilt,
)
from streamclust_adapters.lives import Lineage, lineage

if TYPE_CHECKING:
    from streamclust.events import Change, Changes
    from streamclust.results import Cluster
    from streamclust_adapters.lives import Life

CHANGES = 100
"""Changes of a view, the newest first; changed rules are seen at their clusters."""

ANSWERS = 12
"""Answers of a view, the newest first."""

POINTS = 240
"""Points of a course that are kept at least, and twice as many at most."""

DRIFT = "drift"
"""The reason of a refit that was made because cost or outlier rate rose."""

LONGEST = 60
"""Letters of one value in a change."""


class Shown(Protocol):
    """What is read of a model."""

    @property
    def clusters(self) -> Mapping[int, Cluster]:
        """The living clusters by id."""

    def metrics(self) -> Mapping[str, float]:
        """Return live figures by name."""

    def events_since(self, n: int) -> Changes:
        """Return the changes numbered above `n`."""


@dataclass(frozen=True, slots=True)
class Group:
    """A living cluster as it is shown; what is not known is None."""

    id: int
    name: str | None
    pinned: bool
    size: int | None
    share: float | None
    born: int
    rule: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """Where an event went, and by which rule."""

    event: int
    key: object
    cluster: int
    region: str
    rule: str | None


@dataclass(frozen=True, slots=True)
class View:
    """Everything that is shown at one moment.

    Attributes
    ----------
    events, refused : int
        Records dealt with, and those without an answer.
    first_refusal : str
        Where and why the first record was refused.
    groups : tuple of Group
        The heaviest first.
    noise, fidelity : float or None
        Shares of the recent events; None where they are not known.
    changes : tuple of Change
        The last ones, the newest first, without changed rules.
    lineage : Lineage
        All lives that are remembered.
    course : tuple of (int, float)
        Noise share by event.
    alarms : tuple of int
        The events at which drift has caused a refit.
    answers : tuple of Answer
        Some of the last answers, the newest first.
    figures : mapping
        All figures by name.
    """

    events: int = 0
    refused: int = 0
    first_refusal: str = ""
    groups: tuple[Group, ...] = ()
    noise: float | None = None
    fidelity: float | None = None
    changes: tuple[Change, ...] = ()
    lineage: Lineage = field(default_factory=lambda: Lineage({}, [], 0))
    course: tuple[tuple[int, float], ...] = ()
    alarms: tuple[int, ...] = ()
    answers: tuple[Answer, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)


class Course:
    """A figure by event number; as it grows, every second older point is left out."""

    def __init__(self) -> None:
        self._points: list[tuple[int, float]] = []

    def add(self, event: int, value: float) -> None:
        """Take the value at an event; a later value at the same event replaces it."""
        if math.isnan(value):
            return
        if self._points and self._points[-1][0] >= event:
            self._points.pop()
        self._points.append((event, value))
        if len(self._points) > 2 * POINTS:
            del self._points[1:-1:2]

    @property
    def points(self) -> tuple[tuple[int, float], ...]:
        """The points that are kept, the first and the last one always."""
        return tuple(self._points)


class Watched:
    """Views of a model over time: keeps noise and weights as they were at earlier views."""

    def __init__(self) -> None:
        self.answers: deque[Answer] = deque(maxlen=ANSWERS)
        self._noise = Course()
        self._weights: dict[int, Course] = {}

    def view(self, model: Shown, refused: int = 0, first_refusal: str = "") -> View:
        """Look at the model as it is now."""
        figures, clusters = dict(model.metrics()), model.clusters
        events = int(figures["events"])
        changes = model.events_since(0)
        if clusters:
            self._noise.add(events, figures["noise_share"])
        for cluster in clusters.values():
            self._weights.setdefault(cluster.id, Course()).add(events, cluster.weight)
        told = lineage(changes, clusters, events)
        self._weights = {id: one for id, one in self._weights.items() if id in told.lives}
        for id, seen in self._weights.items():
            _refine(told.lives[id], seen.points)
        return View(
            events=events,
            refused=refused,
            first_refusal=first_refusal,
            groups=_groups(clusters),
            noise=_known(figures["noise_share"]) if clusters else None,
            fidelity=_known(figures["fidelity"]),
            changes=lasting(changes),
            lineage=told,
            course=self._noise.points,
            alarms=alarms_of(changes),
            answers=tuple(self.answers)[::-1],
            figures=figures,
        )


def lasting(changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """The last changes, the newest first, without changed rules; routine pushes no news out."""
    told = [one for one in changes if not isinstance(one, RuleChanged)]
    routine = [one for one in told if is_routine(one)][-CHANGES // 2 :]
    others = [one for one in told if not is_routine(one)][-CHANGES // 2 :]
    return tuple(sorted([*routine, *others], key=lambda one: -one.number))


def is_routine(change: Change) -> bool:
    """Whether a change says nothing of the world: a refit on schedule, a cluster that moved on."""
    if isinstance(change, RefitDone):
        return change.reason != DRIFT
    return isinstance(change, ClusterMoved | RefitSkipped | SubtreeRebuilt)


def alarms_of(changes: tuple[Change, ...]) -> tuple[int, ...]:
    """The events at which drift has caused a refit."""
    return tuple(one.tick for one in changes if isinstance(one, RefitDone) and one.reason == DRIFT)


def change_text(change: Change) -> str:
    """What a change tells beside its event and kind, in one line."""
    told = []
    for one in fields(change):
        value = getattr(change, one.name)
        if one.name in {"tick", "time", "number", "weights"} or value in ("", None):
            continue
        if isinstance(value, float):
            value = f"{value:.4g}"
        elif isinstance(value, tuple):
            value = ", ".join(f"{one:.2g}" if isinstance(one, float) else str(one) for one in value)
        elif isinstance(value, Mapping):
            value = ", ".join(f"{name} {number:.4g}" for name, number in value.items())
        text = str(value)
        told.append(f"{one.name} {text[:LONGEST]}{'...' if len(text) > LONGEST else ''}")
    return "; ".join(told)


def _groups(clusters: Mapping[int, Cluster]) -> tuple[Group, ...]:
    total = sum(cluster.weight for cluster in clusters.values()) or 1.0
    by_weight = sorted(clusters.values(), key=lambda cluster: (-cluster.weight, cluster.id))
    return tuple(
        Group(
            id=one.id,
            name=one.name,
            pinned=one.pinned,
            size=one.size,
            share=one.weight / total,
            born=one.born,
            rule=one.rule.lines,
        )
        for one in by_weight
    )


def _refine(life: Life, seen: tuple[tuple[int, float], ...]) -> None:
    """Put the weights that were seen in the place of those told in the same stretch."""
    end = seen[-1][0] if life.end < 0 else life.end
    kept = [(tick, weight) for tick, weight in seen if life.start <= tick <= end]
    if kept:
        life.weights = [one for one in life.weights if one[0] < kept[0][0]] + kept


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
