"""The tree as a picture: every cut with its threshold, every leaf with its cluster and its share.

Leaves stand under each other, so their labels never meet. A tree of more leaves than a page holds
is drawn with its lightest cuts closed; a closed leaf is labelled with the cluster of most of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamclust.errors import NotReady
from streamclust.results import Cluster, FeatureName, FloatArray
from streamclust_adapters.plot.canvas import (
    GREY,
    INK,
    SMALL,
    TEXT,
    bare,
    colour_of,
    empty,
    named,
    plain,
    plural,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LEAVES = 64
"""Leaves that are drawn, unless there are more clusters."""

ROW = 0.23
"""Inches of a leaf's height."""

NARROWEST = 5.0
"""Inches of a picture's width at the least, for the title."""

LETTER = 0.075
"""Inches that a letter of a label takes at the most, on an average."""


class Drawn(Protocol):
    """What is read of a model."""

    @property
    def clusters(self) -> Mapping[int, Cluster]:
        """The living clusters by id."""

    @property
    def tick_count(self) -> int:
        """Events learned."""

    def tree(self) -> dict[str, Any]:
        """Return the tree in the user's units."""

    def window_points(self) -> dict[FeatureName, FloatArray]:
        """Return the window's columns."""


@dataclass(slots=True)
class Part:
    """A part of the tree as it is drawn: open with two sides, or closed like a leaf.

    `held` counts the window's points in it by cluster; `leaves` are those of the whole tree in it.
    """

    held: Counter[int]
    clusters: set[int]
    leaves: int = 1
    condition: tuple[str, str] = ("", "")
    sides: list[Part] = field(default_factory=list)
    y: float = 0.0

    @property
    def points(self) -> int:
        """Points of the window in it."""
        return self.held.total()

    @property
    def cluster(self) -> int:
        """The cluster of most of its points."""
        if not self.held:
            return min(self.clusters)
        return max(sorted(self.held), key=lambda cluster: self.held[cluster])

    def shut(self) -> list[Part]:
        """The parts below that are drawn as leaves, from top to bottom."""
        return [leaf for side in self.sides for leaf in side.shut()] if self.sides else [self]

    def ready(self) -> list[Part]:
        """The open parts below whose sides are both drawn as leaves."""
        if not self.sides:
            return []
        return [p for side in self.sides for p in side.ready()] or [self]


def tree(model: Drawn) -> Figure:
    """Draw the tree of a model with its rules and sizes.

    Parameters
    ----------
    model : StreamClusterer

    Returns
    -------
    Figure
        The width of a line is the share of the window's points behind it.

    Raises
    ------
    NotReady
        While there is no cluster.
    """
    plan = model.tree()
    if not plan:
        raise NotReady(
            f"no cluster yet after {model.tick_count:,} events; there is no tree to draw"
        )
    columns = model.window_points()
    n = len(next(iter(columns.values())))
    root = _part(plan, columns, np.arange(n))
    clusters = model.clusters
    _close(root, max(MOST_LEAVES, len(clusters)))
    leaves = root.shut()
    depth = _place(root, {id(leaf): row for row, leaf in enumerate(leaves)})

    title = f"{plural(len(clusters), 'cluster')}, {model.tick_count:,} events learned"
    if root.leaves > len(leaves):
        title += f"; {root.leaves - len(leaves)} finer leaves are closed"
    shown = Counter(leaf.cluster for leaf in leaves)
    size = n or 1
    told = {id(leaf): _told(leaf, clusters[leaf.cluster], size, shown) for leaf in leaves}
    room = 0.3 + LETTER * max(len(" ".join(pair)) for pair in told.values())
    step = 0.15 + LETTER * max((len(text) for text in _conditions(root)), default=0)
    width = max(step * depth + room, NARROWEST)
    figure = empty(width + 0.1, ROW * (len(leaves) + 1) + 0.7, title)
    axes = bare(figure.add_subplot())
    axes.set_axis_off()
    axes.set_ylim(len(leaves) - 0.4, -0.9)
    axes.set_xlim(-0.1 / step, width / step)
    _draw(axes, root, 0, size, told)
    return figure


def _part(
    plan: Mapping[str, Any], columns: Mapping[FeatureName, FloatArray], rows: NDArray[np.intp]
) -> Part:
    """A part of the tree and of the window; a point without the feature goes left."""
    if "cluster" in plan:
        cluster = plan["cluster"]
        return Part(Counter({cluster: len(rows)} if len(rows) else {}), {cluster})
    right = columns[plan["feature"]][rows] > plan["threshold"]
    sides = [
        _part(plan["left"], columns, rows[~right]),
        _part(plan["right"], columns, rows[right]),
    ]
    name = plain(plan["feature"], 16)
    return Part(
        sides[0].held + sides[1].held,
        sides[0].clusters | sides[1].clusters,
        sides[0].leaves + sides[1].leaves,
        (f"{name} <= {plan['told']}", f"{name} > {plan['told']}"),
        sides,
    )


def _close(root: Part, most: int) -> None:
    """Close the parts that say least, until at most `most` leaves are drawn.

    What says least has fewest points of other clusters than that of most; then fewest at all.
    """
    for _ in range(len(root.shut()) - most):
        least = min(root.ready(), key=lambda p: (p.points - p.held[p.cluster], p.points))
        least.sides = []


def _conditions(part: Part) -> list[str]:
    """Every condition that is drawn."""
    below = [text for side in part.sides for text in _conditions(side)]
    return [*part.condition, *below] if part.sides else below


def _place(part: Part, rows: Mapping[int, int]) -> int:
    """Set the height of every part; return how many cuts lie under it at most."""
    if not part.sides:
        part.y = float(rows[id(part)])
        return 0
    deepest = 1 + max(_place(side, rows) for side in part.sides)
    part.y = sum(side.y for side in part.sides) / 2
    return deepest


def _told(leaf: Part, cluster: Cluster, n: int, shown: Mapping[int, int]) -> tuple[str, str]:
    """What stands beside a leaf: which cluster, and how much of it."""
    told = plural(cluster.size, "event")
    if shown[cluster.id] > 1:
        told = f"{leaf.points / n:.1%} of the window; all: {told}"
    if leaf.leaves > 1:
        told += f"; {leaf.leaves} leaves"
    return named(cluster), told


def _draw(axes: Axes, part: Part, at: int, n: int, told: Mapping[int, tuple[str, str]]) -> None:
    """Draw a part from its cut on, `at` cuts from the left; `n` points are in the window."""
    if not part.sides:
        name, rest = told[id(part)]
        axes.plot(at, part.y, "o", color=colour_of(part.cluster), markersize=5)
        place: dict[str, Any] = {"xy": (at, part.y), "textcoords": "offset points", "va": "center"}
        axes.annotate(name, xytext=(6, 0), fontsize=TEXT, weight="bold", color=INK, **place)
        beside = 14 + 72 * LETTER * len(name)
        axes.annotate(rest, xytext=(beside, 0), fontsize=SMALL, color=INK, **place)
        return
    axes.plot([at, at], [side.y for side in part.sides], color=GREY, linewidth=0.8)
    for side, condition in zip(part.sides, part.condition, strict=True):
        width = 0.8 + 5.0 * side.points / n
        colour = GREY if side.sides else colour_of(side.cluster)
        axes.plot([at, at + 1], [side.y] * 2, color=colour, linewidth=width, alpha=0.6)
        axes.annotate(
            condition,
            (at + 0.03, side.y),
            (0, 1 + width / 2),
            textcoords="offset points",
            va="bottom",
            fontsize=SMALL,
            color=INK,
        )
        _draw(axes, side, at + 1, n, told)
