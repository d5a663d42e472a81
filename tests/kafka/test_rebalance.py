"""Several workers: partitions move with their engines; whoever is left behind changes nothing."""

from __future__ import annotations

import json
import signal

import pytest

from tests.adapters.commands import SMALL
from tests.kafka.worlds import answer_of, events, model_of

pytestmark = pytest.mark.kafka

OPTIONS = ["--id-field", "id", "--batch", "50", "--snapshot-every", "200"]


def check(world, sent, tmp_path):
    """Exactly once, and as one clusterer per partition would have answered."""
    world.check_exactly_once()
    models = {p: model_of(SMALL) for p in range(world.n)}
    expected, at = {}, dict.fromkeys(models, 0)
    for p, value in sent:
        expected[p, at[p]] = answer_of(models[p], value)
        at[p] += 1
    for message in world.read(world.answers):
        answer = json.loads(message.value())
        told = answer["cluster"], answer["region"]
        assert told == expected[answer["partition"], answer["offset"]]


def engines(worker):
    """The engines that a worker has now, as its log tells."""
    now = set()
    for line in worker.told().splitlines():
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        if "engine opened" in line:
            now.add(words["engine"])
        elif "engine kept" in line:
            now.discard(words["engine"])
    return now


def test_partitions_move_when_a_worker_comes_and_when_one_dies(world, tmp_path):
    sent = events(4000, seed=7, bad=0.01)
    world.produce(sent[:1500])
    first = world.start("first", *OPTIONS)
    world.until(lambda: len(engines(first)) == world.n, first)
    second = world.start("second", *OPTIONS)
    world.until(lambda: engines(second), first, second)
    every = {f"partition-{p}" for p in range(world.n)}
    world.until(lambda: engines(first) | engines(second) == every, first, second)
    assert not engines(first) & engines(second)
    world.produce(sent[1500:3000])
    world.until_done(first, second)
    world.produce(sent[3000:3500])
    second.kill()
    world.until_done(first)  # once the group has missed the second long enough
    world.produce(sent[3500:])
    world.until_done(first)
    assert first.stop() == 0, first.told()
    check(world, sent, tmp_path)


def test_a_worker_that_slept_through_its_session_doubles_nothing(world, tmp_path):
    sent = events(3000, seed=8)
    world.produce(sent[:1000])
    sleeper = world.start("sleeper", *OPTIONS, "--batch", "10")
    world.until_committed(200, sleeper)
    sleeper.signal(signal.SIGSTOP)
    other = world.start("other", *OPTIONS)
    world.produce(sent[1000:2000])
    world.until(lambda: len(engines(other)) == world.n, other)
    sleeper.signal(signal.SIGCONT)
    world.until_done(other)
    world.produce(sent[2000:])
    world.until_done(other, sleeper)
    assert other.stop() == sleeper.stop() == 0, sleeper.told()
    check(world, sent, tmp_path)


@pytest.mark.parametrize("engine", ["per-partition", "shared"])
def test_the_second_of_a_name_takes_over_and_the_first_says_so(world, tmp_path, engine):
    sent = events(2000, seed=9)
    world.produce(sent[:1000])
    options = [*OPTIONS, "--engine", engine]
    first = world.start("same", *options)
    world.until_committed(0, first)
    log, first.log = first.log, tmp_path / "first.log"
    log.rename(first.log)
    second = world.start("same", *options)
    world.until(lambda: "engine opened" in second.told(), second)
    world.produce(sent[1000:])
    assert first.end() == 1
    assert "has taken over" in first.told()
    assert "Traceback" not in first.told()
    world.until_done(second)
    assert second.stop() == 0, second.told()
    world.check_exactly_once()
