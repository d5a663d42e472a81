"""Lines out by blocks: what is held back until a flush is written whole.

Nothing is read while answers wait to be written, so back-pressure is the pipe's own.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from streamclust.errors import AdapterError
from streamclust_adapters.encoder import Encoder
from streamclust_adapters.ports import Record

BLOCK = 1 << 16
"""Bytes per look at the end of a file that is continued."""


class OutputClosed(AdapterError):
    """The reader of our output went away; nobody waits for more."""


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
