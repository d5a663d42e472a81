"""Metrics and health of a worker, without a broker."""

from __future__ import annotations

import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest

from streamclust.errors import AdapterError
from streamclust_adapters.answering import Totals
from streamclust_adapters.broker import Message
from streamclust_adapters.metrics import ALIVE, Metrics, MetricsServer
from streamclust_adapters.worker import Turn


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def lane(name="partition-0", *, figures=None, **totals):
    model = SimpleNamespace(metrics=lambda: {"clusters": 3} | (figures or {}))
    return SimpleNamespace(
        name=name, model=model, totals=Totals(**totals), saved_at=90.0, replaying=False
    )


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def metrics(clock):
    return Metrics(lambda: {0: 7}, clock=clock, wall=lambda: 1000.0)


def shown(metrics):
    rows = [line.rsplit(" ", 1) for line in metrics.page().decode().splitlines()]
    return {name: float(value) for name, value in rows if not name.startswith("#")}


def turn(*lanes, messages=(), ready=True):
    return Turn(messages, 0.02, list(lanes), ready)


def test_counters_follow_totals_and_gauges_the_engines(metrics, clock):
    one = lane(answered=5, refused=2, changes={"ClusterBorn": 1}, figures={"noise_share": 0.25})
    metrics(turn(one, messages=[Message(0, 0, None, b"", (), 999.8), Message(0, 1, None, b"")]))
    one.totals.answered = 9
    metrics(turn(one))
    told = shown(metrics)
    assert told['streamclust_events_total{engine="partition-0"}'] == 9
    assert told['streamclust_dead_letters_total{engine="partition-0"}'] == 2
    assert told['streamclust_changes_total{engine="partition-0",kind="ClusterBorn"}'] == 1
    assert told['streamclust_clusters{engine="partition-0"}'] == 3
    assert told['streamclust_noise_share{engine="partition-0"}'] == 0.25
    assert told['streamclust_snapshot_age_seconds{engine="partition-0"}'] == 10
    assert told['streamclust_lag{partition="0"}'] == 7
    assert told["streamclust_batch_seconds_count"] == 1
    assert told["streamclust_latency_seconds_sum"] == pytest.approx(0.2)


def test_an_engine_that_is_opened_anew_counts_on(metrics, clock):
    metrics(turn(lane(answered=5)))
    clock.now += 10
    metrics(turn(lane("partition-1", answered=1)))
    metrics(turn(lane(answered=4)))
    told = shown(metrics)
    assert told['streamclust_events_total{engine="partition-0"}'] == 9
    assert 'streamclust_clusters{engine="partition-0"}' not in told


def test_health_follows_the_turns(metrics, clock):
    assert metrics.alive()
    assert not metrics.ready()
    metrics(turn(lane()))
    assert metrics.ready()
    metrics(turn(lane(), ready=False))
    assert not metrics.ready()
    clock.now += ALIVE + 1
    assert not metrics.alive()


def test_pages_are_served_on_the_given_address_only(metrics):
    with MetricsServer(metrics, "127.0.0.1", 0) as server:
        base = f"http://127.0.0.1:{server.port}"
        with urllib.request.urlopen(f"{base}/metrics") as got:
            assert b"streamclust_lag" in got.read()
        with urllib.request.urlopen(f"{base}/healthz") as got:
            assert got.read() == b"ok\n"
        for path, status in [("readyz", 503), ("x", 404)]:
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(f"{base}/{path}")
            with refused.value as error:
                assert error.code == status
        with pytest.raises(AdapterError, match="cannot serve metrics"):
            MetricsServer(metrics, "127.0.0.1", server.port)
