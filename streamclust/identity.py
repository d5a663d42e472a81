"""Identity across a refit: which new cluster is which old one, and what became of the others.

Clusters are matched by the overlap of their window points (engine.md, "Identity"), one to one, so
that the total overlap is largest (Hungarian assignment). Ids never return.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from streamclust.events import Change, ClusterBorn, ClusterDied, ClustersMerged, ClusterSplit
from streamclust.results import FloatArray, IntArray

SHARE = 0.5
"""A descendant holds at least this share of its parent, or draws this share of itself from it."""
UNSEEN = 0.02
"""An old cluster with a smaller share of the window than this cannot be judged by a refit."""


@dataclass(frozen=True, slots=True)
class Matching:
    """What became of the clusters.

    Attributes
    ----------
    survivors : mapping of new index to old id
    born : new indices without a parent
    splits : mapping of old id to the new indices that left it (its own successor excluded)
    merges : mapping of new index to the old ids that were absorbed (the survivor excluded)
    died : old ids that nothing succeeds
    unseen : old ids that live on as they are: pinned, or the window is too small to judge them
    shares : array of shape (n_old, n_new)
        Share of each old cluster's window weight that each new one holds.
    row : mapping of old id to its row of `shares`
    """

    survivors: Mapping[int, int]
    born: Sequence[int]
    splits: Mapping[int, list[int]]
    merges: Mapping[int, list[int]]
    died: Sequence[int]
    unseen: Sequence[int]
    shares: FloatArray = field(repr=False)
    row: Mapping[int, int] = field(repr=False)

    @property
    def is_calm(self) -> bool:
        """Whether every old cluster lives on and none is new."""
        return not (self.born or self.splits or self.merges or self.died)


def match(
    ids: Sequence[int],
    old: IntArray,
    new: IntArray,
    n_new: int,
    weights: FloatArray,
    pinned: Collection[int] = (),
) -> Matching:
    """Match the clusters of two labellings of the same window points.

    Parameters
    ----------
    ids : sequence of int
        Ids of the old clusters; `old` holds indices into it.
    old, new : int arrays of shape (n,)
        Old and new cluster index of each point, -1 for noise.
    n_new : int
        Number of new clusters.
    weights : array of shape (n,)
        Weight of each point.
    pinned : ids that are never absorbed and never die
        Where they have an heir, it goes on under their id.
    """
    n_old = len(ids)
    both = (old >= 0) & (new >= 0)
    overlap = np.zeros((n_old, n_new))
    np.add.at(overlap, (old[both], new[both]), weights[both])
    mass_old = _masses(old, weights, n_old)
    mass_new = _masses(new, weights, n_new)
    of_old = _share(overlap, mass_old[:, None])
    of_new = _share(overlap, mass_new[None, :])
    kin = np.maximum(of_old, of_new) >= SHARE
    first = np.array([[1.0 + weights.sum() if c in pinned else 1.0] for c in ids])
    pairs = assignment(np.where(kin, overlap * first.reshape(n_old, 1), 0.0))
    survivors = {b: a for a, b in pairs}
    followed = set(survivors.values())

    born: list[int] = []
    splits: dict[int, list[int]] = {}
    for b in range(n_new):
        if b in survivors:
            continue
        parent = int(of_new[:, b].argmax()) if n_old else -1
        if parent >= 0 and of_new[parent, b] >= SHARE and parent in followed:
            splits.setdefault(ids[parent], []).append(b)
        else:
            born.append(b)

    merges: dict[int, list[int]] = {}
    died: list[int] = []
    unseen: list[int] = []
    for a in range(n_old):
        if a in followed:
            continue
        heir = int(of_old[a].argmax()) if n_new else -1
        if ids[a] in pinned:
            unseen.append(ids[a])
        elif heir >= 0 and of_old[a, heir] >= SHARE and heir in survivors:
            merges.setdefault(heir, []).append(ids[a])
        elif mass_old[a] < UNSEEN * weights.sum():
            unseen.append(ids[a])
        else:
            died.append(ids[a])
    named = {b: ids[a] for b, a in survivors.items()}
    row = {c: a for a, c in enumerate(ids)}
    return Matching(named, born, splits, merges, died, unseen, of_old, row)


def assignment(overlap: FloatArray) -> list[tuple[int, int]]:
    """Return the pairs (row, column) of positive overlap whose total is largest, one to one."""
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - a third of the import time

    rows, columns = linear_sum_assignment(-overlap)
    return [(int(a), int(b)) for a, b in zip(rows, columns, strict=True) if overlap[a, b] > 0]


def succeed(
    centers: Sequence[int],
    clusters: Sequence[int],
    old: IntArray,
    owners: Sequence[int],
    new: IntArray,
    weights: FloatArray,
) -> dict[int, int]:
    """Return which new center goes on under which old center's id, within each cluster.

    Parameters
    ----------
    centers, clusters : sequences of int
        Ids of the old centers and of their clusters; `old` holds indices into them.
    owners : sequence of int
        Id of the cluster of each new center; `new` holds indices into it.
    old, new : int arrays of shape (n,)
        Old and new center index of each point, -1 for noise.
    """
    overlap = np.zeros((len(centers), len(owners)))
    both = (old >= 0) & (new >= 0)
    np.add.at(overlap, (old[both], new[both]), weights[both])
    kin = np.equal.outer(np.array(clusters, dtype=np.int64), np.array(owners, dtype=np.int64))
    return {b: centers[a] for a, b in assignment(np.where(kin, overlap, 0.0))}


def lineage(
    matching: Matching, ids: Sequence[int], masses: FloatArray, tick: int, time: float
) -> tuple[Change, ...]:
    """Tell births, splits, merges and deaths as changes.

    Parameters
    ----------
    ids : sequence of int
        Id of every new cluster.
    masses : array of shape (n_new,)
        Window weight of every new cluster.
    """
    index = {c: b for b, c in enumerate(ids)}
    shares = matching.shares
    told: list[Change] = [
        ClusterBorn(tick=tick, time=time, cluster=ids[b], weight=float(masses[b]), found_by="refit")
        for b in matching.born
    ]
    for parent, children in matching.splits.items():
        family = [index[parent], *children]
        held = tuple(float(shares[matching.row[parent], b]) for b in family)
        told.append(
            ClusterSplit(
                tick=tick,
                time=time,
                parent=parent,
                children=tuple(ids[b] for b in family),
                overlaps=held,
            )
        )
    for child, absorbed in matching.merges.items():
        parents = (ids[child], *absorbed)
        held = tuple(float(shares[matching.row[a], child]) for a in parents)
        told.append(
            ClustersMerged(tick=tick, time=time, parents=parents, child=ids[child], overlaps=held)
        )
    told += [ClusterDied(tick=tick, time=time, cluster=a, reason="refit") for a in matching.died]
    return tuple(told)


def _masses(labels: IntArray, weights: FloatArray, n: int) -> FloatArray:
    inside = labels >= 0
    return np.bincount(labels[inside], weights[inside], minlength=n).astype(np.float64)


def _share(overlap: FloatArray, mass: FloatArray) -> FloatArray:
    return np.divide(overlap, mass, out=np.zeros_like(overlap), where=mass > 0)
