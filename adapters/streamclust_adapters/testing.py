"""Doors in memory, for tests of whatever stands between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from streamclust.errors import DecodeError
from streamclust_adapters.ports import Position, Record


class MemoryPosition(msgspec.Struct, frozen=True):
    """The index of an event in memory."""

    index: int

    def __str__(self) -> str:
        return f"index {self.index}"


class MemoryRecord(msgspec.Struct):
    """An event in memory as a `Record`."""

    number: int
    x: dict[str, float]
    t: float | None
    key: object
    raw: bytes
    position: MemoryPosition
    error: DecodeError | None = None


class MemorySource:
    """Events from memory.

    Parameters
    ----------
    events : iterable of dict or str
        Features by name; a text is a record that holds no event, for the reason it gives.
    batch : int
        Events per batch.
    times : sequence of float, optional
        Stream times of the events.
    start : mapping, optional
        A position of an earlier source over the same events.
    """

    def __init__(
        self,
        events: Iterable[dict[str, float] | str],
        *,
        batch: int = 7,
        times: Sequence[float] | None = None,
        start: Position | None = None,
    ) -> None:
        self._events = list(events)
        self._batch = batch
        self._times = times
        self._next = self._start = 0 if start is None else int(start["events"])

    def next_batch(self) -> Sequence[MemoryRecord] | None:
        """The next events; see `Source`."""
        begin = self._next
        if begin >= len(self._events):
            return None
        self._next = min(begin + self._batch, len(self._events))
        return [self._record(i) for i in range(begin, self._next)]

    def position_after(self, record: Record | None) -> Position:
        """How many events are done; see `Source`."""
        return {"events": self._start if record is None else record.number}

    def _record(self, i: int) -> MemoryRecord:
        event = self._events[i]
        position = MemoryPosition(i)
        error = DecodeError(event, str(position)) if isinstance(event, str) else None
        x = {} if isinstance(event, str) else dict(event)
        t = None if self._times is None else self._times[i]
        return MemoryRecord(i + 1, x, t, None, repr(event).encode(), position, error)


class MemorySink:
    """Keeps what it is given; `delivered` holds only what was flushed.

    Attributes
    ----------
    delivered : list of tuple
        ``("answer", number, label, region, rule)``, ``("change", number, change)`` and
        ``("dead letter", number, reason)``, in order.
    synced : int
        How many of them were delivered when `sync` was last called.
    """

    def __init__(self) -> None:
        self.delivered: list[tuple[object, ...]] = []
        self.synced = 0
        self._held: list[tuple[object, ...]] = []

    def answer(self, record: Record, label: int, region: str, rule: str | None) -> None:
        """Hold an answer."""
        self._held.append(("answer", record.number, label, region, rule))

    def change(self, number: int, change: object) -> None:
        """Hold a change event."""
        self._held.append(("change", number, change))

    def dead_letter(self, record: Record, reason: str) -> None:
        """Hold a dead letter."""
        self._held.append(("dead letter", record.number, reason))

    def flush(self) -> None:
        """Deliver what is held."""
        self.delivered += self._held
        self._held.clear()

    def sync(self) -> None:
        """Deliver, and remember how far."""
        self.flush()
        self.synced = len(self.delivered)
