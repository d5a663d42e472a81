"""The options of what shows a stream live: where it comes from, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from streamclust_adapters.input_options import fields_of, guess_format
from streamclust_adapters.launch import names

if TYPE_CHECKING:
    from streamclust_adapters.decoding import LineDecoder

_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True)

_OPTIONS = [
    click.option(
        "--source",
        type=_FILE,
        metavar="FILE|-",
        help="Events to learn: JSON lines or CSV; nothing is answered or kept.",
    ),
    click.option("--follow", is_flag=True, help="Wait for what the source grows by."),
    click.option(
        "--format",
        "form",
        type=click.Choice(["jsonl", "csv"]),
        help="Of the source; guessed from its name, jsonl for a pipe.",
    ),
    click.option(
        "--features", type=names, metavar="A,B,..", help="The source's fields to cluster by."
    ),
    click.option("--ignore", type=names, metavar="A,B,..", help="Its fields that are no features."),
    click.option("--time-field", metavar="NAME", help="Its stream time: seconds or ISO 8601."),
    click.option("--id-field", metavar="NAME", help="Its field that names an event."),
    click.option(
        "--attach",
        type=_FILE,
        metavar="EVENTS|-",
        help="Change events that a worker writes (run --events), read as they come.",
    ),
    click.option(
        "--answers",
        type=_FILE,
        metavar="FILE",
        help="With --attach: the worker's answers (run --output); they tell sizes, noise and why.",
    ),
]


def live_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check_live(options: dict[str, Any]) -> None:
    """Refuse options that contradict one another.

    Raises
    ------
    click.UsageError
        When they do.
    """
    if options["follow"] and options["source"] in {None, "-"}:
        raise click.UsageError("--follow needs --source FILE; a pipe is waited for anyway")
    if options["answers"] is not None and options["attach"] is None:
        raise click.UsageError("--answers goes with --attach EVENTS")
    if options["answers"] is not None and options["answers"] == options["attach"]:
        raise click.UsageError("--attach and --answers must be different")


def decoder_of(options: dict[str, Any]) -> LineDecoder:
    """What reads the lines of the source."""
    from streamclust_adapters.codec import decoder

    return decoder(options["form"] or guess_format(options["source"]), fields_of(options))
