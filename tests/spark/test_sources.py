"""What streams bring: late and empty batches, a column that appears, and Kafka."""

from __future__ import annotations

import json
import re

import pytest
from pyspark.sql import functions

from streamclust import StreamClusterer
from streamclust.events import FeatureAdded
from streamclust_adapters.spark import StreamClusterQuery
from tests.kafka.brokers import Kafka
from tests.kafka.worlds import World
from tests.spark.sessions import ROOT
from tests.spark.streams import (
    SCHEMA,
    Collector,
    learned_alone,
    rows_of,
    run,
    same_model,
    stream_of,
    write,
)
from tests.spark.test_query import OPTIONS, query_of

PAGE = ROOT / "docs" / "scaling.md"
pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]


def test_late_rows_are_dead_lettered_and_empty_batches_pass(spark, tmp_path):
    batches = [rows_of(0, bad=0), [], rows_of(1, bad=0)]
    for batch, rows in enumerate(batches):
        for i, row in enumerate(rows):
            row["at"] = 1000.0 * batch + i
        write(tmp_path / "in", batch, rows)
    for row in batches[2][:30]:
        row["at"] = 290.0  # within the lateness, when the clock stands at 299
    for row in batches[2][30:50]:
        row["at"] = 280.0
    write(tmp_path / "in", 2, batches[2])
    options = OPTIONS | {"time_unit": "seconds", "max_lateness": 10}
    model = StreamClusterer(**options)
    answers, refused, _ = learned_alone(model, batches, time="at")
    assert len(refused) == 20
    collector = Collector()
    query = StreamClusterQuery(StreamClusterer(**options), id="id", time="at", **collector.sinks())
    stream = stream_of(spark, tmp_path / "in", SCHEMA + ", at double")
    run(query, stream.withColumn("at", functions.timestamp_seconds("at")), tmp_path / "check")
    same_model(query.model, model)
    assert (collector.answers, collector.refused) == (answers, refused)
    assert query.batch == 2
    reasons = {row.reason for rows in collector.letters.values() for row in rows}
    assert reasons == {"got t=280.0; finite ones from 289.0 on are accepted"}


def test_a_column_that_appears_joins_and_old_rows_go_on(spark, tmp_path):
    batches = [rows_of(0), rows_of(1), rows_of(2, more=["z"]), rows_of(3, more=["z"])]
    for row in batches[3][::2]:
        row["z"] = None
    for batch, rows in enumerate(batches[:2]):
        write(tmp_path / "in", batch, rows)
    model = StreamClusterer(**OPTIONS)
    answers, refused, changes = learned_alone(model, batches)
    assert [c.features for c in changes if isinstance(c, FeatureAdded)] == [("z",)]
    collector = Collector()
    run(query_of(collector), stream_of(spark, tmp_path / "in"), tmp_path / "check")
    for batch, rows in enumerate(batches[2:], 2):
        write(tmp_path / "in", batch, rows)
    query = query_of(collector)  # restarted with the wider schema
    run(query, stream_of(spark, tmp_path / "in", SCHEMA + ", z double"), tmp_path / "check")
    same_model(query.model, model)
    assert (collector.answers, collector.refused) == (answers, refused)
    assert collector.kinds == [type(change).__name__ for change in changes]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A topic of three partitions on an Apache Kafka of this test alone."""
    kafka = Kafka(tmp_path_factory.mktemp("kafka"))
    try:
        kafka.start()
        with World(kafka.address, tmp_path_factory.mktemp("world"), n=3) as made:
            yield made
    finally:
        kafka.stop()


def values(batch):
    """Messages of a batch, two of which hold no event."""
    rows = rows_of(batch, bad=0)
    made = [(i % 3, json.dumps(row).encode()) for i, row in enumerate(rows)]
    return [*made, (batch % 3, b"broken"), (0, b'{"x": "text"}')]


def test_kafka_is_read_on_through_a_restart(spark, world, tmp_path):
    raw = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", world.address)
        .option("subscribe", world.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 250)
        .load()
    )
    parsed = functions.from_json(functions.col("value").cast("string"), "x double, y double")
    stream = raw.select("topic", "partition", "offset", "value", parsed.alias("e"))
    stream = stream.select("topic", "partition", "offset", "value", "e.x", "e.y")
    collector = Collector()

    def learn():
        query = query_of(
            collector, id=["topic", "partition", "offset"], features=["x", "y"], explain=True
        )
        run(query, stream, tmp_path / "check")
        return query

    world.produce(values(0) + values(1))
    first = learn()
    assert first.batch >= 2
    world.produce(values(2) + values(3))
    last = learn()
    assert last.batch > first.batch
    assert last.totals == {"learned": 1200, "refused": 8}
    assert last.model.tick_count == 1200
    handled = [
        (row.partition, row.offset)
        for rows in (*collector.rows.values(), *collector.letters.values())
        for row in rows
    ]
    assert sorted(handled) == [(p, i) for p in range(3) for i in range(world.sent[p])]
    letters = [row for rows in collector.letters.values() for row in rows]
    assert {bytes(row.value) for row in letters} == {b"broken", b'{"x": "text"}'}
    late = [row for batch, rows in collector.rows.items() if batch > 2 for row in rows]
    assert sum(row.cluster >= 0 for row in late) > 0.8 * len(late)


def test_what_the_documentation_shows_runs(spark, world, tmp_path):
    """The lines for Kafka, with this world's names in them."""
    (code,) = re.findall(r"```py\n(from streamclust .*?)```", PAGE.read_text(), re.DOTALL)
    folder = str(tmp_path)
    for old, new in (
        ("HOST:9092", world.address),
        ('"readings"', f'"{world.topic}"'),
        (".load()", '.option("startingOffsets", "earliest").load()'),
        ("load double, temp double", "x double, y double"),
        ('["load", "temp"]', '["x", "y"]'),
        ('f"answers/', f'f"{folder}/answers/'),
        ('f"bad/', f'f"{folder}/bad/'),
        ('f"changes/', f'f"{folder}/changes/'),
        ('"checkpoint", processingTime="10 seconds"', f'"{folder}/checkpoint", availableNow=True'),
    ):
        assert old in code, old
        code = code.replace(old, new)
    world.produce(values(0))
    names = {"spark": spark}
    exec(compile(code, PAGE, "exec"), names)
    names["query"].stop()
    n = sum(world.sent.values())
    answers = spark.read.parquet(f"{folder}/answers")
    assert answers.count() + spark.read.json(f"{folder}/bad").count() == n
    assert {"cluster", "region", "distance", "rule", "offset"} < set(answers.columns)
    assert "ClusterBorn" in {row.kind for row in spark.read.json(f"{folder}/changes").collect()}
