"""``streamclust plot``: pictures of a snapshot, or of change events that a run has written."""

from __future__ import annotations

from pathlib import Path

import click

from streamclust_adapters.launch import failures, load_model

KINDS = {
    "tree": "every cut and leaf",
    "timeline": "births, deaths, splits, merges",
    "noise": "noise, clusters found and drift over time",
    "intervals": "the rules, feature by feature",
    "projection": "the window's points on a plane",
}
OF_CHANGES = ("timeline", "noise")
"""The pictures that change events are enough for."""


@click.command()
@click.argument("source", type=click.Path(exists=True, path_type=Path), metavar="SNAPSHOT|EVENTS")
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="What to write: a name that ends in .png, .svg or .html.",
)
@click.option(
    "--kind",
    type=click.Choice(list(KINDS)),
    help="; ".join(f"{kind}: {told}" for kind, told in KINDS.items())
    + ". By default tree of a snapshot, timeline of events.",
)
def plot(source: Path, output: Path, kind: str | None) -> None:
    """Draw a snapshot, a folder of snapshots, or the file that `run --events` wrote."""
    with failures():
        from streamclust_adapters.plot.canvas import SUFFIXES

        suffix = output.suffix.lower()
        if suffix not in SUFFIXES:
            known = ", ".join(SUFFIXES)
            raise click.UsageError(f"--output {output}: give a name that ends in {known}")
        picture = _drawn(source, kind, suffix)
        try:
            output.write_bytes(picture)
        except OSError as error:
            raise click.ClickException(f"cannot write {output}: {error.strerror}") from error


def _drawn(source: Path, kind: str | None, suffix: str) -> bytes:
    """The picture that is asked for, as a file of this suffix."""
    from streamclust_adapters.changes import read_changes
    from streamclust_adapters.plot.canvas import render
    from streamclust_adapters.plot.course import noise
    from streamclust_adapters.plot.intervals import intervals
    from streamclust_adapters.plot.lineage import timeline
    from streamclust_adapters.plot.outline import tree
    from streamclust_adapters.plot.scatter import projection

    if _holds_lines(source):
        kind = kind or "timeline"
        if kind not in OF_CHANGES:
            raise click.UsageError(f"--kind {kind} needs a snapshot; {source} holds lines")
        told = read_changes(source)
        return render(timeline(told) if kind == "timeline" else noise(told), suffix)
    model = load_model(source)
    match kind or "tree":
        case "timeline":
            figure = timeline(model.events_since(0), model)
        case "noise":
            figure = noise(model.events_since(0))
        case "intervals":
            figure = intervals(model)
        case "projection":
            figure = projection(model)
        case _:
            figure = tree(model)
    return render(figure, suffix)


def _holds_lines(source: Path) -> bool:
    """Whether a file holds JSON lines: a snapshot begins with a length, whose high bytes are 0."""
    if source.is_dir():
        return False
    with source.open("rb") as file:
        return b"\0" not in file.read(8)
