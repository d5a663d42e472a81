"""What operators see: signals, logs, metrics, settings and what is missing."""

from __future__ import annotations

import json
import signal
import socket
import urllib.error
import urllib.request

import pytest

from tests.adapters.commands import REAL, SMALL
from tests.kafka.worlds import Worker, events

pytestmark = pytest.mark.kafka


def page(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10) as got:
            return got.status, got.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_keeps_every_engine_and_exits_with_0(world, number):
    world.produce(events(1000, seed=31))
    worker = world.start("w", "--id-field", "id", "--batch", "20")
    world.until_committed(300, worker)
    worker.signal(number)
    assert worker.end() == 0, worker.told()
    done = world.committed()
    for p, offset in done.items():
        newest = max((world.snapshots / f"partition-{p}").iterdir()).name
        assert newest == f"snapshot-{offset:020d}.safetensors"
    worker = world.start("w", "--id-field", "id")
    world.until_done(worker)
    world.check_exactly_once()


@pytest.mark.parametrize("command", [SMALL, REAL], ids=["small", "real"])
def test_metrics_and_health(world, command):
    port = free_port()
    world.produce(events(900, seed=32, bad=0.05))
    options = ["--id-field", "id", "--metrics", f"127.0.0.1:{port}"]
    worker = world.start("w", *options, command=command)
    world.until_done(worker)

    def figures():
        text = page(port, "metrics")[1]
        rows = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in rows}

    def total(name):
        return sum(value for key, value in figures().items() if key.startswith(name + "{"))

    letters = len(world.read(world.letters))
    world.until(lambda: total("streamclust_events_total") == 900 - letters, worker)
    world.until(lambda: total("streamclust_clusters") >= world.n, worker)
    lags = "streamclust_lag{"
    world.until(lambda: sum(key.startswith(lags) for key in figures()) == world.n, worker)
    world.until(lambda: total("streamclust_lag") == 0, worker)
    assert total("streamclust_dead_letters_total") == letters > 0
    assert total("streamclust_replaying") == 0
    told = figures()
    assert told["streamclust_batch_seconds_count"] > 0
    assert told["streamclust_latency_seconds_count"] > 0
    assert page(port, "healthz") == page(port, "readyz") == (200, "ok\n")
    assert page(port, "other")[0] == 404
    worker = world.start("w2", *options)
    assert worker.end() == 1
    assert "cannot serve metrics" in worker.told()


def test_logs_are_json_and_settings_come_from_a_file_without_secrets(world):
    world.produce(events(50))
    (world.folder / "worker.toml").write_text(
        f'output = "{world.answers}"\n'
        'log-format = "json"\nignore = ["id"]\nwindow = 77\n'
        '[librdkafka]\n"bootstrap.servers" = "nowhere:1"\n'
        'ssl.key.password = "hush"\nsocket.keepalive.enable = true\n'
    )
    options = ["--config", world.folder / "worker.toml"]
    arguments = world.arguments("w", *options)
    place = arguments.index("--output")
    del arguments[place : place + 2]
    worker = Worker(arguments, world.folder / "w.log")
    world.workers.append(worker)
    world.until_done(worker)
    assert worker.stop() == 0, worker.told()
    lines = [json.loads(line) for line in worker.told().splitlines()]
    assert {"time", "level", "message"} <= set(lines[0])
    assert "worker stopped" in {line["message"] for line in lines}
    assert "hush" not in worker.told()
    newest = max((world.snapshots / "partition-0").iterdir())
    assert json.loads(newest.read_text()[64:])["given"] == {"window": 77}
    world.check_exactly_once()


def test_topics_are_made_on_request_and_missed_otherwise(world):
    made = f"{world.name}-new"
    worker = world.start("w", "--output", made)
    assert worker.end() == 1
    assert f"topic {made}" in worker.told()
    world.produce(events(50))
    worker = world.start("w", "--output", made, "--create-topics", "--id-field", "id")
    world.until_done(worker)
    assert worker.stop() == 0
    assert len(world.read(made)) == 50
