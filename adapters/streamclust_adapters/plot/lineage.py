"""Who came from whom: births, deaths, splits and merges of clusters over the events learned.

Between two weights that are told, and to the present weight where it is given, the width of a life
is drawn straight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from streamclust.errors import NotReady
from streamclust.events import Change
from streamclust.results import Cluster
from streamclust_adapters.lives import Life, Link, lanes, lineage
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
    lives = lanes(told, MOST_LANES)
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
