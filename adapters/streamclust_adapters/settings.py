"""Settings of a worker from a file and from ``-X``, and what of them is secret."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

CLIENT_TABLE = "librdkafka"
"""The table of a settings file whose names are librdkafka's; all others are the command's."""

_SECRET = re.compile(r"password|secret|token|\.pem$|oauthbearer\.config|sasl\.username")


def read_file(
    path: Path, known: Iterable[str], lists: Iterable[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Read a TOML file: the command's options, and librdkafka's.

    Parameters
    ----------
    path : Path
        The file. Options of the command have their long names, without the dashes before.
    known : iterable of str
        These names.
    lists : iterable of str
        Which of them take several names: an array in the file.

    Raises
    ------
    click.UsageError
        When the file is no TOML, or names what does not exist.
    """
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:  # no message of tomllib repeats a value
        raise click.UsageError(f"{path}: {error}") from error
    client = content.pop(CLIENT_TABLE, {})
    if not isinstance(client, dict):
        raise click.UsageError(f"{path}: [{CLIENT_TABLE}] is a table")
    if unknown := sorted(set(content) - set(known)):
        raise click.UsageError(f"{path}: there is no option --{unknown[0]}")
    for name in lists:
        if isinstance(content.get(name), list):
            content[name] = ",".join(map(str, content[name]))
    return content, {name: _text(value) for name, value in _flat(client)}


def read_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """Options of librdkafka from ``name=value`` texts.

    Raises
    ------
    click.UsageError
        For a text without ``=``.
    """
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f"-X {name}: NAME=VALUE is accepted")
        options[name.strip()] = value
    return options


class Secrets:
    """What must not be seen in what a worker writes."""

    def __init__(self, options: Mapping[str, str]) -> None:
        values = {v for name, v in options.items() if v and _SECRET.search(name.lower())}
        self._values = sorted(values, key=len, reverse=True)

    def hide(self, text: str) -> str:
        """`text` with every secret starred out."""
        for value in self._values:
            text = text.replace(value, "***")
        return text


def _flat(table: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    """Names with dots, however they were quoted: ``sasl.password`` is a table to TOML."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
