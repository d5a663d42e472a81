"""The worker: reads a batch, lets the lanes answer it, delivers it in one transaction, keeps lanes.

A lane's snapshot is written after the transaction that holds its answers, so a snapshot is never
ahead of the commits. When a transaction fails for good, the lanes are dropped: they know more than
was delivered.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from streamclust_adapters import order
from streamclust_adapters.answering import Refused
from streamclust_adapters.broker import Broker, Commit, LostPartitions, Message
from streamclust_adapters.lanes import Lane
from streamclust_adapters.logs import Log
from streamclust_adapters.messages import MessageReader, Outbox
from streamclust_adapters.resuming import Opener
from streamclust_adapters.runner import Shutdown

MOST_HELD = 10_000
"""Messages of a partition that are held back, at a replay, before no more of it are read."""


class Turn(msgspec.Struct):
    """What one batch was.

    Attributes
    ----------
    messages : sequence of Message
        What was read.
    seconds : float
        From the first message at hand to the end of the transaction.
    lanes : list of Lane
        All lanes of the worker now.
    ready : bool
        Whether there are lanes and none of them is replaying.
    """

    messages: Sequence[Message]
    seconds: float
    lanes: list[Lane]
    ready: bool


class Worker:
    """One process of a group.

    Parameters
    ----------
    broker : Broker
        The input, the outputs and the group.
    opener : Opener
        Opens lanes.
    reader : MessageReader
        Messages to records.
    outbox : callable
        Makes the outbox of a transaction.
    shutdown : Shutdown
        Asked between two batches.
    log : Log
        Where is told what happens.
    shared : tuple of str or None
        The input topic and the topic of the order, when one lane answers for all partitions.
    after_turn : callable, optional
        Told about each batch, also an empty one.
    clock : callable
        Seconds.
    """

    def __init__(
        self,
        broker: Broker,
        opener: Opener,
        reader: MessageReader,
        outbox: Callable[[], Outbox],
        *,
        shutdown: Shutdown,
        log: Log,
        shared: tuple[str, str] | None = None,
        after_turn: Callable[[Turn], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._broker = broker
        self._opener = opener
        self._reader = reader
        self._outbox = outbox
        self._shutdown = shutdown
        self._log = log
        self._shared = shared
        self._after_turn = after_turn
        self._clock = clock
        self._lanes: dict[int, Lane] = {}  # by partition
        self._sequencer: order.Sequencer | None = None
        self._held: set[int] = set()
        self._announced: set[str] = set()

    def run(self) -> None:
        """Work until a stop is requested.

        Raises
        ------
        Refused
            When a record holds no event and that is not allowed; everything before it is answered.
        Fenced, AdapterError, SnapshotError
            When it cannot go on; the next start goes on exactly.
        """
        try:
            if self._shared is None:
                self._broker.join(self)
            else:
                self._take_all(*self._shared)
            while not self._shutdown.requested:
                self._turn()
            self.revoked(list(self._lanes))
        finally:
            self.lost(list(self._lanes))
            self._broker.close()

    # ------------------------------------------------------------ whose partitions

    def assigned(self, partitions: Sequence[int]) -> Mapping[int, int]:
        """Open a lane for each partition."""
        for p in partitions:
            lane = self._opener.open(p)
            self._lanes[p] = lane
            lane.snapshot(self._clock())
        return {p: self._lanes[p].offsets[p] for p in partitions}

    def revoked(self, partitions: Sequence[int]) -> None:
        """Keep the lanes, so that others go on from here."""
        for lane in self._lanes_of(partitions):
            lane.snapshot(self._clock())
            self._log.info("engine kept", engine=lane.name, events=lane.number)
        self.lost(partitions)

    def lost(self, partitions: Sequence[int]) -> None:
        """Drop the lanes; their snapshots and the commits stay."""
        for lane in self._lanes_of(partitions):
            lane.close()
            self._announced.discard(lane.name)
        for p in partitions:
            self._lanes.pop(p, None)

    def _lanes_of(self, partitions: Sequence[int]) -> list[Lane]:
        """The lanes of some partitions, each once."""
        return list({id(lane): lane for p in partitions if (lane := self._lanes.get(p))}.values())

    def _take_all(self, topic: str, order_topic: str) -> None:
        """Open the one lane of all partitions, and the order to be followed up to its commits."""
        partitions = range(self._broker.n_partitions(topic))
        lane, runs = self._opener.open_shared(partitions, order_topic)
        self._lanes = dict.fromkeys(partitions, lane)
        lane.snapshot(self._clock())
        self._sequencer = order.Sequencer(runs)
        self._broker.take(lane.offsets)

    # ------------------------------------------------------------ one batch

    def _turn(self) -> None:
        try:
            read = self._broker.read()
        except LostPartitions as error:
            self._drop_all(error)
            return
        began = self._clock()
        outbox = self._outbox()
        runs = [
            self._lanes[group[0].partition].take(group, self._reader, outbox)
            for group in self._due(read)
            if group[0].partition in self._lanes
        ]
        try:
            self._deliver(outbox, [run for run in runs if run.length])
        except LostPartitions as error:
            self._drop_all(error)
        now = self._clock()
        lanes = self._lanes_of(list(self._lanes))
        for lane in lanes:
            if lane.refused is not None:
                raise self._stopped(lane.refused)
            if lane.due(now):
                lane.snapshot(now)
            if not lane.replaying and lane.name not in self._announced:
                self._announced.add(lane.name)
                self._log.info("engine ready", engine=lane.name, events=lane.number)
        if self._after_turn is not None:
            ready = bool(lanes) and not any(lane.replaying for lane in lanes)
            self._after_turn(Turn(read, now - began, lanes, ready))

    def _due(self, messages: Sequence[Message]) -> list[list[Message]]:
        """What may be learned now, in order, in groups of one partition each."""
        if self._sequencer is None:
            return _by_partition(messages)
        due = self._sequencer.feed(messages)
        full = {p for p in self._lanes if self._sequencer.held(p) >= MOST_HELD}
        self._broker.hold(full - self._held)
        self._broker.release(self._held - full)
        self._held = full
        if self._sequencer.finished:
            self._sequencer = None
        return [list(group) for _, group in itertools.groupby(due, lambda m: m.partition)]

    def _deliver(self, outbox: Outbox, runs: Sequence[order.Run]) -> None:
        if not runs:
            return
        if self._shared is not None:
            outbox.order(order.encode(runs))
        commits = {
            run.partition: Commit(run.end, self._lanes[run.partition].number) for run in runs
        }
        behind = self._broker.deliver(outbox.outputs, commits)
        if behind is not None:
            self._lanes[runs[0].partition].order = behind

    def _drop_all(self, error: LostPartitions) -> None:
        self._log.warning("partitions lost", reason=str(error))
        self.lost(list(self._lanes))
        if self._shared is None:
            self._broker.rejoin()
        else:
            self._take_all(*self._shared)

    def _stopped(self, refused: Refused) -> Refused:
        """Keep what was answered before the record that ends the run."""
        self.revoked(list(self._lanes))
        return refused


def _by_partition(messages: Sequence[Message]) -> list[list[Message]]:
    """Messages by partition, in the order in which the partitions come first."""
    groups: dict[int, list[Message]] = {}
    for message in messages:
        groups.setdefault(message.partition, []).append(message)
    return list(groups.values())
