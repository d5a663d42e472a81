"""Bounds as text: in the user's units, in few digits, and written only when somebody reads them.

The tree compares coordinates measured from the origin. The printed threshold is the largest float64
for which that comparison holds, so the printed rule and the used path never differ. A rule that
changed is told at once, but most are never read: what its text needs is kept instead, the bounds
and the window values next to them, and the text says what was true then.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import TypeAlias

import numpy as np

from streamclust.boxes import Outline
from streamclust.kernels.boxes import OPEN, neighbours
from streamclust.nodes import RoutingTable
from streamclust.results import FeatureName, FloatArray, IntArray, either, interval_text

LEAST_DIGITS = 3
"""Significant digits that a printed bound has at least, unless it needs fewer."""

Parts: TypeAlias = "tuple[Sequence[FeatureName], IntArray, IntArray, FloatArray]"
"""What `Text` is written from."""


class Text:
    """The boxes of one cluster in one line; ``str`` writes it.

    Parameters
    ----------
    written : str
        What is written already.
    telling : Telling, optional
        What will `give` what it is written from.
    """

    __slots__ = ("_parts", "_telling", "_written")

    def __init__(self, written: str = "", telling: Telling | None = None) -> None:
        self._written, self._telling = written, telling
        self._parts: Parts | None = None

    def give(
        self, names: Sequence[FeatureName], sizes: IntArray, features: IntArray, bounds: FloatArray
    ) -> None:
        """Take over what the text is written from.

        Parameters
        ----------
        names : sequence of feature names, by index
        sizes : int array of shape (n_boxes,)
            Bounded features of each box.
        features : int array of shape (n,)
        bounds : array of shape (n, 2, 3)
            Of each feature the lower and the upper bound in the user's units, infinite where it is
            open, each with the window values on either side of it.
        """
        self._parts = names, sizes, features, bounds
        self._telling = None

    def __str__(self) -> str:
        telling = self._telling
        if telling is not None:
            telling.work()
        if self._parts is not None:
            self._written, self._parts = _written(*self._parts), None
        return self._written


class Telling:
    """The texts of rules that changed at once, worked out in a thread or when one is read first.

    Parameters
    ----------
    outline : Outline
    table : RoutingTable
        The tree's.
    centers : mapping of cluster id to the ids of its centers
    names : sequence of feature names, by index
    origin : array of shape (n_features,)
    points : array of shape (n, n_features)
        The window, measured from the origin.

    Attributes
    ----------
    texts : mapping of cluster id to Text
    size : int
        Entries of the window.
    """

    def __init__(
        self,
        outline: Outline,
        table: RoutingTable,
        centers: Mapping[int, Sequence[int]],
        names: Sequence[FeatureName],
        origin: FloatArray,
        points: FloatArray,
    ) -> None:
        self.texts = {cluster: Text(telling=self) for cluster in centers}
        self.size = points.size
        self._lock = Lock()
        self._due: Callable[[], Iterable[Parts]] | None = partial(
            parts_of, outline, table, [*centers.values()], names, origin.copy(), points.copy()
        )

    @property
    def is_done(self) -> bool:
        """Whether every text has got what it is written from."""
        return self._due is None

    def work(self) -> None:
        """Give every text what it is written from, unless that is done."""
        with self._lock:
            if self._due is not None:
                for text, parts in zip(self.texts.values(), self._due(), strict=True):
                    text.give(*parts)
                self._due = None
                self.texts = {}


class Digits:
    """Writes bounds in the fewest digits that keep every window point on its side.

    `value` is one more point that they must keep, in the user's units. Remembers what it wrote: the
    boxes of one tree share their bounds. Valid while the window stays.
    """

    def __init__(
        self,
        names: tuple[FeatureName, ...],
        origin: FloatArray,
        points: FloatArray,
        value: FloatArray | None = None,
    ) -> None:
        self._column = {name: j for j, name in enumerate(names)}
        self._origin = origin
        self._points = points
        self._value = value
        self._sorted: dict[FeatureName, list[float]] = {}
        self._told: dict[tuple[FeatureName, float], str] = {}

    def __call__(self, feature: FeatureName, bound: float) -> str:
        """Return a bound of a feature as text."""
        text = self._told.get((feature, bound))
        if text is None:
            values = self._sorted.get(feature)
            if values is None:
                j = self._column[feature]
                column = self._origin[j] + self._points[:, j]
                if self._value is not None:
                    column = np.append(column, self._value[j])
                values = np.sort(column[~np.isnan(column)]).tolist()
                self._sorted[feature] = values
            at = bisect_right(values, bound)
            low = values[at - 1] if at else -math.inf
            high = values[at] if at < len(values) else math.inf
            text = self._told[feature, bound] = fewest_digits(bound, low, high)
        return text


def parts_of(
    outline: Outline,
    table: RoutingTable,
    centers: Iterable[Sequence[int]],
    names: Sequence[FeatureName],
    origin: FloatArray,
    points: FloatArray,
) -> list[Parts]:
    """Return what the texts of clusters are written from, given the centers of each.

    See `Telling`.
    """
    bounds = all_below(table.threshold, origin[table.feature])
    order = np.lexsort((bounds, table.feature))
    near = np.empty((len(order), 2))
    neighbours(points, origin, table.feature[order], bounds[order], near)
    told = np.empty((len(order) + 1, 3))
    told[order, 0], told[order, 1:] = bounds[order], near
    told[-1] = np.nan  # an open side is -1
    boxes = outline.boxes
    cells = told[boxes.nodes]
    cells[:, :, 0] = np.where(boxes.nodes == OPEN, boxes.edges, cells[:, :, 0])
    spans, features = boxes.spans(), boxes.features.astype(np.int32)
    sizes = boxes.sizes.astype(np.int32)
    found = []
    for own in centers:
        parts = [spans[outline.places[center]] for center in own]
        found.append(
            (
                names,
                np.concatenate([sizes[first:last] for first, last, _, _ in parts]),
                np.concatenate([features[begin:end] for _, _, begin, end in parts]),
                np.concatenate([cells[begin:end] for _, _, begin, end in parts]),
            )
        )
    return found


def fewest_digits(bound: float, low: float, high: float) -> str:
    """Return `bound` in the fewest significant digits that keep its neighbours on their sides.

    The largest value on the left is `low`, where values are at most the bound; the next is `high`.
    """
    for digits in range(1, 17):
        text = f"{bound:.{digits}g}"
        if low <= float(text) < high and (digits >= LEAST_DIGITS or float(text) == bound):
            return text
    return repr(bound)


def last_below(cut: float, origin: float) -> float:
    """Return the largest float64 x for which ``x - origin <= cut``, as rounded arithmetic says."""
    step = math.nextafter(cut, math.inf) - cut
    for start in (0.0, 0.5 * step):  # by cancellation many x round to the cut
        guess = (cut + origin) + start
        for _ in range(4):
            if guess - origin > cut:
                guess = math.nextafter(guess, -math.inf)
            elif math.nextafter(guess, math.inf) - origin <= cut:
                guess = math.nextafter(guess, math.inf)
            else:
                return guess
    low, high = _rank(-np.finfo(float).max), _rank(np.finfo(float).max)
    while high - low > 1:
        middle = (low + high) // 2
        if _value(middle) - origin <= cut:
            low = middle
        else:
            high = middle
    return _value(low)


def all_below(cuts: FloatArray, origins: FloatArray) -> FloatArray:
    """Return `last_below` of many cuts; arrays of shape (n,)."""
    found = cuts + origins
    for _ in range(4):
        up = np.nextafter(found, np.inf)
        over, under = found - origins > cuts, up - origins <= cuts
        found = np.where(over, np.nextafter(found, -np.inf), np.where(under, up, found))
        if not (over | under).any():
            break
    for i in np.flatnonzero(over | under).tolist():
        found[i] = last_below(float(cuts[i]), float(origins[i]))
    return found


def _written(
    names: Sequence[FeatureName], sizes: IntArray, features: IntArray, bounds: FloatArray
) -> str:
    """Write boxes in one line, those of fewest bounds first."""
    near: dict[tuple[FeatureName, float], tuple[float, float]] = {}
    known: dict[tuple[FeatureName, float], str] = {}

    def digits(feature: FeatureName, bound: float) -> str:
        told = known.get((feature, bound))
        if told is None:
            told = known[feature, bound] = fewest_digits(bound, *near[feature, bound])
        return told

    boxes, begin, columns, cells = [], 0, features.tolist(), bounds.tolist()
    for size in sizes.tolist():
        parts, n_bounds, end = [], 0, begin + size
        for j, sides in zip(columns[begin:end], cells[begin:end], strict=True):
            for bound, low, high in sides:
                near[names[j], bound] = low, high
                n_bounds += math.isfinite(bound)
            parts.append(interval_text(names[j], sides[0][0], sides[1][0], digits))
        boxes.append((n_bounds, " and ".join(parts) or "always"))
        begin = end
    return either([line for _, line in sorted(boxes, key=lambda box: box[0])])


def _rank(value: float) -> int:
    """Return the place of a float64 in the order of all float64."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits) if bits >= 0 else -(int(bits) & 0x7FFFFFFFFFFFFFFF)


def _value(rank: int) -> float:
    bits = rank if rank >= 0 else -rank | -0x8000000000000000
    (value,) = struct.unpack("<d", struct.pack("<q", bits))
    return float(value)
