"""Which columns of a data frame are what, and how an Arrow batch of them is read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamclust.errors import AdapterError, MissingExtra
from streamclust.results import FloatArray

try:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as sql
    from pyspark.sql.types import (
        BooleanType,
        DataType,
        NumericType,
        TimestampNTZType,
        TimestampType,
    )
except ImportError as error:
    raise MissingExtra("spark") from error

ID = "__streamclust_id"
"""Name of the column of hashed ids, while a batch is summarised."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns by what they hold; `id` may be of several columns."""

    features: tuple[str, ...]
    id: tuple[str, ...] = ()
    time: str | None = None
    weight: str | None = None

    def for_learning(self, df: DataFrame) -> DataFrame:
        """Return only what a summary needs, with the ids as hashes that Spark makes of them."""
        others = [name for name in (self.time, self.weight) if name is not None]
        told = [sql.col(quoted(name)) for name in (*self.features, *others)]
        if self.id:
            told.append(sql.xxhash64(*(sql.col(quoted(name)) for name in self.id)).alias(ID))
        return df.select(*told)

    def read(self, batch: pa.RecordBatch) -> dict[str, Any]:
        """Return an Arrow batch as the arguments of `streamclust.summary.summarise`."""
        columns = [batch.column(name) for name in self.features]
        gaps = [column.is_null().to_numpy(zero_copy_only=False) for column in columns]
        values = zip(map(numbers, columns), gaps, strict=True)
        told: dict[str, Any] = {
            "X": {
                name: np.ma.masked_array(value, gap)
                for name, (value, gap) in zip(self.features, values, strict=True)
            }
        }
        if ID in batch.schema.names:
            told["ids"] = batch.column(ID).to_numpy(zero_copy_only=False)
        if self.time is not None:
            told["t"] = seconds(batch.column(self.time))
        if self.weight is not None:
            told["w"] = numbers(batch.column(self.weight))
        return told


def columns_of(
    df: DataFrame,
    features: Sequence[str] | None,
    *,
    id: str | Sequence[str] | None = None,
    time: str | None = None,
    weight: str | None = None,
    ignore: Collection[str] = (),
) -> Columns:
    """Return the columns that were named; `features` are all others that hold numbers, if None.

    Raises
    ------
    AdapterError
        Naming the column that is not there or is of another type.
    """
    types = {field.name: field.dataType for field in df.schema.fields}
    ids = (id,) if isinstance(id, str) else tuple(id or ())
    aside = {*ids, time, weight, *ignore}
    if features is None:
        features = [n for n, kind in types.items() if n not in aside and is_number(kind)]
        if not features:
            raise AdapterError(f"no column of {df.columns} holds numbers")
    for name in (*features, *ids, *(one for one in (time, weight) if one is not None)):
        if name not in types:
            raise AdapterError(f"there is no column {name!r}; there are {df.columns}")
    numeric = (*features, *([weight] if weight is not None else []))
    for name in numeric:
        if not is_number(types[name]):
            raise AdapterError(
                f"column {name!r} is {types[name].simpleString()}; numbers are accepted"
            )
    if time is not None and not is_time(types[time]):
        raise AdapterError(
            f"column {time!r} is {types[time].simpleString()}; timestamps and seconds are accepted"
        )
    if time in features:
        raise AdapterError(f"column {time!r} is named as a feature and as the time")
    return Columns(tuple(features), ids, time, weight)


def numbers(column: pa.Array) -> FloatArray:
    """Return a column of numbers as floats; nan where there is none."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    told = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(told, dtype=np.float64)


def seconds(column: pa.Array) -> FloatArray:
    """Return a column of times as seconds since 1970; nan where there is none."""
    if pa.types.is_timestamp(column.type):
        micros = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        return numbers(micros) / 1e6
    return numbers(column)


def is_number(kind: DataType) -> bool:
    """Whether a column of this type can be clustered."""
    return isinstance(kind, NumericType | BooleanType)


def is_time(kind: DataType) -> bool:
    """Whether a column of this type tells a time."""
    return isinstance(kind, NumericType | TimestampType | TimestampNTZType)


def quoted(name: str) -> str:
    """Return a column's name as Spark takes it, whatever dots it has."""
    return "`" + name.replace("`", "``") + "`"
