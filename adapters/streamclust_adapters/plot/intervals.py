"""Which values a cluster's rule allows: one row per cluster, one chart per feature."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from streamclust.errors import NotReady
from streamclust.results import Box, Cluster, FeatureName
from streamclust_adapters.plot.canvas import (
    GREY,
    INK,
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

MOST_FEATURES = 6
"""Charts beside each other: the features with most bounds."""

MOST_BOXES = 3
"""Boxes of a rule that are drawn, the simplest first."""

ROW, CHART = 0.26, 2.1
"""Inches of a row's height and of a chart's width."""


class Ruled(Protocol):
    """What is read of a model."""

    @property
    def clusters(self) -> Mapping[int, Cluster]:
        """The living clusters by id."""

    @property
    def tick_count(self) -> int:
        """Events learned."""


def intervals(model: Ruled) -> Figure:
    """Draw the boxes of every cluster's rule, feature by feature.

    Parameters
    ----------
    model : StreamClusterer

    Returns
    -------
    Figure
        A bar is an interval of a box; it has an arrow where it is open, and is thin and grey where
        the box leaves the feature free. A dot is the center. The boxes of one rule are alternatives
        and stand under each other in the same order in every chart.

    Raises
    ------
    NotReady
        While there is no cluster.
    """
    clusters = sorted(model.clusters.values(), key=lambda one: (-one.weight, one.id))
    if not clusters:
        raise NotReady(
            f"no cluster yet after {model.tick_count:,} events; there is no rule to draw"
        )
    bounded = Counter[FeatureName]()
    for cluster in clusters:
        for box in cluster.rule.boxes:
            bounded.update(list(box.intervals))
    features: list[FeatureName] = [name for name, _ in bounded.most_common(MOST_FEATURES)]
    features = features or list(clusters[0].rule.fence.center)[:1]
    known = len(clusters[0].rule.fence.center)
    title = f"Rules of {plural(len(clusters), 'cluster')}, the heaviest first"
    if len(bounded) > len(features):
        title += f"; of {known} features those with most bounds"
    elif known > len(features):
        title += f"; {known - len(features)} of {known} features have no bound"
    if any(len(one.rule.boxes) > MOST_BOXES for one in clusters):
        title += "; (+n): n narrower boxes"
    width = max(1.2 + CHART * len(features), 7.5)
    figure = empty(width, 1.1 + ROW * len(clusters), title)
    charts = figure.subplots(1, len(features), sharey=True, squeeze=False)[0]
    for feature, axes in zip(features, charts, strict=True):
        _chart(bare(axes), feature, clusters)
    labels = [
        named(one) + (f" (+{more})" if (more := len(one.rule.boxes) - MOST_BOXES) > 0 else "")
        for one in clusters
    ]
    charts[0].set_yticks(range(len(clusters)), labels, fontsize=TEXT)
    charts[0].set_ylim(len(clusters) - 0.4, -0.6)
    charts[0].set_ylabel("cluster", fontsize=TEXT)
    return figure


def _chart(axes: Axes, feature: FeatureName, clusters: Sequence[Cluster]) -> None:
    """Draw one feature of all clusters."""
    ends = [one.rule.fence.center[feature] for one in clusters]
    for one in clusters:
        for box in one.rule.boxes:
            ends += [end for end in box.intervals.get(feature, ()) if math.isfinite(end)]
    low, high = min(ends), max(ends)
    room = 0.12 * (high - low) or 1.0
    low, high = low - room, high + room
    axes.set_xlim(low, high)
    for row, one in enumerate(clusters):
        if row % 2:
            axes.axhspan(row - 0.5, row + 0.5, color="#F2F2F2", zorder=0)
        boxes = one.rule.boxes[:MOST_BOXES]
        for at, box in enumerate(boxes):
            _bar(axes, feature, box, row + (at + 0.5) / len(boxes) * 0.8 - 0.4, colour_of(one.id))
        axes.plot(one.rule.fence.center[feature], row, "o", color=INK, markersize=2.5, zorder=4)
    axes.set_xlabel(plain(feature), fontsize=TEXT)
    axes.tick_params(axis="y", length=0)


def _bar(axes: Axes, feature: FeatureName, box: Box, y: float, colour: str) -> None:
    """Draw what one box says of a feature."""
    left, right = axes.get_xlim()
    if feature not in box.intervals:
        axes.plot([left, right], [y, y], color=GREY, linewidth=0.6, linestyle=":")
        return
    low, high = box.intervals[feature]
    shown = [max(low, left), min(high, right)]
    axes.plot(shown, [y, y], color=colour, linewidth=3, solid_capstyle="butt")
    for end, at, arrow in ((low, left, "<"), (high, right, ">")):
        if math.isinf(end):
            axes.plot(at, y, arrow, color=colour, markersize=4, clip_on=False, zorder=4)
        else:
            axes.plot(end, y, "|", color=INK, markersize=5, markeredgewidth=0.8, zorder=3)
