"""The ``streamclust`` command: parses, wires, exits.

Exit codes: 0 done or stopped on request, 1 failure, 2 usage. What a subcommand needs is imported
when it runs, so help is immediate.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from streamclust.errors import SnapshotError
from streamclust_adapters.kafka_command import kafka
from streamclust_adapters.launch import checked, failures, load_model, names, newest
from streamclust_adapters.options import RunCommand, given_parameters, model_options

if TYPE_CHECKING:
    from streamclust import StreamClusterer
    from streamclust_adapters.codec import Fields
    from streamclust_adapters.ports import Position
    from streamclust_adapters.snapshots import SnapshotFolder

SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv"}

OWN_NAMES = ("event", "cluster", "region", "rule")
"""The names of an answer's own fields, which an id field cannot have."""

STDIN, STDOUT = 0, 1


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="streamclust")
def main() -> None:
    """Online clustering whose every answer is a readable rule."""


main.add_command(kafka)


@main.command(cls=RunCommand)
@click.argument(
    "file",
    type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
    default="-",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "csv"]),
    help="Of the input; guessed from the name of FILE, jsonl for a pipe.",
)
@click.option("--features", type=names, metavar="A,B,..", help="The fields to cluster by.")
@click.option("--ignore", type=names, metavar="A,B,..", help="Fields that are no features.")
@click.option("--time-field", metavar="NAME", help="Stream time: seconds or ISO 8601.")
@click.option("--id-field", metavar="NAME", help="Repeated in the answers.")
@click.option("--output", "-o", type=click.Path(), help="Answers; stdout by default.")
@click.option("--events", "changes", type=click.Path(), help="Change events, as JSON lines.")
@click.option("--dead-letter", type=click.Path(), help="Input that holds no event, with reasons.")
@click.option("--strict", is_flag=True, help="Stop at the first input that holds no event.")
@click.option("--explain", is_flag=True, help="Add the rule to each answer.")
@click.option(
    "--snapshot",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep the model in DIR: at the start, on the way and at the end.",
)
@click.option(
    "--snapshot-every",
    "every",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    metavar="N",
    help="Events between two snapshots.",
)
@click.option("--resume", is_flag=True, help="Go on from the newest snapshot in DIR, if any.")
@click.option(
    "--model",
    "model_file",
    type=click.Path(exists=True, path_type=Path),
    help="Start from a saved model: a snapshot, or a folder of them.",
)
@click.option("--no-learn", is_flag=True, help="Only answer; needs --model.")
@model_options
@click.pass_context
def run(ctx: click.Context, /, **_: object) -> None:
    """Cluster the events of FILE, or of stdin, one JSON line per event.

    Each event is answered from what was known before it, and then learned.
    """
    options = ctx.params
    _check_usage(options)
    with failures(), ExitStack() as stack:
        _run(options, given_parameters(ctx), stack)


@main.command()
@click.argument("snapshot", type=click.Path(exists=True, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Everything, exactly, as JSON.")
def inspect(snapshot: Path, as_json: bool) -> None:
    """Print the clusters and rules in SNAPSHOT, a file or a folder of them."""
    with failures():
        from streamclust_adapters import report

        model = load_model(snapshot)
        if as_json:
            click.echo(report.model_json(model, model.source))
            return
        click.echo(f"{model.tick_count:,} events learned")
        report.print_clusters(model.clusters, sys.stdout)


@main.command()
def warmup() -> None:
    """Compile everything now, so that no later start has to: for container images."""
    click.echo("compiling; this takes up to a minute", err=True)
    from streamclust.warmup import warm_up

    folder = warm_up()
    if folder is None:
        raise click.ClickException(
            "no folder for compiled code can be written, so every process compiles anew; "
            "NUMBA_CACHE_DIR=DIR names one"
        )
    click.echo(f"compiled code is kept in {folder}", err=True)


def _tell_compiling() -> None:
    click.echo("compiling for the first run; `streamclust warmup` does it ahead", err=True)


def _check_usage(options: dict[str, Any]) -> None:
    """Refuse options that contradict one another, before anything is opened."""
    if options["resume"] and options["folder"] is None:
        raise click.UsageError("--resume needs --snapshot DIR")
    if options["no_learn"] and options["model_file"] is None:
        raise click.UsageError("--no-learn needs --model FILE")
    if options["no_learn"] and options["folder"] is not None:
        raise click.UsageError("--no-learn changes no model, so there is none to --snapshot")
    if options["id_field"] in OWN_NAMES:
        raise click.UsageError(f"--id-field {options['id_field']}: an answer has such a field")
    if options["time_unit"] == "seconds" and options["time_field"] is None:
        raise click.UsageError("--time-unit seconds needs --time-field NAME")
    fields = _fields(options)
    if fields.selected == ():
        raise click.UsageError("--features leaves no feature beside the other named fields")
    options["form"] = options["form"] or _guess(options["file"])
    named = ["file", "output", "changes", "dead_letter"]
    paths = [os.path.realpath(options[n]) for n in named if options[n] not in {None, "-"}]
    if len(set(paths)) != len(paths):
        raise click.UsageError("input and outputs must be different files")


def _guess(file: str) -> str:
    if file == "-":
        return "jsonl"
    form = SUFFIXES.get(Path(file).suffix.lower())
    if form is None:
        known = ", ".join(SUFFIXES)
        raise click.UsageError(f"{file}: give --format, or a name that ends in {known}")
    return form


def _fields(options: dict[str, Any]) -> Fields:
    from streamclust_adapters.codec import Fields

    return Fields(
        features=options["features"],
        ignore=frozenset(options["ignore"] or ()),
        time=options["time_field"],
        key=options["id_field"],
    )


def _run(options: dict[str, Any], given: dict[str, object], stack: ExitStack) -> None:
    from streamclust.warmup import compiling
    from streamclust_adapters import report, stdio
    from streamclust_adapters.codec import decoder
    from streamclust_adapters.encoder import Encoder
    from streamclust_adapters.runner import Runner, Shutdown
    from streamclust_adapters.snapshots import SnapshotFolder

    shutdown = stack.enter_context(Shutdown())
    stack.enter_context(compiling(_tell_compiling))
    folder = None
    if options["folder"] is not None:
        folder = stack.enter_context(SnapshotFolder(options["folder"]))
    fields = _fields(options)
    settings: Position = {"reading": _reading(options)}
    model, start = _model(options, given, folder, settings)

    fd = STDIN if options["file"] == "-" else os.open(options["file"], os.O_RDONLY)
    columns = None if start is None else start.get("columns")
    source = stdio.LineSource(
        fd, decoder(options["form"], fields, columns), start=start, wake=shutdown
    )

    def opened(name: str) -> stdio.LineFile | None:
        path = options[name]
        return None if path in {None, "-"} else stdio.LineFile.open(path, append=options["resume"])

    sink = stdio.LineSink(
        Encoder(key=options["id_field"], rules=options["explain"]),
        opened("output") or stdio.LineFile(STDOUT, "the output"),
        changes=opened("changes"),
        dead_letters=opened("dead_letter"),
    )
    progress = report.Progress(sys.stderr)
    runner = Runner(
        model,
        source,
        sink,
        shutdown=shutdown,
        learn=not options["no_learn"],
        explain=options["explain"],
        strict=options["strict"],
        changes=options["changes"] is not None,
        snapshots=folder,
        every=options["every"],
        resumed=start,
        settings=settings,
        after_batch=progress,
    )
    try:
        runner.run()
    except stdio.OutputClosed as closed:
        progress.end()
        click.echo(f"{closed} before event {runner.totals.last + 1:,}", err=True)
    progress.end()
    report.print_summary(model, runner.totals, None if start is None else start["events"])


def _reading(options: dict[str, Any]) -> dict[str, object]:
    """What must be the same in a resumed run for its events to be the same."""
    return {
        "format": options["form"],
        "features": None if options["features"] is None else list(options["features"]),
        "ignore": sorted(options["ignore"] or ()),
        "time_field": options["time_field"],
        "id_field": options["id_field"],
    }


def _model(
    options: dict[str, Any],
    given: dict[str, object],
    folder: SnapshotFolder | None,
    settings: Position,
) -> tuple[StreamClusterer, Position | None]:
    """The model to run, and the position to go on from when it comes from this run's folder."""
    from streamclust import StreamClusterer
    from streamclust_adapters import snapshots

    if folder is not None and (found := newest(folder.path)) is not None:
        if not options["resume"]:
            raise click.UsageError(
                f"{folder.path} holds snapshots already: go on with --resume, or name another"
            )
        for path, error in found.broken:
            aside = snapshots.set_aside(path)
            click.echo(f"{path.name} is broken ({error}); set aside as {aside.name}", err=True)
        model = checked(found.model, given)
        start = model.source
        if start is None or "offset" not in start:
            raise SnapshotError(f"{found.path} holds no position in an input of lines")
        if start.get("reading") != settings["reading"]:
            raise click.UsageError(
                f"{found.path} was taken with {start.get('reading')}; now it is "
                f"{settings['reading']}"
            )
        return model, start
    if options["model_file"] is not None:
        return checked(load_model(options["model_file"]), given), None
    return StreamClusterer(**cast(dict[str, Any], given)), None
