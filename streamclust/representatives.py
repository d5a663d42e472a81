"""How many centers a cluster needs: one median, unless it misrepresents the group.

Answers are given by the nearest center. Where much of a cluster lies nearer to the centers of
others (it is bent, or long beside a small neighbour), those answers would contradict the refit that
found it, so the cluster gets another center there (engine.md, "Identity").
"""

from __future__ import annotations

import numpy as np

from streamclust.kernels import stream
from streamclust.results import FloatArray, IntArray
from streamclust.robust import lp_median

MISFIT = 0.1
"""Share of a cluster's weight that lies nearer to other clusters before it gets another center."""
GAIN = 0.25
"""Least part of that weight which another center must win back."""
MOST = 8
"""Centers of one cluster at the most."""
FEWEST = 5
"""Points from which a center can be placed anew; a cluster of several has so many for each."""
ROUNDS = 3
"""Rounds of placing a cluster's centers at the medians of their points, and assigning these."""


def represent(
    points: FloatArray, weights: FloatArray, labels: IntArray, frame_weights: FloatArray, p: float
) -> tuple[IntArray, IntArray, FloatArray]:
    """Give every cluster of a labelled window the centers that it needs.

    Parameters
    ----------
    points : array of shape (n, n_features)
    weights : array of shape (n,)
        Weight of each point.
    labels : int array of shape (n,)
        Cluster 0 .. k - 1 of each point, or -1; every cluster is used.
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
    cover = _Cover(points, weights, labels, frame_weights, p)
    k = len(cover.owners)
    for cluster in range(k if k > 1 else 0):
        cover.refine(cluster)
    return cover.in_order()


def medians(
    points: FloatArray, weights: FloatArray, members: IntArray, frame_weights: FloatArray, p: float
) -> FloatArray:
    """Return the l_p median of every group of points 0 .. k - 1, shape (k, n_features)."""
    groups = (members == c for c in range(int(members.max()) + 1))
    found = [lp_median(points[g], weights[g], frame_weights, p) for g in groups]
    return np.array(found).reshape(len(found), points.shape[1])


class _Cover:
    """Centers of all clusters, of which some have several."""

    def __init__(
        self,
        points: FloatArray,
        weights: FloatArray,
        labels: IntArray,
        frame_weights: FloatArray,
        p: float,
    ) -> None:
        self.points, self.weights, self.labels = points, weights, labels
        self.frame_weights, self.p = frame_weights, p
        self.members = labels.copy()
        self.positions = medians(points, weights, labels, frame_weights, p)
        self.owners = np.arange(len(self.positions))

    def refine(self, cluster: int) -> None:
        """Give a cluster more centers while they win enough of it back."""
        mine = np.flatnonzero(self.labels == cluster)
        mass = self.weights[mine].sum()
        lost = self._lost(mine, cluster)
        while self.weights[lost].sum() > MISFIT * mass and self._count(cluster) < MOST:
            before = self.members, self.positions, self.owners
            fits = self._add(mine, lost, cluster)
            left = self._lost(mine, cluster)
            if not fits or self.weights[left].sum() > (1.0 - GAIN) * self.weights[lost].sum():
                self.members, self.positions, self.owners = before
                return
            lost = left

    def in_order(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return members, owners and positions, a cluster's heaviest center first."""
        kept = self.members >= 0
        mass = np.bincount(self.members[kept], self.weights[kept], minlength=len(self.owners))
        order = np.lexsort((np.arange(len(self.owners)), -mass, self.owners))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        members = np.where(kept, rank[self.members], -1)
        return members, self.owners[order], self.positions[order]

    def _count(self, cluster: int) -> int:
        return int(np.count_nonzero(self.owners == cluster))

    def _lost(self, mine: IntArray, cluster: int) -> IntArray:
        """Return the points of a cluster that lie nearer to a center of another one."""
        nearest = self._nearest(mine, np.arange(len(self.owners)))
        return np.asarray(mine[self.owners[nearest] != cluster])

    def _nearest(self, mine: IntArray, slots: IntArray) -> IntArray:
        among = self.positions[slots]
        table = stream.distance_table(self.points[mine], among, self.frame_weights, self.p)
        return np.asarray(slots[table.argmin(axis=1)])

    def _add(self, mine: IntArray, lost: IntArray, cluster: int) -> bool:
        """Add a center for a cluster, begun at its lost points; tell whether all have enough."""
        self.owners = np.append(self.owners, cluster)
        self.positions = np.concatenate([self.positions, self.positions[:1]])
        self.members = self.members.copy()
        slots = np.flatnonzero(self.owners == cluster)
        self.members[lost] = slots[-1]
        for turn in range(ROUNDS):
            if turn:
                self.members[mine] = self._nearest(mine, slots)
            for slot in slots.tolist():
                group = mine[self.members[mine] == slot]
                if len(group) < FEWEST:
                    return False
                self.positions[slot] = lp_median(
                    self.points[group], self.weights[group], self.frame_weights, self.p
                )
        return True
