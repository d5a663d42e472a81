"""What a broker is to the worker: messages, commits, transactions; no client library is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from streamclust.errors import AdapterError

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
Kind: TypeAlias = Literal["answer", "change", "letter", "order"]


class Fenced(AdapterError):
    """Another worker of the same name, or of the same engine, has taken over."""


class LostPartitions(AdapterError):
    """The group went on without this worker; nothing of its last transaction was kept."""


class Stopped(AdapterError):
    """A stop was requested while the broker could not be reached."""


class Message(msgspec.Struct, gc=False):
    """One message of the input; `time` is its timestamp in seconds, or None."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    time: float | None = None


class Output(msgspec.Struct, gc=False):
    """One message to be produced."""

    kind: Kind
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Commit(NamedTuple):
    """How far a partition is done: the next offset, and the records of its engine until there.

    `number` is None where something else than a worker committed.
    """

    offset: int
    number: int | None


class Extent(NamedTuple):
    """The offsets that a partition holds: from `low` up to, not including, `high`."""

    low: int
    high: int


class Listener(Protocol):
    """Who is told which partitions are whose; called while messages are read."""

    def assigned(self, partitions: Sequence[int]) -> Mapping[int, int]:
        """Take partitions over; return the offset of each to read from."""
        ...

    def revoked(self, partitions: Sequence[int]) -> None:
        """Hand partitions over; nothing of them is read after this."""
        ...

    def lost(self, partitions: Sequence[int]) -> None:
        """Drop partitions, which others may have taken already."""
        ...


class Broker(Protocol):
    """An input topic, output topics, and a group's committed offsets."""

    def join(self, listener: Listener) -> None:
        """Share the input's partitions with the other workers of the group."""
        ...

    def take(self, offsets: Mapping[int, int]) -> None:
        """Read partitions from offsets on, whoever else reads them."""
        ...

    def rejoin(self) -> None:
        """Join the group anew, after `LostPartitions`."""
        ...

    def n_partitions(self, topic: str) -> int:
        """How many partitions a topic has; an `AdapterError` where there is no such topic."""
        ...

    def extent(self, topic: str, partition: int) -> Extent:
        """Which offsets a partition holds now."""
        ...

    def committed(self, partitions: Iterable[int]) -> dict[int, Commit]:
        """The group's commits; waits for open transactions. Partitions without one are left out."""
        ...

    def read(self) -> Sequence[Message]:
        """The next messages, in order per partition; empty after a short wait.

        Raises
        ------
        LostPartitions
            When the group has gone on without us.
        Fenced, AdapterError
            When no more can be read.
        """
        ...

    def hold(self, partitions: Iterable[int]) -> None:
        """Read nothing of these partitions for now."""
        ...

    def release(self, partitions: Iterable[int]) -> None:
        """Go on reading them."""
        ...

    def lag(self) -> dict[int, int]:
        """How many offsets each partition has that were not read; what is unknown is left out."""
        ...

    def deliver(self, outputs: Sequence[Output], commits: Mapping[int, Commit]) -> int | None:
        """Produce and commit, all or nothing, and wait for it.

        Returns
        -------
        int or None
            The offset behind the output of kind ``"order"``, when there is one.

        Raises
        ------
        Fenced, LostPartitions, Stopped, AdapterError
            Nothing was produced or committed; after `Stopped` the next start finds out.
        """
        ...

    def values(self, topic: str, start: int) -> tuple[Sequence[bytes], int]:
        """What partition 0 of a topic holds from an offset on, and the offset behind that."""
        ...

    def close(self) -> None:
        """Let go; what was not delivered is not."""
        ...
