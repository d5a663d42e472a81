"""A file that grows, as ``tail -F`` reads it: it may be renamed away, cut, or not be there yet.

Bytes that were written to a file that was then renamed are read to the end before the file that has
its name now. A file that was cut is read from its start; what was in it and not read yet is lost.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Mapping
from pathlib import Path

from streamclust.errors import AdapterError
from streamclust_adapters import inputs
from streamclust_adapters.inputs import NextFile, Wake, too_short

PAUSE = 0.05
"""Seconds between two looks at a file that has not grown."""


class Followed:
    """An `Input` that does not end.

    Parameters
    ----------
    path : Path
        The file; it may come later.
    wake : Wake, optional
        Ends a wait early.
    tell : callable
        Told when the file is replaced or cut.
    """

    def __init__(
        self, path: Path, wake: Wake | None = None, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self._path = path
        self._waiting = [] if wake is None else [wake.fileno()]
        self._tell = tell
        self._fd: int | None = None
        self._identity: dict[str, int] | None = None
        self._cut = False

    @property
    def identity(self) -> dict[str, int] | None:
        """Device and inode of the file that is read now; see `Input`."""
        return self._identity

    def wind(self, offset: int, identity: Mapping[str, int] | None) -> int:
        """Find the file by its identity, under its name or beside it; see `Input`."""
        if identity is None:
            if offset:
                raise AdapterError("the snapshot was not taken by --follow")
            return 0
        beside = sorted(
            self._path.parent.glob(f"{self._path.name}*"), key=lambda p: p != self._path
        )
        for path in beside:
            if self._open(path) and self._identity == dict(identity):
                break
            self.close()
        else:
            raise AdapterError(
                f"the file in which the snapshot stands is neither {self._path} nor beside it; "
                "what was in it after the snapshot is not there to be read"
            )
        assert self._fd is not None
        if (size := os.fstat(self._fd).st_size) < offset:
            raise too_short(offset - size, offset)
        if not offset:
            return 0
        os.lseek(self._fd, offset - 1, os.SEEK_SET)
        return 1

    def read(self) -> bytes | None:
        """What has been written since, or None after a pause; see `Input`."""
        if self._fd is None and not self._open(self._path):
            self._pause()
            return None
        assert self._fd is not None
        try:
            block = os.read(self._fd, inputs.BLOCK)
            if block:
                return block
            if self._was_cut():
                self._tell(f"{self._path} was cut; it is read from its start")
                os.lseek(self._fd, 0, os.SEEK_SET)
                raise NextFile
            if self._was_replaced():
                block = os.read(self._fd, inputs.BLOCK)  # written before it was renamed
                if block:
                    return block
                self._tell(f"{self._path} was replaced; the new one is read")
                self.close()
                raise NextFile
        except OSError as error:
            raise AdapterError(f"cannot read {self._path}: {error.strerror}") from error
        self._pause()
        return None

    def close(self) -> None:
        """Let go of the file."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd = self._identity = None

    def _open(self, path: Path) -> bool:
        try:
            self._fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise AdapterError(f"cannot read {path}: {error.strerror}") from error
        file = os.fstat(self._fd)
        self._identity = {"device": file.st_dev, "inode": file.st_ino}
        return True

    def _was_cut(self) -> bool:
        assert self._fd is not None
        return os.fstat(self._fd).st_size < os.lseek(self._fd, 0, os.SEEK_CUR)

    def _was_replaced(self) -> bool:
        """Whether another file has the name by now; one that is only gone is waited for."""
        try:
            file = os.stat(self._path)
        except FileNotFoundError:
            return False
        return self._identity != {"device": file.st_dev, "inode": file.st_ino}

    def _pause(self) -> None:
        select.select(self._waiting, [], [], PAUSE)
