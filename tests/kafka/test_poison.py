"""Whatever is put into a topic becomes a dead letter as it came, and hurts no other message."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer

from tests.kafka.brokers import PATIENCE
from tests.kafka.worlds import World

pytestmark = pytest.mark.kafka

POISON = {
    "no value": None,
    "empty": b"",
    "blank": b" \n",
    "broken": b'{"x": 1',
    "an array of arrays": b"[1, [2]]",
    "a number": b"17",
    "no features": b"{}",
    "not a number": b'{"x": NaN, "y": 1}',
    "infinite": b'{"x": -Infinity, "y": 1}',
    "overflowing": b'{"x": 1e400, "y": 1}',
    "a text": b'{"x": "1", "y": 1}',
    "null": b'{"x": null, "y": 1}',
    "an object": b'{"x": {"a": null}, "y": 1}',
    "too large to square": b'{"x": 1e200, "y": 1}',
    "too many digits": b'{"x": ' + b"1" * 500 + b"}",
    "no UTF-8": b'{"x\xff": 1}',
    "binary": bytes(range(256)),
    "too deep": b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "time runs back": b'{"x": 1, "y": 1, "t": -5}',
    "no time": b'{"x": 1, "y": 1, "t": "yesterday"}',
    "large": b'{"x": ' + b"1" * 900_000 + b"}",
}
GOOD = b'{"x": 1, "y": 1, "t": %d}'


def test_every_kind_of_poison(world, command):
    messages = [(0, value) for i, bad in enumerate(POISON.values()) for value in (GOOD % i, bad)]
    world.produce(messages)
    options = ["--time-field", "t", "--time-unit", "seconds"]
    worker = world.start("w", *options, command=command)
    world.until_done(worker)
    assert worker.stop() == 0, worker.told()

    assert world.answered()[0] == list(range(0, len(messages), 2))
    letters = world.read(world.letters)
    assert [letter.value() for letter in letters] == list(POISON.values())
    for place, letter in zip(range(1, len(messages), 2), letters, strict=True):
        told = dict(letter.headers())
        assert letter.key() == f"0/{place}".encode()
        assert told["streamclust.topic"].decode() == world.topic
        assert told["streamclust.partition"] == b"0"
        assert told["streamclust.offset"] == str(place).encode()
        assert told["streamclust.event"] == str(place + 1).encode()
        assert told["streamclust.reason"]


def test_a_message_that_the_dead_letters_do_not_take_is_cut(address, tmp_path):
    with World(address, tmp_path, **{"max.message.bytes": "4000000"}) as world:
        check_cut(world)


def check_cut(world):
    huge = b'{"x": ' + b"1" * 2_000_000 + b"}"
    world.produce(
        [(1, b'{"x": 1}'), (1, huge), (1, b'{"x": 1}')], **{"message.max.bytes": 4_000_000}
    )
    worker = world.start("w")
    world.until_done(worker)
    assert worker.stop() == 0, worker.told()
    assert world.answered()[1] == [0, 2]
    (letter,) = world.read(world.letters)
    assert letter.value() == huge[:1024]
    told = dict(letter.headers())
    assert told["streamclust.bytes"] == str(len(huge)).encode()
    assert b"longer than" in told["streamclust.reason"]


def test_strict_stops_before_it_and_goes_on_without(world):
    world.produce([(0, b'{"x": 1}'), (0, b"broken"), (0, b'{"x": 1}')])
    for _ in range(2):
        worker = world.start("w", "--strict")
        assert worker.end() == 1
        assert "offset 1): broken JSON" in worker.told()
        assert world.handled()[0] == [0]
    worker = world.start("w")
    world.until_done(worker)
    assert worker.stop() == 0
    world.check_exactly_once()


def test_keys_and_headers_are_kept(world):
    producer = Producer({"bootstrap.servers": world.address})
    headers = [("trace", b"\x00"), ("e", None)]
    producer.produce(world.topic, b"broken", b"\xffkey", 3, headers=headers)
    producer.produce(world.topic, b'{"x": 1}', None, 3)
    assert producer.flush(PATIENCE) == 0
    world.sent[3] = 2
    worker = world.start("w")
    world.until_done(worker)
    assert worker.stop() == 0
    (letter,) = world.read(world.letters)
    assert (letter.key(), letter.value()) == (b"\xffkey", b"broken")
    assert letter.headers()[:2] == headers
    (answer,) = world.read(world.answers)
    assert answer.key() is None
    assert json.loads(answer.value())["offset"] == 1
