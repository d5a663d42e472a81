"""What is killed, and what fails, changes nothing of the result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions

from streamclust import StreamClusterer
from streamclust.errors import AdapterError
from streamclust_adapters.spark import StreamClusterQuery
from tests.kafka.brokers import until
from tests.spark.sessions import ROOT
from tests.spark.streams import Collector, run, same_model, stream_of
from tests.spark.test_query import alone, check, files, query_of

__all__ = ["alone", "files"]
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]


def processes() -> dict[int, tuple[int, str]]:
    """Parent and command line of every process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            found[int(folder.name)] = parent, (folder / "cmdline").read_text()
        except OSError:
            continue  # it has ended meanwhile
    return found


def executors() -> list[int]:
    """The executors of this process's own Spark."""
    every = processes()

    def ours(pid: int) -> bool:
        while pid > 1 and pid in every:
            if pid == os.getpid():
                return True
            pid = every[pid][0]
        return False

    return [p for p, (_, line) in every.items() if "CoarseGrainedExecutor" in line and ours(p)]


def test_an_executor_is_killed_in_the_middle_of_a_batch(spark, files, tmp_path, alone):
    collector, killed = Collector(), []
    query = query_of(collector)
    collect = query._assignments

    def kill_first(df, batch):
        if batch == 2 and not killed:
            killed.append(executors()[0])
            os.kill(killed[0], signal.SIGKILL)
        collect(df, batch)

    query._assignments = kill_first
    run(query, stream_of(spark, files), tmp_path / "check")
    assert killed
    assert killed[0] not in executors()
    check(query, collector, alone)


def test_the_driver_is_killed_and_another_goes_on(spark, files, tmp_path, alone):
    own, mark, checkpoint = tmp_path / "own", tmp_path / "mark", tmp_path / "check"
    own.mkdir()
    arguments = [files, checkpoint, own, 2, mark]
    log = tmp_path / "driver.log"
    with log.open("wb") as stream:
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.driver", *map(str, arguments)],
            cwd=ROOT,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        until(lambda: mark.exists() or driver.poll() is not None, log.read_text, patience=300)
        assert driver.poll() is None, log.read_text()
        snapshots = sorted(p.name for p in (checkpoint / "streamclust").glob("snapshot-*"))
        assert snapshots == [f"snapshot-{n:020d}.safetensors" for n in (0, 1)]
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    collector = Collector()
    query = query_of(collector)
    run(query, stream_of(spark, files), checkpoint)
    model, answers, refused, changes = alone
    same_model(query.model, model)
    assert list(collector.rows) == [2, 3]  # batch 2 had not been kept
    assert collector.answers.items() < answers.items()
    assert query.totals == {"learned": len(answers), "refused": len(refused)}
    told = [row.number for batch in sorted(collector.told) for row in collector.told[batch]]
    assert told == list(range(len(changes) - len(told) + 1, len(changes) + 1))


def test_a_poisoned_partition_stops_the_query_and_costs_nothing(spark, files, tmp_path, alone):
    """A row on which the work itself fails: as often as it comes; gone, all goes on."""
    broken = functions.udf(lambda id: 1 // (id - 701), "bigint")
    collector = Collector()
    stream = stream_of(spark, files)
    query = query_of(collector)
    poisoned = stream.withColumn("note", functions.concat("note", broken("id").cast("string")))
    # The work fails where the column is used: in the answers, which repeat it.
    with pytest.raises(StreamingQueryException, match="ZeroDivisionError"):
        run(query, poisoned, tmp_path / "check")
    assert query.batch == 1
    assert query.model.tick_count + query.totals["refused"] == 600
    run(query, stream, tmp_path / "check")
    check(query, collector, alone)


def test_a_partition_of_bad_rows_alone_is_dead_lettered(spark, tmp_path):
    schema = "id bigint, x double, y double"
    bad = [(i, float("inf"), None) for i in range(50)]
    good = [(50 + i, float(i % 5), 1.0) for i in range(50)]
    for rows in (bad, good):  # a file each, and so a partition each
        frame = spark.createDataFrame(rows, schema).coalesce(1)
        frame.write.mode("append").parquet(str(tmp_path / "in"))
    collector = Collector()
    query = query_of(collector)
    run(query, spark.readStream.schema(schema).parquet(str(tmp_path / "in")), tmp_path / "check")
    assert collector.refused == set(range(50))
    assert query.totals == {"learned": 50, "refused": 50}
    assert query.model.tick_count == 50


def test_batches_that_were_kept_do_not_come_again(spark, files, tmp_path, alone):
    """The checkpoint lags behind the snapshot, as after a crash between the two."""
    checkpoint = tmp_path / "check"
    collector = Collector()
    query = query_of(collector)
    run(query, stream_of(spark, files), checkpoint)
    for lost in ("commits/3", "commits/.3.crc"):
        (checkpoint / lost).unlink(missing_ok=True)
    again = Collector()
    query = query_of(again)
    run(query, stream_of(spark, files), checkpoint)
    assert not again.rows
    check(query, collector, alone)
    # Without its snapshots the same checkpoint is refused: batches would be missing.
    for kept in (checkpoint / "streamclust").glob("snapshot-*"):
        kept.unlink()
    for lost in ("commits/3", "commits/.3.crc"):
        (checkpoint / lost).unlink(missing_ok=True)
    with pytest.raises(StreamingQueryException, match="what lies between is lost"):
        run(query_of(Collector()), stream_of(spark, files), checkpoint)


def test_one_query_at_a_time_and_with_the_same_options(spark, files, tmp_path):
    stream = stream_of(spark, files)
    query = query_of(Collector())
    query.start(stream, tmp_path / "check", availableNow=True).awaitTermination()
    with pytest.raises(AdapterError, match="another process writes"):
        query_of(Collector()).start(stream, tmp_path / "check")
    query.stop()
    other = StreamClusterQuery(StreamClusterer(window=300), id="id")
    with pytest.raises(AdapterError, match="with window=200, seed=3"):
        other.start(stream, tmp_path / "check")
    with pytest.raises(AdapterError, match="no folder of files"):
        query.start(stream, "s3a://bucket/check")
