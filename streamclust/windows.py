"""Windows: which points of the stream are kept, for refits and for what needs many recent rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamclust.errors import InvalidParameter
from streamclust.kernels.reservoir import admit
from streamclust.results import FloatArray, IntArray

MOST_ENTRIES = 1 << 22
"""Entries of the ring of recent rows at the most (32 MB)."""


class Window:
    """A bounded set of points with times and weights: those of smallest key.

    A slot is ``[coordinates ..., time, weight, key]``. Subclasses say what a point's key is.

    Parameters
    ----------
    capacity : int
        Number of points kept.

    Attributes
    ----------
    slots : array of shape (capacity, n_features + 3)
        Coordinates, time, weight and key of each slot.
    heap : int array of shape (capacity + 1,)
        A max-heap of slots by key; its first entry is the number of points kept.
    """

    decay: float
    """What a point's key falls by per unit of its time; infinite where only the order counts."""

    def __init__(self, capacity: int) -> None:
        if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:
            raise InvalidParameter(f"capacity={capacity!r}: accepted is a whole number >= 1")
        self.capacity = capacity
        self.slots: FloatArray = np.zeros((capacity, 3))
        self.heap: IntArray = np.zeros(capacity + 1, dtype=np.int64)

    def __len__(self) -> int:
        return int(self.heap[0])

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept."""
        return len(self) == 0

    @property
    def is_full(self) -> bool:
        """Whether every slot is taken."""
        return len(self) == self.capacity

    def described(self) -> dict[str, Any]:
        """Return kind and settings as plain values, from which `window_of` makes an empty one."""
        raise NotImplementedError

    def __repr__(self) -> str:
        told = self.described()
        kind = told.pop("kind")
        return f"{kind}({', '.join(f'{name}={value!r}' for name, value in told.items())})"

    def points(self) -> FloatArray:
        """The kept points, shape (n, n_features), in slot order; a coordinate never seen is nan."""
        return self.slots[: len(self), :-3]

    def times(self) -> FloatArray:
        """The time of each kept point, shape (n,)."""
        return self.slots[: len(self), -3]

    def weights(self, now: float) -> FloatArray:
        """Return what each kept point counts at time `now`; the sum is Kish's effective size."""
        raise NotImplementedError

    def merge(self, other: Window) -> None:
        """Keep the smallest keys of both; equal to one window that saw both streams."""
        for slot in range(len(other)):
            row = other.slots[slot]
            admit(row, float(row[-1]), self.slots, self.heap)

    def clear(self) -> None:
        """Forget everything."""
        self.heap[:] = 0
        self.slots[:] = 0.0

    def widen(self, n_features: int) -> None:
        """Make room for new features; points that lack them hold nan there."""
        wider = np.full((self.capacity, n_features + 3), np.nan)
        d = self.slots.shape[1] - 3
        wider[:, :d] = self.slots[:, :d]
        wider[:, n_features:] = self.slots[:, d:]
        self.slots = wider

    def shift(self, origin: FloatArray) -> None:
        """Measure the kept points from `origin` instead."""
        self.points()[:] -= origin

    def fill(self, values: FloatArray, groups: IntArray) -> None:
        """Put something where a coordinate was never seen: what others of the same group have.

        Those that have the coordinate lend it in turn (hot-deck imputation), so that a feature that
        came late does not part the points of before from those of after. Where nobody has it, it is
        one of `values`, one per feature; `groups` is an int array of shape (n,).
        """
        points = self.points()
        for j in np.flatnonzero(np.isnan(points).any(axis=0)):
            column = points[:, j]  # a view
            for group in np.unique(groups[np.isnan(column)]):
                absent = np.flatnonzero(np.isnan(column) & (groups == group))
                lenders = np.flatnonzero(~np.isnan(column) & (groups == group))
                lent = column[np.resize(lenders, len(absent))] if len(lenders) else values[j]
                column[absent] = lent

    def medians(self, origin: FloatArray, fallback: FloatArray) -> FloatArray:
        """Return the median of every feature, from 0 as `origin` measures it."""
        points = self.points()
        found = fallback.copy()
        if not len(points):
            return found
        seen = ~np.isnan(points).all(axis=0)
        whole = seen & ~np.isnan(points).any(axis=0)
        found[whole] = origin[whole] + _middles(points[:, whole].T)
        rest = seen & ~whole
        found[rest] = origin[rest] + np.nanmedian(points[:, rest], axis=0)
        return found

    def to_state(self) -> dict[str, Any]:
        """Return plain arrays from which `from_state` restores all."""
        n = len(self)
        return {"slots": self.slots[:n].copy(), "heap": self.heap[: n + 1].copy()}

    def from_state(self, state: dict[str, Any], n_features: int) -> None:
        """Take over a state; raises ValueError where it does not fit capacity or features."""
        slots = np.array(state["slots"], dtype=np.float64)
        heap = np.array(state["heap"], dtype=np.int64)
        n = len(slots)
        fits = slots.shape == (n, n_features + 3) and n <= self.capacity
        if not fits or heap.shape != (n + 1,) or heap[0] != n:
            raise ValueError("the window's slots and heap do not fit each other")
        if not np.array_equal(np.sort(heap[1:]), np.arange(n)):
            raise ValueError("the window's heap does not hold every slot once")
        self.slots = np.zeros((self.capacity, n_features + 3))
        self.slots[:n] = slots
        self.heap = np.zeros(self.capacity + 1, dtype=np.int64)
        self.heap[: n + 1] = heap


