"""Messages to records, and outputs to messages."""

from __future__ import annotations

import json

import pytest

from streamclust_adapters.broker import Message
from streamclust_adapters.codec import decoder
from streamclust_adapters.decoding import Fields
from streamclust_adapters.encoder import Encoder
from streamclust_adapters.messages import MessageReader, Outbox, Topics
from streamclust_adapters.records import MAX_BYTES
from tests.adapters.fake_clusterer import ClusterBorn


def record(value, *, form="jsonl", columns=None, **fields):
    reader = MessageReader("in", decoder(form, Fields(**fields), columns))
    return reader.record(Message(5, 17, b"key", value, [("trace", b"1")]), 3)


def outbox(*, counts=4, **topics):
    told = Topics("answers", **topics)
    return Outbox(told, dict.fromkeys(told.named, counts), Encoder(key="id", places=True))


def test_a_message_is_a_record_with_its_place():
    got = record(b'{"x": 1, "id": "a"}', key="id")
    assert (got.number, got.x, got.key, got.error) == (3, {"x": 1.0}, "a", None)
    assert str(got.position) == "topic in, partition 5, offset 17"


def test_a_row_is_read_with_the_columns_that_features_name():
    got = record(b"1,2,a", form="csv", columns=["x", "y", "id"], key="id")
    assert (got.x, got.key) == ({"x": 1.0, "y": 2.0}, "a")
    assert record(b"1,2", form="csv", columns=["x", "y", "id"]).error.reason.startswith("2 columns")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "a message without a value"),
        (b"", "an empty line"),
        (b" " * MAX_BYTES + b"{}", "a value longer than"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_what_holds_no_event_says_why(value, reason):
    got = record(value)
    assert got.error.reason.startswith(reason)
    assert got.x == {}
    assert got.raw == (value or b"")


def test_answers_keep_key_place_and_id_and_go_where_their_partition_goes():
    box = outbox()
    box.answer(record(b'{"x": 1, "id": 9}', key="id"), 2, "core", None)
    (answer,) = box.outputs
    assert (answer.kind, answer.topic, answer.partition, answer.key) == (
        "answer",
        "answers",
        1,
        b"key",
    )
    assert json.loads(answer.value) == {
        "event": 3,
        "partition": 5,
        "offset": 17,
        "id": 9,
        "cluster": 2,
        "region": "core",
    }


def test_dead_letters_keep_bytes_key_and_headers():
    box = outbox(letters="letters", counts=2)
    bad = record(b"\x00broken")
    box.dead_letter(bad, bad.error.reason)
    (letter,) = box.outputs
    assert (letter.value, letter.key, letter.partition) == (b"\x00broken", b"key", 1)
    assert letter.headers[0] == ("trace", b"1")
    told = dict(letter.headers)
    assert told["streamclust.reason"] == bad.error.reason.encode()
    assert [told[f"streamclust.{n}"] for n in ("topic", "partition", "offset", "event")] == [
        b"in",
        b"5",
        b"17",
        b"3",
    ]
    box.take_back()
    assert box.outputs == []


def test_change_events_say_which_message_caused_them():
    box = outbox(changes="changes")
    box.about(record(b'{"x": 1}'))
    box.change(3, ClusterBorn(1, 1, 0.0, 0))
    (change,) = box.outputs
    assert (change.topic, change.key) == ("changes", b"key")
    told = json.loads(change.value)
    assert (told["event"], told["kind"]) == (3, "ClusterBorn")
    assert (told["partition"], told["offset"]) == (5, 17)


def test_what_has_no_topic_goes_nowhere():
    box = outbox()
    box.about(record(b'{"x": 1}'))
    box.change(3, ClusterBorn(1, 1, 0.0, 0))
    box.dead_letter(record(b"broken"), "broken")
    box.take_back()
    assert box.outputs == []
