"""The Spark door without Spark: what executors do with Arrow batches, columns, places of state."""

from __future__ import annotations

import pickle
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import (
    BooleanType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from streamclust import StreamClusterer
from streamclust.errors import AdapterError
from streamclust.summary import Summary, summarise
from streamclust_adapters import spark
from streamclust_adapters.spark.columns import ID, Columns, columns_of, quoted
from streamclust_adapters.spark.partitions import Answer, Summarise
from streamclust_adapters.spark.query import StreamClusterQuery, local
from tests.adapters.commands import environment


def points(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([[0.0, 0], [9, 9]])[rng.integers(0, 2, n)] + rng.normal(size=(n, 2))


@pytest.fixture(scope="module")
def model():
    made = StreamClusterer(window=60)
    for x, y in points(200).tolist():
        made.learn_one({"x": x, "y": y})
    return made


def batch_of(X, **more):
    return pa.RecordBatch.from_pydict({"x": X[:, 0], "y": X[:, 1], **more})


def test_partitions_are_summarised_over_their_arrow_batches(model):
    X, ids = points(90, seed=1), np.arange(90)
    frozen = model.freeze()
    work = Summarise(SimpleNamespace(value=frozen), Columns(("x", "y"), ("id",)))
    parts = (batch_of(X[at : at + 40], **{ID: ids[at : at + 40]}) for at in (0, 40, 80))
    (told,) = work(parts)
    found = Summary.from_bytes(told.column("summary")[0].as_py())
    whole = summarise({"x": X[:, 0], "y": X[:, 1]}, frozen, ids=ids)
    assert found.learned == whole.learned == 90
    assert np.array_equal(found.sample.rows, whole.sample.rows, equal_nan=True)
    assert np.allclose(found.pulls.high, whole.pulls.high, rtol=1e-12)
    assert list(work(iter([]))) == []


def test_rows_are_answered_with_nulls_where_there_is_no_answer(model):
    X = points(6, seed=2)
    X[1, 0] = np.nan
    kind = pa.array(["a", "b", "c", "d", "e", "f"])
    batch = pa.RecordBatch.from_pydict(
        {"x": pa.array(X[:, 0]), "y": pa.array([*X[:5, 1], None]), "kind": kind}
    )
    names = ("cluster", "region", "distance", "reason", "rule")
    frozen = SimpleNamespace(value=model.freeze(rules=True))
    (told,) = Answer(frozen, Columns(("x", "y")), names)(iter([batch]))
    assert told.schema.names == ["x", "y", "kind", *names]
    rows = told.to_pylist()
    assert rows[1] | {"x": 0} == {
        "x": 0, "y": X[1, 1], "kind": "b", "cluster": None, "region": None, "distance": None,
        "reason": "feature 'x' is nan; a finite number of magnitude at most 1e+150 is accepted",
        "rule": None,
    }  # fmt: skip
    for i in (0, 2, 3, 4):
        one = model.assign_one({"x": X[i, 0], "y": X[i, 1]})
        assert (rows[i]["cluster"], rows[i]["region"]) == (one.label, one.region)
        assert rows[i]["rule"] == (str(model.rule(one.label)) if one.label >= 0 else None)
    assert rows[5]["reason"] is None  # an absent feature is stood in for


def test_numbers_and_times_of_every_type_are_read():
    at = datetime(2024, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    batch = pa.RecordBatch.from_pydict(
        {
            "flag": pa.array([True, None]),
            "whole": pa.array([2**40, -1], pa.int64()),
            "money": pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)),
            "at": pa.array([at, None], pa.timestamp("us", "UTC")),
            "w": pa.array([2, 3], pa.int32()),
        }
    )
    told = Columns(("flag", "whole", "money"), (), "at", "w").read(batch)
    assert told["X"]["flag"].tolist() == [1.0, None]
    assert told["X"]["whole"].tolist() == [2.0**40, -1.0]
    assert told["X"]["money"].tolist() == [1.25, None]
    assert told["t"][0] == at.timestamp()
    assert np.isnan(told["t"][1])
    assert told["w"].tolist() == [2.0, 3.0]
    assert "ids" not in told


FRAME = SimpleNamespace(
    columns=["id", "x", "m", "b", "at", "s"],
    schema=StructType(
        [
            StructField("id", LongType()),
            StructField("x", DoubleType()),
            StructField("m", DecimalType(10, 2)),
            StructField("b", BooleanType()),
            StructField("at", TimestampType()),
            StructField("s", StringType()),
        ]
    ),
)


def test_features_are_all_numbers_that_are_nothing_else():
    found = columns_of(FRAME, None, id="id", time="at", ignore=["b"])
    assert found == Columns(("x", "m"), ("id",), "at", None)
    assert columns_of(FRAME, ["m"], id=["s", "id"], weight="x").id == ("s", "id")


@pytest.mark.parametrize(
    ("features", "named", "message"),
    [
        (["x", "no"], {}, "there is no column 'no'"),
        (["s"], {}, "column 's' is string; numbers"),
        (["x"], {"weight": "s"}, "column 's' is string; numbers"),
        (["x"], {"time": "b"}, "column 'b' is boolean; timestamps"),
        (["x", "m"], {"time": "m"}, "as a feature and as the time"),
        (None, {"ignore": ["id", "x", "m", "b"]}, "no column of"),
    ],
)
def test_columns_that_do_not_fit_are_named(features, named, message):
    with pytest.raises(AdapterError, match=message):
        columns_of(FRAME, features, **named)


def test_names_are_quoted_for_spark():
    assert quoted("room.temp") == "`room.temp`"
    assert quoted("a`b") == "`a``b`"


def test_state_lies_in_a_folder_of_files(tmp_path):
    assert local(str(tmp_path)) == tmp_path
    assert local(f"file://{tmp_path}/a%20b") == tmp_path / "a b"
    with pytest.raises(AdapterError, match="state="):
        local("hdfs://host/check")


def test_what_goes_to_the_executors_is_small_and_does_without_the_model():
    assert len(pickle.dumps(Summarise(None, Columns(("x",))))) < 500
    told = (
        "import sys, streamclust_adapters.spark.partitions as p; sys.exit('river' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", told], env=environment(), check=False).returncode == 0
    )
    assert {"StreamClusterQuery", "label"} <= set(dir(spark))
    with pytest.raises(AttributeError, match="nothing"):
        _ = spark.nothing


def test_a_query_does_not_change_the_model_that_it_is_given(tmp_path):
    given = StreamClusterer(window=60)
    query = StreamClusterQuery(given)
    query._open(str(tmp_path))
    query.model.learn_many(points(100))
    assert given.tick_count == 0
    assert query.batch == -1
    with pytest.raises(AdapterError, match="another process"):
        StreamClusterQuery(given)._open(str(tmp_path))
    query.stop()
    query._open(str(tmp_path))
    query.close()


def test_a_snapshot_of_another_door_is_refused(tmp_path):
    (tmp_path / "streamclust").mkdir()
    given = StreamClusterer(window=60)
    given.save(tmp_path / "streamclust" / f"snapshot-{1:020d}.safetensors", {"byte": 7})
    with pytest.raises(AdapterError, match="no snapshot of a Spark query"):
        StreamClusterQuery(given)._open(str(tmp_path))
