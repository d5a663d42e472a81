"""What every example does alike: read its options, print what was found, write a picture."""

from __future__ import annotations

import argparse
from pathlib import Path

from simulations.tables import NO_PICTURE
from streamclust.events import ClusterBorn, ClusterDied, ClustersMerged, ClusterSplit, RefitDone

NEWS = (ClusterBorn, ClusterDied, ClustersMerged, ClusterSplit)
SHOWN_BOXES = 2


def options(told, events, quick):
    """Read `--quick` and `--output`; return the number of events and where the picture goes."""
    parser = argparse.ArgumentParser(description=told.strip().splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{quick:,} instead of {events:,}")
    parser.add_argument("--output", type=Path, default=Path("demo"), help="folder of the picture")
    given = parser.parse_args()
    return quick if given.quick else events, given.output


def tell_clusters(model, most=12):
    """Print the clusters and their rules, the heaviest first."""
    heaviest = sorted(model.clusters.values(), key=lambda one: -one.weight)
    for one in heaviest[:most]:
        lines = " or ".join(one.rule.lines[:SHOWN_BOXES])
        more = len(one.rule.lines) - SHOWN_BOXES
        rest = f" or {more} more" if more > 0 else ""
        name = f" ({one.name})" if one.name else ""
        print(f"  cluster {one.id}{name}, {one.size:,} events: {lines}{rest}")
    if len(heaviest) > most:
        print(f"  and {len(heaviest) - most} lighter ones")


def tell_changes(changes, after=0):
    """Print births, deaths, splits, merges, and refits that drift has caused."""
    for one in news(changes, after):
        print(f"  event {one.tick:,}: {_words(one)}")


def news(changes, after=0):
    """Those changes that say something of the world, behind an event."""
    return [
        one
        for one in changes
        if one.tick > after
        and (isinstance(one, NEWS) or (isinstance(one, RefitDone) and one.reason == "drift"))
    ]


def draw(kind, path, *drawn_from):
    """Write a picture, where matplotlib is installed; `kind` is a function of the plot package."""
    try:
        from streamclust_adapters import plot  # noqa: PLC0415  # only drawing needs it
        from streamclust_adapters.plot.canvas import render  # noqa: PLC0415
    except ImportError:
        print(NO_PICTURE)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(render(getattr(plot, kind)(*drawn_from), path.suffix))
    print(f"picture: {path}")


def _words(change):
    match change:
        case ClusterBorn():
            return f"cluster {change.cluster} was born (found by {change.found_by})"
        case ClusterDied():
            return f"cluster {change.cluster} died ({change.reason})"
        case ClusterSplit():
            children = ", ".join(map(str, change.children))
            return f"cluster {change.parent} split into {children}"
        case ClustersMerged():
            return f"clusters {', '.join(map(str, change.parents))} became {change.child}"
        case _:
            return "drift alarm: the clusters were found anew"
