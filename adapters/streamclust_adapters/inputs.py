"""Bytes in by blocks: from a pipe, a terminal, a file, or a compressed file."""

from __future__ import annotations

import gzip
import os
import select
import stat
import sys
import zlib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from streamclust.errors import AdapterError, MissingExtra

BLOCK = 1 << 16
"""Bytes per read: small enough that answers are never held back for long."""


class Wake(Protocol):
    """Something whose descriptor becomes readable when waiting must end."""

    def fileno(self) -> int:
        """The descriptor."""


class Input(Protocol):
    """Where the bytes of lines come from."""

    @property
    def identity(self) -> Mapping[str, int] | None:
        """Which file is read now, where that can change; it travels in positions."""

    def wind(self, offset: int, identity: Mapping[str, int] | None) -> int:
        """Move to `offset` of the file that was `identity`, where the input can.

        Returns
        -------
        int
            How many bytes must be read over.
        """
        ...

    def read(self) -> bytes | None:
        """Wait for a block.

        Returns
        -------
        bytes or None
            Empty at the end; None when woken, or while nothing has come.

        Raises
        ------
        NextFile
            What follows is another file; its offsets start anew.
        """
        ...


class NextFile(Exception):
    """The input goes on with another file."""


class Descriptor:
    """A descriptor; not closed here.

    Parameters
    ----------
    fd : int
        Where to read; a file is read from its current offset on.
    wake : Wake, optional
        Ends a wait for input early.
    pause : float, optional
        Seconds after which a wait ends without input; None waits for as long as it takes.
    """

    identity = None

    def __init__(self, fd: int, wake: Wake | None = None, pause: float | None = None) -> None:
        self._fd = fd
        self._pause = pause
        self._waiting = [fd] if wake is None else [fd, wake.fileno()]

    def wind(self, offset: int, identity: Mapping[str, int] | None) -> int:
        """Move a file; of a pipe, all must be read over; see `Input`."""
        file = os.fstat(self._fd)
        if offset == 0 or not stat.S_ISREG(file.st_mode):
            return offset
        here = os.lseek(self._fd, 0, os.SEEK_CUR)
        if here + offset > file.st_size:
            raise too_short(here + offset - file.st_size, offset)
        os.lseek(self._fd, here + offset - 1, os.SEEK_SET)
        return 1

    def read(self) -> bytes | None:
        """The next block; see `Input`."""
        try:
            ready, _, _ = select.select(self._waiting, [], [], self._pause)
            return os.read(self._fd, BLOCK) if self._fd in ready else None
        except OSError as error:
            raise AdapterError(f"cannot read the input: {error.strerror}") from error


class Compressed:
    """A compressed file; offsets are those of its content.

    Parameters
    ----------
    fd : int
        The file; not closed here.
    form : {"gzip", "zstd"}
        How it is compressed.
    """

    identity = None

    def __init__(self, fd: int, form: str) -> None:
        self._form = form
        file = os.fdopen(fd, "rb", closefd=False)
        # The content of a small file may be huge: it is taken by blocks, never as a whole.
        self._content: Any = gzip.GzipFile(fileobj=file) if form == "gzip" else _zstd_file(file)

    def wind(self, offset: int, identity: Mapping[str, int] | None) -> int:
        """All must be read over; see `Input`."""
        return offset

    def read(self) -> bytes | None:
        """The next block; see `Input`."""
        try:
            block: bytes = self._content.read1(BLOCK)
        except (OSError, EOFError, zlib.error) as error:
            raise AdapterError(f"the input is broken {self._form}: {error}") from error
        except Exception as error:  # of the zstd library, whose name is not known here
            if type(error).__name__ != "ZstdError":
                raise
            raise AdapterError(f"the input is broken {self._form}: {error}") from error
        return block


COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
"""How a file is compressed, by the end of its name."""


def opened(path: str, wake: Wake | None = None) -> Descriptor | Compressed:
    """Open a file for reading, as its name says."""
    fd = os.open(path, os.O_RDONLY)
    form = COMPRESSED.get(Path(path).suffix.lower())
    return Descriptor(fd, wake) if form is None else Compressed(fd, form)


def too_short(missing: int, offset: int) -> AdapterError:
    """What is told of an input that ends before the snapshot's place."""
    return AdapterError(
        f"the input ends {missing} bytes before byte {offset}, where the snapshot stands; it is "
        "another input"
    )


def _zstd_file(file: Any) -> Any:
    own = sys.version_info >= (3, 14)
    try:
        zstd = import_module("compression.zstd" if own else "backports.zstd")
    except ImportError as error:
        raise MissingExtra("zstd") from error
    return zstd.ZstdFile(file)
