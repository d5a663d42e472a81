"""``streamclust top``: the clusters of a stream, or of a running worker, live on a terminal."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from streamclust_adapters.launch import failures
from streamclust_adapters.live_options import check_live, decoder_of, live_options


@click.command()
@click.argument(
    "snapshot", type=click.Path(exists=True, path_type=Path), required=False, metavar="[SNAPSHOT]"
)
@live_options
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    help="Between two looks at SNAPSHOT.",
)
def top(snapshot: Path | None, seconds: float, **options: Any) -> None:
    """Show clusters, rules, noise and the last changes, live.

    SNAPSHOT, a file or the folder of a run, is read again when it changes, until Ctrl-C. In a pipe
    the last page is written: of SNAPSHOT and of EVENTS what is there now.
    """
    if sum(one is not None for one in (snapshot, options["source"], options["attach"])) != 1:
        raise click.UsageError("give a SNAPSHOT, or --source FILE, or --attach EVENTS")
    check_live(options)
    with failures(), ExitStack() as stack:
        from streamclust import StreamClusterer
        from streamclust_adapters import feeds, report
        from streamclust_adapters.runner import Shutdown
        from streamclust_adapters.top import Page

        decoder = None if options["source"] is None else decoder_of(options)
        shutdown = stack.enter_context(Shutdown())
        page = stack.enter_context(Page())
        once = not page.console.is_terminal
        totals = None
        if snapshot is not None:
            feeds.watch(snapshot, StreamClusterer.load, seconds, page, shutdown, once=once)
        elif decoder is not None:
            model, follow = StreamClusterer(), options["follow"]
            totals = feeds.learn(model, options["source"], decoder, page, shutdown, follow=follow)
        else:
            feeds.attach(options["attach"], options["answers"], page, shutdown, once=once)
    if totals is not None:
        report.print_refused(totals)
