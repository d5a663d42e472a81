"""Frozen records that answer a question: assignments, rules, refit results.

Numbers are in the user's own units unless a field says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
KeyArray: TypeAlias = NDArray[np.uint64]
FeatureName: TypeAlias = str | int

NOISE = -1
"""The label of an event that belongs to no cluster, and of every event while the model is cold."""


class Region(StrEnum):
    """Where an event lies: the three regions of three-way clustering, and *cold*.

    In the three-way mean-shift paper an ambiguous point is called "noise"; here it is `BOUNDARY`,
    and `NOISE` is a point outside every cluster's fence.
    """

    CORE = "core"
    BOUNDARY = "boundary"
    NOISE = "noise"
    COLD = "cold"


@dataclass(frozen=True, slots=True)
class Condition:
    """One threshold test of a rule: ``feature <= threshold`` or ``feature > threshold``.

    Attributes
    ----------
    feature : str or int
    op : {"<=", ">"}
    threshold : float
        Exact, in the user's units.
    """

    feature: FeatureName
    op: str
    threshold: float

    def holds(self, x: Mapping[FeatureName, float]) -> bool:
        """Whether `x` satisfies the condition."""
        value = x[self.feature]
        return value <= self.threshold if self.op == "<=" else value > self.threshold

    def __str__(self) -> str:
        return f"{self.feature} {self.op} {self.threshold!r}"


@dataclass(frozen=True, slots=True)
class Box:
    """One interval ``(low, high]`` per bounded feature; features that are absent are free.

    Attributes
    ----------
    intervals : mapping of feature to pair of float
        Exact, in the user's units; an open side is infinite.
    """

    intervals: Mapping[FeatureName, tuple[float, float]]

    @classmethod
    def of(cls, conditions: Iterable[Condition]) -> Self:
        """Return the box in which all of these conditions hold."""
        intervals: dict[FeatureName, tuple[float, float]] = {}
        for condition in conditions:
            low, high = intervals.get(condition.feature, (-math.inf, math.inf))
            if condition.op == "<=":
                high = min(high, condition.threshold)
            else:
                low = max(low, condition.threshold)
            intervals[condition.feature] = (low, high)
        return cls(intervals)

    def contains(self, x: Mapping[FeatureName, float]) -> bool:
        """Whether `x` lies in the box."""
        return all(low < x[f] <= high for f, (low, high) in self.intervals.items())

    @property
    def n_bounds(self) -> int:
        """The number of finite bounds that a reader has to read."""
        return sum(math.isfinite(v) for pair in self.intervals.values() for v in pair)

    def text(self, digits: Callable[[FeatureName, float], str]) -> str:
        """Return the box in one line, with every bound written by `digits`."""
        told = (
            interval_text(feature, low, high, digits)
            for feature, (low, high) in self.intervals.items()
        )
        return " and ".join(told) or "always"

    def __str__(self) -> str:
        return self.text(lambda _, bound: repr(bound))


@dataclass(frozen=True, slots=True)
class Fence:
    """How far from a cluster's center an event may lie.

    Attributes
    ----------
    cluster : int
    center : mapping of feature to float
        In the user's units.
    limit : float
        In scaled units.
    distance : float or None
        Of the event that was asked about, in scaled units; None in the rule of a cluster.
    """

    cluster: int
    center: Mapping[FeatureName, float]
    limit: float
    distance: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the distance that was asked about is within the limit."""
        return self.distance is not None and self.distance <= self.limit

    def __str__(self) -> str:
        told = f"distance to center of {self.cluster}: "
        if self.distance is None:
            return f"{told}<= {self.limit:.4g}"
        op = "<=" if self.holds else ">"
        for digits in range(4, 18):  # as many as it takes for the rounded numbers to agree
            distance, limit = f"{self.distance:.{digits}g}", f"{self.limit:.{digits}g}"
            if (float(distance) <= float(limit)) == self.holds:
                break
        return f"{told}{distance} {op} {limit}"


@dataclass(frozen=True, slots=True)
class Rule:
    """What a cluster is: an event has its id iff a box contains it and a fence holds.

    Attributes
    ----------
    cluster : int
    boxes : tuple of Box
        Exact: their bounds are the numbers that the tree compares with. Boxes do not overlap; the
        simplest comes first.
    fence : Fence
        That of its heaviest center.
    lines : tuple of str
        The boxes as a reader wants them: every bound in the fewest digits that leave each point of
        the window on its side. ``str(rule)`` joins these lines.
    """

    cluster: int
    boxes: tuple[Box, ...]
    fence: Fence
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return either(self.lines)


