"""How a stream went: noise, the number of clusters and drift over its events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from streamclust.errors import NotReady
from streamclust.events import Change, ClusterMoved, RefitDone
from streamclust_adapters.plot.canvas import (
    COLOURS,
    INK,
    SMALL,
    TEXT,
    bare,
    colour_of,
    empty,
    plural,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRIFT = "drift"
"""The reason of a refit that was made because cost or outlier rate rose."""


def noise(changes: Iterable[Change]) -> Figure:
    """Draw noise share, number of clusters and movements of clusters over the events learned.

    Parameters
    ----------
    changes : iterable of Change
        ``model.events_since(0)``, or what `changes.read_changes` read.

    Returns
    -------
    Figure
        Noise share and number of clusters are those of the refits; a dashed line is a refit that
        drift has caused. Movements are in scaled units, labelled where they are largest.

    Raises
    ------
    NotReady
        Where no refit was made.
    """
    changes = list(changes)
    refits = [change for change in changes if isinstance(change, RefitDone)]
    moves = [
        change for change in changes if isinstance(change, ClusterMoved) and change.distance > 0
    ]
    if not refits:
        raise NotReady("no refit among the changes; the noise rate is told by refits")
    alarms = [refit.tick for refit in refits if refit.reason == DRIFT]
    title = f"{plural(len(refits), 'refit')}, {len(alarms)} of them because of drift"
    figure = empty(9.0, 6.0, title)
    above, middle, below = figure.subplots(3, 1, sharex=True)
    ticks = [refit.tick for refit in refits]

    shares = [100 * refit.noise_share for refit in refits]
    above.plot(ticks, shares, "o-", color=COLOURS[3], markersize=3.5, linewidth=1.2)
    above.set_ylabel("noise, % of window", fontsize=TEXT)
    counts = [refit.clusters for refit in refits]
    middle.plot(ticks, counts, "s-", color=COLOURS[0], markersize=3.5, drawstyle="steps-post")
    middle.set_ylabel("clusters found", fontsize=TEXT)
    below.set_ylabel("movement of a cluster,\nscaled units", fontsize=TEXT)
    below.set_xlabel("events learned", fontsize=TEXT)
    if moves:
        colours = [colour_of(move.cluster) for move in moves]
        below.scatter([one.tick for one in moves], [one.distance for one in moves], 10, colours)
        below.set_yscale("log")
    for move in _apart(moves, ticks[-1] - ticks[0]):
        below.annotate(
            str(move.cluster),
            (move.tick, move.distance),
            (3, 2),
            textcoords="offset points",
            fontsize=SMALL,
            color=INK,
        )
    for axes in (above, middle, below):
        bare(axes).margins(y=0.15)
        axes.grid(color="#E5E5E5", linewidth=0.6)
        axes.set_axisbelow(True)
        for alarm in alarms:
            axes.axvline(alarm, color=INK, linewidth=0.8, linestyle="--", zorder=1.5)
    for axes in (above, middle):
        axes.set_ylim(bottom=0)
    middle.yaxis.get_major_locator().set_params(integer=True)
    if alarms:
        above.annotate(
            "dashed: refit because of drift",
            (1, 1),
            xycoords="axes fraction",
            ha="right",
            va="bottom",
            fontsize=SMALL,
            color=INK,
        )
    return figure


def _apart(moves: list[ClusterMoved], span: int) -> list[ClusterMoved]:
    """The largest movements, at most 20, none so close to a larger one that labels would meet."""
    kept: list[ClusterMoved] = []
    for move in sorted(moves, key=lambda one: -one.distance):
        if len(kept) < 20 and all(abs(move.tick - one.tick) * 30 > span for one in kept):
            kept.append(move)
    return kept
