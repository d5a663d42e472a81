"""``streamclust top``: the clusters of a stream, or of a worker's snapshots, live on a terminal."""

from __future__ import annotations

import select
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamclust_adapters.launch import failures, load_model, names, newest

if TYPE_CHECKING:
    from streamclust_adapters.decoding import Fields
    from streamclust_adapters.runner import Shutdown
    from streamclust_adapters.top import Page

STDIN = 0


@click.command()
@click.argument(
    "snapshot", type=click.Path(exists=True, path_type=Path), required=False, metavar="[SNAPSHOT]"
)
@click.option(
    "--source",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE|-",
    help="JSON lines to learn instead; nothing is answered or kept.",
)
@click.option("--features", type=names, metavar="A,B,..", help="The source's fields to cluster by.")
@click.option("--ignore", type=names, metavar="A,B,..", help="Its fields that are no features.")
@click.option("--follow", is_flag=True, help="Wait for what the source grows by.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    help="Between two looks at SNAPSHOT.",
)
def top(
    snapshot: Path | None,
    source: str | None,
    features: tuple[str, ...] | None,
    ignore: tuple[str, ...] | None,
    follow: bool,
    seconds: float,
) -> None:
    """Show clusters, rules, noise and the last changes, live.

    SNAPSHOT, a file or the folder of a run, is read again when it changes, until Ctrl-C. In a pipe
    the last page is written, and of SNAPSHOT the first is the last.
    """
    if (snapshot is None) == (source is None):
        raise click.UsageError("give a SNAPSHOT, or --source FILE")
    if follow and source in {None, "-"}:
        raise click.UsageError("--follow needs --source FILE; a pipe is waited for anyway")
    with failures(), ExitStack() as stack:
        from streamclust_adapters.decoding import Fields
        from streamclust_adapters.runner import Shutdown
        from streamclust_adapters.top import Page

        shutdown = stack.enter_context(Shutdown())
        shown = Page()
        if snapshot is not None:
            with shown:
                _watch(snapshot, seconds, shown, shutdown)
        elif source is not None:
            fields = Fields(features=features, ignore=frozenset(ignore or ()))
            _learn(source, fields, follow, shown, shutdown)


def _watch(snapshot: Path, seconds: float, page: Page, shutdown: Shutdown) -> None:
    """Show the newest snapshot, again whenever there is a newer one."""
    last: object = None
    while not shutdown.requested:
        now = _state(snapshot)
        if now != last:
            last = now
            found = newest(snapshot) if snapshot.is_dir() else None
            if found is not None:
                page.show(found.model)
            elif snapshot.is_dir():
                page.wait(f"no snapshot in {snapshot} yet")
            else:
                page.show(load_model(snapshot))
        if not page.console.is_terminal:
            return
        select.select([shutdown], [], [], seconds)


def _state(snapshot: Path) -> object:
    """What differs once there is something new to read."""
    from streamclust_adapters.snapshots import newest_first

    files = newest_first(snapshot) if snapshot.is_dir() else [snapshot]
    try:
        return [(path, path.stat().st_mtime_ns) for path in files[:1]]
    except FileNotFoundError:  # a newer one has just replaced it
        return None


def _learn(file: str, fields: Fields, follow: bool, page: Page, shutdown: Shutdown) -> None:
    """Learn the events of a source and show the model after each block of them."""
    from streamclust import StreamClusterer
    from streamclust_adapters import inputs
    from streamclust_adapters.codec import decoder
    from streamclust_adapters.following import Followed
    from streamclust_adapters.runner import Runner
    from streamclust_adapters.stdio import LineSource
    from streamclust_adapters.top import Unheard

    model = StreamClusterer()
    source: inputs.Input
    if file == "-":
        source = inputs.Descriptor(STDIN, shutdown)
    elif follow:
        source = Followed(Path(file), shutdown, page.wait)
    else:
        source = inputs.opened(file, shutdown)
    lines = LineSource(source, decoder("jsonl", fields))
    with page:
        page.show(model)
        totals = Runner(
            model, lines, Unheard(), shutdown=shutdown, after_batch=lambda _: page.show(model)
        ).run()
    if totals.refused:
        told = f"{totals.refused:,} refused; first refusal: {totals.first_refusal}"
        click.echo(told, err=True)
