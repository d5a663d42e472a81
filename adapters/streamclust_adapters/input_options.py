"""The options that every run has, whatever its door: what of an input is what, and what is done."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamclust_adapters.launch import names

if TYPE_CHECKING:
    from streamclust_adapters.decoding import Fields

SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv"}

_OPTIONS = [
    click.option(
        "--features",
        type=names,
        metavar="A,B,..",
        help="The fields to cluster by; a.b is b inside of a. Of rows and arrays: all columns.",
    ),
    click.option("--ignore", type=names, metavar="A,B,..", help="Fields that are no features."),
    click.option("--time-field", metavar="NAME", help="Stream time: seconds or ISO 8601."),
    click.option("--id-field", metavar="NAME", help="Repeated in the answers."),
    click.option("--explain", is_flag=True, help="Add the rule to each answer."),
    click.option("--strict", is_flag=True, help="Stop at the first input that holds no event."),
    click.option(
        "--model",
        "model_file",
        type=click.Path(exists=True, path_type=Path),
        help="Start from a saved model: a snapshot, or a folder of them.",
    ),
    click.option("--no-learn", is_flag=True, help="Only answer; needs --model."),
    click.option(
        "--snapshot-every",
        "every",
        type=click.IntRange(min=1),
        default=10_000,
        show_default=True,
        metavar="N",
        help="Events of an engine between two snapshots.",
    ),
]


def input_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def guess_format(file: str) -> str:
    """The layout of a file's lines, by its name; JSON lines of stdin."""
    from streamclust_adapters.inputs import COMPRESSED

    if file == "-":
        return "jsonl"
    path = Path(file)
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    form = SUFFIXES.get(path.suffix.lower())
    if form is None:
        known = ", ".join(SUFFIXES)
        raise click.UsageError(f"{file}: give --format, or a name that ends in {known}")
    return form


def fields_of(options: dict[str, Any]) -> Fields:
    """Which fields are what, as the options say."""
    from streamclust_adapters.decoding import Fields

    return Fields(
        features=options["features"],
        ignore=frozenset(options["ignore"] or ()),
        time=options["time_field"],
        key=options["id_field"],
    )


def reading_of(options: dict[str, Any]) -> dict[str, object]:
    """What must be the same in a later run for its events to be the same."""
    return {
        "format": options["form"],
        "features": None if options["features"] is None else list(options["features"]),
        "ignore": sorted(options["ignore"] or ()),
        "time_field": options["time_field"],
        "id_field": options["id_field"],
    }


def check_input(options: dict[str, Any], own_names: Collection[str]) -> None:
    """Refuse options that contradict one another.

    Parameters
    ----------
    options : dict
        The parameters of the command.
    own_names : collection of str
        The names of an answer's own fields, which an id field cannot have.

    Raises
    ------
    click.UsageError
        When they do.
    """
    if options["no_learn"] and options["model_file"] is None:
        raise click.UsageError("--no-learn needs --model FILE")
    if options["no_learn"] and options["folder"] is not None:
        raise click.UsageError("--no-learn changes no model, so there is none to --snapshot")
    if options["id_field"] in own_names:
        raise click.UsageError(f"--id-field {options['id_field']}: an answer has such a field")
    check_time(options)
    if fields_of(options).selected == ():
        raise click.UsageError("--features leaves no feature beside the other named fields")


def check_time(options: dict[str, Any]) -> None:
    """Refuse a clock of seconds that nothing tells.

    Raises
    ------
    click.UsageError
        When it has none.
    """
    if options["time_unit"] == "seconds" and options["time_field"] is None:
        raise click.UsageError("--time-unit seconds needs --time-field NAME")
