"""The stdin and file door: lines in by blocks, lines out by blocks.

Positions are byte offsets, so a run goes on exactly behind its last event. Back-pressure is the
pipe's own: nothing is read while answers wait to be written.
"""

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from streamclust.errors import AdapterError, DecodeError
from streamclust_adapters.codec import Decoded, LineDecoder
from streamclust_adapters.encoder import Encoder
from streamclust_adapters.ports import Position, Record

BLOCK = 1 << 16
"""Bytes per read: small enough that answers are never held back for long."""

MAX_LINE = 1 << 20
"""Bytes of a line; ten thousand features with seventeen digits each fit four times."""

KEPT_OF_LONG_LINE = 1 << 10
"""Bytes of a too long line that a dead letter repeats."""

BOM = b"\xef\xbb\xbf"


class OutputClosed(AdapterError):
    """The reader of our output went away; nobody waits for more."""


class LinePosition(msgspec.Struct, frozen=True, gc=False):
    """Where a line stands: its number, from 1, and the offset of its first byte."""

    line: int
    byte: int

    def __str__(self) -> str:
        return f"line {self.line}, byte {self.byte}"


class LineRecord(msgspec.Struct, gc=False):
    """One line as a `Record`; `end` is the offset behind it and its line feed."""

    number: int
    x: dict[str, float]
    t: float | None
    key: object
    raw: bytes
    position: LinePosition
    end: int
    error: DecodeError | None = None


class Wake(Protocol):
    """Something whose descriptor becomes readable when waiting must end."""

    def fileno(self) -> int:
        """The descriptor."""


class LineSource:
    """Records from a descriptor: a pipe, a terminal or a file.

    Parameters
    ----------
    fd : int
        Where to read; a file is read from its current offset on. Not closed here.
    decoder : LineDecoder
        What turns a line into an event.
    start : mapping, optional
        A position of an earlier run over the same input. A file is wound to it; from a pipe that
        starts anew, as many bytes are skipped.
    wake : Wake, optional
        Ends a wait for input early.
    """

    def __init__(
        self,
        fd: int,
        decoder: LineDecoder,
        *,
        start: Position | None = None,
        wake: Wake | None = None,
    ) -> None:
        start = start or {"events": 0, "line": 0, "offset": 0}
        self._fd = fd
        self._decoder = decoder
        self._waiting = [fd] if wake is None else [fd, wake.fileno()]
        self._number: int = start["events"]
        self._line: int = start["line"]
        self._offset: int = start["offset"]  # of the first byte that is in no record yet
        self._opened = self._position(self._number, self._line, self._offset)
        self._tail = b""  # the beginning of a line whose end has not come
        self._dropped = 0  # bytes of a too long line that are no longer held
        self._to_skip = self._wind(self._offset)
        self._joint = self._offset > 0  # whether the first byte must still be seen to start a line
        self._ended = False

    def next_batch(self) -> Sequence[LineRecord] | None:
        """Wait for a block and decode its complete lines; see `Source`."""
        if self._ended:
            return None
        block = self._read()
        if block is None:
            return ()
        if not block:
            self._ended = True
            if self._to_skip:
                raise self._too_short(self._to_skip)
            return self._records([self._tail], feed=0) if self._tail or self._dropped else ()
        if self._to_skip or self._joint:
            block = self._behind_start(block)
        lines = (self._tail + block).split(b"\n")
        self._tail = lines.pop()
        records = self._records(lines, feed=1)
        if len(self._tail) > MAX_LINE:
            self._dropped += len(self._tail) - KEPT_OF_LONG_LINE
            self._tail = self._tail[:KEPT_OF_LONG_LINE]
        return records

    def position_after(self, record: Record | None) -> Position:
        """Count of records and lines, and byte offset, behind `record`; see `Source`."""
        if record is None:
            return self._opened
        assert isinstance(record, LineRecord)  # of our own batch, as the port demands
        return self._position(record.number, record.position.line, record.end)

    def _position(self, events: int, line: int, offset: int) -> Position:
        columns = self._decoder.columns
        return {"events": events, "line": line, "offset": offset, "columns": columns}

    def _records(self, lines: list[bytes], *, feed: int) -> list[LineRecord]:
        """Records of lines that begin at the current offset; `feed` is the length of their end."""
        records: list[LineRecord] = []
        decode = self._decoder.decode
        for line in lines:
            raw = line
            self._line += 1
            position = LinePosition(self._line, self._offset)
            long_by, self._dropped = self._dropped, 0
            self._offset += len(raw) + long_by + feed
            decoded: Decoded | None = Decoded({})
            error = None
            if long_by or len(raw) > MAX_LINE:
                error = DecodeError(f"a line longer than {MAX_LINE} bytes", str(position))
                raw = raw[:KEPT_OF_LONG_LINE]
            else:
                text = raw.removesuffix(b"\r")
                try:
                    decoded = decode(
                        text.removeprefix(BOM) if not position.byte else text, position
                    )
                except DecodeError as refused:
                    error = refused
            if decoded is None:
                continue
            self._number += 1
            records.append(LineRecord(self._number, *decoded, raw, position, self._offset, error))
        return records

    def _read(self) -> bytes | None:
        """The next block, empty at the end; None when woken before anything came."""
        try:
            ready, _, _ = select.select(self._waiting, [], [])
            return os.read(self._fd, BLOCK) if self._fd in ready else None
        except OSError as error:
            raise AdapterError(f"cannot read the input: {error.strerror}") from error

    def _wind(self, offset: int) -> int:
        """Move to `offset` where the input can; the number of bytes that must be read over."""
        file = os.fstat(self._fd)
        if offset == 0 or not stat.S_ISREG(file.st_mode):
            return offset
        here = os.lseek(self._fd, 0, os.SEEK_CUR)
        if here + offset > file.st_size:
            raise self._too_short(here + offset - file.st_size)
        os.lseek(self._fd, here + offset - 1, os.SEEK_SET)
        return 1

    def _too_short(self, missing: int) -> AdapterError:
        return AdapterError(
            f"the input ends {missing} bytes before byte {self._offset}, where the snapshot "
            "stands; it is another input"
        )

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


