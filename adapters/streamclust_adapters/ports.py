"""What a door is: the promises between the loop and the outside, without any client library.

A source hands out records in batches and can say where it stands after each; a sink takes answers,
change events and dead letters. The loop (`runner`) knows only these and the model's own verbs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Protocol, TypeAlias

import msgspec

from streamclust.errors import DecodeError

Position: TypeAlias = dict[str, Any]
"""Where a source stands, in plain JSON values; it travels inside the snapshot."""


class Record(Protocol):
    """One event, or one piece of input that holds none."""

    @property
    def number(self) -> int:
        """1, 2, ... of the input; broken records count, so numbers are stable."""

    @property
    def x(self) -> dict[str, float]:
        """The features by name; empty when there is an `error`."""

    @property
    def t(self) -> float | None:
        """Stream time in seconds, when the input carries one."""

    @property
    def key(self) -> object:
        """The value of the id field, or None."""

    @property
    def raw(self) -> bytes:
        """What came, for a dead letter."""

    @property
    def position(self) -> msgspec.Struct:
        """Where it stood; ``str(position)`` is for readers."""

    @property
    def error(self) -> DecodeError | None:
        """Why it holds no event."""


class Source(Protocol):
    """Where records come from."""

    def next_batch(self) -> Sequence[Record] | None:
        """Wait for records.

        Returns
        -------
        sequence of Record or None
            In input order; empty when the wait was interrupted by a request to stop or nothing
            was complete yet; None at the end of the input.
        """
        ...

    def position_after(self, record: Record | None) -> Position:
        """Where to go on after `record` was dealt with; None means as opened.

        `record` is of the latest batch.
        """
        ...


class Sink(Protocol):
    """Where answers go. Whatever is handed over may be held back until `flush`."""

    def answer(self, record: Record, label: int, region: str, rule: str | None) -> None:
        """Take the answer for one record."""
        ...

    def change(self, number: int, change: object) -> None:
        """Take a change event that learning record `number` caused."""
        ...

    def dead_letter(self, record: Record, reason: str) -> None:
        """Take a record that holds no event or was refused by the model."""
        ...

    def flush(self) -> None:
        """Hand everything to the outside; an `AdapterError` if the outside does not take it."""
        ...

    def sync(self) -> None:
        """Flush, and wait until files are on their disk; called before a snapshot."""
        ...


class Assigned(Protocol):
    """What the loop reads of an assignment."""

    @property
    def label(self) -> int:
        """The cluster id, or -1."""

    @property
    def region(self) -> str:
        """Core, boundary, noise or cold."""


class Model(Protocol):
    """The verbs of the clusterer that the loop uses."""

    def assign_one(self, x: Mapping[Any, Any]) -> Assigned:
        """Where `x` belongs; changes nothing."""
        ...

    def explain_one(self, x: Mapping[Any, Any]) -> object:
        """Why, as something whose ``str`` a reader understands."""
        ...

    def learn_one(self, x: Mapping[Any, Any], *, t: float | None = None) -> object:
        """Learn `x`; an `InvalidPoint` leaves the model as it was."""
        ...

    def metrics(self) -> Mapping[str, float]:
        """Live figures by name."""
        ...

    def on(self, event_type: Any, callback: Callable[[Any], object]) -> Callable[[], object]:
        """Call back with every change of a type while it is learned; return what ends it."""
        ...

    def save(self, path: str | PathLike[str], source: dict[str, Any] | None = None) -> None:
        """Write the whole model and the position of its reader, atomically."""
        ...
