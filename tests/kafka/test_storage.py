"""Snapshots that cannot be written or trusted, input that is gone: told, and nothing is lost."""

from __future__ import annotations

import resource
import subprocess

import pytest
from confluent_kafka import TopicPartition

from tests.adapters.commands import environment
from tests.kafka.brokers import PATIENCE
from tests.kafka.worlds import events

pytestmark = pytest.mark.kafka

OPTIONS = ["--id-field", "id", "--batch", "50", "--snapshot-every", "200"]


def limited():
    """As a disk that takes no more than small files."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (800, 800))


def test_a_full_disk_ends_the_worker_and_loses_nothing(world):
    world.produce(events(2000, seed=21, bad=0.01))
    # What the worker says goes to a pipe: its log would be a file as well.
    done = subprocess.run(
        world.arguments("w", *OPTIONS),
        env=environment(),
        capture_output=True,
        check=False,
        timeout=PATIENCE,
        preexec_fn=limited,
    )
    assert done.returncode == 1, done.stderr
    assert b"cannot write" in done.stderr
    assert b"Traceback" not in done.stderr
    assert 0 < sum(world.committed().values()) < 2000
    worker = world.start("w", *OPTIONS)
    world.until_done(worker)
    assert worker.stop() == 0, worker.told()
    world.check_exactly_once()


@pytest.mark.parametrize("folder", ["/proc/nowhere", "/dev/null/s"])
def test_a_folder_that_cannot_be_written_ends_the_worker_before_the_first_event(world, folder):
    world.produce(events(10))
    worker = world.start("w", "--snapshot", folder)
    assert worker.end() == 1
    assert f"cannot keep snapshots in {folder}" in worker.told()
    assert world.handled() == {p: [] for p in range(world.n)}


def test_torn_snapshots_are_set_aside(world):
    world.produce(events(2000, seed=22))
    worker = world.start("w", *OPTIONS)
    world.until_done(worker)
    assert worker.stop() == 0
    for lane in world.snapshots.glob("partition-*"):
        newest = max(lane.glob("snapshot-*.safetensors"))
        newest.write_bytes(newest.read_bytes()[:-1])
    world.produce(events(500, seed=23))
    worker = world.start("w", *OPTIONS)
    world.until_done(worker)
    assert worker.stop() == 0
    assert worker.told().count("snapshot set aside") == world.n
    world.check_exactly_once()


def test_commits_without_snapshots_are_told(world):
    world.produce(events(100))
    worker = world.start("w")
    world.until_done(worker)
    worker.kill()
    worker = world.start("w", "--snapshot", world.folder / "other")
    assert worker.end() == 1
    assert "holds no snapshot" in worker.told()


def test_what_retention_deleted_is_told(world):
    world.produce(events(2000, seed=24))
    worker = world.start("w", *OPTIONS, "--snapshot-every", "100000")
    world.until_done(worker)
    worker.kill()
    deleted = [TopicPartition(world.topic, p, 5) for p in range(world.n)]
    for future in world.admin.delete_records(deleted).values():
        future.result(PATIENCE)
    before = world.handled()
    worker = world.start("w", *OPTIONS)
    assert worker.end() == 1
    assert "offsets 0 to 4 were deleted by retention" in worker.told()
    assert world.handled() == before


def test_what_retention_deletes_before_it_was_read_is_told(world):
    world.produce(events(40))
    worker = world.start("w")
    world.until_done(worker)
    assert worker.stop() == 0
    world.produce(events(400, seed=1))
    deleted = [TopicPartition(world.topic, p, world.sent[p]) for p in range(world.n)]
    for future in world.admin.delete_records(deleted).values():
        future.result(PATIENCE)
    worker = world.start("w")
    assert worker.end() == 1
    assert "were deleted by retention" in worker.told()
