"""Many events as one table, read without a failure: what is refused, and why, is told row by row.

A row's `draw` is a hash of its event's id. Whatever is decided by chance is decided by the draw, so
that it is decided alike in whatever part of a batch the event comes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamclust.errors import InvalidPoint
from streamclust.features import ACCEPTED, LARGEST, check_value, key_of, table_of
from streamclust.results import FeatureName, FloatArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
Draws = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Events side by side.

    Attributes
    ----------
    names : tuple
        Features: the known ones in the order of the model's rows, then the others.
    values : array of shape (n, n_features)
        nan where an event came without a feature.
    times, weights : arrays of shape (n,)
        A time is nan where there is none.
    draws : uint64 array of shape (n,)
    refused : mapping of row number to the reason
    """

    names: tuple[FeatureName, ...]
    values: FloatArray
    times: FloatArray
    weights: FloatArray
    draws: Draws
    refused: dict[int, str]

    def __len__(self) -> int:
        return len(self.values)

    def accepted(self) -> NDArray[np.bool_]:
        """Return which rows are not refused."""
        kept = np.ones(len(self), dtype=bool)
        kept[list(self.refused)] = False
        return kept


def read_batch(
    X: Any,
    known: Sequence[FeatureName],
    columns: Sequence[FeatureName],
    *,
    ids: Any = None,
    t: Any = None,
    w: Any = None,
    absent: Any = None,
) -> Batch:
    """Read a batch; see `streamclust.summary.summarise` for what it may be.

    Parameters
    ----------
    known : sequence
        The model's features, in the order of its rows.
    columns : sequence
        The same in the order in which they were first seen: a bare array's, where it has as many.

    Raises
    ------
    InvalidPoint
        Where the arguments do not fit one another; of single rows nothing is raised.
    """
    names, values, gaps, refused = _table(X, columns)
    n = len(values)
    if absent is not None:
        gaps = gaps | _fitting(absent, values.shape, np.bool_, "absent")
    for i, j in np.argwhere(~gaps & ~(np.abs(values) <= LARGEST)).tolist():
        if i not in refused:
            refused[i] = f"feature {names[j]!r} is {float(values[i, j])!r}; {ACCEPTED}"
    for i in np.flatnonzero(gaps.all(axis=1)).tolist():
        refused.setdefault(i, "an event without features; at least one is needed")
    values = np.where(gaps, np.nan, values)
    used = [name for j, name in enumerate(names) if name in known or not gaps[:, j].all()]
    new = sorted((name for name in used if name not in known), key=natural)
    wide = np.full((n, len(known) + len(new)), np.nan)
    place = {name: j for j, name in enumerate((*known, *new))}
    for j, name in enumerate(names):
        if name in place:
            wide[:, place[name]] = values[:, j]
    times = np.full(n, np.nan) if t is None else _fitting(t, (n,), np.float64, "t")
    weights = np.ones(n) if w is None else _fitting(w, (n,), np.float64, "w")
    for i in np.flatnonzero(~((weights > 0) & (weights <= LARGEST))).tolist():
        refused.setdefault(i, f"got w={float(weights[i])!r}; w > 0 is accepted")
    draws = _draws(ids, n) if ids is not None else _content(place, wide, times, weights)
    return Batch((*known, *new), wide, times, weights, draws, refused)


def natural(name: FeatureName) -> tuple[Any, ...]:
    """Return the key that sorts names as a reader does: f2 before f10, numbers before texts."""
    if not isinstance(name, str):
        return (0, int(name))
    parts = re.split(r"([0-9]+)", name)
    told = [
        (1, len(p.lstrip("0")), p.lstrip("0")) if i % 2 else (0, p) for i, p in enumerate(parts)
    ]
    return (1, *told, (-1, name))


