"""How many centers a cluster needs: one median, unless it misrepresents the group.

Answers are given by the nearest center. Where much of a cluster lies nearer to the centers of
others because it is bent or long, those answers would contradict the refit that found it, so the
cluster gets another center there (engine.md, "Identity"). A cluster that is merely broader than its
neighbour is not misrepresented: its points are near in units of its own scale.
"""

from __future__ import annotations

from copy import copy

import numpy as np

from streamclust.kernels import metric
from streamclust.regions import relative_distances
from streamclust.results import BoolArray, FloatArray, IntArray
from streamclust.robust import lp_median

MISFIT = 0.05
"""Share of a cluster's weight that lies nearer to other clusters before it gets another center."""
GAIN = 0.25
"""Least part of that weight which another center must win back; and all of them of all clusters."""
MOST = 8
"""Centers of one cluster at the most."""
FEWEST = 20
"""Points that a center has at least, where its cluster has several."""
PASSES = 2
"""How often every misrepresented cluster is looked at."""
ROUNDS = 3
"""Rounds of placing a cluster's centers at the medians of their points, and assigning these."""


def represent(
    points: FloatArray,
    weights: FloatArray,
    labels: IntArray,
    centers: FloatArray,
    frame_weights: FloatArray,
    p: float,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Give every cluster of a labelled window the centers that it needs.

    Parameters
    ----------
    points : array of shape (n, n_features)
    weights : array of shape (n,)
        Weight of each point.
    labels : int array of shape (n,)
        Cluster 0 .. k - 1 of each point, or -1; every cluster is used.
    centers : array of shape (k, n_features)
        l_p median of each cluster.
    frame_weights : array of shape (n_features,)
        Scaling weights.
    p : float
        Order of the distance.

    Returns
    -------
    members : int array of shape (n,)
        Center of each point, or -1.
    owners : int array of shape (m,)
        Cluster of each center, ascending; a cluster's heaviest center comes first.
    positions : array of shape (m, n_features)
    """
    cover = _Cover(points, weights, labels, centers, frame_weights, p)
    table = cover.distances()
    one_each, wrong = cover, cover.wrong(table)
    bent = cover.bent(wrong, table)
    if bent:
        # Centers of one cluster take from its neighbours what these win back in their turn.
        cover = copy(cover)
        for _ in range(PASSES):
            for cluster in bent:
                cover.refine(cluster)
        if weights[cover.wrong()].sum() > (1.0 - GAIN) * weights[wrong].sum():
            cover = one_each
    return cover.in_order()


class _Cover:
    """Centers of all clusters, of which some have several."""

    def __init__(
        self,
        points: FloatArray,
        weights: FloatArray,
        labels: IntArray,
        centers: FloatArray,
        frame_weights: FloatArray,
        p: float,
    ) -> None:
        self.points, self.weights, self.labels = points, weights, labels
        self.frame_weights, self.p = frame_weights, p
        self.members = labels.copy()
        self.positions = centers
        self.owners = np.arange(len(self.positions))

    def bent(self, wrong: BoolArray, table: FloatArray) -> list[int]:
        """Return the clusters, of one center each, that it misrepresents.

        Many of their points are nearer to others, and that also in units of the clusters' scales.
        """
        if not wrong.any():
            return []
        kept = self.labels >= 0
        own = table[np.arange(len(table)), self.labels]
        ranked = own[np.lexsort((own, self.labels))][np.count_nonzero(~kept) :]
        sizes = np.bincount(self.labels[kept])
        middle = np.cumsum(sizes) - sizes + sizes // 2
        scales = (ranked[middle - 1 + sizes % 2] + ranked[middle]) / 2.0
        far = wrong & (relative_distances(table, scales).argmin(axis=1) != self.labels)
        mass = np.bincount(self.labels[kept], self.weights[kept])
        lost = np.bincount(self.labels[far], self.weights[far], minlength=len(mass))
        return np.flatnonzero(lost > MISFIT * mass).tolist()

    def refine(self, cluster: int) -> None:
        """Give a cluster more centers while they win enough of it back."""
        mine = np.flatnonzero(self.labels == cluster)
        enough = MISFIT * self.weights[mine].sum()
        lost = mine[self.wrong()[mine]]
        while self.weights[lost].sum() > enough and np.sum(self.owners == cluster) < MOST:
            before = self.members, self.positions, self.owners
            fits = self._add(mine, lost, cluster)
            left = mine[self.wrong()[mine]]
            if not fits or self.weights[left].sum() > (1.0 - GAIN) * self.weights[lost].sum():
                self.members, self.positions, self.owners = before
                return
            lost = left

    def distances(self) -> FloatArray:
        """Return the distances of all points to all centers."""
        return self._distances(self.points, self.positions)

    def wrong(self, table: FloatArray | None = None) -> BoolArray:
        """Return which points lie nearer to a center of another cluster; `table`: `distances`."""
        nearest = (self.distances() if table is None else table).argmin(axis=1)
        return np.asarray((self.labels >= 0) & (self.owners[nearest] != self.labels))

    def in_order(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return members, owners and positions, a cluster's heaviest center first."""
        kept = self.members >= 0
        mass = np.bincount(self.members[kept], self.weights[kept], minlength=len(self.owners))
        order = np.lexsort((np.arange(len(self.owners)), -mass, self.owners))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        members = np.where(kept, rank[self.members], -1)
        return members, self.owners[order], self.positions[order]

    def _distances(self, points: FloatArray, centers: FloatArray) -> FloatArray:
        return metric.distance_table(points, centers, self.frame_weights, self.p)

    def _add(self, mine: IntArray, lost: IntArray, cluster: int) -> bool:
        """Add a center for a cluster, begun at its lost points; tell whether all have enough."""
        self.owners = np.append(self.owners, cluster)
        self.positions = np.concatenate([self.positions, self.positions[:1]])
        self.members = self.members.copy()
        slots = np.flatnonzero(self.owners == cluster)
        self.members[lost] = slots[-1]
        for turn in range(ROUNDS):
            if turn:
                self.members[mine] = slots[
                    self._distances(self.points[mine], self.positions[slots]).argmin(axis=1)
                ]
            for slot in slots.tolist():
                group = mine[self.members[mine] == slot]
                if len(group) < FEWEST:
                    return False
                self.positions[slot] = lp_median(
                    self.points[group], self.weights[group], self.frame_weights, self.p
                )
        return True