class LineFile:
    """Lines that are held back until `flush` and then written whole.

    Parameters
    ----------
    fd : int
        Where to write.
    name : str
        What a failure calls it.
    """

    def __init__(self, fd: int, name: str) -> None:
        self._fd = fd
        self._name = name
        self._held: list[object] = []

    @classmethod
    def open(cls, path: str, *, append: bool) -> LineFile:
        """Open a file for writing.

        With `append` it is continued; a last line that a killed run left torn is cut off.

        Raises
        ------
        AdapterError
            When the file cannot be opened.
        """
        try:
            mode = os.O_RDWR | os.O_CREAT | os.O_APPEND if append else os.O_WRONLY | os.O_CREAT
            fd = os.open(path, mode | (0 if append else os.O_TRUNC), 0o666)
            if append and stat.S_ISREG(os.fstat(fd).st_mode):
                os.ftruncate(fd, _end_of_last_line(fd))
        except OSError as error:
            raise AdapterError(f"cannot write {path}: {error.strerror}") from error
        return cls(fd, path)

    def hold(self, value: object) -> None:
        """Keep a value for the next flush."""
        self._held.append(value)

    def flush(self, encoder: Encoder) -> None:
        """Write what is held.

        Raises
        ------
        OutputClosed
            When the other end is closed.
        AdapterError
            When it cannot be written, for example because the disk is full.
        """
        if not self._held:
            return
        rest = memoryview(encoder.lines(self._held))
        self._held.clear()
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except BrokenPipeError as error:
            raise OutputClosed(f"{self._name} was closed by its reader") from error
        except OSError as error:
            raise AdapterError(f"cannot write {self._name}: {error.strerror}") from error

    def sync(self) -> None:
        """Wait until the written lines are on the disk, where there is one."""
        try:
            os.fsync(self._fd)
        except OSError as error:
            if error.errno not in {errno.EINVAL, errno.EROFS, errno.ENOTSUP}:  # a pipe, a terminal
                raise AdapterError(f"cannot write {self._name}: {error.strerror}") from error

    def close(self) -> None:
        """Close the descriptor; what is held is lost."""
        with suppress(OSError):
            os.close(self._fd)


class LineSink:
    """Answers, change events and dead letters as JSON lines; see `Sink`.

    Parameters
    ----------
    encoder : Encoder
        The layout of the lines.
    answers : LineFile
        Where answers go.
    changes, dead_letters : LineFile, optional
        Where change events and dead letters go; nowhere by default.
    """

    def __init__(
        self,
        encoder: Encoder,
        answers: LineFile,
        *,
        changes: LineFile | None = None,
        dead_letters: LineFile | None = None,
    ) -> None:
        self._encoder = encoder
        self._answers = answers
        self._changes = changes
        self._dead_letters = dead_letters
        self._files = [f for f in (dead_letters, changes, answers) if f is not None]

    def answer(self, record: Record, label: int, region: str, rule: str | None) -> None:
        """Hold one answer."""
        self._answers.hold(self._encoder.answer(record.number, record.key, label, region, rule))

    def change(self, number: int, change: object) -> None:
        """Hold one change event."""
        if self._changes is not None:
            self._changes.hold(self._encoder.change(number, change))

    def dead_letter(self, record: Record, reason: str) -> None:
        """Hold one dead letter."""
        if self._dead_letters is not None:
            self._dead_letters.hold(
                self._encoder.dead_letter(record.number, record.position, reason, record.raw)
            )

    def flush(self) -> None:
        """Write everything; answers last, so that what explains them is there before."""
        for file in self._files:
            file.flush(self._encoder)

    def sync(self) -> None:
        """Write everything and wait for the disk."""
        self.flush()
        for file in self._files:
            file.sync()


def _end_of_last_line(fd: int) -> int:
    """The offset behind the last line feed of a file."""
    end = os.fstat(fd).st_size
    while end > 0:
        begin = max(0, end - BLOCK)
        at = os.pread(fd, end - begin, begin).rfind(b"\n")
        if at >= 0:
            return begin + at + 1
        end = begin
    return 0
