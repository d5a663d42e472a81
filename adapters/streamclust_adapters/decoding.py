"""What every layout of lines has in common: which fields are what, and why a line holds no event.

A decoder takes one line at a time, so a bad line never costs its neighbours; it decides whether a
line holds numbers under names, and why not. Whether the numbers can be clustered (finite, not too
large, in time) is the model's question.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple, Protocol

import msgspec

SHOWN = 40
"""How many characters of an offending value a reason repeats."""


class Fields(msgspec.Struct, frozen=True):
    """Which fields of a record are what.

    Attributes
    ----------
    features : tuple of str or None
        The features; None for every field that is not named below.
    ignore : frozenset of str
        Fields that are no features.
    time, key : str or None
        The fields that hold the stream time and the id; no features either.
    """

    features: tuple[str, ...] | None = None
    ignore: frozenset[str] = frozenset()
    time: str | None = None
    key: str | None = None

    @property
    def aside(self) -> frozenset[str]:
        """Every field that is named and is no feature."""
        return self.ignore | {name for name in (self.time, self.key) if name is not None}

    @property
    def selected(self) -> tuple[str, ...] | None:
        """The named features that are nothing else."""
        if self.features is None:
            return None
        return tuple(name for name in self.features if name not in self.aside)


class Decoded(NamedTuple):
    """What a line holds."""

    x: dict[str, float]
    t: float | None = None
    key: object = None


class LineDecoder(Protocol):
    """One line to one event."""

    columns: list[str] | None
    """What an earlier line said of later ones; None while nothing did."""

    def decode(self, raw: bytes, position: msgspec.Struct) -> Decoded | None:
        """Decode one line without its line feed.

        Returns
        -------
        Decoded or None
            None for a line that is no record: the header of a table.

        Raises
        ------
        DecodeError
            The line holds no event.
        AdapterError
            No later line can hold one either: the header is unusable.
        """
        ...


class BadLine(ValueError):
    """Why a line holds no event, before its position is known."""


def number(name: str, value: object) -> float:
    """The value of a feature."""
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            raise BadLine(f"feature {name!r}: a whole number too large to compute with") from None
    raise BadLine(f"feature {name!r}: a number is accepted, not {told(value)}")


def time(name: str, value: object) -> float | None:
    """Seconds: a number as it is, a text as ISO 8601; without an offset it is UTC."""
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(name, value)
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            pass
        else:
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    raise BadLine(f"time {name!r}: seconds or ISO 8601 are accepted, not {told(value)}")


def told(value: object) -> str:
    """A JSON value in a reader's words."""
    match value:
        case None:
            return "null"
        case bool() | int() | float():
            return f"the number {value!r}"
        case str():
            return f"the text {value[:SHOWN]!r}"
        case list():
            return "an array"
        case _:
            return "an object"


def why_no_text(error: UnicodeDecodeError) -> str:
    """Which byte is no text."""
    return f"not UTF-8: byte 0x{error.object[error.start]:02x} at column {error.start + 1}"
