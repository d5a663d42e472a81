"""Workers that only answer, and engines that start from a saved model."""

from __future__ import annotations

import json

import pytest

from tests.adapters.commands import SMALL
from tests.kafka.worlds import answer_of, events, model_of

pytestmark = pytest.mark.kafka

OPTIONS = ["--id-field", "id", "--batch", "50"]


@pytest.fixture
def taught(tmp_path):
    """A saved model, and a way to load it anew."""
    model = model_of(SMALL)
    for _, value in events(500, seed=51):
        answer_of(model, value)
    path = tmp_path / "taught.safetensors"
    model.save(path, {"events": 500})
    return path, lambda: type(model).load(path)


def answers(world):
    told = (json.loads(message.value()) for message in world.read(world.answers))
    return {(a["partition"], a["offset"]): (a["cluster"], a["region"], a["event"]) for a in told}


def test_a_worker_that_does_not_learn_answers_each_message_once_through_kills(world, taught):
    path, load = taught
    sent = events(2000, seed=52, bad=0.01)
    arguments = world.arguments("w", *OPTIONS, "--no-learn", "--model", path)
    place = arguments.index("--snapshot")
    del arguments[place : place + 2]
    for begin in range(0, 2000, 500):
        world.produce(sent[begin : begin + 500])
        worker = world.run("w", arguments)
        world.until_committed(begin + 100, worker)
        worker.kill()
    worker = world.run("w", arguments)
    world.until_done(worker)
    assert worker.stop() == 0, worker.told()
    world.check_exactly_once()
    assert not world.snapshots.exists()

    model, numbers, expected = load(), dict.fromkeys(range(world.n), 0), {}
    for p, value in sent:
        numbers[p] += 1
        if value != b"broken":
            event = json.loads(value)
            told = model.assign_one({"x": event["x"], "y": event["y"]})
            expected[p, numbers[p] - 1] = (told.label, str(told.region), numbers[p])
    assert answers(world) == expected


def test_new_engines_start_from_the_given_model(world, taught):
    path, load = taught
    sent = events(400, seed=53)
    world.produce(sent)
    worker = world.start("w", *OPTIONS, "--model", path)
    world.until_done(worker)
    assert worker.stop() == 0, worker.told()
    world.check_exactly_once()
    models, at, expected = {p: load() for p in range(world.n)}, dict.fromkeys(range(world.n), 0), {}
    for p, value in sent:
        expected[p, at[p]] = (*answer_of(models[p], value), at[p] + 1)
        at[p] += 1
    assert answers(world) == expected
