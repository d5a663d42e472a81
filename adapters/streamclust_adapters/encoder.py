"""Answers, change events and dead letters to bytes: one JSON object per line."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


class Encoder:
    """Answers, change events and dead letters to JSON lines.

    Parameters
    ----------
    key : str or None
        Under which name an answer repeats the id of its event.
    rules : bool
        Whether an answer has a rule.
    places : bool
        Whether an answer says of which partition and offset its event is.
    """

    def __init__(
        self, *, key: str | None = None, rules: bool = False, places: bool = False
    ) -> None:
        self._has_key = key is not None
        self._has_rule = rules
        place = [("partition", int), ("offset", int)] if places else []
        self._has_place = places
        told = [("key", Any), ("cluster", int), ("region", str), ("rule", Any)]
        self._answer = msgspec.defstruct(
            "Answer",
            [("event", int), *place, *told],
            rename={} if key is None else {"key": key},
            gc=False,
        )
        self._json = msgspec.json.Encoder(enc_hook=_plain)

    def answer(
        self,
        number: int,
        key: object,
        label: int,
        region: str,
        rule: str | None,
        place: tuple[int, int] = (-1, -1),
    ) -> object:
        """One answer; the id and the rule are left out where they are not wanted.

        `place` is the partition and the offset of the event, where answers say them.
        """
        return self._answer(
            number,
            *(place if self._has_place else ()),
            key if self._has_key else msgspec.UNSET,
            label,
            region,
            rule if self._has_rule else msgspec.UNSET,
        )

    def value(self, value: object) -> bytes:
        """Encode one value."""
        return self._json.encode(value)

    def lines(self, values: Sequence[object]) -> bytes:
        """Encode each value as one line."""
        return self._json.encode_lines(values)

    def change(self, number: int, change: Any) -> dict[str, object]:
        """The fields of a change event, after the record that caused it and its kind."""
        told = {f.name: getattr(change, f.name) for f in dataclasses.fields(change)}
        return {"event": number, "kind": type(change).__name__} | told

    def dead_letter(
        self, number: int, position: msgspec.Struct, reason: str, raw: bytes
    ) -> dict[str, object]:
        """The fields of a dead letter; bytes that are no text are kept in base 64."""
        letter = {"event": number, **msgspec.structs.asdict(position), "reason": reason}
        try:
            letter["raw"] = raw.decode()
        except UnicodeDecodeError:
            letter["raw_base64"] = raw
        return letter


def _plain(value: Any) -> Any:
    """An array or a mapping of any make, as JSON knows it."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)
