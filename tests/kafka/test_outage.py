"""The broker goes away: a worker waits for it, doubles nothing, and can be stopped meanwhile."""

from __future__ import annotations

import pytest

from tests.kafka.worlds import World, events

pytestmark = pytest.mark.kafka

OPTIONS = ["--id-field", "id", "--batch", "50", "--snapshot-every", "200"]


@pytest.fixture
def own_world(own_broker, tmp_path):
    with World(own_broker.address, tmp_path) as world:
        yield world


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_broker_that_comes_back_finds_the_worker_going_on(own_broker, own_world, end):
    world = own_world
    world.produce(events(3000, seed=11, bad=0.01))
    worker = world.start("w", *OPTIONS)
    world.until_committed(500, worker)
    getattr(own_broker, end)()
    assert worker.alive()
    own_broker.start()
    world.until_done(worker)
    world.produce(events(500, seed=12))
    world.until_done(worker)
    assert worker.stop() == 0, worker.told()
    world.check_exactly_once()


def test_a_worker_can_be_stopped_while_there_is_no_broker(own_broker, own_world):
    world = own_world
    world.produce(events(3000, seed=13))
    worker = world.start("w", *OPTIONS, "--batch", "10")
    world.until_committed(200, worker)
    own_broker.kill()
    stopped = worker.stop()
    assert stopped == 0 or "stopped while the broker did not answer" in worker.told()
    assert "Traceback" not in worker.told()
    own_broker.start()
    worker = world.start("w", *OPTIONS)
    world.until_done(worker)
    assert worker.stop() == 0, worker.told()
    world.check_exactly_once()
