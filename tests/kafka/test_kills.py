"""``kill -9`` at any moment: every message is answered once, and the engines end as if unharmed."""

from __future__ import annotations

import json
import os
import random
import subprocess

import pytest

from tests.adapters.commands import REAL, SMALL
from tests.kafka.worlds import answer_of, events, model_of

pytestmark = pytest.mark.kafka

# A quick form for the hand: STREAMCLUST_KILLS=3 takes a part of events and kills alike.
KILLS = int(os.environ.get("STREAMCLUST_KILLS", "20"))
OPTIONS = ["--id-field", "id", "--batch", "150", "--snapshot-every", "700"]


def harass(world, sent, command, *options, seed):
    """Start a worker for each thousand messages and kill it somewhere; at last let one finish."""
    rng = random.Random(seed)
    for begin in range(0, len(sent), 1000):
        world.produce(sent[begin : begin + 1000])
        goal = world.written(world.answers) + rng.randrange(500)
        worker = world.start("w", *OPTIONS, *options, command=command)
        world.until(lambda g=goal: world.written(world.answers) > g, worker)
        try:
            worker.process.wait(rng.uniform(0, 0.3))
        except subprocess.TimeoutExpired:
            worker.kill()
        else:
            pytest.fail(worker.told())
    worker = world.start("w", *OPTIONS, *options, command=command)
    world.until_done(worker)
    lanes = 1 if "shared" in options else world.n
    # What is relearned is kept then.
    world.until(lambda: worker.told().count("engine ready") == lanes, worker)
    assert worker.stop() == 0, worker.told()


def check_answers(world, expected):
    """Each answer is what the clusterer says that was asked and taught here."""
    for message in world.read(world.answers):
        answer = json.loads(message.value())
        place = answer["partition"], answer["offset"]
        assert (answer["cluster"], answer["region"]) == expected[place], place


@pytest.mark.parametrize("command", [SMALL, REAL], ids=["small", "real"])
def test_one_engine_per_partition(world, tmp_path, command):
    share = KILLS if command is REAL else KILLS // 4
    sent = events(1000 * share, seed=1, bad=0.01)
    harass(world, sent, command, seed=2)
    world.check_exactly_once()

    models = {p: model_of(command) for p in range(world.n)}
    expected, offsets = {}, dict.fromkeys(models, 0)
    for p, value in sent:
        expected[p, offsets[p]] = answer_of(models[p], value)
        offsets[p] += 1
    check_answers(world, expected)
    for p, model in models.items():
        loaded = type(model).load(max((world.snapshots / f"partition-{p}").iterdir()))
        assert loaded.source["events"] == loaded.source["offsets"][str(p)] == offsets[p]
        model.save(tmp_path / "uninterrupted", loaded.source)
        assert world.newest(f"partition-{p}") == (tmp_path / "uninterrupted").read_bytes()


@pytest.mark.parametrize("command", [SMALL, REAL], ids=["small", "real"])
def test_one_shared_engine(world, tmp_path, command):
    share = max(KILLS // (2 if command is REAL else 4), 1)
    sent = events(1000 * share, seed=3, bad=0.01)
    harass(world, sent, command, "--engine", "shared", seed=4)
    world.check_exactly_once()

    values = {p: [value for q, value in sent if q == p] for p in range(world.n)}
    model, expected = model_of(command), {}
    for entry in world.read(world.order, 1):
        for p, start, end, length in json.loads(entry.value())["runs"]:
            assert end - start == length
            for offset in range(start, end):
                assert (p, offset) not in expected
                expected[p, offset] = answer_of(model, values[p][offset])
    assert len(expected) == len(sent)
    check_answers(world, expected)
    loaded = type(model).load(max((world.snapshots / "shared").iterdir()))
    model.save(tmp_path / "replayed", loaded.source)
    assert world.newest("shared") == (tmp_path / "replayed").read_bytes()
