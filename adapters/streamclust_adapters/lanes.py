"""A lane: one engine, the partitions that it answers for, and how far it is in each.

Below the committed offset a lane learns without answering: those answers were produced before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from streamclust.errors import AdapterError
from streamclust_adapters.answering import Answerer, Refused, Totals
from streamclust_adapters.broker import Commit, Message
from streamclust_adapters.messages import MessageReader, MessageRecord, Nowhere, Outbox
from streamclust_adapters.order import Run
from streamclust_adapters.ports import Model, Position
from streamclust_adapters.snapshots import SnapshotFolder


class Manner(msgspec.Struct, frozen=True):
    """How lanes answer, and how often they are kept.

    Attributes
    ----------
    explain, strict, changes : bool
        As of `Answerer`.
    every : int
        Events between two snapshots.
    seconds : float
        Seconds after which there is one anyway, if there was an event.
    learn : bool
        As of `Answerer`.
    """

    explain: bool = False
    strict: bool = False
    changes: bool = False
    every: int = 10_000
    seconds: float = 300.0
    learn: bool = True


class Lane:
    """An engine at work.

    Parameters
    ----------
    name : str
        The name of its folder.
    model : Model
        The engine, as it was after `number` records.
    folder : SnapshotFolder or None
        Where it is kept; nowhere where it does not learn.
    identity : mapping
        What a snapshot says beside the position.
    offsets : mapping
        The next offset of each partition.
    number : int
        How many records the engine has dealt with.
    commits : mapping
        What the group has committed; up to there nothing is answered.
    order : int or None
        The next offset of the recorded order, where there is one.
    manner : Manner
        How to answer.

    Attributes
    ----------
    refused : Refused or None
        Why the lane takes no more, with `Manner.strict`.
    totals : Totals
        What was answered and refused, replays left out.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        folder: SnapshotFolder | None,
        *,
        identity: Position,
        offsets: Mapping[int, int],
        number: int,
        commits: Mapping[int, Commit],
        order: int | None,
        manner: Manner,
    ) -> None:
        self.name = name
        self.model = model
        self.number = number
        self.offsets = dict(offsets)
        self.order = order
        self.refused: Refused | None = None
        self.totals = Totals(last=number)
        self.saved_at: float | None = None  # the clock of whoever asks; None: not saved yet
        self._folder = folder
        self._identity = identity
        self._manner = manner
        self._saved = -1
        self.until = {p: commit.offset for p, commit in commits.items()}
        numbers = [commit.number for commit in commits.values() if commit.number is not None]
        self._expected = max(numbers, default=None)
        self._replaying = Answerer(model, Totals()).__enter__()
        self._answering: Answerer | None = None
        if not self.replaying:
            self._catch_up()

    @property
    def replaying(self) -> bool:
        """Whether there are answers ahead that were produced before."""
        return any(self.offsets[p] < until for p, until in self.until.items())

    def take(self, messages: Sequence[Message], reader: MessageReader, outbox: Outbox) -> Run:
        """Deal with messages of one partition; the run of those whose answers are in `outbox`.

        Raises
        ------
        AdapterError
            When records are missing that the engine once learned.
        """
        partition = messages[0].partition
        first = count = 0
        for message in messages:
            if message.offset < self.offsets[partition]:
                continue
            if self.refused is not None:
                break
            if message.offset < self.until.get(partition, 0):
                self._replaying.one(reader.record(message, self.number + 1), NOWHERE)
            else:
                if not self._live(reader.record(message, self.number + 1), outbox):
                    break
                first = first if count else message.offset
                count += 1
            self.number += 1
            self.offsets[partition] = message.offset + 1
        if self._answering is None and not self.replaying:
            self._catch_up()
        return Run(partition, first, self.offsets[partition], count)

    def _live(self, record: MessageRecord, outbox: Outbox) -> bool:
        answering = self._answering or self._catch_up()
        outbox.about(record)
        try:
            answering.one(record, outbox)
        except Refused as refused:
            outbox.take_back()
            self.refused = refused
            return False
        return True

    def _catch_up(self) -> Answerer:
        """Stop replaying: from here on every record is answered."""
        if self._expected is not None and self.number != self._expected:
            raise AdapterError(
                f"{self.name}: {self.number:,} records came again up to the committed offset, and "
                f"there were {self._expected:,}; some are gone (a compacted topic?), so the engine "
                "cannot be rebuilt"
            )
        self._replaying.__exit__(None, None, None)
        manner = self._manner
        self._answering = Answerer(
            self.model,
            self.totals,
            learn=manner.learn,
            explain=manner.explain,
            strict=manner.strict,
            changes=manner.changes,
        ).__enter__()
        return self._answering

    def due(self, now: float) -> bool:
        """Whether it is time for a snapshot."""
        new = 0 if self._folder is None else self.number - self._saved
        if self.saved_at is None:
            self.saved_at = now
        late = now - self.saved_at >= self._manner.seconds
        return new >= self._manner.every or (new > 0 and late)

    def resumed(self) -> None:
        """Say that the engine is as it was in its newest snapshot."""
        self._saved = self.number

    def snapshot(self, now: float) -> None:
        """Keep the engine, once everything that it has answered was delivered.

        Raises
        ------
        SnapshotError
            When it cannot be written; the ones before it stay.
        """
        if self._folder is None or self._saved == self.number or self.replaying:
            return
        self._folder.save(self.model, self.number, self.position())
        self._saved, self.saved_at = self.number, now

    def position(self) -> Position:
        """Where the engine stands, as a snapshot says it."""
        offsets = {str(p): offset for p, offset in sorted(self.offsets.items())}
        order = {} if self.order is None else {"order": self.order}
        return {**self._identity, "events": self.number, "offsets": offsets, **order}

    def close(self) -> None:
        """Let go of the engine and its folder."""
        (self._answering or self._replaying).__exit__(None, None, None)
        if self._folder is not None:
            self._folder.close()


NOWHERE = Nowhere()
