"""One file per snapshot: nested plain state and arrays as safetensors, checksummed, written whole.

Arrays are tensors named by their path in the state; all else is JSON in the metadata, beside the
format number and a checksum over both. Nothing in a file is ever executed. A file is written beside
its place, flushed to the disk, and renamed into it; the folder is flushed too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from streamclust.errors import SnapshotError, UnknownFormat

FORMAT = 1
"""Format written; every older one stays readable."""
KEY = "streamclust"
MAX_HEADER = 32 * 2**20
_LENGTH = 8


def write(path: str | os.PathLike[str], state: Mapping[str, Any]) -> None:
    """Write `state` to `path`, whole or not at all.

    Parameters
    ----------
    path : path
        The file to replace.
    state : mapping
        Nested mappings with string keys, lists, numbers, strings, None and NumPy arrays.

    Raises
    ------
    SnapshotError
        Where the file cannot be written; what stood at `path` is untouched.
    """
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(encode(state))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise SnapshotError(f"cannot write snapshot {target}: {error.strerror or error}") from error


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the state in `path`.

    Raises
    ------
    SnapshotError
        For a file that is missing, torn, foreign or altered; `UnknownFormat` for a newer format.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise SnapshotError(f"cannot read snapshot {path}: {error.strerror or error}") from error
    try:
        return decode(content)
    except UnknownFormat as error:
        raise UnknownFormat(f"snapshot {path}: {error}") from None
    except SnapshotError as error:
        raise SnapshotError(f"snapshot {path}: {error}") from None


def encode(state: Mapping[str, Any]) -> bytes:
    """Return the bytes of a snapshot; equal states give equal bytes."""
    tensors: dict[str, NDArray[Any]] = {}
    plain = json.dumps(_split(state, "", tensors), sort_keys=False, allow_nan=True)
    header = {
        "format": FORMAT,
        "library": _library(),
        "checksum": _checksum(plain, tensors),
        "state": plain,
    }
    # One metadata entry only: the order of several is not defined.
    return save(tensors, metadata={KEY: json.dumps(header)})


def decode(content: bytes) -> dict[str, Any]:
    """Return the state in the bytes of a snapshot; raises SnapshotError as `read` does."""
    length = int.from_bytes(content[:_LENGTH], "little")
    if len(content) >= _LENGTH and length > MAX_HEADER:
        raise SnapshotError("foreign: it is no snapshot of streamclust")
    if len(content) < _LENGTH + length:
        raise SnapshotError(f"torn: its {len(content)} bytes end before its header does")
    try:
        header = json.loads(content[_LENGTH : _LENGTH + length])
        told = header["__metadata__"][KEY]
        about = json.loads(told)
        number, checksum, plain = about["format"], about["checksum"], about["state"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SnapshotError("foreign: it is no snapshot of streamclust") from error
    if number != FORMAT:
        raise UnknownFormat(f"format {number!r} is unknown; this version reads format {FORMAT}")
    try:
        tensors = load(content)
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        raise SnapshotError(f"torn: {error}") from error
    if not isinstance(plain, str) or checksum != _checksum(plain, tensors):
        raise SnapshotError("altered: its checksum does not match its content")
    try:
        state = _join(json.loads(plain), tensors)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise SnapshotError("altered: its state is malformed") from error
    if not isinstance(state, dict):
        raise SnapshotError("altered: its state is no mapping")
    return state


@cache
def _library() -> str:
    """Return the library's version, which takes milliseconds to look up."""
    return version("streamclust")


def _split(value: Any, path: str, tensors: dict[str, NDArray[Any]]) -> Any:
    """Return `value` with every array replaced by a reference into `tensors`."""
    if isinstance(value, np.ndarray):
        tensors[path] = np.ascontiguousarray(value)
        return {"$tensor": path}
    if isinstance(value, Mapping):
        return {key: _split(item, f"{path}/{key}", tensors) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_split(item, f"{path}/{at}", tensors) for at, item in enumerate(value)]
    if isinstance(value, np.generic):
        return value.item()
    return value


def _join(value: Any, tensors: Mapping[str, NDArray[Any]]) -> Any:
    if isinstance(value, dict):
        if set(value) == {"$tensor"}:
            return tensors[value["$tensor"]]
        return {key: _join(item, tensors) for key, item in value.items()}
    if isinstance(value, list):
        return [_join(item, tensors) for item in value]
    return value


def _checksum(plain: str, tensors: Mapping[str, NDArray[Any]]) -> str:
    digest = blake2b(plain.encode(), digest_size=16)
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name}:{array.dtype.str}:{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
