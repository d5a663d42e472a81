"""A model that learns from a streaming data frame: one step per micro-batch, exactly once.

Per batch the frozen model is broadcast, every partition is summarised where its rows are, and the
driver merges the summaries and learns them. Answers are those of the model before the batch. Sinks
are called before the snapshot is written, and the snapshot before Spark commits the batch: after a
crash a batch comes again with the same number, and is learned and handed out again only where the
snapshot does not hold it yet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import reduce
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, functions
from pyspark.sql.streaming.query import StreamingQuery

from streamclust.clusterer import StreamClusterer
from streamclust.errors import AdapterError
from streamclust.events import Change
from streamclust.summary import Summary
from streamclust_adapters.encoder import Encoder
from streamclust_adapters.snapshots import SnapshotFolder, load_newest, set_aside
from streamclust_adapters.spark.columns import Columns, columns_of
from streamclust_adapters.spark.labelling import answered, beside, check_free
from streamclust_adapters.spark.partitions import SUMMARY, Summarise

Sink: TypeAlias = Callable[[DataFrame, int], object]
CHANGES = "batch bigint, number bigint, event bigint, time double, kind string, change string"
FOLDER = "streamclust"
"""Where the model is kept, in the folder of the checkpoint."""


class StreamClusterQuery:
    """Attaches a model to a streaming data frame.

    Parameters
    ----------
    model : StreamClusterer
        What a query without a snapshot begins with; it is not changed.
    features : sequence of str, optional
        The columns to cluster by; all that hold numbers and are not named otherwise, if None.
    id : str or sequence of str, optional
        The columns that tell events apart; for Kafka topic, partition and offset. Which events are
        kept for refits is drawn by their hash, so it does not depend on the partitions.
    time, weight : str, optional
        Columns of the events' times (timestamps or seconds) and weights.
    ignore : collection of str
        Columns that are neither.
    assignments, dead_letters, changes : callables of a data frame and the batch's number, optional
        What is done with the answered rows, with the rows that the model refuses and their
        ``reason``, and with the change events. A batch may come again after a crash, with the same
        rows and number.
    explain : bool
        Whether assignments have the cluster's rule.
    state : path, optional
        The folder of snapshots; ``streamclust`` in the checkpoint's folder, if None. It must be
        one that the driver can write to as files.

    Attributes
    ----------
    model : StreamClusterer
        The model as it is now.
    batch : int
        Number of the last batch in it; -1 before the first.
    totals : dict
        Rows ``learned`` and ``refused`` so far, restarts included.
    """

    def __init__(
        self,
        model: StreamClusterer,
        *,
        features: Sequence[str] | None = None,
        id: str | Sequence[str] | None = None,
        time: str | None = None,
        weight: str | None = None,
        ignore: Collection[str] = (),
        assignments: Sink | None = None,
        dead_letters: Sink | None = None,
        changes: Sink | None = None,
        explain: bool = False,
        state: str | PathLike[str] | None = None,
    ) -> None:
        self._given = model
        self._named: dict[str, Any] = {"id": id, "time": time, "weight": weight, "ignore": ignore}
        self._features = features
        self._assignments, self._dead_letters, self._changes = assignments, dead_letters, changes
        self._explain = explain
        self._state = state
        self._folder: SnapshotFolder | None = None
        self._query: StreamingQuery | None = None
        self._columns: Columns
        self._begin(model, -1, {"learned": 0, "refused": 0})

    def start(
        self, df: DataFrame, checkpoint: str | PathLike[str], **trigger: Any
    ) -> StreamingQuery:
        """Begin, or go on from the checkpoint and the snapshot beside it.

        Parameters
        ----------
        df : streaming DataFrame
        checkpoint : path
            Spark's checkpoint of this query.
        **trigger
            As of ``DataStreamWriter.trigger``: ``processingTime="10 seconds"``, for example.

        Raises
        ------
        AdapterError
            For columns that do not fit, a folder that cannot be written or is in use, and a
            snapshot of a model with other options.
        SnapshotError
            Where there are snapshots and none can be trusted.
        """
        if self._query is not None and self._query.isActive:
            raise AdapterError("this query is running; stop it first, or make another")
        self.close()
        columns = columns_of(df, self._features, **self._named)
        if self._given.time_unit == "seconds" and columns.time is None:
            raise AdapterError("time_unit='seconds' needs the column of times; name it with time=")
        check_free(df, self._explain)
        self._columns = columns
        self._open(fspath(checkpoint))
        writer = df.writeStream.foreachBatch(self._learn)
        if trigger:
            writer = writer.trigger(**trigger)
        self._query = writer.option("checkpointLocation", fspath(checkpoint)).start()
        return self._query

    def stop(self) -> None:
        """Stop the query and give its folder free."""
        if self._query is not None:
            self._query.stop()
        self.close()

    def close(self) -> None:
        """Give the folder of a query that has ended free."""
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    # ------------------------------------------------------------ state

    def _begin(self, model: StreamClusterer, batch: int, totals: dict[str, int]) -> None:
        self.model, self.batch, self.totals = model, batch, totals
        self._told: list[Change] = []
        model.on(Change, self._told.append)

    def _open(self, checkpoint: str) -> None:
        """Take the folder of snapshots, and the newest that can be trusted."""
        path = local(checkpoint) / FOLDER if self._state is None else local(fspath(self._state))
        folder = SnapshotFolder(path)
        try:
            refit = self._given._get_params()["refit"]
            own = None if isinstance(refit, str) else refit
            found = load_newest(path, lambda file: StreamClusterer.load(file, refit=own))
            if found is None:
                copy = StreamClusterer.__new__(StreamClusterer)
                copy.__setstate__(self._given.__getstate__())
                self._begin(copy, -1, {"learned": 0, "refused": 0})
            else:
                for file, _ in found.broken:
                    set_aside(file)
                self._resume(found.model, found.path)
        except BaseException:
            folder.close()
            raise
        self._folder = folder

    def _resume(self, model: StreamClusterer, path: Path) -> None:
        source = model.source or {}
        if source.get("kind") != "spark":
            raise AdapterError(f"{path} is no snapshot of a Spark query")
        given, found = (m._get_params() for m in (self._given, model))
        other = [name for name in given if repr(given[name]) != repr(found[name])]
        if other:
            told = ", ".join(f"{name}={found[name]!r}" for name in other)
            raise AdapterError(f"{path} is of a model with {told}; give the same options")
        self._begin(model, source["batch"], dict(source["totals"]))

    # ------------------------------------------------------------ a batch

    def _learn(self, df: DataFrame, batch: int) -> None:
        """Answer, learn and keep one batch, unless that has been done."""
        if batch <= self.batch:
            return
        if batch > self.batch + 1:
            raise AdapterError(
                f"batch {batch} comes, and the newest snapshot holds the batches up to "
                f"{self.batch}: what lies between is lost to the model. Begin anew with another "
                "checkpoint, or bring the snapshots back"
            )
        context = df.sparkSession.sparkContext
        frozen = context.broadcast(self.model.freeze(rules=self._explain))
        df.persist()
        try:
            work = Summarise(frozen, self._columns)
            parts = self._columns.for_learning(df).mapInArrow(work, SUMMARY).collect()
            self._hand_out(df, frozen, batch)
        finally:
            df.unpersist()
            frozen.destroy()
        if parts:
            self._apply(reduce(Summary.merge, (Summary.from_bytes(part[0]) for part in parts)))
        self._tell(df, batch)
        assert self._folder is not None
        self.batch = batch
        source = {"kind": "spark", "batch": batch, "totals": dict(self.totals)}
        self._folder.save(self.model, batch, source)

    def _apply(self, summary: Summary) -> None:
        self.model.apply(summary)
        self.totals["learned"] += summary.learned
        self.totals["refused"] += summary.refused

    def _hand_out(self, df: DataFrame, frozen: Any, batch: int) -> None:
        """Give the answered rows and the refused ones to their sinks."""
        if self._assignments is None and self._dead_letters is None:
            return
        rows = answered(df, frozen, self._columns, self._explain).persist()
        refused = functions.col("reason").isNotNull()
        if self._assignments is not None:
            self._assignments(rows.where(~refused).drop("reason"), batch)
        if self._dead_letters is not None:
            others = [f.name for f in beside(self._explain) if f.name != "reason"]
            self._dead_letters(rows.where(refused).drop(*others), batch)
        rows.unpersist()

    def _tell(self, df: DataFrame, batch: int) -> None:
        """Give the change events to their sink."""
        told, encoder = list(self._told), Encoder()
        self._told.clear()
        if self._changes is None or not told:
            return
        rows = [
            (
                batch,
                change.number,
                change.tick,
                change.time,
                type(change).__name__,
                encoder.value(encoder.change(batch, change)).decode(),
            )
            for change in told
        ]
        self._changes(df.sparkSession.createDataFrame(rows, CHANGES), batch)


def local(place: str) -> Path:
    """Return a path or a file URI as a path; AdapterError for what lies elsewhere."""
    parts = urlsplit(place)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    if parts.scheme and "://" in place:
        raise AdapterError(
            f"{place} is no folder of files; name one that the driver can write to with state="
        )
    return Path(place)
