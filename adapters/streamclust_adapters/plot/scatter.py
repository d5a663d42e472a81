"""Many features on a plane: the directions of largest variance, coloured by what was answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from streamclust.errors import InvalidParameter, NotReady
from streamclust.results import Cluster, FeatureName, FloatArray, IntArray, Region
from streamclust_adapters.plot.canvas import (
    GREY,
    INK,
    SMALL,
    TEXT,
    bare,
    colour_of,
    empty,
    marker_of,
    named,
    plural,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 8.6, 6.6
"""Inches of a figure of few clusters."""

CROWD = 15
"""Clusters from which on the figure grows, so that there is room for their labels."""

INSIDE = 0.8
"""The part of a figure's width and height that the data take, about."""

REGIONS = {
    Region.CORE: "core: filled",
    Region.BOUNDARY: "boundary (ambiguous): hollow",
    Region.NOISE: "noise: grey x",
    Region.COLD: "nothing known yet: grey +",
}


class Answering(Protocol):
    """What is asked of a model."""

    @property
    def clusters(self) -> Mapping[int, Cluster]:
        """The living clusters by id."""

    def assign_one(self, x: Mapping[Any, Any]) -> Any:
        """Say where an event belongs; changes nothing."""

    def window_points(self) -> dict[FeatureName, FloatArray]:
        """Return the window's columns."""


def projection(model: Answering, table: Any = None) -> Figure:
    """Draw points on their two principal components, by cluster and region.

    Parameters
    ----------
    model : StreamClusterer
    table : data frame, or mapping of feature to array of shape (n,), optional
        The points, nan where absent; the model's window by default.

    Returns
    -------
    Figure
        Features are centred at their mean and divided by their standard deviation first (an
        absent value counts as the mean). The axes say how much of the variance they hold.

    Raises
    ------
    NotReady
        Where there is no point.
    InvalidParameter
        For a table whose columns differ in length.
    InvalidPoint
        For a value that the model refuses.
    """
    given = model.window_points() if table is None else table
    columns = {name: np.asarray(values, dtype=np.float64) for name, values in given.items()}
    if len({values.shape for values in columns.values()}) > 1:
        raise InvalidParameter("a table has columns of one length")
    names = list(columns)
    values = np.array([columns[name] for name in names]).T
    if not values.size:
        raise NotReady("no points to draw")
    answers = [
        model.assign_one({names[j]: float(row[j]) for j in np.flatnonzero(~np.isnan(row))})
        for row in values
    ]
    places, shares = components(values)

    n, clusters = len(values), model.clusters
    wider = float(np.sqrt(np.clip(len(clusters) / CROWD, 1, 2)))
    title = f"{plural(n, 'point')} in {plural(len(clusters), 'cluster')}"
    figure = empty(WIDTH * wider, HEIGHT * wider, title)
    axes = bare(figure.add_subplot())
    groups: dict[tuple[int, Region], list[int]] = defaultdict(list)
    for row, answer in enumerate(answers):
        groups[answer.label, Region(answer.region)].append(row)
    size = float(np.clip(8000 / n, 6, 26))
    for (label, region), rows in sorted(groups.items()):
        _points(axes, places[rows], label, region, size)
    room = 72 * INSIDE * wider * np.array([WIDTH, HEIGHT])
    _labels(axes, room, places, np.array([answer.label for answer in answers]), clusters)
    axes.set_xlabel(f"first component, {shares[0]:.0%} of the variance", fontsize=TEXT)
    axes.set_ylabel(f"second component, {shares[1]:.0%} of the variance", fontsize=TEXT)
    told = [text for region, text in REGIONS.items() if any(r == region for _, r in groups)]
    figure.supxlabel("   ".join(told), fontsize=TEXT, color=INK)
    return figure


def components(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return principal components: places of shape (n, 2) and their shares of the variance (2,)."""
    seen = ~np.isnan(values)
    counts = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, values, 0.0).sum(axis=0) / counts
    centred = np.where(seen, values - mean, 0.0)
    scale = np.sqrt((centred**2).sum(axis=0) / counts)
    scaled = np.divide(centred, scale, out=np.zeros_like(centred), where=scale > 0)
    _, strength, directions = np.linalg.svd(scaled, full_matrices=False)
    # The sign of a direction is arbitrary; its largest entry is made positive.
    largest = np.abs(directions).argmax(axis=1)
    directions *= np.where(directions[np.arange(len(directions)), largest] < 0, -1.0, 1.0)[:, None]
    shares = strength**2 / max(float((strength**2).sum()), np.finfo(float).tiny)
    places = np.zeros((len(values), 2))
    kept = min(2, len(directions))
    places[:, :kept] = scaled @ directions[:kept].T
    return places, np.concatenate([shares, [0.0, 0.0]])[:2]


def _points(axes: Axes, places: FloatArray, label: int, region: Region, size: float) -> None:
    x, y = places.T
    if region in {Region.NOISE, Region.COLD}:
        marker = "x" if region == Region.NOISE else "+"
        axes.scatter(x, y, s=size, c=GREY, marker=marker, linewidths=0.8, zorder=1)
        return
    colour = colour_of(label)
    face = colour if region == Region.CORE else "none"
    axes.scatter(
        x,
        y,
        s=size,
        marker=marker_of(label),
        facecolors=face,
        edgecolors=colour,
        linewidths=0.8,
        alpha=0.75,
        zorder=2,
    )


def _labels(
    axes: Axes,
    room: FloatArray,
    places: FloatArray,
    labels: IntArray,
    clusters: Mapping[int, Cluster],
) -> None:
    """Write each cluster's label beside the median of its points.

    It stands where it meets no other label and no other median; `room` is the width and height of
    the chart, in points.
    """
    found = np.unique(labels[labels >= 0]).tolist()
    middles = [np.median(places[labels == label], axis=0) for label in found]
    low, high = places.min(axis=0), places.max(axis=0)
    scale = room / np.where(high > low, high - low, 1.0)
    taken = [np.array([*middle * scale, 7.0, 7.0]) for middle in middles]
    for label, middle in zip(found, middles, strict=True):
        name = named(clusters[label])
        half = np.array([2.5 * len(name) + 5, 7.0])
        offset = _free(middle * scale, half, taken)
        taken.append(np.concatenate([middle * scale + offset, half]))
        axes.annotate(
            name,
            tuple(middle.tolist()),
            tuple(offset.tolist()),
            textcoords="offset points",
            fontsize=SMALL,
            weight="bold",
            ha="center",
            va="center",
            color=INK,
            zorder=5,
            bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": colour_of(label)},
            arrowprops={"arrowstyle": "-", "color": colour_of(label), "linewidth": 0.8},
        )


def _free(at: FloatArray, half: FloatArray, taken: Sequence[FloatArray]) -> FloatArray:
    """An offset of a label from `at`, in points, where it meets none of the labels `taken`."""
    boxes = np.array(taken).reshape(-1, 4)
    for far in (16.0, 26.0, 38.0, 52.0, 68.0):
        for angle in (0.25, 0.75, 0.0, 0.5, 0.125, 0.375, 0.625, 0.875):
            turn = 2 * np.pi * angle
            offset = far * np.array([np.cos(turn), np.sin(turn)])
            gap = np.abs(boxes[:, :2] - at - offset) - boxes[:, 2:] - half
            if not (gap < 0).all(axis=1).any():
                return offset
    return np.array([0.0, 16.0])
