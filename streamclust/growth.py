"""Drawing the records of the threshold tree: keys, clocks, competing draws.

One `Ground` holds what a (re)build may look at; growing is a pure function of it, so that equal
grounds give equal trees. Source: tree.md of the design (arXiv 2512.01150, Partition_Leaf).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamclust.kernels.cuts import Law, first_arrivals
from streamclust.kernels.mistakes import best_draw, landings
from streamclust.measures import FEWEST_POINTS, cells_for, plain_measure, tabulated
from streamclust.nodes import MASK, Arrival, Measure, Node, Part, Record, ids_under
from streamclust.results import FloatArray, IntArray, KeyArray

GOLDEN = 0x9E3779B97F4A7C15


def mixed_key(*words: int) -> int:
    """Hash integers into 64 bits (SplitMix64 chained)."""
    z = 0
    for word in words:
        z = (z + GOLDEN) & MASK ^ (word & MASK)
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
    return z


def key_below(record: Record, arrival: Arrival | None) -> int:
    """The base key of a part: of the one that `arrival` cuts off, or of the main part."""
    if arrival is None:
        return mixed_key(record.key, 1)
    return mixed_key(record.key, 2, *arrival.identity)


@cache
def lowest_band(p: float) -> int:
    """Marks below ``16 ** lowest_band(p)`` never arrive; the recursion rescales instead."""
    return -min(math.ceil(10 * max(1.0, p / 2)), 250)


@dataclass(frozen=True, slots=True)
class Draws:
    """Earliest arrivals of n centers under one or more keys; arrays as `first_arrivals` writes."""

    times: FloatArray
    places: IntArray
    thresholds: FloatArray

    def arrival(self, keys: KeyArray, draw: int, center: int) -> Arrival | None:
        """The earliest arrival of a center, or None."""
        time = float(self.times[draw, center])
        if time == math.inf:
            return None
        feature, side, band, index = self.places[draw, center].tolist()
        threshold = float(self.thresholds[draw, center])
        return Arrival(time, int(keys[feature]), side, band, index, feature, threshold)


def draw(
    measure: Measure,
    p: float,
    feature_keys: KeyArray,
    keys: list[int],
    centers: FloatArray,
    bound: float = math.inf,
) -> Draws:
    """Earliest arrivals, before `bound`, of `centers` (n, d) under each of `keys`."""
    shape = (len(keys), centers.shape[0])
    draws = Draws(np.empty(shape), np.empty((*shape, 4), dtype=np.int64), np.empty(shape))
    law = Law(
        measure.anchor,
        measure.weights,
        measure.scale,
        p,
        lowest_band(p),
        measure.table_of,
        measure.starts,
        measure.knots,
        measure.masses,
        feature_keys,
    )
    first_arrivals(
        law,
        np.array(keys, dtype=np.uint64),
        centers,
        bound,
        draws.times,
        draws.places,
        draws.thresholds,
    )
    return draws


class Candidate(NamedTuple):
    """A spine on trial: where it puts centers and window points, and how many points it misleads.

    `part_of` and `landing` are positions in the spine, its length being the main part.
    """

    part_of: IntArray
    landing: IntArray
    mistakes: int


@dataclass(frozen=True, slots=True)
class Ground:
    """What a build sees.

    Attributes
    ----------
    p, tabulated, n_draws
        Exponent; whether the measure is "gap"; how many draws compete.
    weights : float array of shape (d,)
    feature_keys : uint64 array of shape (d,)
    ids : int array of shape (k,)
    centers : float array of shape (k, d)
    points : float array of shape (n, d)
        The window.
    owners : int array of shape (n,)
        Row of `centers` that each point belongs to.
    window_size : int
        Points of the whole window, of which `points` may be a part.
    """

    p: float
    tabulated: bool
    n_draws: int
    weights: FloatArray
    feature_keys: KeyArray
    ids: IntArray
    centers: FloatArray
    points: FloatArray
    owners: IntArray
    window_size: int

    def grow(self, base: int, generation: int = 0, standing: Part | None = None) -> Part:
        """Grow the tree of all centers.

        Parameters
        ----------
        base : int
            Key of the part.
        generation : int
            Which drawing of this part it is: each has clocks of its own.
        standing : Part, optional
            The tree that is there now; measures keep to its anchors and scales where these will do.
        """
        members, rows = np.arange(self.ids.size), np.arange(self.owners.size)
        return self._grow(members, rows, base, generation, standing)

    def rival(self, node: Node, worth: float) -> Part | None:
        """A tree that could replace `node`, drawn under clocks that it has not tried yet.

        None unless its first spine is worth it by itself: of the points that only one of the two
        spines misleads it must spare `worth` of them more than it misleads. What could be better
        further below is found there.
        """
        before = self._misled(node)
        if not before.any():
            return None
        members, rows = np.arange(self.ids.size), np.arange(self.owners.size)
        record, spine, best = self._best_draw(
            members, rows, node.record.base, node.record.generation + 1, None
        )
        after = best.landing != best.part_of[self.owners]
        gained = int(before.sum()) - best.mistakes
        if gained <= 0 or gained < worth * int((before ^ after).sum()):
            return None
        return self._planted(members, rows, record, spine, best, None)

    def _grow(
        self, members: IntArray, rows: IntArray, base: int, generation: int, standing: Part | None
    ) -> Part:
        if members.size == 1:
            return int(self.ids[members[0]])
        old = standing if isinstance(standing, Node) else None
        measure = None if old is None else old.record.measure
        drawn = self._best_draw(members, rows, base, generation, measure)
        return self._planted(members, rows, *drawn, old)

    def _planted(
        self,
        members: IntArray,
        rows: IntArray,
        record: Record,
        spine: list[Arrival],
        best: Candidate,
        old: Node | None,
    ) -> Node:
        """The node of a record and its spine, with all below it."""
        node = Node(record, members.size)
        owned = best.part_of[np.searchsorted(members, self.owners[rows])]
        for j, arrival in enumerate([*spine, None]):
            below = members[best.part_of == j]
            if below.size == 0:
                continue
            part = self._grow(
                below,
                rows[(owned == j) & (best.landing == j)],
                key_below(record, arrival),
                0,
                None if old is None else old.part_at(arrival),
            )
            if arrival is None:
                node.main = part
            else:
                node.spine[arrival] = part
        return node

    def _best_draw(
        self,
        members: IntArray,
        rows: IntArray,
        base: int,
        generation: int,
        standing: Measure | None,
    ) -> tuple[Record, list[Arrival], Candidate]:
        """The draw that misleads the fewest points; ties go to the first."""
        measure = self.measure(members, rows, standing)
        n = self.n_draws if self.tabulated and rows.size else 1
        first_key = mixed_key(base, 3, generation)
        keys = [(first_key + j * GOLDEN) & MASK for j in range(n)]
        centers, points = self.centers[members], self.points[rows]
        owners = np.searchsorted(members, self.owners[rows])
        best: tuple[Record, list[Arrival], Candidate] | None = None
        at = 0
        while at < n and (
            best is None or best[2].mistakes
        ):  # nothing beats a draw without mistakes
            some = keys[at : max(1, 4 * at)]
            j, times, spine, found = self._best_of(measure, some, centers, points, owners)
            if best is None or found.mistakes < best[2].mistakes:
                record = Record(base, some[j], generation, measure, half_time(times))
                best = record, spine, found
            at += len(some)
        assert best is not None
        return best

    def _best_of(
        self,
        measure: Measure,
        keys: list[int],
        centers: FloatArray,
        points: FloatArray,
        owners: IntArray,
    ) -> tuple[int, FloatArray, list[Arrival], Candidate]:
        """Tell which of some draws misleads the fewest points, its times, spine and effect."""
        draws = draw(measure, self.p, self.feature_keys, keys, centers)
        heads, part_of = np.empty((2, len(centers)), dtype=np.int64)
        landing = np.empty(len(points), dtype=np.int64)
        j, n_cuts, mistakes = best_draw(
            draws.times,
            draws.places,
            draws.thresholds,
            self.feature_keys,
            points,
            owners,
            heads,
            part_of,
            landing,
        )
        arrivals = [draws.arrival(self.feature_keys, j, c) for c in heads[:n_cuts].tolist()]
        spine = [a for a in arrivals if a is not None]
        return j, draws.times[j], spine, Candidate(part_of, landing, mistakes)

    def _misled(self, node: Node) -> NDArray[np.bool_]:
        """Which points the spine of a node over all centers parts from their own center."""
        part_of = np.full(self.ids.size, len(node.spine), dtype=np.int64)
        for j, part in enumerate(node.spine.values()):
            part_of[np.searchsorted(self.ids, ids_under(part))] = j
        cuts = [arrival for arrival, _ in node.cuts()[0]]
        landing = np.empty(self.owners.size, dtype=np.int64)
        landings(
            self.points,
            np.array([a.feature for a in cuts], dtype=np.int64),
            np.array([a.side for a in cuts], dtype=np.int64),
            np.array([a.threshold for a in cuts], dtype=np.float64),
            landing,
        )
        misled: NDArray[np.bool_] = landing != part_of[self.owners]
        return misled

    def measure(self, members: IntArray, rows: IntArray, standing: Measure | None) -> Measure:
        """The cut measure of a part; with tables where the window allows."""
        centers = self.centers[members]
        plain = plain_measure(centers, self.weights, self.p, standing)
        if not self.tabulated or rows.size < FEWEST_POINTS:
            return plain
        return tabulated(
            plain,
            self.p,
            self.feature_keys,
            centers,
            self.points[rows],
            self.centers[self.owners[rows]],
            cells_for(rows.size, self.window_size),
        )


def half_time(times: FloatArray) -> float:
    """When at most half of the centers are left in the main part; infinite if that never comes."""
    n = times.size
    needed = n - n // 2
    return float(np.partition(times, needed - 1)[needed - 1])
