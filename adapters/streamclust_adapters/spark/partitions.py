"""What runs on the executors: a part of a batch is summarised, or answered row by row.

Both are sent to the executors as they are, with the frozen model as a broadcast beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from streamclust.frozen import Frozen
from streamclust.summary import Summary, summarise
from streamclust_adapters.spark.columns import Columns

SUMMARY = "summary binary"
"""Columns of what `Summarise` returns."""


class Summarise:
    """One row per partition: the summary of its rows, as bytes; none where it has no rows.

    Parameters
    ----------
    frozen : broadcast of Frozen
    columns : Columns
    """

    def __init__(self, frozen: Any, columns: Columns) -> None:
        self._frozen = frozen
        self._columns = columns

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Summarise the rows of a partition."""
        frozen: Frozen = self._frozen.value
        whole: Summary | None = None
        for batch in batches:
            part = summarise(frozen=frozen, **self._columns.read(batch))
            whole = part if whole is None else whole.merge(part)
        if whole is not None:
            yield pa.RecordBatch.from_pydict({"summary": [whole.to_bytes()]})


class Answer:
    """Every row as it came, with the answer beside it.

    Parameters
    ----------
    frozen : broadcast of Frozen
    columns : Columns
    names : tuple of str
        What the columns of the answer are called: cluster, region, distance, reason, and with a
        fifth name the rule.
    """

    def __init__(self, frozen: Any, columns: Columns, names: tuple[str, ...]) -> None:
        self._frozen = frozen
        self._columns = columns
        self._names = names

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Answer the rows of a partition."""
        frozen: Frozen = self._frozen.value
        for batch in batches:
            told = frozen.answer_many(**self._columns.read(batch))
            refused = told.regions == "refused"
            reasons = [told.refused.get(i) for i in range(batch.num_rows)]
            fresh = [
                pa.array(told.labels, pa.int64(), mask=refused),
                pa.array(told.regions, pa.string(), mask=refused),
                pa.array(told.distances, pa.float64(), mask=np.isnan(told.distances)),
                pa.array(reasons, pa.string()),
            ]
            if len(self._names) > len(fresh):
                rules = [frozen.rules.get(label) for label in told.labels.tolist()]
                fresh.append(pa.array(rules, pa.string()))
            names = [*batch.schema.names, *self._names]
            yield pa.RecordBatch.from_arrays([*batch.columns, *fresh], names=names)
