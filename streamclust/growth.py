"""Drawing the records of the threshold tree: measures, keys, competing draws.

One `Ground` holds what a (re)build may look at; growing is a pure function of it, so that equal
grounds give equal trees. Source: tree.md of the design (arXiv 2512.01150, Partition_Leaf).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamclust.kernels.cuts import KeyArray, Law, first_arrivals
from streamclust.kernels.mistakes import best_draw, calmest_cells, cell_knots, landings
from streamclust.nodes import MASK, Arrival, Measure, Node, Part, Record, ids_under
from streamclust.results import FloatArray, IntArray

GOLDEN = 0x9E3779B97F4A7C15
SHARPNESS = 15.0
"""A cell's mass shrinks by ``exp(-SHARPNESS * excess mistakes / points per center)`` ..."""
LEAST_FACTOR = 1e-4
"""... but never below this share: the price bound of the paper survives up to its inverse."""
MOST_CELLS = 256
MOST_TABLES = 64
FEWEST_POINTS = 32
"""Window points that a node needs to have a measure of its own."""
SCALES = 16.0
"""A scale that is out by this factor at the most still serves."""
SHARE_OF_CELLS = 512
"""Cells of a node that sees the whole window; one that sees less has its share (at least 8)."""


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

    def rival(self, node: Node) -> Part | None:
        """A tree that could replace `node`, drawn under clocks that it has not tried yet.

        None unless its first spine makes fewer mistakes than the node's: what could be better
        further below is found there.
        """
        members, rows = np.arange(self.ids.size), np.arange(self.owners.size)
        drawn = self._best_draw(members, rows, node.record.base, node.record.generation + 1, None)
        if drawn[2].mistakes >= self._mistakes(node):
            return None
        return self._planted(members, rows, *drawn, None)

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
        measure = self.measure(members, rows, standing)
        n = self.n_draws if self.tabulated and rows.size else 1
        first_key = mixed_key(base, 3, generation)
        keys = [(first_key + j * GOLDEN) & MASK for j in range(n)]
        draws = draw(measure, self.p, self.feature_keys, keys, self.centers[members])
        heads, part_of = np.empty((2, members.size), dtype=np.int64)
        landing = np.empty(rows.size, dtype=np.int64)
        j, n_cuts, mistakes = best_draw(
            draws.times,
            draws.places,
            draws.thresholds,
            self.feature_keys,
            self.points[rows],
            np.searchsorted(members, self.owners[rows]),
            heads,
            part_of,
            landing,
        )
        arrivals = [draws.arrival(self.feature_keys, j, c) for c in heads[:n_cuts].tolist()]
        record = Record(base, keys[j], generation, measure, half_time(draws.times[j]))
        best = Candidate(part_of, landing, mistakes)
        return record, [a for a in arrivals if a is not None], best

    def _mistakes(self, node: Node) -> int:
        """Points that the spine of a node over all centers parts from their own center."""
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
        return int((landing != part_of[self.owners]).sum())

    def measure(self, members: IntArray, rows: IntArray, standing: Measure | None) -> Measure:
        """The cut measure of a part: anchor, scale and, where the window allows, tables.

        The anchor is the lower median of the centers, feature by feature, or stays that of the
        `standing` measure where it lies between the quartiles; the scale stays within ``SCALES``.
        Neither looks at the clocks, so the law of the cuts is that of an anchor that leaves at most
        three quarters of the centers on either side.
        """
        centers = self.centers[members]
        middle, quarter = (members.size - 1) // 2, (members.size - 1) // 4
        places = np.sort(centers, axis=0)
        anchor = places[middle].copy()
        if standing is not None:
            known = standing.anchor.size  # features may have joined since
            low, high = places[quarter, :known], places[members.size - 1 - quarter, :known]
            near = (low <= standing.anchor) & (standing.anchor <= high)
            anchor[:known][near] = standing.anchor[near]
        spread = np.abs(centers - anchor)
        weights = self.weights
        if not (spread[:, weights > 0] > 0).any():
            # The weights changed since these centers were told apart: any difference must do.
            reach = spread.max(axis=0)
            weights = np.divide(1.0, reach, out=np.zeros_like(reach), where=reach > 0)
        scale = math.ldexp(1.0, math.frexp(float((spread * weights).max()))[1])
        if standing is not None and 1 / SCALES <= standing.scale / scale <= SCALES:
            scale = standing.scale
        none = np.full(anchor.size, -1, dtype=np.int64)
        plain = Measure(
            anchor, weights, scale, none, np.zeros(1, dtype=np.int64), np.empty(0), np.empty(0)
        )
        share = max(8, SHARE_OF_CELLS * rows.size // max(self.window_size, 1))
        n_cells = min(MOST_CELLS, rows.size // 4, share)
        if not self.tabulated or rows.size < FEWEST_POINTS:
            return plain
        return self._tabulated(plain, centers, members, rows, spread, n_cells)

    def _tabulated(
        self,
        plain: Measure,
        centers: FloatArray,
        members: IntArray,
        rows: IntArray,
        spread: FloatArray,
        n_cells: int,
    ) -> Measure:
        """Give the heaviest features tables of the gap measure."""
        heft = ((spread * plain.weights / plain.scale) ** self.p).sum(axis=0)
        order = np.lexsort((self.feature_keys[: heft.size], -heft))[:MOST_TABLES]
        features = order[heft[order] > 0]
        shape = (features.size, 2, n_cells + 2)
        counts = np.empty((features.size, 2), dtype=np.int64)
        edges = np.empty((features.size, 2, n_cells + 3))
        cuts, mistakes = np.empty(shape), np.zeros(shape, dtype=np.int64)
        x = self.points[rows][:, features].T
        own = self.centers[self.owners[rows]][:, features].T
        calmest_cells(
            np.sort(np.minimum(x, own), axis=1),
            np.sort(np.maximum(x, own), axis=1),
            centers,
            plain.anchor,
            features,
            n_cells,
            counts,
            edges,
            cuts,
            mistakes,
        )
        used = np.arange(shape[2]) < counts[:, :, None]
        excess = (mistakes - mistakes[used].min()) / (rows.size / members.size)
        factors = np.maximum(LEAST_FACTOR, np.exp(-SHARPNESS * np.maximum(excess, 0.0)))
        starts = np.empty(2 * features.size + 1, dtype=np.int64)
        n_knots = int((1 + 3 * counts).sum())
        knots, masses = np.empty(n_knots), np.empty(n_knots)
        cell_knots(
            plain.anchor,
            plain.weights,
            plain.scale,
            self.p,
            features,
            counts,
            edges,
            cuts,
            factors,
            starts,
            knots,
            masses,
        )
        table_of = plain.table_of.copy()
        table_of[features] = np.arange(features.size)
        return plain._replace(table_of=table_of, starts=starts, knots=knots, masses=masses)


def half_time(times: FloatArray) -> float:
    """When at most half of the centers are left in the main part; infinite if that never comes."""
    n = times.size
    needed = n - n // 2
    return float(np.partition(times, needed - 1)[needed - 1])