class Reservoir(Window):
    """An exponentially biased sample without replacement of all points so far.

    Each point's key is ln(Exp(1)) - decay * time - ln(weight); the `capacity` smallest keys are the
    sample, and the next smallest would set its threshold, so inclusion probabilities are known
    (Efraimidis and Spirakis 2006; Cormode et al. 2009).

    Parameters
    ----------
    capacity : int
        Number of points kept.
    half_life : float or None
        Time after which a point is half as likely to be kept; None: all are as likely, the uniform
        reservoir.
    """

    def __init__(self, capacity: int, half_life: float | None = None) -> None:
        super().__init__(capacity)
        if half_life is not None and not 0 < half_life < np.inf:
            raise InvalidParameter(f"half_life={half_life!r}: accepted is a number > 0, or None")
        self.half_life = half_life
        self.decay = 0.0 if half_life is None else float(np.log(2.0) / half_life)

    def update(self, row: FloatArray, draw: float) -> None:
        """Offer ``[coordinates ..., time, weight]`` with `draw`, a number from Exp(1)."""
        key = np.log(draw) - self.decay * row[-2] - np.log(row[-1])
        admit(row, float(key), self.slots, self.heap)

    def weights(self, now: float) -> FloatArray:
        """Weights that make the sample stand for the faded stream; they sum to its effective size.

        A point counts its own faded weight over its probability of being kept
        (Horvitz-Thompson), and the sum is Kish's effective sample size.
        """
        n = len(self)
        time, weight, key = self.slots[:n, -3:].T
        faded = weight * np.exp(-self.decay * (now - time))
        if self.is_full:
            rate = np.exp(key.max() + self.decay * time + np.log(weight))
            faded = faded / -np.expm1(-rate)
        if not n or not faded.sum() > 0:
            return np.ones(n)
        return np.asarray(faded * (faded.sum() / np.square(faded).sum()))

    def described(self) -> dict[str, Any]:
        """See `Window`."""
        return {"kind": "Reservoir", "capacity": self.capacity, "half_life": self.half_life}


