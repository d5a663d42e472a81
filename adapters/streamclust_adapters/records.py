"""One piece of input as a record: what it holds, or why it holds no event."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from streamclust.errors import DecodeError
from streamclust_adapters.decoding import Decoded, LineDecoder

MAX_BYTES = 1 << 20
"""Bytes of a line or a value; ten thousand features with seventeen digits each fit four times."""


Place = TypeVar("Place", bound=msgspec.Struct)


class Entry(msgspec.Struct, Generic[Place], gc=False):
    """What every door's `Record` has; `position` is the door's own."""

    number: int
    x: dict[str, float]
    t: float | None
    key: object
    raw: bytes
    position: Place
    error: DecodeError | None


def decoded(
    decoder: LineDecoder, raw: bytes, position: msgspec.Struct, what: str
) -> tuple[Decoded | None, DecodeError | None]:
    """What a piece of input holds; nothing and the reason where it holds no event.

    Parameters
    ----------
    decoder : LineDecoder
        The layout.
    raw : bytes
        The piece.
    position : msgspec.Struct
        Where it stands.
    what : str
        What such a piece is called in a reason.

    Returns
    -------
    Decoded or None
        None for a piece that is no record, as of `LineDecoder.decode`.
    DecodeError or None
        The reason.
    """
    if len(raw) > MAX_BYTES:
        return NOTHING, too_long(position, what)
    try:
        return decoder.decode(raw, position), None
    except DecodeError as error:
        return NOTHING, error


def too_long(position: msgspec.Struct, what: str) -> DecodeError:
    """The reason of what is not decoded for its size."""
    return DecodeError(f"a {what} longer than {MAX_BYTES} bytes", str(position))


NOTHING = Decoded({})
