"""``streamclust run``: parses and wires a run over a file or a pipe."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from streamclust.errors import SnapshotError
from streamclust_adapters.input_options import (
    check_input,
    fields_of,
    guess_format,
    input_options,
    reading_of,
)
from streamclust_adapters.launch import checked, failures, load_model, newest
from streamclust_adapters.options import RunCommand, given_parameters, model_options

if TYPE_CHECKING:
    from streamclust import StreamClusterer
    from streamclust_adapters.inputs import Input
    from streamclust_adapters.ports import Position
    from streamclust_adapters.runner import Shutdown
    from streamclust_adapters.snapshots import SnapshotFolder

OWN_NAMES = ("event", "cluster", "region", "rule")
"""The names of an answer's own fields, which an id field cannot have."""

STDIN, STDOUT = 0, 1


@click.command(cls=RunCommand)
@click.argument(
    "file",
    type=click.Path(dir_okay=False, readable=True, allow_dash=True),
    default="-",
)
@click.option("--follow", is_flag=True, help="Wait for what FILE grows by, through rotations.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "csv"]),
    help="Of the input; guessed from the name of FILE, jsonl for a pipe.",
)
@click.option("--output", "-o", type=click.Path(), help="Answers; stdout by default.")
@click.option("--events", "changes", type=click.Path(), help="Change events, as JSON lines.")
@click.option("--dead-letter", type=click.Path(), help="Input that holds no event, with reasons.")
@click.option(
    "--snapshot",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep the model in DIR: at the start, on the way and at the end.",
)
@click.option("--resume", is_flag=True, help="Go on from the newest snapshot in DIR, if any.")
@input_options
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


def _tell_compiling() -> None:
    click.echo("compiling for the first run; `streamclust warmup` does it ahead", err=True)


def _check_usage(options: dict[str, Any]) -> None:
    """Refuse options that contradict one another, before anything is opened."""
    if options["resume"] and options["folder"] is None:
        raise click.UsageError("--resume needs --snapshot DIR")
    check_input(options, OWN_NAMES)
    _check_file(options["file"], follow=options["follow"])
    options["form"] = options["form"] or guess_format(options["file"])
    named = ["file", "output", "changes", "dead_letter"]
    paths = [os.path.realpath(options[n]) for n in named if options[n] not in {None, "-"}]
    if len(set(paths)) != len(paths):
        raise click.UsageError("input and outputs must be different files")


def _check_file(file: str, *, follow: bool) -> None:
    """Refuse a file that cannot be read as it is asked for."""
    from streamclust_adapters.inputs import COMPRESSED

    if follow and file == "-":
        raise click.UsageError("--follow needs a FILE; a pipe is waited for anyway")
    if follow and Path(file).suffix.lower() in COMPRESSED:
        raise click.UsageError(f"--follow {file}: a compressed file does not grow by lines")
    if file != "-" and not follow and not Path(file).exists():
        raise click.UsageError(f"{file} does not exist")


def _run(options: dict[str, Any], given: dict[str, object], stack: ExitStack) -> None:
    from streamclust.warmup import compiling
    from streamclust_adapters import report
    from streamclust_adapters.codec import decoder
    from streamclust_adapters.encoder import Encoder
    from streamclust_adapters.line_sink import LineFile, LineSink, OutputClosed
    from streamclust_adapters.runner import Runner, Shutdown
    from streamclust_adapters.snapshots import SnapshotFolder
    from streamclust_adapters.stdio import LineSource

    shutdown = stack.enter_context(Shutdown())
    stack.enter_context(compiling(_tell_compiling))
    folder = None
    if options["folder"] is not None:
        folder = stack.enter_context(SnapshotFolder(options["folder"]))
    settings: Position = {"reading": reading_of(options)}
    model, start = _model(options, given, folder, settings)

    columns = None if start is None else start.get("columns")
    lines = decoder(options["form"], fields_of(options), columns)
    source = LineSource(_input(options, shutdown), lines, start=start)

    def opened(name: str) -> LineFile | None:
        path = options[name]
        return None if path in {None, "-"} else LineFile.open(path, append=options["resume"])

    sink = LineSink(
        Encoder(key=options["id_field"], rules=options["explain"]),
        opened("output") or LineFile(STDOUT, "the output"),
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
    except OutputClosed as closed:
        progress.end()
        click.echo(f"{closed} before event {runner.totals.last + 1:,}", err=True)
    progress.end()
    report.print_summary(model, runner.totals, None if start is None else start["events"])


def _input(options: dict[str, Any], shutdown: Shutdown) -> Input:
    from streamclust_adapters import inputs
    from streamclust_adapters.following import Followed

    if options["file"] == "-":
        return inputs.Descriptor(STDIN, shutdown)
    if options["follow"]:
        return Followed(Path(options["file"]), shutdown, _tell)
    return inputs.opened(options["file"], shutdown)


def _tell(text: str) -> None:
    click.echo(text, err=True)


def _model(
    options: dict[str, Any],
    given: dict[str, object],
    folder: SnapshotFolder | None,
    settings: Position,
) -> tuple[StreamClusterer, Position | None]:
    """The model to run, and the position to go on from when it comes from this run's folder."""
    from streamclust_adapters import snapshots

    if folder is not None and (found := newest(folder.path)) is not None:
        if not options["resume"] and not found.model.tick_count:
            for path in snapshots.newest_first(folder.path):  # of a try that learned nothing
                path.unlink()
            return _started(options, given), None
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
    return _started(options, given), None


def _started(options: dict[str, Any], given: dict[str, object]) -> StreamClusterer:
    """A model that goes on from no snapshot of this run."""
    from streamclust import StreamClusterer

    if options["model_file"] is not None:
        return checked(load_model(options["model_file"]), given)
    return StreamClusterer(**cast(dict[str, Any], given))
