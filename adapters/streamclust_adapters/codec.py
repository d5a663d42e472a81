"""Bytes to events: JSON lines and CSV.

A decoder takes one line at a time, so a bad line never costs its neighbours; it decides whether a
line holds numbers under names, and why not. Whether the numbers can be clustered (finite, not too
large, in time) is the model's question.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

import msgspec

from streamclust.errors import AdapterError, DecodeError

MAX_DEPTH = 64
"""How deeply a JSON line may nest, in fields that are not features."""

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


class JsonLines:
    """One JSON object per line, its fields numbers.

    A repeated name counts with its last value, as in every JSON reader.
    """

    def __init__(self, fields: Fields) -> None:
        self.columns: list[str] | None = None
        self._fields = fields
        self._aside, self._selected = fields.aside, fields.selected
        self._plain = fields.features is None and not fields.aside
        self._numbers = msgspec.json.Decoder(dict[str, float | bool])
        self._anything = msgspec.json.Decoder()

    def decode(self, raw: bytes, position: msgspec.Struct) -> Decoded:
        """Decode one line; see `LineDecoder`."""
        if self._plain:
            try:
                return Decoded(self._numbers.decode(raw))
            except msgspec.DecodeError:
                pass  # the general way below accepts more and names what it refuses
        try:
            return self._pick(self._object(raw))
        except _BadLineError as bad:
            raise DecodeError(str(bad), str(position)) from None

    def _object(self, raw: bytes) -> dict[str, Any]:
        if not raw.strip():
            raise _BadLineError("an empty line; a JSON object is accepted")
        if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _depth(raw) > MAX_DEPTH:
            raise _BadLineError(f"nested more than {MAX_DEPTH} deep")
        try:
            fields = self._anything.decode(raw)
        except msgspec.DecodeError as error:
            raise _BadLineError(_why_no_json(raw, str(error))) from None
        if not isinstance(fields, dict):
            raise _BadLineError(f"a JSON object is accepted, not {_told(fields)}")
        return fields

    def _pick(self, fields: dict[str, Any]) -> Decoded:
        own = self._fields
        t = None if own.time is None else _time(own.time, fields.get(own.time))
        key = None if own.key is None else fields.get(own.key)
        if self._selected is None:
            x = {name: value for name, value in fields.items() if name not in self._aside}
        else:
            x = {name: fields[name] for name in self._selected if name in fields}
        if not set(map(type, x.values())) <= {float}:
            x = {name: _number(name, value) for name, value in x.items()}
        return Decoded(x, t, key)


class CsvLines:
    """One event per line, separated by commas; the first line names the columns.

    A table without a header needs `Fields.features`: when the first line holds none of these names
    it is taken as an event, and the names as those of all columns in order. Fields may be quoted; a
    quoted field ends on its own line. An empty cell is an absent feature.
    """

    def __init__(self, fields: Fields, columns: Sequence[str] | None = None) -> None:
        self._fields = fields
        self.columns: list[str] | None = None
        self._picked: list[tuple[int, str]] = []
        self._all_numbers = False
        if columns is not None:
            self._adopt(list(columns))

    def decode(self, raw: bytes, position: msgspec.Struct) -> Decoded | None:
        """Decode one line; see `LineDecoder`."""
        try:
            cells = self._cells(raw)
            if self.columns is None:
                header = self._is_header(cells)
                self._adopt(cells if header else list(self._fields.features or ()))
                if header:
                    return None
        except _BadLineError as bad:
            if self.columns is None:
                raise AdapterError(f"{position}: no header: {bad}") from None
            raise DecodeError(str(bad), str(position)) from None
        try:
            return self._event(cells)
        except _BadLineError as bad:
            raise DecodeError(str(bad), str(position)) from None

    def _cells(self, raw: bytes) -> list[str]:
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise _BadLineError(_why_no_text(error)) from None
        if not text.strip():
            raise _BadLineError("an empty line")
        if '"' not in text:
            return text.split(",")
        try:
            (cells,) = csv.reader([text], strict=True)
        except (csv.Error, ValueError) as error:
            raise _BadLineError(f"broken CSV: {error}") from None
        return cells

    def _is_header(self, cells: list[str]) -> bool:
        features = self._fields.features
        names = [cell.strip() for cell in cells]
        if features is not None and not set(features) & set(names):
            return False
        if features is None and all(map(_is_number, cells)):
            raise _BadLineError(
                "the first line holds numbers only; name the columns with --features"
            )
        cells[:] = names
        return True

    def _adopt(self, columns: list[str]) -> None:
        own = self._fields
        wanted = [*(own.selected or ()), *filter(None, [own.time, own.key])]
        if lost := [name for name in wanted if name not in columns]:
            raise _BadLineError(f"no column {lost[0]!r} among {', '.join(columns)}")
        if len(set(columns)) != len(columns) or not all(columns):
            raise _BadLineError(f"column names are empty or repeated: {', '.join(columns)}")
        selected, aside = own.selected, own.aside
        self._picked = [
            (i, name)
            for i, name in enumerate(columns)
            if (name not in aside if selected is None else name in selected)
        ]
        self._all_numbers = len(self._picked) == len(columns)
        self.columns = columns

    def _event(self, cells: list[str]) -> Decoded:
        columns = self.columns or []
        if len(cells) != len(columns):
            raise _BadLineError(
                f"{len(cells)} columns; {len(columns)} are accepted, as in the header"
            )
        if self._all_numbers:
            try:
                x = dict(zip(columns, map(float, cells), strict=True))
            except ValueError:
                pass  # an empty cell, or no number: the general way below says which
            else:
                if not any("_" in cell for cell in cells):
                    return Decoded(x)
        x = {name: _cell(name, cells[i]) for i, name in self._picked if cells[i].strip()}
        own = self._fields
        t = key = None
        if own.time is not None:
            text = cells[columns.index(own.time)].strip()
            t = _time(own.time, float(text) if _is_number(text) else text or None)
        if own.key is not None:
            key = cells[columns.index(own.key)]
        return Decoded(x, t, key)


def decoder(form: str, fields: Fields, columns: Sequence[str] | None = None) -> LineDecoder:
    """The decoder of a format: ``"jsonl"`` or ``"csv"``.

    `columns` are those that an earlier part of the same table had named.
    """
    return CsvLines(fields, columns) if form == "csv" else JsonLines(fields)


class _BadLineError(ValueError):
    """Why a line holds no event, before its position is known."""


def _number(name: str, value: object) -> float:
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            raise _BadLineError(
                f"feature {name!r}: a whole number too large to compute with"
            ) from None
    raise _BadLineError(f"feature {name!r}: a number is accepted, not {_told(value)}")


def _cell(name: str, text: str) -> float:
    if not _is_number(text):
        raise _BadLineError(f"feature {name!r}: a number is accepted, not {_told(text)}")
    return float(text)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # 1_000 is a number in Python only


def _time(name: str, value: object) -> float | None:
    """Seconds: a number as it is, a text as ISO 8601; without an offset it is UTC."""
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number(name, value)
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            pass
        else:
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    raise _BadLineError(f"time {name!r}: seconds or ISO 8601 are accepted, not {_told(value)}")


def _told(value: object) -> str:
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


def _why_no_json(raw: bytes, why: str) -> str:
    """The reason in a reader's words; NaN and its kin are numbers elsewhere, so they are named."""
    try:
        raw.decode()
        loose = json.loads(raw)
    except UnicodeDecodeError as error:
        return _why_no_text(error)
    except (ValueError, RecursionError):
        return f"broken JSON: {why}"
    for name, value in loose.items() if isinstance(loose, dict) else ():
        if isinstance(value, float) and not -float("inf") < value < float("inf"):
            return f"field {name!r}: a finite number is accepted, not {value}"
    return f"broken JSON: {why}"


def _why_no_text(error: UnicodeDecodeError) -> str:
    return f"not UTF-8: byte 0x{error.object[error.start]:02x} at column {error.start + 1}"


_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"')


def _depth(raw: bytes) -> int:
    depth = deepest = 0
    for byte in _STRINGS.sub(b"", raw):
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest
