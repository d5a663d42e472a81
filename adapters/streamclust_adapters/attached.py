"""What a running worker writes, read as it grows: its change events, and its answers if wanted.

Change events tell of clusters, rules, births and deaths; answers tell how many events each cluster
gets, how much is noise, and by which rule single events went where they did.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any, Protocol

import msgspec

from streamclust.errors import AdapterError
from streamclust.events import (
    Change,
    ClusterBorn,
    ClusterDied,
    ClustersMerged,
    ClusterSplit,
    RefitDone,
    RuleChanged,
)
from streamclust.results import NOISE
from streamclust_adapters.changes import change_of
from streamclust_adapters.inputs import NextFile
from streamclust_adapters.live import (
    ANSWERS,
    Answer,
    Course,
    Group,
    View,
    alarms_of,
    lasting,
)
from streamclust_adapters.lives import lineage
from streamclust_adapters.records import MAX_BYTES

KEPT = 10_000
"""Changes that are remembered, as many as a model's own log has."""

RECENT = 1_000
"""Answers of which shares are taken."""

OWN = {"event", "cluster", "region", "rule", "partition", "offset"}
"""The names of an answer's own fields; any other one is the id of its event."""

COLD = "cold"


class Blocks(Protocol):
    """Bytes that come over time."""

    def read(self) -> bytes | None:
        """The next block: None while nothing has come, empty at the end."""


class Lines:
    """Whole lines of an input that grows.

    Parameters
    ----------
    source : Blocks
        Where the bytes come from.
    name : str
        What a failure calls it.
    """

    def __init__(self, source: Blocks, name: str) -> None:
        self.name = name
        self.number = 0
        self.ended = False
        self._source = source
        self._tail = b""

    def next(self) -> Iterator[bytes]:
        """The lines that have become whole since the last call."""
        try:
            block = self._source.read()
        except NextFile:
            self._tail, self.number = b"", 0
            return
        self.ended = block == b""
        if not block:
            return
        *whole, self._tail = (self._tail + block).split(b"\n")
        if len(self._tail) > MAX_BYTES:
            raise AdapterError(
                f"{self.name}, line {self.number + 1}: longer than {MAX_BYTES} bytes"
            )
        for line in whole:
            self.number += 1
            yield line

    def wrong(self, wanted: str, reason: object) -> AdapterError:
        """The failure of the line at hand."""
        return AdapterError(f"{self.name}, line {self.number}: no {wanted} ({reason})")


