"""The order in which an engine took messages of several partitions: recorded, and followed again.

A batch is recorded as runs, one per partition, in the transaction that holds its answers. Who
replays holds messages back until their run is due.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from streamclust.errors import AdapterError
from streamclust_adapters.broker import Message


class Run(NamedTuple):
    """`length` messages of one partition, the first at offset `start`, the last before `end`."""

    partition: int
    start: int
    end: int
    length: int


def encode(runs: Sequence[Run]) -> bytes:
    """The runs of one transaction as JSON."""
    return msgspec.json.encode({"runs": runs})


def decode(value: bytes) -> list[Run]:
    """The runs of one transaction.

    Raises
    ------
    AdapterError
        When the value was not written by `encode`.
    """
    try:
        told = msgspec.json.decode(value, type=dict[str, list[tuple[int, int, int, int]]])
        return [Run(*run) for run in told["runs"]]
    except (msgspec.DecodeError, msgspec.ValidationError, KeyError) as error:
        raise AdapterError(f"the topic of the order holds something else: {error}") from None


class Sequencer:
    """Lets messages through in a recorded order, and after its end as they come.

    Parameters
    ----------
    runs : iterable of Run
        The order.
    """

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = deque(run for run in runs if run.length)
        self._held: dict[int, deque[Message]] = {}
        self._let_through = 0  # of the first run

    @property
    def finished(self) -> bool:
        """Whether every recorded run was let through."""
        return not self._runs

    def feed(self, messages: Iterable[Message]) -> list[Message]:
        """Take messages as they were read; return those that are due.

        Raises
        ------
        AdapterError
            When a recorded message is not there any more.
        """
        for message in messages:
            self._held.setdefault(message.partition, deque()).append(message)
        due: list[Message] = []
        while self._runs and self._follow(self._runs[0], due):
            self._runs.popleft()
            self._let_through = 0
        if not self._runs:
            for held in self._held.values():
                due.extend(held)
                held.clear()
        return due

    def held(self, partition: int) -> int:
        """How many messages of a partition are held back."""
        return len(self._held.get(partition, ()))

    def _follow(self, run: Run, due: list[Message]) -> bool:
        """Let through what is there of a run; whether that was all of it."""
        held = self._held.get(run.partition, deque())
        while held and self._let_through < run.length:
            message = held.popleft()
            self._let_through += 1
            first, last = self._let_through == 1, self._let_through == run.length
            if (first and message.offset != run.start) or (
                message.offset + 1 != run.end if last else message.offset + 1 >= run.end
            ):
                raise AdapterError(
                    f"partition {run.partition} holds offset {message.offset} where the recorded "
                    f"order has {run.length} messages from {run.start} to {run.end - 1}; some are "
                    "gone, so the engine cannot be rebuilt"
                )
            due.append(message)
        return self._let_through == run.length
