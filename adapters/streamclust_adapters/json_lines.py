"""JSON to events: an object of numbers, some of them in objects of their own, or a plain array.

A number inside an object is a feature under its path, `sensor.temp`. Where the features are named,
a type is generated from these names, so that what nobody asked for is skipped and not built. Lines
that a quick way does not take go through a general one, which names what it refuses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from streamclust.errors import DecodeError
from streamclust_adapters.decoding import (
    BadLine,
    Decoded,
    Fields,
    number,
    time,
    told,
    why_no_text,
)

MAX_DEPTH = 64
"""How deeply a line may nest."""

_ABSENT = msgspec.UNSET


class JsonLines:
    """One JSON object or array per line.

    A repeated name counts with its last value, as in every JSON reader. The values of an array have
    the names of `Fields.features`, all of them in order, or else ``f0``, ``f1``, ...
    """

    def __init__(self, fields: Fields) -> None:
        self.columns: list[str] | None = None
        self._fields = fields
        self._aside, self._selected = fields.aside, fields.selected
        self._names = list(fields.features or ())  # of the values of an array
        self._picked: list[tuple[int, str]] = []  # which of them are features
        self._anything = msgspec.json.Decoder()
        self._numbers: Callable[[bytes], dict[str, float]] | None = None
        self._typed: Callable[[bytes], Decoded | None] | None = None
        if self._selected is not None:
            self._typed = _typed(fields, self._selected)
        elif not self._aside:
            self._numbers = msgspec.json.Decoder(dict[str, float | bool]).decode

    def decode(self, raw: bytes, position: msgspec.Struct) -> Decoded:
        """Decode one line; see `LineDecoder`."""
        try:
            if self._numbers is not None:
                return Decoded(self._numbers(raw))
            if self._typed is not None and _shallow(raw) and _is_text(raw):
                decoded = self._typed(raw)
                if decoded is not None:
                    return decoded
        except msgspec.DecodeError:
            pass
        try:
            return self._event(self._value(raw))
        except BadLine as bad:
            raise DecodeError(str(bad), str(position)) from None

    def _value(self, raw: bytes) -> Any:
        if not raw.strip():
            raise BadLine("an empty line; a JSON object is accepted")
        if not _shallow(raw) and _depth(raw) > MAX_DEPTH:
            raise BadLine(f"nested more than {MAX_DEPTH} deep")
        try:
            return self._anything.decode(raw)
        except msgspec.DecodeError as error:
            raise BadLine(_why_no_json(raw, str(error))) from None

    def _event(self, value: Any) -> Decoded:
        own = self._fields
        if isinstance(value, list):
            named = dict(zip(self._names_of(len(value)), value, strict=True))
            x = {name: value[i] for i, name in self._picked}
        elif isinstance(value, dict):
            named = value
            if self._selected is None:
                x = {}
                self._flatten(value, "", x)
            else:
                found = ((name, _find(value, name)) for name in self._selected)
                x = {name: one for name, one in found if one is not _ABSENT}
        else:
            raise BadLine(f"a JSON object is accepted, not {told(value)}")
        t = None if own.time is None else time(own.time, _none(_find(named, own.time)))
        key = None if own.key is None else _none(_find(named, own.key))
        if not set(map(type, x.values())) <= {float}:
            x = {name: number(name, one) for name, one in x.items()}
        return Decoded(x, t, key)

    def _flatten(self, fields: dict[str, Any], before: str, x: dict[str, Any]) -> None:
        for name, value in fields.items():
            path = before + name
            if path in self._aside:
                continue
            if isinstance(value, dict):
                self._flatten(value, path + ".", x)
            elif path in x:
                raise _twice(path)
            else:
                x[path] = value

    def _names_of(self, n: int) -> list[str]:
        if self._fields.features is not None:
            if n != len(self._names):
                raise BadLine(f"{n} values; {len(self._names)} are accepted, as in --features")
        elif n != len(self._names):
            self._names = [f"f{i}" for i in range(n)]
            self._picked = []
        if not self._picked:
            places = enumerate(self._names)
            self._picked = [(i, name) for i, name in places if name not in self._aside]
        return self._names


# ------------------------------------------------------------ features that are named


def _typed(fields: Fields, selected: Sequence[str]) -> Callable[[bytes], Decoded | None] | None:
    """A decoder of objects that holds the named fields only; None where there is no such type.

    It returns None for a line that has a path as one name, dots included: `_find` decides there.
    """
    names = tuple(selected)
    wanted = (*names, *(name for name in (fields.time, fields.key) if name is not None))
    dotted = [path for path in wanted if "." in path]
    tree: dict[str, Any] = {}
    for path in wanted:
        *outer, last = path.split(".")
        inside: Any = tree
        for name in outer:
            inside = inside.setdefault(name, {})
            if not isinstance(inside, dict):
                return None
        if last in inside:
            return None
        inside[last] = float | bool | msgspec.UnsetType if path in names else Any
    if not tree.keys().isdisjoint(dotted):
        return None
    decode = msgspec.json.Decoder(_shape(tree | dict.fromkeys(dotted, Any))).decode
    order = list(tree) + dotted
    places = [_place(tree, path) for path in wanted] + [f"f{order.index(p)}" for p in dotted]
    get = attrgetter(*places, *places[:1])  # one more, so that one alone comes as a tuple, too
    n, with_time, with_key = len(names), fields.time, fields.key

    def typed(raw: bytes) -> Decoded | None:
        values = get(decode(raw))
        if dotted and any(value is not _ABSENT for value in values[len(wanted) : -1]):
            return None
        x = dict(zip(names, values[:n], strict=True))
        if _ABSENT in x.values():
            x = {name: value for name, value in x.items() if value is not _ABSENT}
        t = None if with_time is None else time(with_time, _none(values[n]))
        key = None if with_key is None else _none(values[len(wanted) - 1])
        return Decoded(x, t, key)

    return typed


def _shape(tree: dict[str, Any]) -> type[msgspec.Struct]:
    """A type with the names of a tree; each may be absent, and so may each branch."""
    fields: list[tuple[str, Any, Any]] = []
    for i, kind in enumerate(tree.values()):
        if isinstance(kind, dict):
            branch = _shape(kind)
            fields.append((f"f{i}", branch, branch()))
        else:
            fields.append((f"f{i}", kind, _ABSENT))
    rename = {f"f{i}": name for i, name in enumerate(tree)}
    return msgspec.defstruct("Line", fields, rename=rename, frozen=True, gc=False)


def _place(tree: dict[str, Any], path: str) -> str:
    """Where the value of a path is in the type of its tree, as `attrgetter` reads it."""
    steps = []
    inside: Any = tree
    for name in path.split("."):
        steps.append(f"f{list(inside).index(name)}")
        inside = inside[name]
    return ".".join(steps)


# ------------------------------------------------------------ in general


def _find(fields: dict[str, Any], path: str) -> Any:
    """The value under a path, or under the path as one name."""
    plain = fields.get(path, _ABSENT)
    if "." not in path:
        return plain
    inside: Any = fields
    for name in path.split("."):
        if not isinstance(inside, dict) or name not in inside:
            return plain
        inside = inside[name]
    if plain is not _ABSENT:
        raise _twice(path)
    return inside


def _none(value: Any) -> Any:
    return None if value is _ABSENT else value


def _twice(path: str) -> BadLine:
    return BadLine(f"field {path!r} stands there twice: as a name and as a path")


def _is_text(raw: bytes) -> bool:
    """Whether all of it is UTF-8; what is skipped is not looked at otherwise."""
    if not raw.isascii():
        try:
            raw.decode()
        except UnicodeDecodeError:
            return False
    return True


def _why_no_json(raw: bytes, why: str) -> str:
    """The reason in a reader's words; NaN and its kin are numbers elsewhere, so they are named."""
    try:
        raw.decode()
        loose = json.loads(raw)
    except UnicodeDecodeError as error:
        return why_no_text(error)
    except (ValueError, RecursionError):
        return f"broken JSON: {why}"
    for name, value in loose.items() if isinstance(loose, dict) else ():
        if isinstance(value, float) and not -float("inf") < value < float("inf"):
            return f"field {name!r}: a finite number is accepted, not {value}"
    return f"broken JSON: {why}"


_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"')


def _depth(raw: bytes) -> int:
    depth = deepest = 0
    for byte in _STRINGS.sub(b"", raw):
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest


def _shallow(raw: bytes) -> bool:
    """Whether it can be said at a glance that a line does not nest too deeply."""
    return raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH
