"""Who came from whom: births, deaths, splits and merges of clusters over the events learned.

A change tells a cluster's weight at its birth, and at a split or merge by the shares that go over;
between two such points, and to the present weight where it is given, the width is drawn straight.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from streamclust.errors import NotReady
from streamclust.events import Change, ClusterBorn, ClusterDied, ClustersMerged, ClusterSplit
from streamclust.results import Cluster
from streamclust_adapters.plot.canvas import (
    INK,
    SMALL,
    TEXT,
    bare,
    colour_of,
    empty,
    named,
    plural,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LANES = 80
"""Clusters that are drawn: those that lived longest."""

LANE = 0.2
"""Inches between two lanes."""

THICKEST = 0.42
"""Half the width of the heaviest cluster, in lanes."""


class Living(Protocol):
    """What is read of a model."""

    @property
    def clusters(self) -> Mapping[int, Cluster]:
        """The living clusters by id."""

    @property
    def tick_count(self) -> int:
        """Events learned."""


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


def timeline(changes: Iterable[Change], model: Living | None = None) -> Figure:
    """Draw the lineage of all clusters.

    Parameters
    ----------
    changes : iterable of Change
        ``model.events_since(0)``, or what `changes.read_changes` read.
    model : StreamClusterer, optional
        Gives living clusters their present weight and name.

    Returns
    -------
    Figure
        One lane per cluster, children under their parent; the width is the weight.

    Raises
    ------
    NotReady
        Where the changes tell of no cluster.
    """
    clusters = {} if model is None else model.clusters
    told = lineage(changes, clusters, 0 if model is None else model.tick_count)
    if not told.lives:
        raise NotReady("the changes tell of no cluster")
    lives = _lanes(told)
    lane = {life.cluster: row for row, life in enumerate(lives)}
    alive = sum(life.end < 0 for life in lives)
    title = f"{plural(len(told.lives), 'cluster')}, {alive} alive; width: weight, as told"
    if len(lives) < len(told.lives):
        title += f"; {len(told.lives) - len(lives)} of shorter life are not drawn"
    figure = empty(9.6, 1.3 + LANE * (len(lives) + 1), title)
    axes = bare(figure.add_subplot())
    heaviest = max((w for life in lives for _, w in life.weights), default=0.0) or 1.0
    for life in lives:
        _ribbon(axes, life, lane[life.cluster], told.last, heaviest)
    for link in told.links:
        if link.source in lane and link.target in lane:
            _link(axes, link, lane)
    labels = [
        named(clusters[one.cluster]) if one.cluster in clusters else str(one.cluster)
        for one in lives
    ]
    axes.set_yticks(range(len(lives)), labels, fontsize=SMALL)
    axes.set_ylim(len(lives) - 0.3, -0.8)
    axes.margins(x=0.02)
    axes.grid(axis="x", color="#E5E5E5", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("events learned", fontsize=TEXT)
    axes.set_ylabel("cluster", fontsize=TEXT)
    _legend(figure, axes)
    return figure


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
    last = max(last, now)
    for cluster in clusters.values():
        life = known(cluster.id, cluster.born)
        life.weights.append((last, cluster.weight))
    return Lineage(lives, links, last)


def _lanes(told: Lineage) -> list[Life]:
    """The lives to draw from top to bottom, children after their parent."""

    def length(life: Life) -> int:
        return (told.last if life.end < 0 else life.end) - life.start

    longest = sorted(told.lives.values(), key=lambda one: (-length(one), one.cluster))[:MOST_LANES]
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


def _ribbon(axes: Axes, life: Life, y: int, last: int, heaviest: float) -> None:
    """Draw one life."""
    end = last if life.end < 0 else life.end
    weights = [(tick, w) for tick, w in life.weights if life.start <= tick <= end]
    weights = weights or [(life.start, 0.0)]
    points = [(life.start, weights[0][1]), *weights, (end, weights[-1][1])]
    x = [tick for tick, _ in points]
    half = [0.04 + (THICKEST - 0.04) * w / heaviest for _, w in points]
    colour = colour_of(life.cluster)
    axes.fill_between(x, [y - h for h in half], [y + h for h in half], color=colour, linewidth=0)
    if life.born and life.parent is None:
        axes.plot(life.start, y, "o", markerfacecolor="white", color=INK, markersize=4)
    if life.ended_by == "died":
        axes.plot(life.end, y, "x", color=INK, markersize=5, markeredgewidth=1.4)


def _link(axes: Axes, link: Link, lane: Mapping[int, int]) -> None:
    """Draw a split as a solid, a merge as a dashed line from one lane to the other."""
    y = [lane[link.source], lane[link.target]]
    style = "-" if link.kind == "split" else "--"
    axes.plot([link.tick] * 2, y, style, color=INK, linewidth=1.0, zorder=3)
    marker = ("^" if y[1] < y[0] else "v") if link.kind == "split" else "D"
    axes.plot(link.tick, y[1], marker, color=INK, markersize=4.5, zorder=4)


def _legend(figure: Figure, axes: Axes) -> None:
    """Say what the marks mean."""
    born = axes.plot([], [], "o", markerfacecolor="white", color=INK, markersize=4, label="born")
    died = axes.plot([], [], "x", color=INK, markersize=5, label="died")
    split = axes.plot([], [], "-v", color=INK, markersize=4.5, label="split off from")
    merged = axes.plot([], [], "--D", color=INK, markersize=4.5, label="merged into")
    handles = [*born, *died, *split, *merged]
    figure.legend(
        handles=handles, loc="outside lower right", ncols=4, fontsize=SMALL, frameon=False
    )