def uniforms(draws: Draws, seed: int) -> FloatArray:
    """Return a number in (0, 1) for every draw (SplitMix64 finaliser)."""
    with np.errstate(over="ignore"):
        mixed = _mix(_mix(draws + np.uint64(seed) * GOLDEN))
    return ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def _table(
    X: Any, columns: Sequence[FeatureName]
) -> tuple[list[FeatureName], FloatArray, NDArray[np.bool_], dict[int, str]]:
    """Return names, numbers, which of them are absent, and rows that hold what is no number."""
    if isinstance(X, Mapping):
        names, given = list(X), [np.ma.asarray(column) for column in X.values()]
    elif hasattr(X, "columns"):
        names, given = list(X.columns), [np.ma.asarray(X[name].to_numpy()) for name in X.columns]
    else:
        _, values = table_of(X)
        names = list(columns) or [f"f{j}" for j in range(values.shape[1])]
        if len(names) != values.shape[1]:
            raise InvalidPoint(f"got {values.shape[1]} columns; {len(names)} features are known")
        given = [np.ma.asarray(values[:, j]) for j in range(values.shape[1])]
    n = len(given[0]) if given else 0
    if any(column.shape != (n,) for column in given):
        raise InvalidPoint(f"columns of shapes {[c.shape for c in given]}; equal ones are accepted")
    if not all(isinstance(name, str | int) and not isinstance(name, bool) for name in names):
        raise InvalidPoint(f"features {names}; names are strings or integers")
    values = np.empty((n, len(names)))
    gaps = np.zeros((n, len(names)), dtype=bool)
    refused: dict[int, str] = {}
    for j, (name, column) in enumerate(zip(names, given, strict=True)):
        gaps[:, j] = np.ma.getmaskarray(column)
        if column.dtype.kind in "biuf":
            values[:, j] = np.asarray(column.data, dtype=np.float64)
            continue
        for i, value in _others(column):
            try:
                check_value(value, name, "")
                values[i, j] = float(value)
            except InvalidPoint as error:
                values[i, j] = 0.0
                refused.setdefault(i, str(error).removeprefix(": "))
        gaps[:, j] |= np.array([value is None for value in column.data.tolist()], dtype=bool)
    return names, values, gaps, refused


def _others(column: Any) -> Iterator[tuple[int, Any]]:
    """Return the present values of a column that is not of a numeric type, and their rows."""
    masked = np.ma.getmaskarray(column)
    for i, value in enumerate(column.data.tolist()):
        if value is not None and not masked[i]:
            yield i, value


def _fitting(value: Any, shape: tuple[int, ...], kind: Any, name: str) -> Any:
    array = np.asarray(value, dtype=kind)
    if array.shape != shape:
        raise InvalidPoint(f"{name} of shape {array.shape}; {shape} is accepted")
    return array


def _draws(ids: Any, n: int) -> Draws:
    """Return a hash of every id: an integer's by arithmetic, any other's of its text."""
    told = np.asarray(ids)
    if told.shape != (n,):
        raise InvalidPoint(f"ids of shape {told.shape}; {(n,)} is accepted")
    if told.dtype.kind in "biu":
        with np.errstate(over="ignore"):
            return _mix(told.astype(np.int64).view(np.uint64) + GOLDEN)
    return np.array([_hash(str(one).encode()) for one in told.tolist()], dtype=np.uint64)


def _content(
    names: Iterable[FeatureName], values: FloatArray, times: FloatArray, weights: FloatArray
) -> Draws:
    """Return a hash of what every row holds and of how many equal ones came before it.

    Features that an event came without leave no trace: whether a table has a column for them is a
    matter of the part of the batch.
    """
    every = np.ascontiguousarray(np.column_stack([values, times, weights]).T + 0.0)
    mixed = np.full(len(values), GOLDEN)
    with np.errstate(over="ignore"):
        for name, column in zip((*names, -1, -2), every, strict=True):
            key = np.uint64(key_of(name))
            fresh = _mix(mixed * GOLDEN + (column.view(np.uint64) ^ key))
            mixed = np.where(np.isnan(column), mixed, fresh)
        order = np.argsort(mixed, kind="stable")
        _, first, sizes = np.unique(mixed[order], return_index=True, return_counts=True)
        before = np.empty(len(values), dtype=np.uint64)
        before[order] = np.arange(len(values)) - np.repeat(first, sizes)
        return _mix(mixed + before * GOLDEN)


def _mix(z: Draws) -> Draws:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def _hash(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")
