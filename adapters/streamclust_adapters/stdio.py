"""The stdin and file door: blocks of bytes to records, one per line.

Positions are byte offsets, so a run goes on exactly behind its last event.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from streamclust.errors import AdapterError, DecodeError
from streamclust_adapters import records
from streamclust_adapters.decoding import Decoded, LineDecoder
from streamclust_adapters.inputs import Input, NextFile, too_short
from streamclust_adapters.ports import Position, Record
from streamclust_adapters.records import NOTHING, Entry, decoded

KEPT_OF_LONG_LINE = 1 << 10
"""Bytes of a too long line that a dead letter repeats."""

BOM = b"\xef\xbb\xbf"


class LinePosition(msgspec.Struct, frozen=True, gc=False):
    """Where a line stands: its number, from 1, and the offset of its first byte."""

    line: int
    byte: int

    def __str__(self) -> str:
        return f"line {self.line}, byte {self.byte}"


class LineRecord(Entry[LinePosition], gc=False):
    """One line as a `Record`; `end` is the offset behind it and its line feed."""

    end: int


class LineSource:
    """Records of an input.

    Parameters
    ----------
    source : Input
        Where the bytes come from.
    decoder : LineDecoder
        What turns a line into an event.
    start : mapping, optional
        A position of an earlier run over the same input. A file is wound to it; from a pipe that
        starts anew, as many bytes are skipped.
    """

    def __init__(
        self,
        source: Input,
        decoder: LineDecoder,
        *,
        start: Position | None = None,
    ) -> None:
        start = start or {"events": 0, "line": 0, "offset": 0}
        self._source = source
        self._decoder = decoder
        self._number: int = start["events"]
        self._line: int = start["line"]
        self._offset: int = start["offset"]  # of the first byte that is in no record yet
        self._tail = b""  # the beginning of a line whose end has not come
        self._dropped = 0  # bytes of a too long line that are no longer held
        self._to_skip = source.wind(self._offset, start.get("file"))
        self._file = source.identity
        self._next_file = False  # whether the next block is the first of another file
        self._opened = self._position(self._number, self._line, self._offset)
        self._joint = self._offset > 0  # whether the first byte must still be seen to start a line
        self._ended = False

    def next_batch(self) -> Sequence[LineRecord] | None:
        """Wait for a block and decode its complete lines; see `Source`."""
        if self._ended:
            return None
        if self._next_file:
            self._line = self._offset = 0
            self._joint = self._next_file = False
        try:
            block = self._source.read()
        except NextFile:
            self._next_file = True
            return self._last_line()
        self._file = self._source.identity
        if block is None:
            return ()
        if not block:
            self._ended = True
            if self._to_skip:
                raise too_short(self._to_skip, self._offset)
            return self._last_line()
        if self._to_skip or self._joint:
            block = self._behind_start(block)
        lines = (self._tail + block).split(b"\n")
        self._tail = lines.pop()
        made = self._records(lines, feed=1)
        if len(self._tail) > records.MAX_BYTES:
            self._dropped += len(self._tail) - KEPT_OF_LONG_LINE
            self._tail = self._tail[:KEPT_OF_LONG_LINE]
        return made

    def _last_line(self) -> Sequence[LineRecord]:
        """The record of what stands behind the last line feed of a file."""
        rest, self._tail = self._tail, b""
        return self._records([rest], feed=0) if rest or self._dropped else ()

    def position_after(self, record: Record | None) -> Position:
        """Count of records and lines, and byte offset, behind `record`; see `Source`."""
        if record is None:
            return self._opened
        assert isinstance(record, LineRecord)  # of our own batch, as the port demands
        return self._position(record.number, record.position.line, record.end)

    def _position(self, events: int, line: int, offset: int) -> Position:
        columns = self._decoder.columns
        told = {"events": events, "line": line, "offset": offset, "columns": columns}
        return told if self._file is None else {**told, "file": dict(self._file)}

    def _records(self, lines: list[bytes], *, feed: int) -> list[LineRecord]:
        """Records of lines that begin at the current offset; `feed` is the length of their end."""
        made: list[LineRecord] = []
        decoder = self._decoder
        for line in lines:
            self._line += 1
            position = LinePosition(self._line, self._offset)
            long_by, self._dropped = self._dropped, 0
            self._offset += len(line) + long_by + feed
            found: Decoded | None
            error: DecodeError | None
            if long_by:
                found, error = NOTHING, records.too_long(position, "line")
            else:
                text = line.removesuffix(b"\r")
                if not position.byte:
                    text = text.removeprefix(BOM)
                found, error = decoded(decoder, text, position, "line")
                if found is None:
                    continue
            too_long = long_by or len(line) > records.MAX_BYTES
            raw = line[:KEPT_OF_LONG_LINE] if too_long else line
            self._number += 1
            made.append(LineRecord(self._number, *found, raw, position, error, self._offset))
        return made

    def _behind_start(self, block: bytes) -> bytes:
        """`block` without what an earlier run has read; that must have ended with a line."""
        if self._to_skip:
            skipped = block[: self._to_skip]
            self._to_skip -= len(skipped)
            block = block[len(skipped) :]
            if not self._to_skip and skipped.endswith(b"\n"):
                self._joint = False
        if self._joint and not self._to_skip and block:
            # The earlier input ended without a line feed, which has come since.
            if not block.startswith((b"\n", b"\r\n")):
                raise AdapterError(
                    f"byte {self._offset}, where the snapshot stands, is inside a line; "
                    "it is another input"
                )
            feed = block.index(b"\n") + 1
            self._offset += feed
            block = block[feed:]
            self._joint = False
        return block
