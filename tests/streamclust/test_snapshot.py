"""One safe file per snapshot."""

from __future__ import annotations

import json
import os
import tracemalloc

import numpy as np
import pytest

from streamclust import snapshot
from streamclust.errors import SnapshotError, UnknownFormat

STATE = {
    "a": {
        "x": np.arange(6.0).reshape(2, 3),
        "empty": np.zeros((0, 3)),
        "u": np.arange(3, dtype="u8"),
    },
    "l": [1, 2.5, float("inf"), None, "text", [np.ones(2, dtype=np.int64)]],
    "flag": True,
}


def same(one, two):
    if isinstance(one, np.ndarray):
        return isinstance(two, np.ndarray) and one.dtype == two.dtype and np.array_equal(one, two)
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[k], two[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(same, one, two))
    return one == two


def test_what_is_written_is_read(tmp_path):
    snapshot.write(tmp_path / "s", STATE)
    assert same(snapshot.read(tmp_path / "s"), STATE)
    assert os.listdir(tmp_path) == ["s"]


def test_equal_states_give_equal_bytes():
    assert snapshot.encode(STATE) == snapshot.encode(STATE)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    snapshot.write(tmp_path / "s", STATE)
    before = (tmp_path / "s").read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SnapshotError, match="No space left"):
        snapshot.write(tmp_path / "s", {"other": 1})
    assert (tmp_path / "s").read_bytes() == before
    assert os.listdir(tmp_path) == ["s"]


def test_a_missing_folder_or_a_folder_instead_of_a_file_is_told(tmp_path):
    with pytest.raises(SnapshotError, match="cannot write snapshot"):
        snapshot.write(tmp_path / "no" / "s", STATE)
    with pytest.raises(SnapshotError, match="cannot read snapshot"):
        snapshot.read(tmp_path / "no")
    with pytest.raises(SnapshotError, match="cannot read snapshot"):
        snapshot.read(tmp_path)


def test_another_format_is_told(monkeypatch):
    monkeypatch.setattr(snapshot, "FORMAT", 99)
    content = snapshot.encode(STATE)
    monkeypatch.undo()
    with pytest.raises(UnknownFormat, match="format 99 is unknown"):
        snapshot.decode(content)


def test_foreign_files_are_told():
    from safetensors.numpy import save

    for content in (
        b"",
        b"hello",
        b"{}" * 100,
        save({"x": np.ones(3)}),
        save({"x": np.ones(3)}, metadata={"streamclust": "[]"}),
        save({"x": np.ones(3)}, metadata={"streamclust": "{"}),
        b"\xff" * 4096,
    ):
        with pytest.raises(SnapshotError):
            snapshot.decode(content)


def test_every_truncation_is_detected():
    content = snapshot.encode(STATE)
    for end in range(len(content)):
        with pytest.raises(SnapshotError):
            snapshot.decode(content[:end])


def test_hostile_files_are_refused_without_large_allocations():
    content = bytearray(snapshot.encode(STATE))
    rng = np.random.default_rng(0)
    tracemalloc.start()
    for _ in range(1000):
        bad = bytearray(content)
        kind = rng.integers(4)
        if kind == 0:  # a flipped bit
            at = int(rng.integers(len(bad)))
            bad[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:  # a header that claims to be huge
            bad[:8] = int(rng.integers(1, 2**62)).to_bytes(8, "little")
        elif kind == 2:  # noise in the middle
            at = int(rng.integers(len(bad) - 8))
            bad[at : at + 8] = rng.bytes(8)
        else:  # bytes missing or added
            at = int(rng.integers(len(bad)))
            bad = bad[:at] + rng.bytes(int(rng.integers(1, 64))) + bad[at:]
        if bytes(bad) == bytes(content):
            continue
        try:
            found = snapshot.decode(bytes(bad))
        except SnapshotError:
            continue
        assert same(found, STATE)  # the change touched nothing that is read
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 2**20


def test_a_changed_number_is_detected_even_where_the_file_is_well_formed():
    content = snapshot.encode(STATE)
    at = content.rindex(np.float64(5.0).tobytes())
    with pytest.raises(SnapshotError, match="altered"):
        snapshot.decode(content[:at] + np.float64(6.0).tobytes() + content[at + 8 :])


def test_deep_nesting_is_refused():
    plain = "[" * 100_000 + "]" * 100_000
    from safetensors.numpy import save

    about = {
        "format": snapshot.FORMAT,
        "library": "0",
        "checksum": snapshot._checksum(plain, {}),
        "state": plain,
    }
    with pytest.raises(SnapshotError):
        snapshot.decode(save({}, metadata={snapshot.KEY: json.dumps(about)}))
