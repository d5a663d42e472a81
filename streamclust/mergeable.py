"""What parts of a batch can be put together in any order: sums, and samples of rows.

Both give the same result however a batch was cut: counts to the last digit, sums to about 2^-100 of
what was added up, and a sample row for row, since a row's rank depends on nothing but itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streamclust.kernels.sums import add_pairs, add_rows
from streamclust.results import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Sums:
    """A table of sums in doubled precision.

    Attributes
    ----------
    high, low : arrays of shape (n_groups, m)
        Each sum is high + low; `high` is the sum, rounded.
    """

    high: FloatArray
    low: FloatArray

    @classmethod
    def zeros(cls, n_groups: int, m: int) -> Self:
        """Return sums of nothing."""
        return cls(np.zeros((n_groups, m)), np.zeros((n_groups, m)))

    def add(self, values: FloatArray, groups: IntArray) -> None:
        """Add rows of shape (n, m) to the groups that hold them, in place; below 0: to none."""
        add_rows(np.ascontiguousarray(values), groups, self.high, self.low)

    def merge(self, other: Sums) -> Sums:
        """Return the sums of both."""
        high, low = self.high.copy(), self.low.copy()
        add_pairs(high, low, other.high, other.low)
        return Sums(high, low)

    def to_state(self) -> dict[str, Any]:
        """Return plain arrays from which `sums_of` restores it."""
        return {"high": self.high, "low": self.low}


def sums_of(state: Mapping[str, Any], n_groups: int, m: int) -> Sums:
    """Return the sums that `Sums.to_state` told; ValueError where they are no such table."""
    return Sums(*(floats(state[name], (n_groups, m), name) for name in ("high", "low")))


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows of smallest key among all that were offered: a sample that can be merged.

    Rows of equal key are ranked by their draw, and of equal draw by what they hold, so that which
    are kept, and their order, depend on the rows alone.

    Attributes
    ----------
    rows : array of shape (m, n_columns)
        In order of rank.
    keys : array of shape (m,)
    draws : uint64 array of shape (m,)
    """

    rows: FloatArray
    keys: FloatArray
    draws: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.keys)

    def first(self, most: int) -> Kept:
        """Return the `most` rows of smallest key, ranked."""
        chosen = np.arange(len(self))
        if len(self) > most:
            last = np.partition(self.keys, most - 1)[most - 1]
            chosen = np.flatnonzero(self.keys <= last)
        columns = self.rows[chosen].T[::-1]
        order = chosen[np.lexsort((*columns, self.draws[chosen], self.keys[chosen]))][:most]
        return Kept(self.rows[order], self.keys[order], self.draws[order])

    def merge(self, other: Kept, most: int) -> Kept:
        """Return the `most` rows of smallest key of both, which have the same columns."""
        return Kept(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.draws, other.draws]),
        ).first(most)

    def columns(self, sources: Sequence[int]) -> Kept:
        """Return the rows with these of their columns; a column of nan for every -1."""
        rows = np.column_stack([self.rows, np.full(len(self), np.nan)])
        return Kept(rows[:, list(sources)], self.keys, self.draws)

    def to_state(self) -> dict[str, Any]:
        """Return plain arrays from which `kept_of` restores it."""
        return {"rows": self.rows, "keys": self.keys, "draws": self.draws}


def kept_of(state: Mapping[str, Any], n_columns: int, most: int) -> Kept:
    """Return the rows that `Kept.to_state` told; ValueError where they cannot have been kept."""
    keys = floats(state["keys"], None, "keys")
    rows = floats(state["rows"], (len(keys), n_columns), "rows", finite=False)
    draws = np.asarray(state["draws"])
    if draws.shape != keys.shape or draws.dtype != np.uint64 or len(keys) > most:
        raise ValueError("the rows of a sample do not fit their draws, or are too many")
    if np.isinf(rows).any():
        raise ValueError("a row of a sample is infinite")
    return Kept(rows, keys, draws)


def floats(
    value: Any, shape: tuple[int, ...] | None, name: str, *, finite: bool = True
) -> FloatArray:
    """Return a float64 array of a state; None accepts any length of one dimension.

    Raises
    ------
    ValueError
        For another type or shape, or for what is not finite where that is asked for.
    """
    array = np.asarray(value)
    fits = array.ndim == 1 if shape is None else array.shape == shape
    if array.dtype != np.float64 or not fits or (finite and not np.isfinite(array).all()):
        raise ValueError(f"{name} is no array of {shape or 'one dimension of'} numbers")
    return np.array(array, order="C")  # decoded ones are read-only: another type to kernels
