"""Files that are compressed, that grow, and that are renamed or cut while they are read."""

from __future__ import annotations

import gzip
import os
import sys
from importlib import import_module

import pytest

from streamclust.errors import AdapterError, MissingExtra
from streamclust_adapters import inputs
from streamclust_adapters.codec import decoder
from streamclust_adapters.decoding import Fields
from streamclust_adapters.following import Followed
from streamclust_adapters.inputs import Compressed, Descriptor, Input, opened
from streamclust_adapters.runner import Shutdown
from streamclust_adapters.stdio import LineSource

ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
PACK = {"gz": gzip.compress, "zst": lambda content: import_module(ZSTD).compress(content)}
LINES = b"".join(b'{"a": %d}\n' % i for i in range(5000))


def rows(batch):
    return [(r.position.line, r.position.byte, r.x.get("a")) for r in batch]


def read_all(source):
    got = []
    while (batch := source.next_batch()) is not None:
        got += batch
    return got


def lines_of(source, **options):
    return LineSource(source, decoder(options.pop("form", "jsonl"), Fields()), **options)


# ------------------------------------------------------------ compressed


@pytest.mark.parametrize("end", PACK)
def test_a_compressed_file_is_its_content(tmp_path, end):
    path = tmp_path / f"in.jsonl.{end}"
    half = len(LINES) // 2
    path.write_bytes(PACK[end](LINES[:half]) + PACK[end](LINES[half:]))  # as two that were joined
    source = lines_of(opened(str(path)))
    got = read_all(source)
    assert [r.x["a"] for r in got] == list(range(5000))
    place = lines_of(opened(str(path)))
    batch = place.next_batch()
    position = place.position_after(batch[-1])
    rest = read_all(lines_of(opened(str(path)), start=position))
    assert rows(batch) + rows(rest) == rows(got)


@pytest.mark.parametrize("end", PACK)
def test_a_small_file_of_huge_content_is_read_by_blocks(tmp_path, end):
    path = tmp_path / f"in.{end}"
    path.write_bytes(PACK[end](bytes(1 << 24)))
    assert path.stat().st_size < 1 << 16
    source = opened(str(path))
    blocks = list(iter(source.read, b""))
    assert max(map(len, blocks)) <= inputs.BLOCK
    assert sum(map(len, blocks)) == 1 << 24


@pytest.mark.parametrize("end", PACK)
@pytest.mark.parametrize("harm", ["torn", "none", "garbled"])
def test_a_broken_compressed_file_is_told(tmp_path, end, harm):
    path = tmp_path / f"in.{end}"
    whole = PACK[end](os.urandom(1000))
    path.write_bytes({"torn": whole[:-9], "none": b"plain\n", "garbled": whole + b"junk!"}[harm])
    source = opened(str(path))
    with pytest.raises(AdapterError, match="the input is broken"):
        list(iter(source.read, b""))


def test_a_missing_zstd_is_told(tmp_path, monkeypatch):
    path = tmp_path / "in.zst"
    path.write_bytes(b"")
    monkeypatch.setitem(sys.modules, ZSTD, None)
    with pytest.raises(MissingExtra, match=r"streamclust\[zstd\]"):
        opened(str(path))


# ------------------------------------------------------------ followed


class Stream:
    """A followed file whose reader is asked until something has come."""

    def __init__(self, path, **options):
        self.told = []
        self.source = lines_of(Followed(path, None, self.told.append), **options)
        self.got = []

    def until(self, n):
        """Wait for so many records in all; nothing more than that may come."""
        while len(self.got) < n:
            self.got += self.source.next_batch()
        assert len(self.got) == n
        return rows(self.got)

    @property
    def position(self):
        return self.source.position_after(self.got[-1])


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("streamclust_adapters.following.PAUSE", 0.001)


def append(path, content):
    with path.open("ab") as file:
        file.write(content)


