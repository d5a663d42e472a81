"""A stream as files, one per micro-batch, and what a single process makes of the same batches."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streamclust import StreamClusterer
from streamclust.events import Change
from streamclust.summary import summarise
from streamclust_adapters.spark import StreamClusterQuery

SCHEMA = "id bigint, x double, y double, note string"
PLACES = np.array([[0.0, 0.0], [12.0, 1.0], [2.0, 14.0], [15.0, 15.0]])


def rows_of(batch: int, n: int = 300, *, bad: float = 0.02, more: Sequence[str] = ()) -> list[dict]:
    """Events around four places, the last of which is born with batch 2; some are no events."""
    rng = np.random.default_rng(batch)
    places = PLACES[rng.integers(0, 3 + (batch >= 2), n)]
    points = places + rng.normal(size=(n, 2))
    points[rng.random(n) < 0.05] = rng.uniform(-20, 30, 2)
    rows = []
    for i, (x, y) in enumerate(points.tolist()):
        row = {"id": batch * n + i, "x": x, "y": y, "note": f"n{i}"}
        if rng.random() < bad:
            row |= {"x": math.nan} if i % 2 else {"x": None, "y": None}
        rows.append(row | {name: x + y + rng.normal() for name in more})
    return rows


def write(folder: Path, batch: int, rows: Iterable[dict]) -> None:
    """Write a batch as a file that appears whole."""
    folder.mkdir(exist_ok=True)
    beside = folder.parent / f".{folder.name}-{batch}.json"
    beside.write_text("".join(json.dumps(row) + "\n" for row in rows))
    beside.rename(folder / f"{batch:04d}.json")


def stream_of(spark: Any, folder: Path, schema: str = SCHEMA) -> Any:
    """The files of a folder as a stream, a batch each, on four partitions."""
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.option("allowNonNumericNumbers", True).json(str(folder)).repartition(4)


def learned_alone(
    model: StreamClusterer, batches: Iterable[list[dict]], **named: str
) -> tuple[dict[int, tuple[int, str]], set[int], list[Change]]:
    """Learn batches in one process, each as one part.

    Returns
    -------
    answers : mapping of id to label and region
    refused : set of ids
    changes : list of Change
    """
    answers: dict[int, tuple[int, str]] = {}
    refused: set[int] = set()
    for rows in batches:
        names = [n for n in (rows[0] if rows else ()) if n not in ("id", "note", *named.values())]
        columns = {
            name: np.ma.masked_array(
                [math.nan if row[name] is None else row[name] for row in rows],
                [row[name] is None for row in rows],
            )
            for name in names
        }
        if not columns:
            continue
        frozen = model.freeze()
        t = [row[named["time"]] for row in rows] if "time" in named else None
        told = frozen.answer_many(columns, t=t)
        for i, row in enumerate(rows):
            if i in told.refused:
                refused.add(row["id"])
            else:
                answers[row["id"]] = (int(told.labels[i]), str(told.regions[i]))
        model.apply(summarise(columns, frozen, ids=hashes(row["id"] for row in rows), t=t))
    return answers, refused, list(model.events_since(0))


def hashes(ids: Iterable[int]) -> list[int]:
    """What Spark's xxhash64 makes of a long."""
    return [_xxhash64(id) for id in ids]


def _xxhash64(value: int) -> int:
    """XXH64 of eight bytes, with the seed that Spark gives it, as a signed number."""
    p1, p2, p3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    p4, p5, mask = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5, (1 << 64) - 1

    def turned(number: int, by: int) -> int:
        return ((number << by) | (number >> (64 - by))) & mask

    told = (42 + p5 + 8) & mask
    told ^= turned((value & mask) * p2 & mask, 31) * p1 & mask
    told = (turned(told, 27) * p1 + p4) & mask
    told = (told ^ (told >> 33)) * p2 & mask
    told = (told ^ (told >> 29)) * p3 & mask
    told ^= told >> 32
    return told - (1 << 64) if told >> 63 else told


class Collector:
    """Sinks that keep what they get, by batch: a batch that comes again takes its own place."""

    def __init__(self) -> None:
        self.rows: dict[int, list[Any]] = {}
        self.letters: dict[int, list[Any]] = {}
        self.told: dict[int, list[Any]] = {}

    def sinks(self) -> dict[str, Any]:
        return {
            "assignments": lambda df, batch: self.rows.update({batch: df.collect()}),
            "dead_letters": lambda df, batch: self.letters.update({batch: df.collect()}),
            "changes": lambda df, batch: self.told.update({batch: df.collect()}),
        }

    @property
    def answers(self) -> dict[int, tuple[int, str]]:
        return {r.id: (r.cluster, r.region) for rows in self.rows.values() for r in rows}

    @property
    def refused(self) -> set[int]:
        return {row.id for rows in self.letters.values() for row in rows}

    @property
    def kinds(self) -> list[str]:
        return [row.kind for batch in sorted(self.told) for row in self.told[batch]]


def run(query: StreamClusterQuery, stream: Any, checkpoint: Path) -> None:
    """Let a query take all that is there, and wait for its end."""
    try:
        query.start(stream, checkpoint, availableNow=True).awaitTermination()
    finally:
        query.stop()


def same_model(a: StreamClusterer, b: StreamClusterer) -> None:
    """Whether two models agree: counts and ids exactly, floats to 1e-9."""
    left, right = (m._state(None)["engine"] for m in (a, b))
    left["log"] = right["log"] = None
    _same(left, right, "engine")


def _same(a: Any, b: Any, where: str) -> None:
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for name in a:
            _same(a[name], b[name], f"{where}.{name}")
    elif isinstance(a, np.ndarray) and a.dtype.kind == "f":
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=where)
    elif isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b, err_msg=where)
    elif isinstance(a, list):
        assert len(a) == len(b), where
        for i, (left, right) in enumerate(zip(a, b, strict=True)):
            _same(left, right, f"{where}[{i}]")
    elif isinstance(a, float):
        assert a == b or abs(a - b) <= 1e-9 * max(1.0, abs(a)), where
    else:
        assert a == b, where
