"""Doors in memory, for tests of whatever stands between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from streamclust.errors import DecodeError
from streamclust_adapters.broker import Commit, Extent, Listener, Message, Output
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


class MemoryCluster:
    """Topics and commits in memory; what a transaction delivers is there at once or not at all.

    Parameters
    ----------
    messages : sequence of sequence of Message
        The input, by partition.

    Attributes
    ----------
    lows : dict
        The first offset that each partition still has.
    outputs : list of Output
        Everything delivered, in order.
    commits : dict
        The group's commits, by partition.
    """

    def __init__(self, messages: Sequence[Sequence[Message]]) -> None:
        self.messages = [list(partition) for partition in messages]
        self.lows = dict.fromkeys(range(len(messages)), 0)
        self.order_low = 0
        self.outputs: list[Output] = []
        self.commits: dict[int, Commit] = {}

    @property
    def orders(self) -> list[bytes]:
        """The topic of the recorded order."""
        return [output.value or b"" for output in self.outputs if output.kind == "order"]


class MemoryBroker:
    """One worker's connection to a `MemoryCluster`; its input ends with a request to stop.

    Parameters
    ----------
    cluster : MemoryCluster
        Where to.
    stop : callable
        Called when everything was read.
    batch : int
        Most messages of one read.
    fail : callable, optional
        Called before and after each delivery with its number, 0, 1, ..., and whether it is done;
        what it raises is the failure.
    """

    def __init__(
        self,
        cluster: MemoryCluster,
        stop: Callable[[], None],
        *,
        batch: int = 7,
        fail: Callable[[int, bool], None] | None = None,
    ) -> None:
        self.cluster = cluster
        self.held: set[int] = set()
        self.closed = False
        self._stop = stop
        self._batch = batch
        self._fail = fail or (lambda number, done: None)
        self._next: dict[int, int] = {}
        self._listener: Listener | None = None
        self._turn = self._deliveries = 0

    def join(self, listener: Listener) -> None:
        """Get all partitions; see `Broker`."""
        self._listener = listener
        self._next = dict(listener.assigned(range(len(self.cluster.messages))))

    def rejoin(self) -> None:
        """Get all partitions again; see `Broker`."""
        assert self._listener is not None
        self.join(self._listener)

    def move(self, partitions: Sequence[int]) -> None:
        """Take partitions away from the worker."""
        assert self._listener is not None
        self._listener.revoked(partitions)
        for p in partitions:
            del self._next[p]

    def take(self, offsets: Mapping[int, int]) -> None:
        """Read from these offsets on; see `Broker`."""
        self._next = dict(offsets)

    def n_partitions(self, topic: str) -> int:
        """How many partitions the input has; see `Broker`."""
        return len(self.cluster.messages)

    def extent(self, topic: str, partition: int) -> Extent:
        """Which offsets there are; see `Broker`. Any topic but the order's is the input."""
        if topic.endswith("order"):
            return Extent(self.cluster.order_low, len(self.cluster.orders))
        there = self.cluster.messages[partition]
        return Extent(self.cluster.lows[partition], there[-1].offset + 1 if there else 0)

    def committed(self, partitions: Iterable[int]) -> dict[int, Commit]:
        """The commits; see `Broker`."""
        commits = self.cluster.commits
        return {p: commits[p] for p in partitions if p in commits}

    def read(self) -> list[Message]:
        """The next messages, of another partition each time; see `Broker`."""
        order = sorted(p for p in self._next if p not in self.held)
        self._turn += 1
        shift = self._turn % max(len(order), 1)
        found: list[Message] = []
        for p in order[shift:] + order[:shift]:
            ahead = [m for m in self.cluster.messages[p] if m.offset >= self._next[p]]
            taken = ahead[: max((self._batch - len(found)) // 2, 0) or self._batch - len(found)]
            found += taken
            if taken:
                self._next[p] = taken[-1].offset + 1
        if not found:
            self._stop()
        return found

    def hold(self, partitions: Iterable[int]) -> None:
        """Read nothing of these; see `Broker`."""
        self.held |= set(partitions)

    def release(self, partitions: Iterable[int]) -> None:
        """Read these again; see `Broker`."""
        self.held -= set(partitions)

    def lag(self) -> dict[int, int]:
        """What is not read yet; see `Broker`."""
        return {
            p: sum(message.offset >= at for message in self.cluster.messages[p])
            for p, at in self._next.items()
        }

    def deliver(self, outputs: Sequence[Output], commits: Mapping[int, Commit]) -> int | None:
        """All or nothing; see `Broker`."""
        number = self._deliveries
        self._deliveries += 1
        self._fail(number, False)
        self.cluster.outputs += outputs
        self.cluster.commits |= commits
        self._fail(number, True)
        return len(self.cluster.orders) if any(o.kind == "order" for o in outputs) else None

    def values(self, topic: str, start: int) -> tuple[list[bytes], int]:
        """The recorded order; see `Broker`."""
        return self.cluster.orders[start:], len(self.cluster.orders)

    def close(self) -> None:
        """Let go; see `Broker`."""
        self.closed = True
