"""The center tracker: robust online centers, an outlier store, births and deaths between refits.

Two tiers (engine.md, "Center tracker"): *centers* are stepped towards the events that arrive inside
their fence; events outside every fence go to a bounded store of *micro-centers*, from which a
heavy, dense group is born as a new cluster. A center that falls silent is deleted, and with its
last center a cluster dies. Coordinates are measured from the scaling's origin; distances are
scaled. A cluster owns one center or more; it has the id of the first it had, which no other center
or cluster ever gets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamclust.desk import Desk
from streamclust.errors import InvariantBroken
from streamclust.events import (
    CenterDeleted,
    CenterInserted,
    CenterMoved,
    ClusterBorn,
    ClusterDied,
    Event,
)
from streamclust.kernels import metric, stream
from streamclust.nearness import Standing, owners, standing
from streamclust.results import FloatArray, IntArray
from streamclust.windows import RecentPoints, Window

MICRO = 512
"""Micro-centers kept: a fifth of all events may be outliers before a living one is lost."""
BIRTH_WEIGHT = 15.0
"""Faded weight of outliers that makes a cluster."""
SILENCE = 200.0
"""Least number of mean gaps between events (of any cluster) that count as silence."""
NEVER = int(np.iinfo(np.int64).max)
"""The tick of what is not going to happen."""


@dataclass(frozen=True, slots=True)
class Placing:
    """The centers that a refit found, one row each.

    Attributes
    ----------
    ids : list of int
        Surviving or new ids of centers.
    clusters : list of int
        Id of the cluster of each.
    positions : array of shape (n, n_features)
    scales, limits : arrays of shape (n,)
        Median distance and fence, scaled.
    sizes : int array of shape (n,)
        Window points of each: the events of a new one that are known.
    shares : array of shape (n,)
        Share of all events that each gets, as the window shows it.
    """

    ids: list[int]
    clusters: list[int]
    positions: FloatArray
    scales: FloatArray
    limits: FloatArray
    sizes: IntArray
    shares: FloatArray


class CenterTracker:
    """Centers of an unknown number of clusters, kept online.

    Parameters
    ----------
    p : float
        Order of the distance.
    decay : float
        Fading rate per unit of time.
    by_events : bool
        Whether the clock counts events; else it follows the rows' time.
    lateness : float
        How far back a row's time may go.
    seed : int
        Seed of the window's draws, below 2**53.
    max_clusters : int
        Hard cap on the number of clusters.
    by_tree, fenced : bool
        How `assign` answers: by the tree's leaf or the nearest center; with noise or without.
    window_decay : float
        The `decay` of the window that points are offered to.

    Attributes
    ----------
    ids : list of int
        Id of the center in each slot.
    born : list of int
        The tick at which the cluster of each slot was born.
    names : mapping of a living cluster's id to the name that a user gave it
    """

    def __init__(
        self,
        *,
        p: float,
        decay: float,
        by_events: bool,
        lateness: float,
        seed: int,
        max_clusters: int,
        by_tree: bool,
        fenced: bool,
        window_decay: float,
    ) -> None:
        self.max_clusters = max_clusters
        self.ids: list[int] = []
        self.born: list[int] = []
        self.names: dict[int, str] = {}
        self.next_id = 0
        self.counts: IntArray = np.zeros(stream.N_COUNTS, dtype=np.int64)
        self.gauges: FloatArray = np.zeros(stream.N_GAUGES)
        self.gauges[stream.STAMP] = -np.inf
        for at, value in (
            (stream.DECAY, decay),
            (stream.P, p),
            (stream.LATENESS, lateness),
            (stream.BY_EVENTS, by_events),
            (stream.SEED, seed),
            (stream.BY_TREE, by_tree),
            (stream.FENCED, fenced),
            (stream.MIN_WEIGHT, BIRTH_WEIGHT),
            (stream.WINDOW_DECAY, window_decay),
        ):
            self.gauges[at] = value
        self.counts[[stream.NEXT_LOOK, stream.NEXT_TREE]] = NEVER
        self._allocate(16, 0)

    def _allocate(self, capacity: int, d: int) -> None:
        self.centers: FloatArray = np.zeros((capacity, d))
        self.placed: FloatArray = np.zeros((capacity, d))
        self.stats: FloatArray = np.zeros((capacity, stream.N_STATS))
        self.micro: FloatArray = np.zeros((d + 1, MICRO + 1))  # the last column is scratch
        self._scratch: FloatArray = np.zeros((stream.N_SCRATCH, capacity))

    @property
    def tick(self) -> int:
        """Number of events learned."""
        return int(self.counts[stream.TICK])

    @property
    def now(self) -> float:
        """The stream's clock."""
        return float(self.gauges[stream.NOW])

    @property
    def k(self) -> int:
        """Number of living centers."""
        return len(self.ids)

    @property
    def clusters(self) -> list[int]:
        """Id of the cluster that owns the center in each slot."""
        return [int(cluster) for cluster in self.stats[: self.k, stream.CLUSTER].tolist()]

    @property
    def living(self) -> FloatArray:
        """The living centers, shape (k, n_features)."""
        return self.centers[: self.k]

    @property
    def living_stats(self) -> FloatArray:
        """The figures of the living centers, shape (k, N_STATS), columns as in kernels.stream."""
        return self.stats[: self.k]

    def desk(
        self, frame: FloatArray, window: Window, recent: RecentPoints, table: FloatArray
    ) -> Desk:
        """Return where everything is that an event changes, until an array is replaced."""
        return Desk(*self.arrays(frame, window, recent, table))

    def arrays(
        self, frame: FloatArray, window: Window, recent: RecentPoints, table: FloatArray
    ) -> tuple[FloatArray | IntArray, ...]:
        """Return everything that an event changes, in the order of a desk."""
        return (
            frame,
            self.centers,
            self.placed,
            self.stats,
            self.micro,
            window.slots,
            window.heap,
            recent.rows,
            table,
            self._scratch,
            self.counts,
            self.gauges,
        )

    def react(self, weights: FloatArray) -> tuple[Event, ...]:
        """Turn the alerts of the last observed row into center events."""
        alerts = int(self.counts[stream.ALERTS])
        found: list[Event] = []
        slot = int(self.counts[stream.MOVED_SLOT])
        if alerts & stream.MOVED and not self._has_twin(slot, weights):
            found.append(self._move(slot))
        if alerts & stream.DIED:
            found += self._die(int(self.counts[stream.DEAD_SLOT]))
        if alerts & stream.BORN and len(set(self.clusters)) < self.max_clusters:
            found += self._bear(weights)
        return tuple(found)

    def pin(self, cluster: int, pinned: bool) -> None:
        """Let a living cluster never die or merge, or let it again."""
        self.stats[self.slots(cluster), stream.PINNED] = pinned

    @property
    def pinned(self) -> set[int]:
        """Ids of the pinned clusters."""
        held = self.living_stats[:, stream.PINNED] > 0
        return {cluster for cluster, pin in zip(self.clusters, held, strict=True) if pin}

    def take_look(self) -> tuple[int, int, float, float]:
        """Return what was seen since the last call, and begin anew.

        Returns
        -------
        insiders, outliers : int
            Events inside and outside the fences.
        cost, squares : float
            Sum of the insiders' distances in units of their cluster's scale, and of the squares.
        """
        which, sums = [stream.LOOK_INSIDERS, stream.LOOK_OUTLIERS], [stream.LOOK_COST]
        sums.append(stream.LOOK_SQUARES)
        insiders, outliers = self.counts[which].tolist()
        cost, squares = self.gauges[sums].tolist()
        self.counts[which] = 0
        self.gauges[sums] = 0.0
        return insiders, outliers, cost, squares

    def pass_time(self, now: float) -> tuple[Event, ...]:
        """Let time pass without an event; return the deaths that it brings."""
        self.gauges[stream.NOW] = now
        if not self.gauges[stream.BY_EVENTS]:
            self.gauges[stream.STAMP] = now
        dead = [s for s in range(self.k) if stream.silent(s, self.stats, self.gauges)]
        return tuple(event for slot in reversed(dead) for event in self._die(slot))

    def new_id(self) -> int:
        """Return an id that was never used."""
        self.next_id += 1
        return self.next_id - 1

    def adopt(self, found: Placing, spared: Sequence[int] = ()) -> tuple[Event, ...]:
        """Take over the centers of a refit; survivors keep their clocks and counts.

        Parameters
        ----------
        found : Placing
            The centers. Those of `spared` clusters stay as they are; other centers that are named
            nowhere are deleted.
        spared : sequence of int
            Ids of living clusters.
        """
        taken = [tuple(position) for position in found.positions]
        clusters = self.clusters
        left = {
            center
            for center, cluster, place in zip(self.ids, clusters, self.placed, strict=False)
            if cluster in spared and tuple(place) not in taken
        }
        named = left.union(found.ids)
        heirs = {
            c: (self.born[at], self.stats[at, stream.PINNED], self.names.get(c))
            for at, c in reversed([*enumerate(clusters)])  # of several centers the first one's
        }
        events: list[Event] = [
            self._delete(slot) for slot in reversed(range(self.k)) if self.ids[slot] not in named
        ]
        known = set(self.ids)
        for at, center in enumerate(found.ids):
            if center not in known:
                gap = float(self.gauges[stream.MEAN_GAP] / found.shares[at])
                mass = float(self.gauges[stream.MASS] * found.shares[at])
                slot = self._open(center, found.clusters[at], found.positions[at], mass, gap)
                self.stats[slot, stream.SIZE] = found.sizes[at]
        places = {center: slot for slot, center in enumerate(self.ids)}
        slots = [places[center] for center in found.ids]
        moved = (self.centers[slots] != found.positions).any(axis=1).tolist()
        self.centers[slots] = found.positions
        self.stats[slots, stream.SCALE] = found.scales
        self.stats[slots, stream.FENCE] = found.limits
        self.stats[slots, stream.CLUSTER] = found.clusters
        for slot, center, cluster, has_moved in zip(
            slots, found.ids, found.clusters, moved, strict=True
        ):
            if center not in known:
                events.append(self._inserted(slot))
            elif has_moved:
                events.append(self._move(slot))
            if cluster in heirs:
                self.born[slot], self.stats[slot, stream.PINNED], name = heirs[cluster]
                if name is not None:
                    self.names[cluster] = name
        self.counts[stream.N_MICRO] = 0
        self.gauges[stream.REACH] = np.median(self.living_stats[:, stream.FENCE])
        self.gauges[stream.SILENCE] = SILENCE * self.gauges[stream.MEAN_GAP]
        return tuple(events)

    def keep_places(
        self, ids: Sequence[int], positions: FloatArray, scales: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Return `positions`, but of living centers their own where the window agrees with it.

        The online median of a steady cluster is the better estimate; the window's is taken only
        where it lies further off than the tracker's own threshold for a move.
        """
        slots = {center: slot for slot, center in enumerate(self.ids)}
        living = [at for at, center in enumerate(ids) if center in slots]
        own, kept = self.centers[[slots[ids[at]] for at in living]], positions.copy()
        apart = metric.distances(own, positions[living], weights, float(self.gauges[stream.P]))
        near = apart <= stream.MOVE_SHARE * scales[living]
        kept[np.array(living, dtype=np.int64)[near]] = own[near]
        return kept

    def seek_births(self, points: FloatArray, weights: FloatArray) -> None:
        """Without refits: let groups be born from outliers alone.

        The reach is the distance that a tenth of all pairs of window points do not exceed.
        """
        if self.gauges[stream.REACH] == 0.0:
            some = points[:200]
            table = metric.distance_table(some, some, weights, float(self.gauges[stream.P]))
            self.gauges[stream.REACH] = np.quantile(table, 0.1)
        self.gauges[stream.SILENCE] = SILENCE * self.gauges[stream.MEAN_GAP]

    def distances(self, points: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the distances of points to the living centers, shape (n, k)."""
        return metric.distance_table(points, self.living, weights, float(self.gauges[stream.P]))

    def owners(self, points: FloatArray, weights: FloatArray) -> IntArray:
        """Return the slot of the nearest center whose fence holds, or -1, of every point."""
        fences, p = self.living_stats[:, stream.FENCE], float(self.gauges[stream.P])
        return owners(points, self.living, fences, weights, p)

    def standing(self, points: FloatArray, weights: FloatArray) -> Standing:
        """Return how points stand to the living centers, and to the clusters that own them."""
        told, p = self.living_stats, float(self.gauges[stream.P])
        groups = np.unique(told[:, stream.CLUSTER], return_inverse=True)[1].astype(np.int64)
        fences, scales = told[:, stream.FENCE], told[:, stream.SCALE]
        return standing(points, self.living, fences, scales, groups, weights, p)

    def slot(self, center: int) -> int:
        """Return the slot of a living center."""
        return self.ids.index(center)

    def cluster(self, center: int) -> int:
        """Return the id of the cluster that owns a living center."""
        return int(self.stats[self.slot(center), stream.CLUSTER])

    def slots(self, cluster: int) -> list[int]:
        """Return the slots of a cluster's centers; none of one that does not live."""
        return [slot for slot, owner in enumerate(self.clusters) if owner == cluster]

    def widen(self, n_features: int) -> None:
        """Make room for new features, at 0."""
        old = (self.centers, self.placed, self.micro)
        stats, d = self.stats, self.centers.shape[1]
        self._allocate(len(stats), n_features)
        self.stats = stats
        self.centers[:, :d], self.placed[:, :d] = old[0], old[1]
        self.micro[:d], self.micro[n_features] = old[2][:d], old[2][d]

    def _die(self, slot: int) -> tuple[Event, ...]:
        cluster = self.clusters[slot]
        gone = self._delete(slot)
        if cluster in self.clusters:
            return (gone,)
        told = ClusterDied(tick=self.tick, time=self.now, cluster=cluster, reason="silence")
        return gone, told

    def _bear(self, weights: FloatArray) -> tuple[Event, ...]:
        """Open a center where `kernels.stream.gather` found a group, and free its micro-centers."""
        group = self.micro[:, -1].copy()
        d, reach = len(weights), self.gauges[stream.REACH]
        apart = np.empty(int(self.counts[stream.N_MICRO]))
        metric.distances_across(group, self.micro, weights, float(self.gauges[stream.P]), apart)
        kept = np.flatnonzero(apart > reach)
        self.micro[:, : len(kept)] = self.micro[:, kept]
        self.counts[stream.N_MICRO] = len(kept)
        mass = float(group[d])
        decay = float(self.gauges[stream.DECAY])
        # A steady group of rate r weighs r / (2 decay) in a store that fades at twice the decay.
        gap = 0.5 / (decay * mass) if decay > 0 else self.gauges[stream.MEAN_GAP] * self.tick / mass
        scale = np.median(self.living_stats[:, stream.SCALE]) if self.k else reach / 2.0
        new = self.new_id()
        slot = self._open(new, new, group[:d], mass, gap)
        self.stats[slot, [stream.SCALE, stream.FENCE]] = scale, reach
        told = ClusterBorn(
            tick=self.tick, time=self.now, cluster=self.ids[slot], weight=mass, found_by="outliers"
        )
        return self._inserted(slot), told

    def _open(
        self, center: int, cluster: int, position: FloatArray, mass: float, gap: float
    ) -> int:
        slot = self.k
        if slot == len(self.stats):
            for name in ("centers", "placed", "stats"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
            self._scratch = np.zeros((stream.N_SCRATCH, len(self.stats)))
        self.ids.append(center)
        self.born.append(self.tick)
        self.counts[stream.N_CENTERS] = self.k
        self.centers[slot] = self.placed[slot] = position
        s = self.stats[slot]
        s[stream.WEIGHT] = s[stream.SIZE] = mass
        s[stream.STEPS] = round(mass)  # a count of arrivals: every so many one looks for a move
        s[stream.GAP], s[stream.RATE] = gap, stream.RATE_LEVEL
        s[stream.LAST] = s[stream.STEADY] = self.now
        s[stream.CLUSTER], s[stream.PINNED] = cluster, 0.0
        return slot

    def _inserted(self, slot: int) -> CenterInserted:
        return CenterInserted(
            tick=self.tick,
            time=self.now,
            center=self.ids[slot],
            position=_frozen(self.centers[slot]),
        )

    def _move(self, slot: int) -> CenterMoved:
        self.placed[slot] = self.centers[slot]
        return CenterMoved(
            tick=self.tick,
            time=self.now,
            center=self.ids[slot],
            position=_frozen(self.centers[slot]),
        )

    def _has_twin(self, slot: int, weights: FloatArray) -> bool:
        """Whether another center is placed where this one is, on every feature that counts."""
        center, first = self.centers[slot], weights.argmax()
        alike = np.arange(self.k)
        if weights[first] > 0:  # hardly any center goes on from here
            alike = (self.placed[: self.k, first] == center[first]).nonzero()[0]
        others = [other for other in alike.tolist() if other != slot]
        return any((self.placed[other] == center)[weights > 0].all() for other in others)

    def _delete(self, slot: int) -> CenterDeleted:
        cluster = self.clusters[slot]
        center = self.ids.pop(slot)
        self.born.pop(slot)
        k = self.k
        for array in (self.centers, self.placed, self.stats):
            array[slot:k] = array[slot + 1 : k + 1].copy()
        self.counts[stream.N_CENTERS] = k
        if cluster not in self.clusters:
            self.names.pop(cluster, None)
        return CenterDeleted(tick=self.tick, time=self.now, center=center)

    def to_state(self) -> dict[str, Any]:
        """Return plain numbers, lists and arrays from which `from_state` restores all."""
        k, n = self.k, int(self.counts[stream.N_MICRO])
        return {
            "ids": list(self.ids),
            "born": list(self.born),
            "names": [[c, name] for c, name in self.names.items()],
            "next_id": self.next_id,
            "centers": self.centers[:k].copy(),
            "placed": self.placed[:k].copy(),
            "stats": self.stats[:k].copy(),
            "micro": self.micro[:, :n].T.copy(),
            "counts": self.counts.copy(),
            "gauges": self.gauges.copy(),
        }

    def from_state(self, state: Mapping[str, Any], n_features: int) -> None:
        """Take over a state; raises ValueError where its parts do not fit each other."""
        ids, born = [int(i) for i in state["ids"]], [int(b) for b in state["born"]]
        k, d, micro = len(ids), n_features, np.array(state["micro"], dtype=np.float64)
        counts = np.array(state["counts"], dtype=np.int64)
        gauges = np.array(state["gauges"], dtype=np.float64)
        arrays = [np.array(state[n], dtype=np.float64) for n in ("centers", "placed", "stats")]
        fits = (
            len(born) == k
            and len(set(ids)) == k
            and all(0 <= i < int(state["next_id"]) for i in ids)
            and [a.shape for a in arrays] == [(k, d), (k, d), (k, stream.N_STATS)]
            and micro.shape == (len(micro), d + 1)
            and len(micro) <= MICRO
            and counts.shape == self.counts.shape
            and gauges.shape == self.gauges.shape
            and counts[stream.N_CENTERS] == k
            and counts[stream.N_MICRO] == len(micro)
        )
        names = {int(c): str(name) for c, name in state["names"]}
        if not fits:
            raise ValueError("the tracker's parts do not fit each other")
        self._allocate(max(16, k), d)
        for target, source in zip((self.centers, self.placed, self.stats), arrays, strict=True):
            target[:k] = source
        self.micro[:, : len(micro)] = micro.T
        self.ids, self.born, self.next_id = ids, born, int(state["next_id"])
        self.counts, self.gauges, self.names = counts, gauges, names

    def _check(self) -> None:
        """Raise InvariantBroken unless the tracker's parts agree (cost O(k d))."""
        # One id, one birth and one slot per center; ids were handed out before.
        if not len(self.ids) == len(self.born) == self.counts[stream.N_CENTERS]:
            raise InvariantBroken("ids, births and slots differ in number")
        if len(set(self.ids)) != self.k or any(i >= self.next_id for i in self.ids):
            raise InvariantBroken(f"ids {self.ids} repeat or were never handed out")
        # No cluster has the id of another's center; names are those of the living.
        clusters = self.clusters
        if any(i in clusters and clusters[s] != i for s, i in enumerate(self.ids)):
            raise InvariantBroken(f"centers {self.ids} and clusters {clusters} share ids")
        if not set(self.names) <= set(clusters):
            raise InvariantBroken(f"names {self.names} of clusters that do not live")
        # Bounds hold.
        if len(set(clusters)) > self.max_clusters or self.counts[stream.N_MICRO] > MICRO:
            raise InvariantBroken("more centers or micro-centers than the caps allow")
        # Everything that a kernel reads is finite; scales lie within fences.
        if not np.all(np.isfinite(self.living)) or not np.all(np.isfinite(self.living_stats)):
            raise InvariantBroken("a living center is not finite")
        if np.any(self.living_stats[:, stream.FENCE] < self.living_stats[:, stream.SCALE]):
            raise InvariantBroken("a fence is nearer than the cluster's median distance")


def _frozen(vector: FloatArray) -> FloatArray:
    copy = vector.copy()
    copy.flags.writeable = False
    return copy
