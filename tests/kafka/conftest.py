"""The broker that the Kafka suite shares, and a world of its own for each test.

STREAMCLUST_KAFKA names a broker to be used instead (HOST:PORT); STREAMCLUST_REQUIRE_KAFKA makes a
missing one a failure.
"""

from __future__ import annotations

import os

import pytest

from tests.adapters.commands import REAL, SMALL, run
from tests.demands import demand
from tests.kafka.brokers import Kafka, missing
from tests.kafka.clusters import Cluster, Guarded
from tests.kafka.worlds import World


def demand_java():
    """Go on only where a broker can be run."""
    why = missing()
    told = None if why is None else f"{why}; or name a broker with STREAMCLUST_KAFKA"
    demand(told, "STREAMCLUST_REQUIRE_KAFKA")


@pytest.fixture(scope="session")
def address(tmp_path_factory):
    """Where the broker is that all tests share."""
    if external := os.environ.get("STREAMCLUST_KAFKA"):
        yield external
        return
    demand_java()
    kafka = Kafka(tmp_path_factory.mktemp("kafka"))
    try:
        kafka.start()
        yield kafka.address
    finally:
        kafka.stop()


@pytest.fixture(scope="session")
def warmed():
    """The real command with everything compiled, which is no part of what is waited for."""
    done = run("warmup", command=REAL)
    assert done.returncode == 0, done.stderr
    return REAL


@pytest.fixture(params=["small", "real"])
def command(request):
    """The command around the small clusterer, and around the real one."""
    return SMALL if request.param == "small" else request.getfixturevalue("warmed")


@pytest.fixture
def own_broker(tmp_path):
    """A broker that a test may stop."""
    demand_java()
    (tmp_path / "broker").mkdir()
    kafka = Kafka(tmp_path / "broker")
    try:
        kafka.start()
        yield kafka
    finally:
        kafka.kill()


@pytest.fixture
def cluster(tmp_path):
    """Three brokers, each of which a test may kill."""
    demand_java()
    with Cluster(tmp_path) as made:
        yield made


@pytest.fixture
def guarded(tmp_path):
    """A broker that also has a door with a lock."""
    demand_java()
    with Guarded(tmp_path) as made:
        yield made


@pytest.fixture
def world(address, tmp_path):
    """Topics, a group and workers of this test alone."""
    with World(address, tmp_path) as made:
        yield made
