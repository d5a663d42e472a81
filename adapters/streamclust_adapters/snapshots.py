"""The folder of snapshots: the last two are kept, and a torn one is set aside for the one before.

A snapshot is named by the number of the last event in it, so the order of names is the order of
events. One process at a time may write to a folder.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from streamclust.errors import AdapterError, SnapshotError

KEPT = 2


class Saves(Protocol):
    """What can be kept in a snapshot."""

    def save(self, path: Path, source: dict[str, Any] | None = None) -> None:
        """Write the model and the position of its reader atomically."""
        ...


Loaded = TypeVar("Loaded")


class SnapshotFolder:
    """Snapshots of one run.

    Parameters
    ----------
    path : Path
        The folder; it is made when it is not there.
    exclusive : bool
        Whether other processes are kept out until this one is left. Without it their snapshots of
        the same number must be equal.

    Raises
    ------
    AdapterError
        When the folder cannot be made or another process writes to it.
    """

    def __init__(self, path: Path, *, exclusive: bool = True) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            if exclusive:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for torn in path.glob(".snapshot-*.tmp"):  # of a run that was killed while it wrote
                torn.unlink()
        except BlockingIOError as error:
            raise AdapterError(f"another process writes snapshots to {path}") from error
        except OSError as error:
            raise AdapterError(f"cannot keep snapshots in {path}: {error.strerror}") from error

    def save(self, model: Saves, number: int, source: dict[str, Any]) -> Path:
        """Write the snapshot after event `number` and drop all but the last two.

        Raises
        ------
        SnapshotError
            When it cannot be written; the ones before it stay.
        """
        path = self.path / f"snapshot-{number:020d}.safetensors"
        try:
            model.save(path, source)
        except OSError as error:
            raise SnapshotError(f"cannot write {path}: {error.strerror}") from error
        for old in newest_first(self.path)[KEPT:]:
            old.unlink(missing_ok=True)
        return path

    def close(self) -> None:
        """Let another process write to the folder."""
        os.close(self._lock)

    def __enter__(self) -> SnapshotFolder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Found(NamedTuple, Generic[Loaded]):
    """The newest snapshot that can be trusted, and what is wrong with newer ones."""

    model: Loaded
    path: Path
    broken: list[tuple[Path, SnapshotError]]


def newest_first(folder: Path) -> list[Path]:
    """The snapshots of a folder."""
    return sorted(folder.glob("snapshot-*.safetensors"), reverse=True)


def load_newest(folder: Path, load: Callable[[Path], Loaded]) -> Found[Loaded] | None:
    """Load the newest snapshot that is whole.

    Parameters
    ----------
    folder : Path
        Where to look.
    load : callable
        Reads one file; a `SnapshotError` makes the one before it be tried.

    Returns
    -------
    Found or None
        None when the folder holds no snapshot at all.

    Raises
    ------
    SnapshotError
        When there are snapshots and none can be trusted.
    """
    broken: list[tuple[Path, SnapshotError]] = []
    for path in newest_first(folder):
        try:
            return Found(load(path), path, broken)
        except SnapshotError as error:
            broken.append((path, error))
    if broken:
        told = "; ".join(f"{path.name}: {error}" for path, error in broken)
        raise SnapshotError(f"no snapshot in {folder} can be trusted: {told}")
    return None


def set_aside(path: Path) -> Path:
    """Rename a broken snapshot, so that it neither counts as kept nor is tried again."""
    return path.rename(path.with_suffix(".broken"))
