"""Blocks, offsets and limits of the stdin door, over pipes and files in this process."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamclust.errors import AdapterError
from streamclust_adapters import inputs, records, stdio
from streamclust_adapters.codec import decoder
from streamclust_adapters.decoding import Fields
from streamclust_adapters.encoder import Encoder
from streamclust_adapters.inputs import Descriptor
from streamclust_adapters.line_sink import LineFile, LineSink, OutputClosed
from streamclust_adapters.ports import Sink, Source
from streamclust_adapters.runner import Shutdown
from streamclust_adapters.stdio import LineSource


def source_of(path, form="jsonl", wake=None, **options):
    fd = os.open(path, os.O_RDONLY)
    columns = (options.get("start") or {}).get("columns")
    return fd, LineSource(Descriptor(fd, wake), decoder(form, Fields(), columns), **options)


def read_all(path, form="jsonl", **options):
    fd, source = source_of(path, form, **options)
    records = []
    try:
        while (batch := source.next_batch()) is not None:
            records += [(record, source.position_after(record)) for record in batch]
    finally:
        os.close(fd)
    return records


def told(records):
    return [(r.number, r.x, r.position, r.end, r.error and r.error.reason) for r, _ in records]


pieces = st.lists(
    st.sampled_from([b'{"a": 1}', b"", b"\xff", b'{"a": 2}\r', b'{"a":', b"x" * 50]), max_size=12
)


@settings(max_examples=40, deadline=None)
@given(pieces, st.booleans(), st.integers(1, 30))
def test_blocks_do_not_show_and_every_position_is_resumed_exactly(tmp_path_factory, ls, end, block):
    path = tmp_path_factory.mktemp("in") / "in.jsonl"
    path.write_bytes(b"\n".join(ls) + (b"\n" if end else b""))
    with pytest.MonkeyPatch.context() as patch:
        whole = read_all(path)
        patch.setattr(inputs, "BLOCK", block)
        assert told(read_all(path)) == told(whole)
        for i, (_, position) in enumerate(whole, 1):
            assert told(read_all(path, start=position)) == told(whole[i:])


def test_records_know_where_they_stood(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\n\n{"a": 2}')
    first, bad, last = (record for record, _ in read_all(path))
    assert str(bad.position) == "line 2, byte 12"
    assert (first.x, first.error, bad.number, last.number) == ({"a": 1.0}, None, 2, 3)
    assert last.end == path.stat().st_size


def test_a_header_is_a_line_but_no_record_and_travels_with_the_position(tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes(b"a,b\n1,2\n3,4\n")
    records = read_all(path, "csv")
    assert [(r.number, r.position.line, r.x) for r, _ in records] == [
        (1, 2, {"a": 1.0, "b": 2.0}),
        (2, 3, {"a": 3.0, "b": 4.0}),
    ]
    rest = read_all(path, "csv", start=records[0][1])
    assert told(rest) == told(records[1:])


def test_a_too_long_line_costs_only_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MAX_BYTES", 100)
    monkeypatch.setattr(stdio, "KEPT_OF_LONG_LINE", 10)
    monkeypatch.setattr(inputs, "BLOCK", 64)
    path = tmp_path / "in.jsonl"
    long = b'{"a": 1' + b" " * 5000 + b"}"
    path.write_bytes(b'{"a": 1}\n' + long + b'\n{"a": 2}\n' + long)
    got = [record for record, _ in read_all(path)]
    assert [r.error is None for r in got] == [True, False, True, False]
    assert got[1].error.reason == "a line longer than 100 bytes"
    assert got[1].raw == long[:10]
    assert got[2].position.byte == 9 + len(long) + 1
    assert got[3].end == path.stat().st_size


def test_a_line_of_just_the_limit_is_read(tmp_path):
    path = tmp_path / "in.jsonl"
    line = b'{"a": 1' + b" " * (records.MAX_BYTES - 8) + b"}"
    path.write_bytes(line + b"\n " + line + b"\n")
    assert [r.error is None for r, _ in read_all(path)] == [True, False]


def test_a_pipe_that_starts_anew_is_read_over_to_the_position(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"".join(b'{"a": %d}\n' % i for i in range(50)))
    position = read_all(path)[29][1]
    read, write = os.pipe()
    os.write(write, path.read_bytes())
    os.close(write)
    source = LineSource(Descriptor(read), decoder("jsonl", Fields()), start=position)
    got = []
    while (batch := source.next_batch()) is not None:
        got += batch
    os.close(read)
    assert [(r.number, r.x["a"]) for r in got] == [(i + 1, float(i)) for i in range(30, 50)]


@pytest.mark.parametrize("seekable", [True, False])
@pytest.mark.parametrize(("offset", "words"), [(500, "ends"), (12, "inside a line")])
def test_another_input_than_the_snapshots_is_noticed(tmp_path, seekable, offset, words):
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": 2}\n')
    start = {"events": 2, "line": 2, "offset": offset, "columns": None}
    if seekable:
        with pytest.raises(AdapterError, match=words):
            read_all(path, start=start)
        return
    read, write = os.pipe()
    os.write(write, path.read_bytes())
    os.close(write)
    source = LineSource(Descriptor(read), decoder("jsonl", Fields()), start=start)
    with pytest.raises(AdapterError, match=words):
        list(iter(source.next_batch, None))
    os.close(read)


def test_an_input_that_grew_behind_its_unfinished_line_is_resumed(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": 2}')
    position = read_all(path)[-1][1]
    path.write_bytes(path.read_bytes() + b'\n{"a": 3}\n')
    assert [(r.number, r.x) for r, _ in read_all(path, start=position)] == [(3, {"a": 3.0})]


def test_a_wait_for_input_ends_when_a_stop_is_requested():
    read, write = os.pipe()
    with Shutdown() as shutdown:
        source = LineSource(Descriptor(read, shutdown), decoder("jsonl", Fields()))
        os.write(write, b'{"a": 1}\n{"a"')
        assert len(source.next_batch()) == 1
        shutdown.request()
        assert source.next_batch() == ()
    os.close(read)
    os.close(write)


def test_an_input_that_cannot_be_read_is_a_failure(tmp_path):
    fd, source = source_of(tmp_path)
    with pytest.raises(AdapterError, match="cannot read the input: Is a directory"):
        source.next_batch()
    os.close(fd)


# out


def test_a_continued_file_loses_only_its_torn_last_line(tmp_path):
    path = tmp_path / "out.jsonl"
    for before, kept in [(b"", b""), (b"1\n2\n", b"1\n2\n"), (b"1\n2", b"1\n"), (b"12", b"")]:
        path.write_bytes(before)
        file = LineFile.open(str(path), append=True)
        file.hold(9)
        file.flush(Encoder())
        file.sync()
        file.close()
        assert path.read_bytes() == kept + b"9\n"


def test_nothing_is_written_before_the_flush(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text("old\n")
    file = LineFile.open(str(path), append=False)
    file.hold({"a": 1})
    assert path.read_bytes() == b""
    file.flush(Encoder())
    assert path.read_bytes() == b'{"a":1}\n'
    file.close()


def test_a_closed_pipe_and_a_full_disk_are_told_apart():
    read, write = os.pipe()
    os.close(read)
    for file, kind, words in [
        (LineFile(write, "the output"), OutputClosed, "the output was closed"),
        (LineFile.open("/dev/full", append=False), AdapterError, "/dev/full: No space left"),
    ]:
        file.hold(1)
        with pytest.raises(kind, match=words):
            file.flush(Encoder())
        file.close()


def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(AdapterError, match=f"cannot write {tmp_path}: Is a directory"):
        LineFile.open(str(tmp_path), append=False)


def test_the_door_keeps_its_promises_to_the_loop(tmp_path):
    fd, source = source_of(os.devnull)
    as_source: Source = source
    as_sink: Sink = LineSink(Encoder(), LineFile(fd, "out"))
    assert list(as_source.next_batch()) == []
    assert as_source.next_batch() is None
    as_sink.flush()
    os.close(fd)
