"""What every subcommand does alike: read lists of names, load models, tell failures."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamclust.errors import AdapterError, InvalidParameter, NotReady, SnapshotError
from streamclust.parameters import PARAMETERS
from streamclust_adapters.options import flag_of

if TYPE_CHECKING:
    from streamclust import StreamClusterer
    from streamclust_adapters.snapshots import Found


def names(text: str) -> tuple[str, ...]:
    """Comma-separated names; at least one, none twice."""
    split = tuple(name.strip() for name in text.split(","))
    if not all(split) or len(set(split)) != len(split):
        raise click.BadParameter(f"{text!r}: names that are empty or repeated")
    return split


def newest(folder: Path) -> Found[StreamClusterer] | None:
    """The newest model in a folder that is whole, if there is any."""
    from streamclust import StreamClusterer
    from streamclust_adapters.snapshots import load_newest

    return load_newest(folder, StreamClusterer.load)


def load_model(path: Path) -> StreamClusterer:
    """A saved model: a file, or the newest of a folder that is whole."""
    from streamclust import StreamClusterer

    if not path.is_dir():
        return StreamClusterer.load(path)
    found = newest(path)
    if found is None:
        raise SnapshotError(f"{path} holds no snapshot")
    for broken, error in found.broken:
        click.echo(f"{broken.name} is broken ({error}); {found.path.name} is read", err=True)
    return found.model


def checked(model: StreamClusterer, given: dict[str, object]) -> StreamClusterer:
    """Refuse parameters that differ from those that a saved model already has."""
    parameters = model._get_params()  # as river asks an estimator; `refit` is also a method's name
    for name, value in given.items():
        if (has := parameters[name]) != value:
            raise click.UsageError(
                f"{flag_of(PARAMETERS[name])}: the saved model has {has!r}, not {value!r}"
            )
    return model


@contextmanager
def failures() -> Iterator[None]:
    """Failures as messages with an exit code; only a defect of ours is a traceback."""
    try:
        yield
    except InvalidParameter as error:
        raise click.UsageError(str(error)) from error
    except BrokenPipeError:
        # Nobody reads our messages any more. The interpreter must not try again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (AdapterError, NotReady, SnapshotError, OSError) as error:
        raise click.ClickException(str(error)) from error
