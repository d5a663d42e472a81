"""Lives of clusters and what links them, read from changes: who came from whom, and how heavy.

A change tells a cluster's weight at its birth, at each refit, and at a split or merge by the shares
that go over; a living cluster's present weight is known where the clusters are given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from streamclust.events import (
    Change,
    ClusterBorn,
    ClusterDied,
    ClustersMerged,
    ClusterSplit,
    RefitDone,
)
from streamclust.results import Cluster


@dataclass(slots=True)
class Life:
    """One cluster from its first to its last event; `weights` are (tick, weight), ascending."""

    cluster: int
    start: int
    born: bool
    end: int = -1
    ended_by: str = ""
    parent: int | None = None
    weights: list[tuple[int, float]] = field(default_factory=list)

    def weight(self) -> float:
        """What was told last."""
        return self.weights[-1][1] if self.weights else 0.0


class Link(NamedTuple):
    """A split or merge that leads from one cluster to another."""

    kind: str
    tick: int
    source: int
    target: int


class Lineage(NamedTuple):
    """All lives and what links them."""

    lives: dict[int, Life]
    links: list[Link]
    last: int


def lineage(changes: Iterable[Change], clusters: Mapping[int, Cluster], now: int) -> Lineage:
    """Read lives and links from changes.

    A cluster without a birth began before the first change, or where `clusters` says.
    """
    lives: dict[int, Life] = {}
    links: list[Link] = []
    first = last = 0

    def known(cluster: int, tick: int) -> Life:
        if cluster not in lives:
            at = clusters[cluster].born if cluster in clusters else min(first, tick)
            lives[cluster] = Life(cluster, at, born=False)
        return lives[cluster]

    for change in changes:
        tick = last = change.tick
        first = first or tick
        match change:
            case ClusterBorn():
                born = Life(change.cluster, tick, born=True, weights=[(tick, change.weight)])
                lives[change.cluster] = born
            case ClusterDied():
                life = known(change.cluster, tick)
                if life.end < 0:  # a merge may have ended it already
                    life.end, life.ended_by = tick, "died"
            case ClusterSplit():
                parent = known(change.parent, tick)
                whole = parent.weight()
                for child, share in zip(change.children, change.overlaps, strict=True):
                    if child == change.parent:
                        parent.weights.append((tick, whole))
                        parent.weights.append((tick, whole * share))
                        continue
                    lives[child] = Life(child, tick, born=True, parent=change.parent)
                    lives[child].weights.append((tick, whole * share))
                    links.append(Link("split", tick, change.parent, child))
            case ClustersMerged():
                kept = known(change.child, tick)
                others = [known(one, tick) for one in change.parents if one != change.child]
                grown = kept.weight() + sum(one.weight() for one in others)
                kept.weights += [(tick, kept.weight()), (tick, grown)]
                for one in others:
                    one.end, one.ended_by = tick, "merged"
                    links.append(Link("merge", tick, one.cluster, change.child))
            case RefitDone():
                for id, weight in change.weights.items():
                    known(id, tick).weights.append((tick, weight))
    last = max(last, now)
    for cluster in clusters.values():
        life = known(cluster.id, cluster.born)
        life.weights.append((last, cluster.weight))
    return Lineage(lives, links, last)


def lanes(told: Lineage, most: int) -> list[Life]:
    """The `most` longest lives from top to bottom, children under their parent."""

    def length(life: Life) -> int:
        return (told.last if life.end < 0 else life.end) - life.start

    longest = sorted(told.lives.values(), key=lambda one: (-length(one), one.cluster))[:most]
    drawn = {life.cluster for life in longest}
    children: dict[int | None, list[Life]] = defaultdict(list)
    for life in sorted(longest, key=lambda one: (one.start, one.cluster)):
        children[life.parent if life.parent in drawn else None].append(life)
    ordered: list[Life] = []
    waiting = children[None][::-1]
    while waiting:
        life = waiting.pop()
        ordered.append(life)
        waiting += children[life.cluster][::-1]
    return ordered
