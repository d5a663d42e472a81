"""``streamclust serve``: the clusters of a stream, or of a running worker, live in a browser."""

from __future__ import annotations

import ipaddress
import os
import select
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import click

from streamclust_adapters.input_options import check_time
from streamclust_adapters.launch import failures
from streamclust_adapters.live_options import check_live, decoder_of, live_options
from streamclust_adapters.options import RunCommand, given_parameters, model_options

TOKEN = "STREAMCLUST_TOKEN"
"""The variable of the environment that holds the token."""

SHORTEST = 16
"""Letters of a token at least."""


@click.command(cls=RunCommand)
@live_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Others need a token.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8750, show_default=True, help="0: a free one."
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"Holds what a browser must know; or {TOKEN} in the environment.",
)
@click.option(
    "--name", "hosts", multiple=True, help="A name of this host by which the page is asked for."
)
@model_options
@click.pass_context
def serve(ctx: click.Context, /, **_: object) -> None:
    """Show clusters, rules, their lives, noise and the last answers on a live page.

    Either --source is learned, or --attach follows what a running worker writes. The page stays
    after the end of the stream, until Ctrl-C.
    """
    options, given = ctx.params, given_parameters(ctx)
    _check_usage(options, given)
    token = _token(options)
    with failures(), ExitStack() as stack:
        from streamclust_adapters.runner import Shutdown
        from streamclust_adapters.web.server import PageServer

        shutdown = stack.enter_context(Shutdown())
        title = _title(options)
        server = PageServer(
            title, options["host"], options["port"], token=token, names=options["hosts"]
        )
        page = stack.enter_context(server)
        click.echo(
            f"{_address(options['host'], page.port)} shows {title}; Ctrl-C ends it", err=True
        )
        _feed(options, given, page, shutdown)
        if not shutdown.requested:
            page.end("the stream has ended")
            click.echo("the stream has ended; the page stays until Ctrl-C", err=True)
            select.select([shutdown], [], [])


def _feed(options: dict[str, Any], given: dict[str, object], page: Any, shutdown: Any) -> None:
    """Show what there is until it ends."""
    from streamclust import StreamClusterer
    from streamclust.warmup import compiling
    from streamclust_adapters import feeds, report

    if options["source"] is None:
        feeds.attach(options["attach"], options["answers"], page, shutdown)
        return
    model = StreamClusterer(**cast(dict[str, Any], given))
    with compiling(lambda: page.wait("compiling for the first run")):
        totals = feeds.learn(
            model,
            options["source"],
            decoder_of(options),
            page,
            shutdown,
            follow=options["follow"],
            why=True,
        )
    report.print_refused(totals)


def _check_usage(options: dict[str, Any], given: dict[str, object]) -> None:
    if (options["source"] is None) == (options["attach"] is None):
        raise click.UsageError("give --source FILE, or --attach EVENTS")
    check_live(options)
    if options["source"] is not None:
        decoder_of(options)  # the layout is known, or told to be missing, before anything is served
    elif given:
        raise click.UsageError("the model of --attach is the worker's; no parameter is accepted")
    check_time(options)


def _token(options: dict[str, Any]) -> str | None:
    """The token, which must be there where others than this host can connect."""
    file = options["token_file"]
    try:
        token = os.environ.get(TOKEN) if file is None else file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"cannot read {file}: {error}") from None
    token = (token or "").strip()
    if not token:
        if file is not None:
            raise click.UsageError(f"{file} is empty; it should hold the token")
        if not _is_loopback(options["host"]):
            raise click.UsageError(
                f"--host {options['host']} can be reached from outside: give a token, by "
                f"--token-file FILE or {TOKEN} in the environment"
            )
        return None
    if len(token) < SHORTEST:
        raise click.UsageError(f"the token is too short: {SHORTEST} letters at least are accepted")
    return token


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _title(options: dict[str, Any]) -> str:
    file = options["source"] or options["attach"]
    return "stdin" if file == "-" else Path(file).name