class Attached:
    """The view that lines of a worker give."""

    def __init__(self) -> None:
        self._forget_changes()
        self._forget_answers()

    def _forget_changes(self) -> None:
        self._changes: deque[Change] = deque(maxlen=KEPT)
        self._born: dict[int, int] = {}  # of the living
        self._rules: dict[int, str] = {}
        self._gone: deque[int] = deque(maxlen=KEPT)
        self._kinds: Counter[str] = Counter()
        self._partition: object = None
        self._windows = Course()  # noise share of the window at refits

    def _forget_answers(self) -> None:
        self._answers: deque[Answer] = deque(maxlen=ANSWERS)
        self._sizes: Counter[int] = Counter()
        self._recent: deque[int] = deque(maxlen=RECENT)
        self._last = 0
        self._noise = Course()

    def take_changes(self, lines: Lines) -> bool:
        """Take the change events that have come; return whether there were any.

        Raises
        ------
        AdapterError
            For a line that holds none, or one of another engine; it names the line.
        """
        any_came = False
        for line in lines.next():
            try:
                told = msgspec.json.decode(line)
                change = change_of(told)
            except (msgspec.MsgspecError, UnicodeDecodeError, LookupError, TypeError) as error:
                raise lines.wrong("change event, as run --events writes them", error) from None
            any_came = True
            self._one_engine(told, lines)
            if self._is_new(change):
                self._take(change)
        return any_came

    def take_answers(self, lines: Lines) -> bool:
        """Take the answers that have come; return whether there were any.

        Raises
        ------
        AdapterError
            For a line that holds none; it names the line.
        """
        any_came = False
        for line in lines.next():
            try:
                answer = _answer(msgspec.json.decode(line))
            except (msgspec.MsgspecError, UnicodeDecodeError, LookupError, TypeError) as error:
                raise lines.wrong("answer, as run --output writes them", error) from None
            any_came = True
            if answer.event == 1 and self._last > 1:
                self._forget_answers()  # another run writes to the same file
            if answer.event <= self._last:
                continue  # told again after a crash
            self._last = answer.event
            self._answers.append(answer)
            if answer.region != COLD:
                self._sizes[answer.cluster] += 1
                self._recent.append(answer.cluster)
        return any_came

    def view(self) -> View:
        """What is known now."""
        changes = tuple(self._changes)
        events = max(self._last, changes[-1].tick if changes else 0)
        recent = Counter(self._recent)
        noise = recent[NOISE] / len(self._recent) if self._recent else None
        if noise is not None:
            self._noise.add(self._last, noise)
        of_windows = self._windows.points
        return View(
            events=events,
            groups=self._groups(recent),
            noise=of_windows[-1][1] if noise is None and of_windows else noise,
            changes=lasting(changes),
            lineage=lineage(changes, {}, events),
            course=self._noise.points or of_windows,
            alarms=alarms_of(changes),
            answers=tuple(self._answers)[::-1],
            figures={"answers": self._last, "clusters": len(self._born), **self._kinds},
        )

    def _groups(self, recent: Counter[int]) -> tuple[Group, ...]:
        inside = len(self._recent) - recent[NOISE]
        order = sorted(self._born, key=lambda id: (-recent[id], -self._sizes[id], id))
        return tuple(
            Group(
                id=id,
                name=None,
                pinned=False,
                size=self._sizes[id] if self._last else None,
                share=recent[id] / inside if inside else None,
                born=self._born[id],
                rule=(self._rules[id],) if self._rules.get(id) else (),
            )
            for id in order
        )

    def _one_engine(self, told: dict[str, Any], lines: Lines) -> None:
        """Refuse the changes of several partitions, whose cluster ids differ in meaning."""
        partition = told.get("partition")
        if self._changes and partition != self._partition:
            raise lines.wrong(
                "change event of the same engine",
                f"partition {self._partition!r} before, {partition!r} now; attach to one of them",
            )
        self._partition = partition

    def _is_new(self, change: Change) -> bool:
        """Whether a change was not told before; one that contradicts begins another history."""
        if not self._changes or change.number > self._changes[-1].number:
            return True
        known = next((one for one in self._changes if one.number == change.number), change)
        if known == change:
            return False
        self._forget_changes()
        return True

    def _take(self, change: Change) -> None:
        self._changes.append(change)
        self._kinds[type(change).__name__] += 1
        match change:
            case ClusterBorn():
                self._born[change.cluster] = change.tick
            case ClusterDied():
                self._end(change.cluster)
            case ClusterSplit():
                for child in change.children:
                    self._born.setdefault(child, change.tick)
            case ClustersMerged():
                self._born.setdefault(change.child, change.tick)
                for parent in set(change.parents) - {change.child}:
                    self._end(parent)
            case RuleChanged():
                if change.cluster not in self._gone:
                    self._born.setdefault(change.cluster, change.tick)
                    self._rules[change.cluster] = change.new
            case RefitDone():
                self._windows.add(change.tick, change.noise_share)

    def _end(self, cluster: int) -> None:
        self._born.pop(cluster, None)
        self._rules.pop(cluster, None)
        self._sizes.pop(cluster, None)
        self._gone.append(cluster)


def _answer(told: Any) -> Answer:
    """Return the answer that the fields of a line tell."""
    if not isinstance(told, dict):
        raise TypeError("not an object")
    key = next((value for name, value in told.items() if name not in OWN), None)
    event, cluster, region = told["event"], told["cluster"], told["region"]
    if not isinstance(event, int) or not isinstance(cluster, int):
        raise TypeError(f"event {event!r}, cluster {cluster!r}")
    rule = told.get("rule")
    return Answer(event, key, cluster, str(region), None if rule is None else str(rule))
