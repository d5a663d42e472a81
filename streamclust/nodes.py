"""The records of the threshold tree: arrivals, frozen node records, spines, the routing table.

A node's *record* is frozen when it is drawn: key, anchor, cut measure and stop time. Its *spine*
holds the distinct earliest arrivals of its centers in order of time; each cuts off a part, and
what no cut reaches is the main part (tree.md of the design: arXiv 2512.01150, Partition_Leaf read
as a Poisson process). Nothing here draws a random number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from streamclust.kernels.routing import leaves_of
from streamclust.results import FloatArray, IntArray

MASK = (1 << 64) - 1


class Arrival(NamedTuple):
    """A cut. Ordered by time; `identity` names it within its node."""

    time: float
    feature_key: int
    side: int
    band: int
    turn: int
    feature: int
    threshold: float

    @property
    def identity(self) -> tuple[int, int, int, int]:
        """What the cut is, whatever its time and threshold are computed to be."""
        return self[1:5]

    def parts(self, x: FloatArray) -> bool:
        """Whether the cut parts `x` from the anchor: the one comparison that decides."""
        return bool((x[self.feature] > self.threshold) == (self.side == 1))


class Measure(NamedTuple):
    """The frozen cut measure of a node, as the clock kernel takes it.

    `table_of` says which features are tabulated; `starts`, `knots` and `masses` hold the tables,
    two sides each, outward from the anchor. Everything else follows the paper's measure.
    """

    anchor: FloatArray
    weights: FloatArray
    scale: float
    table_of: IntArray
    starts: IntArray
    knots: FloatArray
    masses: FloatArray


@dataclass(frozen=True, slots=True)
class Record:
    """What a node is from its drawing to its next rebuild.

    Attributes
    ----------
    base : int
        Key of the part, from the keys of the cuts above it.
    key : int
        Key of the clocks: the draw that won among those made from `base`.
    generation : int
        How many drawings of this part came before, those that were not taken included.
    stop : float
        Arrivals after it do not count.
    """

    base: int
    key: int
    generation: int
    measure: Measure
    stop: float

    def outlasting(self) -> Record:
        """The same record after a drawing that was not taken."""
        return replace(self, generation=self.generation + 1)


class Node:
    """A part with at least two centers.

    Attributes
    ----------
    spine : dict of Arrival -> Part, in order of time
    main : Part or None
        None when every center has been cut off: then the latest arrival's part is the main part.
    size, built, updates : int
        Centers now, centers at the last (re)build, updates since.
    """

    __slots__ = ("built", "main", "record", "size", "spine", "updates")

    def __init__(self, record: Record, size: int) -> None:
        self.record = record
        self.spine: dict[Arrival, Part] = {}
        self.main: Part | None = None
        self.size = size
        self.built = size
        self.updates = 0

    def first_cut(self, x: FloatArray) -> Arrival | None:
        """The earliest cut of the spine that parts `x` from the anchor. O(spine)."""
        for arrival in self.spine:  # as `Arrival.parts`, without a call for each
            if (x[arrival.feature] > arrival.threshold) == (arrival.side == 1):
                return arrival
        return None

    def part_at(self, arrival: Arrival | None) -> Part | None:
        """The part that `arrival` cuts off, or the main part."""
        part: Part | None = self.main if arrival is None else self.spine.get(arrival)
        return part

    def parts(self) -> Iterator[tuple[Arrival | None, Part]]:
        """The parts in order of arrival, the main part (if any) last."""
        yield from self.spine.items()
        if self.main is not None:
            yield None, self.main

    def cuts(self) -> tuple[list[tuple[Arrival, Part]], Part]:
        """The cuts that routing tests, and the part of what none of them reaches."""
        cuts = list(self.spine.items())
        if self.main is not None:
            return cuts, self.main
        return cuts, cuts.pop()[1]


Part: TypeAlias = "int | Node"
"""A center id, or a node of two or more centers."""


class Correction(NamedTuple):
    """A small subtree below one center's leaf, in the layout of `RoutingTable`."""

    feature: IntArray
    threshold: FloatArray
    child: IntArray
    owner: IntArray


class RoutingTable(NamedTuple):
    """The tree as flat arrays: node 0 is the root; a child < 0 is the leaf ``~child``.

    `feature`, `threshold` have shape (m,), `child` (m, 2), `owner` (m + 1,): the center id of each
    leaf. With one center m = 0; without centers `owner` is empty too.
    """

    feature: IntArray
    threshold: FloatArray
    child: IntArray
    owner: IntArray


def ids_under(part: Part) -> list[int]:
    """The center ids of a part, in order of arrival."""
    if isinstance(part, int):
        return [part]
    return [id for _, below in part.parts() for id in ids_under(below)]


def nodes_under(part: Part) -> Iterator[Node]:
    """The nodes of a part, parents first."""
    left = [part]
    while left:
        part = left.pop()
        if isinstance(part, Node):
            yield part
            if part.main is not None:
                left.append(part.main)
            left.extend(reversed(part.spine.values()))


def copied(part: Part) -> Part:
    """A part whose nodes may change while those of the original stay; records are shared."""
    if isinstance(part, int):
        return part
    node = Node(part.record, part.size)
    node.built, node.updates = part.built, part.updates
    node.spine = {
        arrival: below if isinstance(below, int) else copied(below)
        for arrival, below in part.spine.items()
    }
    node.main = None if part.main is None else copied(part.main)
    return node


def cuts_under(part: Part) -> set[tuple[int, Arrival]]:
    """The cut records that routing tests in a part, each with its node's key."""
    return {
        (node.record.key, arrival) for node in nodes_under(part) for arrival, _ in node.cuts()[0]
    }


def flatten(root: Part | None, corrections: Mapping[int, Correction]) -> RoutingTable:
    """Lay a tree and its corrections out as one routing table."""
    feature: list[int] = []
    threshold: list[float] = []
    child: list[int] = []  # two entries each
    owner: list[int] = []

    def graft(correction: Correction) -> int:
        node, first = len(feature), len(owner)
        feature.extend(correction.feature.tolist())
        threshold.extend(correction.threshold.tolist())
        sides = correction.child.ravel().tolist()
        child.extend([at - first if at < 0 else at + node for at in sides])
        owner.extend(correction.owner.tolist())
        return node if correction.feature.size else ~first

    def place(part: Part) -> int:
        if isinstance(part, int):
            if part in corrections:
                return graft(corrections[part])
            owner.append(part)
            return -len(owner)
        cuts, rest = part.cuts()
        top, hanging = len(feature), -1
        for arrival, below in cuts:
            at = len(feature)
            feature.append(arrival.feature)
            threshold.append(arrival.threshold)
            child.extend((0, 0))
            if hanging >= 0:
                child[hanging] = at
            child[2 * at + arrival.side] = place(below)
            hanging = 2 * at + 1 - arrival.side
        tail = place(rest)
        if hanging < 0:
            return tail
        child[hanging] = tail
        return top

    if root is not None:
        place(root)
    return RoutingTable(
        np.array(feature, dtype=np.int64),
        np.array(threshold, dtype=np.float64),
        np.array(child, dtype=np.int64).reshape(-1, 2),
        np.array(owner, dtype=np.int64),
    )


def answers_of(table: RoutingTable, points: FloatArray) -> IntArray:
    """The center id of every row of `points` (n, d), or -1 without centers."""
    out = np.full(points.shape[0], -1, dtype=np.int64)
    if table.owner.size:
        leaves_of(points, table.feature, table.threshold, table.child, out)
        out = table.owner[out]
    return out
