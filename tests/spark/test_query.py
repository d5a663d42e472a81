"""A query on a real Spark of two executors, against one process that learns the same batches."""

from __future__ import annotations

import json
import re

import pytest

from streamclust import StreamClusterer
from streamclust.errors import AdapterError
from streamclust_adapters.spark import StreamClusterQuery, label
from tests.spark.sessions import ROOT
from tests.spark.streams import (
    Collector,
    learned_alone,
    rows_of,
    run,
    same_model,
    stream_of,
    write,
)

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]
OPTIONS = {"window": 200, "seed": 3}
BATCHES = [rows_of(batch) for batch in range(4)]


def query_of(collector: Collector, **more) -> StreamClusterQuery:
    named = {"id": "id"} | collector.sinks() | more
    return StreamClusterQuery(StreamClusterer(**OPTIONS), **named)


@pytest.fixture(scope="module")
def alone():
    model = StreamClusterer(**OPTIONS)
    return model, *learned_alone(model, BATCHES)


@pytest.fixture
def files(tmp_path):
    for batch, rows in enumerate(BATCHES):
        write(tmp_path / "in", batch, rows)
    return tmp_path / "in"


def check(query, collector, alone):
    """All as if nothing had happened: every row answered once, the model that of one process."""
    model, answers, refused, changes = alone
    same_model(query.model, model)
    assert collector.answers == answers
    assert collector.refused == refused
    assert collector.kinds == [type(change).__name__ for change in changes]
    assert query.totals == {"learned": len(answers), "refused": len(refused)}


def test_four_partitions_learn_as_one_process(spark, files, tmp_path, alone):
    collector = Collector()
    query = query_of(collector, explain=True)
    run(query, stream_of(spark, files), tmp_path / "check")
    check(query, collector, alone)
    assert query.batch == len(BATCHES) - 1
    rows = [row for rows in collector.rows.values() for row in rows]
    assert {row.note for row in rows} > {"n1", "n2"}
    assert all((row.rule is None) == (row.cluster < 0) for row in rows)
    reasons = {row.reason for rows in collector.letters.values() for row in rows}
    assert any("feature 'x' is nan" in reason for reason in reasons)
    assert any("without features" in reason for reason in reasons)
    for told in collector.told.values():
        assert all(json.loads(row.change)["number"] == row.number for row in told)
    # A static frame is labelled by the model that was kept.
    newest = max((tmp_path / "check" / "streamclust").glob("snapshot-*"))
    points = [(float(x), float(x % 7)) for x in range(40)]
    labelled = label(spark.createDataFrame(points, "x double, y double"), newest, explain=True)
    model = StreamClusterer.load(newest)
    for row in labelled.collect():
        one = model.assign_one({"x": row.x, "y": row.y})
        assert (row.cluster, row.region, row.reason) == (one.label, one.region, None)
        assert row.rule == (None if one.label < 0 else str(model.rule(one.label)))


def test_columns_that_do_not_fit_are_named(spark, tmp_path):
    (tmp_path / "in").mkdir()
    schema = "id bigint, x double, cluster double, s string"
    stream = spark.readStream.schema(schema).json(str(tmp_path / "in"))
    model = StreamClusterer()
    for named, message in (
        ({"features": ["x", "gone"]}, "no column 'gone'"),
        ({"features": ["x", "s"]}, "column 's' is string"),
        ({"features": ["x"], "time": "s"}, "column 's' is string"),
        ({"features": ["x"]}, r"columns \['cluster'\] are named as those of the answer"),
    ):
        with pytest.raises(AdapterError, match=message):
            StreamClusterQuery(model, id="id", **named).start(stream, tmp_path / "check")
    timed = StreamClusterQuery(StreamClusterer(time_unit="seconds"), features=["x"])
    with pytest.raises(AdapterError, match="needs the column of times"):
        timed.start(stream, tmp_path / "check")


def test_the_ten_lines_of_the_readme_run(spark, files, tmp_path):
    text = (ROOT / "README.md").read_text()
    (code,) = re.findall(r"```py\n(.*?)```", text, re.DOTALL)
    assert len(code.splitlines()) <= 11
    for old, new in (
        ('f"answers/', f'f"{tmp_path}/answers/'),
        ('f"changes/', f'f"{tmp_path}/changes/'),
        (
            '"checkpoint", processingTime="10 seconds"',
            f'"{tmp_path}/checkpoint", availableNow=True',
        ),
    ):
        assert old in code, old
        code = code.replace(old, new)
    names = {"readings": stream_of(spark, files)}
    exec(compile(code, "README.md", "exec"), names)
    names["query"].stop()
    rows = spark.read.parquet(f"{tmp_path}/answers")
    assert rows.count() == names["query"].totals["learned"] > 1100
    assert rows.where("cluster >= 0").count() > 600