class SlidingWindow(Window):
    """The last points, each as heavy as it came.

    Parameters
    ----------
    capacity : int
        Number of points kept.
    """

    decay = np.inf

    def update(self, row: FloatArray, tick: int) -> None:
        """Keep ``[coordinates ..., time, weight]`` of event number `tick`."""
        admit(row, -float(tick), self.slots, self.heap)

    def weights(self, now: float) -> FloatArray:
        """Return the points' own weights, scaled to sum to Kish's effective size."""
        weight = self.slots[: len(self), -2]
        return np.asarray(weight * (weight.sum() / np.square(weight).sum()))

    def described(self) -> dict[str, Any]:
        """See `Window`."""
        return {"kind": "SlidingWindow", "capacity": self.capacity}


def _middles(rows: FloatArray) -> FloatArray:
    """Return the median of every row, as `np.median` does in twice the time."""
    middle = rows.shape[1] // 2
    parted = np.partition(rows, middle, axis=1)
    upper = parted[:, middle]
    lower = upper if rows.shape[1] % 2 else parted[:, :middle].max(axis=1)
    return np.asarray((lower + upper) / 2.0)


def window_of(told: Any, half_life: float | None) -> Window:
    """Return the empty window that a value of the parameter `window` means.

    Parameters
    ----------
    told : int, Window or mapping
        A capacity: a `Reservoir` that fades as the model does; a window: another of its kind; what
        `Window.described` returned.
    half_life : float or None
        How fast the model fades.
    """
    if isinstance(told, Window):
        told = told.described()
    if isinstance(told, Mapping):
        kinds: dict[str, type[Window]] = {"Reservoir": Reservoir, "SlidingWindow": SlidingWindow}
        return kinds[told["kind"]](**{name: told[name] for name in told if name != "kind"})
    return Reservoir(int(told), half_life)


class RecentPoints:
    """The coordinates of the last points, from which the tree's corrections are learned: a ring.

    Parameters
    ----------
    capacity : int
        Rows kept while they fit `MOST_ENTRIES`; wider rows are fewer.

    Attributes
    ----------
    rows : array of shape (capacity, n_features)
        Row (tick - 1) modulo capacity holds the point of that tick.
    """

    def __init__(self, capacity: int) -> None:
        self._wanted = capacity
        self.rows: FloatArray = np.zeros((1, 0))

    @property
    def capacity(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def update(self, point: FloatArray, tick: int) -> None:
        """Keep the point of event number `tick`, 1 for the first."""
        self.rows[(tick - 1) % self.capacity] = point

    def points(self, tick: int) -> FloatArray:
        """The kept points after `tick` events, shape (n, n_features), oldest last seen anywhere."""
        return self.rows[: min(tick, self.capacity)]

    def clear(self) -> None:
        """Forget everything."""
        self.rows[:] = 0.0

    def widen(self, n_features: int, tick: int) -> None:
        """Make room for new features; points that lack them hold nan there."""
        capacity = max(1, min(self._wanted, MOST_ENTRIES // max(1, n_features)))
        wider = np.full((capacity, n_features), np.nan)
        kept = self.points(tick)
        ticks = np.arange(max(0, tick - min(len(kept), capacity)), tick)
        wider[ticks % capacity, : kept.shape[1]] = kept[ticks % self.capacity]
        self.rows = wider

    def shift(self, origin: FloatArray) -> None:
        """Measure the kept points from `origin` instead."""
        self.rows -= origin

    def to_state(self, tick: int) -> dict[str, Any]:
        """Return plain arrays from which `from_state` restores all."""
        return {"rows": self.points(tick).copy()}

    def from_state(self, state: dict[str, Any], n_features: int, tick: int) -> None:
        """Take over a state; raises ValueError where it does not fit."""
        self.rows = np.zeros((1, 0))
        self.widen(n_features, 0)
        rows = np.array(state["rows"], dtype=np.float64)
        if rows.shape != (min(tick, self.capacity), n_features):
            raise ValueError("the recent rows do not fit the features")
        self.rows[: len(rows)] = rows
