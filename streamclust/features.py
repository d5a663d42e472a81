"""The border between the user's events and float64 rows: names, order, absent and new features.

A row is ``[feature values ..., time, weight]``, float64. Rows hold features in an order of their
own, by name, so that the order of an event's keys changes no bit of any answer; bare arrays and
printed centers keep the order in which features were first seen. A known feature that is absent is
stood in for; a new one gets a column at once, and the scaling keeps its weight at zero until the
next refit, so it joins there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from numbers import Integral
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamclust.desk import address_of
from streamclust.errors import InvalidPoint
from streamclust.results import FeatureName, FloatArray, IntArray

LARGEST = 1e150
"""Largest magnitude of a value: powers of distances would overflow beyond it."""

Order: TypeAlias = "slice | IntArray"

ACCEPTED = f"a finite number of magnitude at most {LARGEST:g} is accepted"


class FeatureSpace:
    """Known features, in order, and the policy for absent ones.

    Parameters
    ----------
    missing : {"median", "zero", "refuse"}
        What an absent known feature gets.
    max_features : int
        Hard cap on the number of features; an event that would exceed it is refused.

    Attributes
    ----------
    names : tuple
        Features in the order of rows.
    columns : tuple
        Features in the order in which they were first seen.
    keys : uint64 array of shape (n_features,)
        See `key_of`: the order of features does not matter.
    row : array of shape (1, n_features + 2)
        What `read` wrote last.
    """

    def __init__(self, *, missing: str, max_features: int) -> None:
        self.missing = missing
        self.max_features = max_features
        self.stand_ins: FloatArray = np.zeros(0)
        self._know((), ())

    @property
    def n_features(self) -> int:
        """The number of known features."""
        return len(self.names)

    def read(self, x: Mapping[FeatureName, Any], time: float, weight: float) -> int:
        """Read an event that has exactly the known features into the shared row.

        Returns
        -------
        int
            The address of the row, which the next call overwrites; 0 where the event needs
            `resolve`: other features than the known ones, or a value that is no number. Finiteness
            is checked by the kernels.
        """
        try:
            if len(x) == self._d > 0:
                self._pack(self._buffer, 0, *self._get(x), time, weight)
                return self._address
        except (KeyError, TypeError, struct.error, OverflowError, ValueError):
            pass
        return 0

    def resolve(
        self, x: Mapping[FeatureName, Any], time: float, weight: float, tick: int
    ) -> tuple[FloatArray, tuple[FeatureName, ...], tuple[FeatureName, ...]]:
        """Read any event, without changing anything.

        Returns
        -------
        row : array of shape (1, n_features + 2)
            A fresh row over the known features.
        absent : tuple
            Known features that were stood in for.
        new : tuple
            Features that are not known yet.

        Raises
        ------
        InvalidPoint
            Naming the feature and the value, or the policy that refuses the event.
        """
        where = f"event {tick + 1}"
        if not isinstance(x, Mapping):
            raise InvalidPoint(
                f"{where}: got {_short(x)} ({type(x).__name__}); "
                "an event is a mapping of feature names to numbers"
            )
        if not x:
            raise InvalidPoint(f"{where}: got an empty event; at least one feature is needed")
        for name, value in x.items():
            if not isinstance(name, str | Integral) or isinstance(name, bool):
                raise InvalidPoint(
                    f"{where}: feature name {_short(name)} is a {type(name).__name__}; "
                    "names are strings or integers"
                )
            check_value(value, name, where)
        new = tuple(name for name in x if name not in self._position)
        absent = tuple(name for name in self.names if name not in x)
        if absent and self.missing == "refuse":
            raise InvalidPoint(
                f"{where}: feature {absent[0]!r} is absent and missing='refuse'; "
                f"every event must have all of {len(self.names)} known features"
            )
        row = np.empty((1, self._d + 2))
        row[0, :-2] = [
            float(x[name]) if name in x else self.stand_ins[j] for j, name in enumerate(self.names)
        ]
        row[0, -2:] = time, weight
        return row, absent, new

    def admit(self, new: Iterable[FeatureName], x: Mapping[FeatureName, Any], tick: int) -> None:
        """Make the features `new` of event `x` known; their values stand in for themselves.

        Raises
        ------
        InvalidPoint
            Where `max_features` would be exceeded.
        """
        names = tuple(int(name) if isinstance(name, Integral) else str(name) for name in new)
        if len(self.names) + len(names) > self.max_features:
            raise InvalidPoint(
                f"event {tick + 1}: feature {names[0]!r} and {len(names) - 1} others are new, "
                f"{len(self.names)} are known; max_features={self.max_features}"
            )
        ranked = tuple(sorted(names, key=lambda name: (isinstance(name, str), name)))
        first = np.zeros(len(names)) if self.missing == "zero" else [float(x[n]) for n in ranked]
        self.stand_ins = np.concatenate([self.stand_ins, first])
        self._know(self.names + ranked, self.columns + names)

    def order(self, names: list[FeatureName] | None, n_columns: int) -> Order | None:
        """Return the table columns that make a row, or None for other than the known features.

        Without `names` the columns are the known ones in first-seen order.

        Raises
        ------
        InvalidPoint
            For a bare array with another number of columns.
        """
        if names is None:
            if n_columns != self._d:
                raise InvalidPoint(
                    f"got {n_columns} columns; {self._d} features are known: {_short(self.columns)}"
                )
            return self._order
        return self._order_of(names)

    def _order_of(self, names: Sequence[FeatureName]) -> Order | None:
        if len(names) != self._d or set(names) != self._position.keys():
            return None
        if tuple(names) == self.names:
            return slice(None)
        place = {name: j for j, name in enumerate(names)}
        return np.array([place[name] for name in self.names], dtype=np.int64)

    def block(
        self,
        values: NDArray[Any],
        order: Order,
        times: FloatArray | float,
        weights: FloatArray | float,
    ) -> FloatArray:
        """Return rows for many events; `order` tells their columns."""
        rows = np.empty((len(values), self._d + 2))
        rows[:, :-2] = values[:, order]
        rows[:, -2] = times
        rows[:, -1] = weights
        return rows

    def refuse(self, values: NDArray[Any], row: int) -> None:
        """Raise InvalidPoint naming the first value of a row that cannot be clustered."""
        for name, value in zip(self.names, values.tolist(), strict=True):
            check_value(value, name, f"row {row}")

    def to_state(self) -> dict[str, Any]:
        """Return plain numbers, strings and arrays from which `from_state` restores all."""
        return {
            "names": list(self.names),
            "columns": list(self.columns),
            "stand_ins": self.stand_ins.copy(),
        }

    def from_state(self, state: Mapping[str, Any]) -> None:
        """Take over a state; raises ValueError where its parts do not fit each other."""
        names, columns = tuple(state["names"]), tuple(state["columns"])
        stand_ins = np.array(state["stand_ins"], dtype=np.float64)
        fits = len(set(names)) == len(names) and set(columns) == set(names)
        if not fits or len(columns) != len(names) or stand_ins.shape != (len(names),):
            raise ValueError("feature names, columns and stand-ins do not fit each other")
        if not all(isinstance(name, str | int) for name in names):
            raise ValueError("a feature name is neither a string nor an integer")
        self.stand_ins = stand_ins
        self._know(names, columns)

    def _know(self, names: tuple[FeatureName, ...], columns: tuple[FeatureName, ...]) -> None:
        self.names, self.columns = names, columns
        self._d = len(names)
        self.keys: NDArray[np.uint64] = np.array([*map(key_of, names)], dtype=np.uint64)
        self._position = {name: j for j, name in enumerate(names)}
        self.row: FloatArray = np.zeros((1, self._d + 2))
        self._buffer, self._address = self.row.data, address_of(self.row)
        self._pack = struct.Struct(f"{self._d + 2}d").pack_into
        self._get = _getter(names)
        self._order = self._order_of(columns)


def table_of(X: Any) -> tuple[list[FeatureName] | None, NDArray[Any]]:
    """Split tabular input into column names (None for a bare array) and a numeric 2-D array.

    Raises
    ------
    InvalidPoint
        For another number of dimensions, or entries that are not numbers.
    """
    names = list(X.columns) if hasattr(X, "columns") else None
    values = np.asarray(X)
    if values.ndim != 2:
        raise InvalidPoint(f"got an array of {values.ndim} dimensions; (n, n_features) is accepted")
    if values.dtype == object:
        for i, j in np.ndindex(values.shape):
            check_value(values[i, j], names[j] if names else j, f"row {i}")
        values = values.astype(np.float64)
    if values.dtype.kind not in "biuf":
        raise InvalidPoint(f"got an array of {values.dtype}; numbers are accepted")
    return names, values


def check_value(value: Any, name: FeatureName, where: str) -> None:
    """Raise InvalidPoint unless `value` is a number that can be clustered."""
    try:
        if isinstance(value, str | bytes | bytearray):
            raise TypeError
        number = float(value)
    except OverflowError:
        number = np.inf
    except (TypeError, ValueError):
        raise InvalidPoint(
            f"{where}: feature {name!r} is {_short(value)} ({type(value).__name__}); {ACCEPTED}"
        ) from None
    if not abs(number) <= LARGEST:
        raise InvalidPoint(f"{where}: feature {name!r} is {_short(value)}; {ACCEPTED}")


def _getter(names: tuple[FeatureName, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function from an event to the tuple of its values in order."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda x: tuple(x[name] for name in names)


def key_of(name: FeatureName) -> int:
    """Return a stable 64-bit key of a feature, from its name alone."""
    digest = blake2b(f"{type(name).__name__}:{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
