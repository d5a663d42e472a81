"""The loop: a record comes in, is answered from what was known before, and then learned.

It owns the order of things: an answer is handed to the outside before the snapshot that contains
its event, so a killed run repeats answers and never drops one. It knows neither files nor brokers.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Protocol

from streamclust_adapters.answering import Answerer, Refused, Totals
from streamclust_adapters.ports import Model, Position, Record, Sink, Source

LATEST = 0.1
"""Seconds after which an answer is handed out, however many more are to be computed."""


class SavesSnapshots(Protocol):
    """Where snapshots go."""

    def save(self, model: Model, number: int, source: Position) -> object:
        """Keep the model as it is after event `number`."""
        ...


class Shutdown:
    """Turns SIGINT and SIGTERM into a request that the loop sees between two events.

    A second signal acts as if nobody listened, so a run that cannot finish can still be stopped.
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.requested = False
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._before: dict[signal.Signals, object] = {}

    def fileno(self) -> int:
        """A descriptor that becomes readable with the request."""
        return self._read

    def request(self) -> None:
        """Ask the loop to end after the event at hand."""
        self.requested = True
        with suppress(BlockingIOError):
            os.write(self._write, b"!")

    def __enter__(self) -> Shutdown:
        for number in self.SIGNALS:
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # as signal itself gave it
        os.close(self._read)
        os.close(self._write)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        for known in self.SIGNALS:
            signal.signal(known, signal.SIG_DFL)
        self.request()


class Runner:
    """One source, one model, one sink.

    Parameters
    ----------
    model : Model
        The clusterer; the runner is its only user while it runs.
    source, sink : Source, Sink
        The doors.
    shutdown : Shutdown
        Asked between two events.
    learn : bool
        Whether events are learned after they are answered.
    explain : bool or callable
        Whether an answer carries its rule; a callable is asked for each record.
    strict : bool
        Whether the first record that holds no event ends the run.
    changes : bool
        Whether change events are handed to the sink.
    snapshots : SavesSnapshots, optional
        Where the model is kept: before the first event, every `every` events, and at the end.
    every : int
        Events between two snapshots; 0 for none in between.
    resumed : mapping, optional
        The `source` of the snapshot that the model comes from.
    after_batch : callable, optional
        Told the totals after each batch.
    settings : mapping, optional
        What else the position needs to be understood; it is kept beside it.
    clock : callable
        Seconds.
    """

    def __init__(
        self,
        model: Model,
        source: Source,
        sink: Sink,
        *,
        shutdown: Shutdown,
        learn: bool = True,
        explain: bool | Callable[[Record], bool] = False,
        strict: bool = False,
        changes: bool = False,
        snapshots: SavesSnapshots | None = None,
        every: int = 0,
        resumed: Position | None = None,
        settings: Position | None = None,
        after_batch: Callable[[Totals], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model = model
        self._source = source
        self._sink = sink
        self._shutdown = shutdown
        self._snapshots = snapshots
        self._every = every if snapshots is not None else 0
        self._settings = settings or {}
        self._after_batch = after_batch
        self._clock = clock
        self._last: Record | None = None
        start = resumed or {}
        self.totals = Totals(last=start.get("events", 0))
        self._saved_at: int | None = start.get("events")
        self._answerer = Answerer(
            model, self.totals, learn=learn, explain=explain, strict=strict, changes=changes
        )

    def run(self) -> Totals:
        """Run until the input ends or a stop is requested.

        Raises
        ------
        Refused
            With `strict`, at the first record that holds no event; everything before it is
            answered and kept.
        AdapterError, SnapshotError
            When the outside fails; the last snapshot that was written is whole.
        """
        self._snapshot()
        try:
            with self._answerer:
                while not self._shutdown.requested and self._batch():
                    pass
        except Refused:
            self._snapshot()
            raise
        self._snapshot()
        return self.totals

    def _batch(self) -> bool:
        batch = self._source.next_batch()
        if batch is None:
            return False
        clock = self._clock
        latest = clock() + LATEST
        try:
            for record in batch:
                if self._shutdown.requested:
                    break
                self._answerer.one(record, self._sink)
                self._last = record
                if (now := clock()) >= latest:
                    self._sink.flush()
                    latest = now + LATEST
                if self._every and record.number % self._every == 0:
                    self._snapshot()
        finally:
            self._sink.flush()  # also when the model broke: what was answered is not lost
        if self._after_batch is not None:
            self._after_batch(self.totals)
        return True

    def _snapshot(self) -> None:
        """Keep the model, after everything that it has answered is safe outside."""
        if self._snapshots is None or self._saved_at == self.totals.last:
            return
        self._sink.sync()
        source = {**self._source.position_after(self._last), **self._settings}
        self._snapshots.save(self._model, self.totals.last, source)
        self._saved_at = self.totals.last
