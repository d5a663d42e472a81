"""Rows of a table, separated by commas, to events."""

from __future__ import annotations

import csv
from collections.abc import Sequence

import msgspec

from streamclust.errors import AdapterError, DecodeError
from streamclust_adapters.decoding import BadLine, Decoded, Fields, time, told, why_no_text


class NoColumn(BadLine):
    """A first line of texts that has none of the wanted names: a header, or a broken row."""


class CsvLines:
    """One event per line, separated by commas; the first line names the columns.

    A table without a header needs `Fields.features`: when the first line holds none of these names
    it is taken as an event, and the names as those of all columns in order. Fields may be quoted; a
    quoted field ends on its own line. An empty cell is an absent feature. The header may come
    again, as it does at the head of each file of a rotated table.
    """

    def __init__(self, fields: Fields, columns: Sequence[str] | None = None) -> None:
        self._fields = fields
        self.columns: list[str] | None = None
        self._picked: list[tuple[int, str]] = []
        self._all_numbers = False
        self._header: list[str] | None = None
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
            elif cells == self._header:
                return None
        except BadLine as bad:
            if self.columns is None and not isinstance(bad, NoColumn):
                raise AdapterError(f"{position}: no header: {bad}") from None
            raise DecodeError(str(bad), str(position)) from None
        try:
            return self._event(cells)
        except BadLine as bad:
            raise DecodeError(str(bad), str(position)) from None

    def _cells(self, raw: bytes) -> list[str]:
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise BadLine(why_no_text(error)) from None
        if not text.strip():
            raise BadLine("an empty line")
        if '"' not in text:
            return text.split(",")
        try:
            (cells,) = csv.reader([text], strict=True)
        except (csv.Error, ValueError) as error:
            raise BadLine(f"broken CSV: {error}") from None
        return cells

    def _is_header(self, cells: list[str]) -> bool:
        features = self._fields.features
        names = [cell.strip() for cell in cells]
        if features is not None and not set(features) & set(names):
            if len(features) != len(names) and not any(map(_is_number, names)):
                raise NoColumn(f"no column {features[0]!r} among {', '.join(names)}")
            return False
        if features is None and all(map(_is_number, cells)):
            raise BadLine("the first line holds numbers only; name the columns with --features")
        cells[:] = names
        return True

    def _adopt(self, columns: list[str]) -> None:
        if len(columns) == 1 and (other := {";", "\t", "|"} & set(columns[0])):
            raise BadLine(f"columns are separated by commas, not by {min(other)!r}")
        own = self._fields
        wanted = [*(own.selected or ()), *filter(None, [own.time, own.key])]
        if lost := [name for name in wanted if name not in columns]:
            raise BadLine(f"no column {lost[0]!r} among {', '.join(columns)}")
        if len(set(columns)) != len(columns) or not all(columns):
            raise BadLine(f"column names are empty or repeated: {', '.join(columns)}")
        selected, aside = own.selected, own.aside
        self._picked = [
            (i, name)
            for i, name in enumerate(columns)
            if (name not in aside if selected is None else name in selected)
        ]
        self._all_numbers = len(self._picked) == len(columns)
        self.columns = columns
        self._header = None if all(map(_is_number, columns)) else columns

    def _event(self, cells: list[str]) -> Decoded:
        columns = self.columns or []
        if len(cells) != len(columns):
            raise BadLine(f"{len(cells)} columns; {len(columns)} are accepted, as in the header")
        if self._all_numbers:
            try:
                x = dict(zip(columns, map(float, cells), strict=True))
            except ValueError:
                pass  # an empty cell, or no number: the general way below says which
            else:
                if not any("_" in cell for cell in cells):
                    return Decoded(x)
        x = self._features(cells)
        own = self._fields
        t = key = None
        if own.time is not None:
            text = cells[columns.index(own.time)].strip()
            t = time(own.time, float(text) if _is_number(text) else text or None)
        if own.key is not None:
            key = cells[columns.index(own.key)]
        return Decoded(x, t, key)

    def _features(self, cells: list[str]) -> dict[str, float]:
        """The features of a row; all that hold no number are named at once."""
        there = [(name, cells[i]) for i, name in self._picked if cells[i].strip()]
        if texts := [one for one in there if not _is_number(one[1])]:
            (name, text), *more = texts
            also = f"; the same holds of {', '.join(name for name, _ in more)}" if more else ""
            raise BadLine(f"feature {name!r}: a number is accepted, not {told(text)}{also}")
        return {name: float(text) for name, text in there}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # 1_000 is a number in Python only
