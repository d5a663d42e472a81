"""Where an engine goes on: its newest snapshot, held against what the group has committed.

The state is local and the commits are the broker's. A snapshot is written after the commit of what
it holds, so it never stands behind one; everything between the two is learned again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal, Protocol

import msgspec

from streamclust.errors import AdapterError, SnapshotError
from streamclust_adapters import order
from streamclust_adapters.broker import Broker, Commit
from streamclust_adapters.lanes import Lane, Manner
from streamclust_adapters.logs import Log
from streamclust_adapters.order import Run
from streamclust_adapters.ports import Model, Position
from streamclust_adapters.snapshots import SnapshotFolder, load_newest, set_aside


class Saved(Model, Protocol):
    """A model that knows what was saved beside it."""

    @property
    def source(self) -> dict[str, Any] | None:
        """The position of its reader."""


class Origin(msgspec.Struct, frozen=True):
    """What is read, by whom, and from where on when nobody has read it yet."""

    topic: str
    group: str
    reading: dict[str, Any]
    start: Literal["earliest", "latest"] = "earliest"

    @property
    def identity(self) -> Position:
        """What must be the same for a snapshot to be gone on from."""
        return {"topic": self.topic, "group": self.group, "reading": self.reading}


@dataclass(slots=True)
class Kept:
    """A model and what its snapshot says; `events` is None for a new one."""

    model: Saved
    events: int | None = None
    offsets: dict[int, int] = field(default_factory=dict)
    order: int | None = None


def prepare(path: Path) -> None:
    """See that a folder can be written, before anything is read.

    Raises
    ------
    AdapterError
        When it cannot.
    """
    SnapshotFolder(path, exclusive=False).close()
    try:
        with TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise AdapterError(f"cannot keep snapshots in {path}: {error.strerror}") from error


class Opener:
    """Opens lanes.

    Parameters
    ----------
    broker : Broker
        Who knows the commits.
    origin : Origin
        What is read.
    path : Path
        The folder of the folders, shared by all workers of the group.
    create, load : callable
        Make a new model; load one, checked against what the user demands of it.
    manner : Manner
        How lanes answer.
    log : Log
        Where broken snapshots are told.
    """

    def __init__(
        self,
        broker: Broker,
        origin: Origin,
        path: Path,
        *,
        create: Callable[[], Saved],
        load: Callable[[Path], Saved],
        manner: Manner,
        log: Log,
    ) -> None:
        self._broker = broker
        self._origin = origin
        self._path = path
        self._create = create
        self._load = load
        self._manner = manner
        self._log = log

    def open(self, partition: int) -> Lane:
        """Open the lane of one partition.

        Raises
        ------
        AdapterError, SnapshotError
            When the engine cannot go on without losing or doubling something.
        """
        name = f"partition-{partition}"
        with ExitStack() as unless_opened:
            folder = SnapshotFolder(self._path / name, exclusive=False)
            unless_opened.callback(folder.close)
            commits = self._broker.committed([partition])
            kept = self._newest(folder)
            if commits and kept.events is None:
                raise AdapterError(
                    f"group {self._origin.group} has committed offset {commits[partition].offset} "
                    f"of {self._where(partition)}, and {folder.path} holds no snapshot; name the "
                    "folder that does, or another group to start anew"
                )
            if kept.events and not commits:
                raise AdapterError(
                    f"{self._where(partition)}: the snapshot stands at offset "
                    f"{kept.offsets[partition]}, and group {self._origin.group} has no commit; "
                    "commit this offset for the group to go on there, or name another group and "
                    "folder to start anew"
                )
            lane = self._lane(name, folder, kept, [partition], commits)
            unless_opened.pop_all()
        return lane

    def open_shared(self, partitions: Sequence[int], order_topic: str) -> tuple[Lane, list[Run]]:
        """Open the one lane of all partitions.

        Returns
        -------
        lane : Lane
            The lane.
        runs : list of Run
            The order in which it must take messages again.

        Raises
        ------
        AdapterError, SnapshotError
            As `open` does.
        """
        with ExitStack() as unless_opened:
            folder = SnapshotFolder(self._path / "shared", exclusive=False)
            unless_opened.callback(folder.close)
            commits = self._broker.committed(partitions)
            kept = self._newest(folder)
            extent = self._broker.extent(order_topic, 0)
            if kept.events is None:
                if commits:
                    raise AdapterError(
                        f"group {self._origin.group} has commits in {self._origin.topic}, and "
                        f"{folder.path} holds no snapshot; name the folder that does, or another "
                        "group to start anew"
                    )
                kept.order = extent.high
            if kept.order is None:
                raise SnapshotError(f"{folder.path} holds no shared engine")
            if kept.order < extent.low:
                raise _deleted(f"the order in {order_topic}", kept.order, extent.low)
            # Nothing is kept while the order is followed, so the next snapshot stands behind it.
            values, kept.order = self._broker.values(order_topic, kept.order)
            runs = [run for value in values for run in order.decode(value)]
            # Where the order ends is what was committed; a silent partition's commit may expire.
            number = (kept.events or 0) + sum(run.length for run in runs)
            ends: dict[int, int] = {}
            for run in runs:
                if run.start < ends.get(run.partition, kept.offsets.get(run.partition, 0)):
                    raise AdapterError(
                        f"{order_topic} has offset {run.start} of partition {run.partition} a "
                        "second time; the engine cannot be rebuilt"
                    )
                ends[run.partition] = run.end
            for p, commit in commits.items():
                if commit.offset != (end := ends.get(p, kept.offsets.get(p))):
                    raise AdapterError(
                        f"{order_topic} leads to offset {end} of partition {p}, and "
                        f"{commit.offset} is committed; the engine cannot be rebuilt"
                    )
            reached = {p: Commit(end, number) for p, end in ends.items()}
            lane = self._lane("shared", folder, kept, partitions, reached)
            unless_opened.pop_all()
        return lane, runs

    def _newest(self, folder: SnapshotFolder) -> Kept:
        """What the newest snapshot says that is whole; broken ones are set aside."""
        found = load_newest(folder.path, self._load)
        if found is None:
            return Kept(self._create())
        for broken, error in found.broken:
            aside = set_aside(broken)
            self._log.warning("snapshot set aside", name=aside.name, reason=str(error))
        source = found.model.source
        if source is None or "offsets" not in source:
            raise SnapshotError(f"{found.path} holds no position in a topic")
        for name, now in self._origin.identity.items():
            if (then := source.get(name)) != now:
                raise SnapshotError(f"{found.path} was taken with {name} {then}; now it is {now}")
        offsets = {int(p): offset for p, offset in source["offsets"].items()}
        return Kept(found.model, source["events"], offsets, source.get("order"))

    def _lane(
        self,
        name: str,
        folder: SnapshotFolder,
        kept: Kept,
        partitions: Sequence[int],
        commits: Mapping[int, Commit],
    ) -> Lane:
        offsets = {p: self._start(p, kept, commits.get(p)) for p in partitions}
        lane = Lane(
            name,
            kept.model,
            folder,
            identity=self._origin.identity,
            offsets=offsets,
            number=kept.events or 0,
            commits=commits,
            order=kept.order,
            manner=self._manner,
        )
        if kept.events is not None and offsets == kept.offsets:
            lane.resumed()
        self._log.info("engine opened", engine=name, events=lane.number, offsets=offsets)
        return lane

    def _start(self, partition: int, kept: Kept, commit: Commit | None) -> int:
        """The offset that the engine goes on from in one partition."""
        where = self._where(partition)
        extent = self._broker.extent(self._origin.topic, partition)
        start = kept.offsets.get(partition)
        if start is None:
            # One that joins a running engine was empty when it was made: all of it counts.
            latest = self._origin.start == "latest" and not kept.events
            return extent.high if latest else extent.low
        if commit is not None and commit.offset < start:
            raise AdapterError(
                f"{where}: offset {commit.offset} is committed, before {start}, where the snapshot "
                "stands; what it holds would be answered a second time"
            )
        if start > extent.high:
            raise AdapterError(
                f"{where} ends at {extent.high}, before offset {start}, where the snapshot stands; "
                "it is another topic"
            )
        if start < extent.low:
            raise _deleted(where, start, extent.low)
        return start

    def _where(self, partition: int) -> str:
        return f"{self._origin.topic}, partition {partition}"


def _deleted(where: str, start: int, low: int) -> AdapterError:
    return AdapterError(
        f"{where}: offsets {start} to {low - 1} were deleted by retention, and the engine has not "
        "learned them; it cannot go on exactly. Name another group and folder to start anew"
    )
