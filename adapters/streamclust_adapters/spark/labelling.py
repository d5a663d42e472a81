"""A data frame with every row's answer beside it, from a model that does not learn meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from streamclust.clusterer import StreamClusterer
from streamclust.errors import AdapterError
from streamclust_adapters.spark.columns import Columns, columns_of
from streamclust_adapters.spark.partitions import Answer

ANSWER = (
    StructField("cluster", LongType()),
    StructField("region", StringType()),
    StructField("distance", DoubleType()),
    StructField("reason", StringType()),
)
RULE = StructField("rule", StringType())


def label(
    df: DataFrame,
    model: StreamClusterer | str | PathLike[str],
    *,
    features: Sequence[str] | None = None,
    explain: bool = False,
) -> DataFrame:
    """Return the rows of a data frame, streaming or not, with the answers of a model beside them.

    Parameters
    ----------
    df : DataFrame
        With numeric columns.
    model : StreamClusterer or path
        Or a snapshot of one. It only answers.
    features : sequence of str, optional
        The columns to go by; those that the model knows, if None.
    explain : bool
        Whether every row gets its cluster's rule, too.

    Returns
    -------
    DataFrame
        With the columns ``cluster``, ``region``, ``distance`` (in units of the cluster's scale),
        ``reason`` and with `explain` ``rule`` more. A row that the model refuses has a reason and
        no answer.

    Raises
    ------
    AdapterError
        For a column that is missing, of another type, or named as the answer's.
    SnapshotError
        For a file that holds no model.
    """
    if not isinstance(model, StreamClusterer):
        model = StreamClusterer.load(fspath(model))
    frozen = model.freeze(rules=explain)
    if features is None:
        features = [name for name in df.columns if name in frozen.names]
    columns = columns_of(df, features)
    if not columns.features:
        raise AdapterError(f"no column of {df.columns} is a feature of the model: {frozen.names}")
    return answered(df, df.sparkSession.sparkContext.broadcast(frozen), columns, explain)


def answered(df: DataFrame, frozen: Any, columns: Columns, explain: bool) -> DataFrame:
    """Return `df` with the answers of a broadcast frozen model beside its rows."""
    check_free(df, explain)
    told = beside(explain)
    work = Answer(frozen, columns, tuple(field.name for field in told))
    return df.mapInArrow(work, StructType([*df.schema.fields, *told]))


def check_free(df: DataFrame, explain: bool) -> None:
    """Raise AdapterError where `df` has a column that is named as one of the answer's."""
    taken = {name.lower() for name in df.columns} & {field.name for field in beside(explain)}
    if taken:
        raise AdapterError(f"columns {sorted(taken)} are named as those of the answer; rename them")


def beside(explain: bool) -> list[StructField]:
    """Return the columns of an answer."""
    return [*ANSWER, *([RULE] if explain else [])]