def test_a_file_that_comes_later_and_grows_is_followed(tmp_path):
    path = tmp_path / "log"
    stream = Stream(path)
    assert stream.source.next_batch() == ()
    append(path, b'{"a": 1}\n{"a"')
    assert stream.until(1) == [(1, 0, 1.0)]
    append(path, b": 2}\n")
    assert stream.until(2)[1:] == [(2, 9, 2.0)]


def test_a_renamed_file_is_read_to_its_end_before_the_new_one(tmp_path):
    path = tmp_path / "log"
    append(path, b'{"a": 1}\n')
    stream = Stream(path)
    stream.until(1)
    path.rename(tmp_path / "log.1")
    append(tmp_path / "log.1", b'{"a": 2}\n{"a": 3}')
    append(path, b'{"a": 4}\n')
    assert stream.until(4) == [(1, 0, 1.0), (2, 9, 2.0), (3, 18, 3.0), (1, 0, 4.0)]
    assert "was replaced" in stream.told[0]
    path.rename(tmp_path / "log.2")
    assert stream.source.next_batch() == ()  # the new one is not there yet
    append(path, b'{"a": 5}\n')
    assert stream.until(5)[-1] == (1, 0, 5.0)


def test_a_file_that_was_cut_is_read_from_its_start(tmp_path):
    path = tmp_path / "log"
    append(path, b'{"a": 1}\n{"a": 2}\n')
    stream = Stream(path)
    stream.until(2)
    os.truncate(path, 0)
    append(path, b'{"a": 3}\n')
    assert stream.until(3)[-1] == (1, 0, 3.0)
    assert "was cut" in stream.told[0]


def test_the_header_of_a_rotated_table_is_no_event(tmp_path):
    path = tmp_path / "log"
    append(path, b"a,b\n1,2\n")
    stream = Stream(path, form="csv")
    stream.until(1)
    path.rename(tmp_path / "log.1")
    append(path, b"a,b\n3,4\n")
    assert stream.until(2) == [(2, 4, 1.0), (2, 4, 3.0)]


def test_a_position_is_found_again_under_another_name(tmp_path):
    path = tmp_path / "log"
    append(path, b'{"a": 1}\n{"a": 2}\n')
    stream = Stream(path)
    stream.until(2)
    position = stream.position
    append(path, b'{"a": 3}\n')
    path.rename(tmp_path / "log.1")
    append(path, b'{"a": 4}\n')
    stream = Stream(path, start=position)
    assert stream.until(2) == [(3, 18, 3.0), (1, 0, 4.0)]
    assert [r.number for r in stream.got] == [3, 4]
    assert not Stream(path, start=stream.position).source.next_batch()
    (tmp_path / "log.1").unlink()
    with pytest.raises(AdapterError, match="neither"):
        Stream(path, start=position)


def test_a_position_of_another_door_or_a_shorter_file_is_refused(tmp_path):
    path = tmp_path / "log"
    append(path, b'{"a": 1}\n')
    stream = Stream(path)
    stream.until(1)
    with pytest.raises(AdapterError, match="ends 91 bytes before"):
        Stream(path, start=stream.position | {"offset": 100})
    plain = {k: v for k, v in stream.position.items() if k != "file"}
    with pytest.raises(AdapterError, match="not taken by --follow"):
        Stream(path, start=plain)


def test_a_stop_ends_the_wait(tmp_path, monkeypatch):
    monkeypatch.setattr("streamclust_adapters.following.PAUSE", 3600)
    with Shutdown() as shutdown:
        source = Followed(tmp_path / "log", shutdown)
        shutdown.request()
        assert source.read() is None


def test_all_are_inputs(tmp_path):
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(b""))
    fd = os.open(path, os.O_RDONLY)
    as_inputs: list[Input] = [Descriptor(fd), Compressed(fd, "gzip"), Followed(path)]
    assert [one.identity for one in as_inputs] == [None] * 3
    os.close(fd)