@dataclass(frozen=True, slots=True)
class Assignment:
    """Where one event belongs.

    Attributes
    ----------
    label : int
        The cluster id, or -1.
    region : Region
        Core, boundary, noise, or cold.
    alternatives : tuple of int
        The other clusters that a boundary event might belong to, nearest first.
    distance : float
        Distance to the center of the cluster (of the nearest one for noise), in units of that
        cluster's own scale; nan while cold.
    substituted : tuple
        Features that were absent and stood in for.
    """

    label: int
    region: Region
    alternatives: tuple[int, ...] = ()
    distance: float = math.nan
    substituted: tuple[FeatureName, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one event got its label.

    Attributes
    ----------
    label : int
        What `predict_one` answers.
    conditions : tuple of Condition
        The path that the tree used, root to leaf. Exact: the numbers that the tree compares with.
    fence : Fence
        The fence that admitted the event; for noise, the fence of the nearest cluster.
    line : str
        The path as a reader wants it: one interval per feature, every bound in the fewest digits
        that leave the event and each point of the window on its side. ``str(explanation)`` is this
        line and the fence.
    by_rule : bool
        Whether the conditions lead to the label. False only with ``assign="nearest"`` where the
        nearest center and the tree disagree.
    substituted : tuple
        Features that were absent and stood in for.
    """

    label: int
    conditions: tuple[Condition, ...]
    fence: Fence
    line: str
    by_rule: bool = True
    substituted: tuple[FeatureName, ...] = ()

    def __str__(self) -> str:
        return f"{self.line}; {self.fence}"


@dataclass(frozen=True, slots=True)
class WhyNot:
    """What keeps an event from a cluster.

    Attributes
    ----------
    cluster : int
        The cluster that was asked about.
    label : int
        What `predict_one` answers for the event.
    change : mapping of feature to value, or None
        The smallest change of one feature, in scaled units, that would land the event in the
        cluster; empty if it is there already; None if no single feature is enough.
    conditions : tuple of Condition
        The conditions of the cluster's nearest box that the event does not meet, exact.
    fence : Fence
        The cluster's fence, with the distance of the event (of the changed event, if `change`).
    line : str
        The conditions in few digits, as in `Explanation`.
    """

    cluster: int
    label: int
    change: Mapping[FeatureName, float] | None
    conditions: tuple[Condition, ...]
    fence: Fence
    line: str

    def __str__(self) -> str:
        if self.change == {}:
            return f"it is in cluster {self.cluster}"
        if self.change is not None:
            told = ", ".join(f"{feature} = {value!r}" for feature, value in self.change.items())
            return f"with {told} it would be in cluster {self.cluster}"
        needed = self.line if self.conditions else "its rule holds"
        return f"cluster {self.cluster} needs {needed}; {self.fence}"


@dataclass(frozen=True, slots=True)
class Cluster:
    """What users see of a living cluster.

    Attributes
    ----------
    id : int
        Permanent; never used again once the cluster has died.
    weight : float
        Faded weight of the events that it holds.
    size : int
        Events assigned to it since it was born.
    centers : tuple of int
        Ids of the centers that it owns.
    born : int
        The event number at which it was born.
    scale : float
        Median distance of its events to its heaviest center, in scaled units.
    rule : Rule
    name : str or None
        What a user called it.
    pinned : bool
        Whether it never dies and never merges.
    """

    id: int
    weight: float
    size: int
    centers: tuple[int, ...]
    born: int
    scale: float
    rule: Rule
    name: str | None = None
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class RefitResult:
    """What a batch refit says of a window.

    Attributes
    ----------
    labels : int array of shape (n,)
        Cluster of each window point, 0 .. n_clusters - 1, or -1 for noise.
    figures : mapping
        Figures of the fit that a reader may want, for example its code length.
    """

    labels: IntArray
    figures: Mapping[str, float] = field(default_factory=dict)

    @property
    def n_clusters(self) -> int:
        """The number of clusters found."""
        return int(self.labels.max()) + 1 if self.labels.size else 0


def either(lines: Sequence[str]) -> str:
    """Return alternatives in one line."""
    return lines[0] if len(lines) == 1 else " or ".join(f"({line})" for line in lines)


def interval_text(
    feature: FeatureName, low: float, high: float, digits: Callable[[FeatureName, float], str]
) -> str:
    """Return an interval ``(low, high]`` as a reader writes it."""
    if math.isinf(low):
        return f"{feature} <= {digits(feature, high)}"
    if math.isinf(high):
        return f"{feature} > {digits(feature, low)}"
    return f"{digits(feature, low)} < {feature} <= {digits(feature, high)}"
