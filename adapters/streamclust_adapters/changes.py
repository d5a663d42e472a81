"""Change events read back from the JSON lines that a door wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from streamclust.errors import AdapterError
from streamclust.events import KINDS, Change


def read_changes(path: Path) -> list[Change]:
    """Read a file of change events, as ``streamclust run --events`` writes it.

    A run that was resumed may have told a change twice; it counts once. A last line without
    its end is still being written, and is left out.

    Parameters
    ----------
    path : Path

    Returns
    -------
    list of Change
        In the order of their numbers.

    Raises
    ------
    AdapterError
        For a line that holds no change event, and for changes of more than one engine, whose
        numbers would mix; it names the line.
    """
    found: dict[int, Change] = {}
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                break
            try:
                change = change_of(msgspec.json.decode(line))
            except (msgspec.MsgspecError, UnicodeDecodeError, LookupError, TypeError) as error:
                raise AdapterError(
                    f"{path}, line {number}: no change event, as run --events writes them ({error})"
                ) from None
            if found.setdefault(change.number, change) != change:
                raise AdapterError(
                    f"{path}, line {number}: change {change.number} was another before; the "
                    "changes of one engine are accepted"
                )
    if not found:
        raise AdapterError(f"{path} holds no change events")
    return [found[number] for number in sorted(found)]


def change_of(line: Any) -> Change:
    """Return the change that the fields of a line tell of.

    Raises
    ------
    LookupError, TypeError, msgspec.ValidationError
        Where they tell of none.
    """
    if not isinstance(line, dict) or "kind" not in line:
        raise LookupError("no field 'kind'")
    kind = KINDS.get(line["kind"])
    if kind is None:
        raise LookupError(f"unknown kind {line['kind']!r}")
    return msgspec.convert(line, kind, str_keys=True)
