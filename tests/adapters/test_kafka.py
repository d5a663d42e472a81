"""``streamclust kafka`` without a broker: usage, a missing extra, and librdkafka's own mock."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from concurrent.futures import Future
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from streamclust.errors import AdapterError
from streamclust_adapters.claim import Claim
from streamclust_adapters.kafka import client
from streamclust_adapters.kafka.client import Client, Membership
from streamclust_adapters.kafka.connection import KafkaBroker
from streamclust_adapters.runner import Shutdown
from tests.adapters.commands import environment, run

GIVEN = ["--topic", "in", "--group", "g", "--output", "out", "--snapshot", "s"]
BROKERS = ["--brokers", "127.0.0.1:1"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (BROKERS, "Missing option '--topic'"),
        ([*GIVEN], "--brokers HOST:PORT is needed"),
        ([*GIVEN, *BROKERS, "--events", "in"], "must be different topics"),
        ([*GIVEN, *BROKERS, "--order", "o"], "--order is for --engine shared"),
        ([*GIVEN, *BROKERS, "--id-field", "offset"], "an answer has such a field"),
        ([*GIVEN, *BROKERS, "--format", "csv"], "needs --features"),
        ([*GIVEN, *BROKERS, "--time-unit", "seconds"], "needs --time-field"),
        ([*GIVEN, *BROKERS, "--features", "a", "--ignore", "a"], "leaves no feature"),
        ([*GIVEN, *BROKERS, "--metrics", "9108"], "HOST:PORT is accepted"),
        ([*GIVEN[:-2], *BROKERS], "--snapshot DIR is needed"),
        ([*GIVEN, *BROKERS, "--no-learn"], "--no-learn needs --model"),
        ([*GIVEN, *BROKERS, "--no-learn", "--model", "."], "there is none to --snapshot"),
        (
            [*GIVEN[:-2], *BROKERS, "--no-learn", "--model", ".", "--engine", "shared"],
            "--engine shared is for models that learn",
        ),
        ([*GIVEN, *BROKERS, "--window", "3"], "from 50 to 100,000"),
        ([*GIVEN, *BROKERS, "-X", "x"], "NAME=VALUE is accepted"),
        ([*GIVEN, *BROKERS, "-X", "group.id=h"], "the worker sets this option itself"),
        ([*GIVEN, *BROKERS, "--config", "none.toml"], "does not exist"),
    ],
)
def test_a_wrong_use_is_told_and_exits_with_2(tmp_path, arguments, words):
    done = run("kafka", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert words in " ".join(done.stderr.decode().split())
    assert not (tmp_path / "s").exists()


def test_an_option_that_the_client_refuses_is_told_without_secrets(tmp_path):
    pairs = ["-X", "no.such=1", "-X", "sasl.password=hush"]
    done = run("kafka", *GIVEN, *BROKERS, *pairs, cwd=tmp_path)
    assert done.returncode == 1
    assert b"librdkafka refuses an option" in done.stderr
    assert b"no.such" in done.stderr
    assert b"hush" not in done.stderr


def test_a_missing_extra_is_told(tmp_path):
    code = (
        "import sys; sys.modules['confluent_kafka'] = None\n"
        "from streamclust_adapters.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "kafka", *GIVEN, *BROKERS],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1
    assert b"pip install 'streamclust[kafka]'" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.fixture
def mock():
    """A cluster of librdkafka's own, with 20 messages; it cannot do transactional offsets."""
    cluster = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    brokers = cluster.list_topics(timeout=30).brokers.values()
    address = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    for i in range(20):
        producer.produce("in", b"%d" % i, b"k", 0, headers=[("h", b"1")])
    assert producer.flush(30) == 0
    yield address
    del cluster  # its brokers live as long as it does


@pytest.fixture
def broker_with(mock, tmp_path):
    """Makes brokers on the mock cluster, with some options more."""
    logger = logging.Logger("quiet")
    logger.addHandler(logging.NullHandler())
    with Shutdown() as shutdown, ExitStack() as stack:

        def made(**options):
            member, claim = Membership("in", "g", "w"), Claim(tmp_path, "g-w")
            told = {"bootstrap.servers": mock} | options
            broker = KafkaBroker(Client(told, member, claim, shutdown, logger), batch=7)
            stack.callback(broker.close)
            return broker

        yield made


def test_the_client_reads_and_looks_up_on_a_mock_broker(broker_with):
    broker = broker_with()
    assert broker.extent("in", 0) == (0, 20)
    assert broker.committed([0]) == {}
    broker.take({0: 5})
    read = []
    while len(read) < 15:
        read += broker.read()
    assert [(m.offset, m.value) for m in read] == [(i, b"%d" % i) for i in range(5, 20)]
    assert (read[0].key, read[0].headers) == (b"k", [("h", b"1")])
    assert read[0].time is not None
    assert broker.lag() == {0: 0}
    values, behind = broker.values("in", 18)
    assert (values, behind) == ([b"18", b"19"], 20)
    with pytest.raises(AdapterError, match="refuses an option"):
        broker_with(**{"no.such": "1"})


class LateToLearn:
    """A consumer on brokers that learn of every topic a few questions late."""

    def __init__(self, consumer):
        self._consumer = consumer
        self.asked = 0

    def list_topics(self, topic, timeout):
        told = self._consumer.list_topics(topic, timeout)
        self.asked += 1
        if self.asked < 4:
            told.topics[topic].error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return told

    def __getattr__(self, name):
        return getattr(self._consumer, name)


class Admin:
    """An admin client of a cluster without topics that makes each at once."""

    def list_topics(self, timeout):
        return SimpleNamespace(topics={})

    def create_topics(self, wanted):
        done = Future()
        done.set_result(None)
        return {topic.topic: done for topic in wanted}


def test_a_topic_that_was_just_made_may_be_unknown_for_a_while(broker_with, monkeypatch):
    broker = broker_with()
    broker._reading._consumer = late = LateToLearn(broker._reading._consumer)
    with pytest.raises(AdapterError, match=r"cannot use topic in: .*Unknown topic"):
        broker.n_partitions("in")
    monkeypatch.setattr(broker._client, "made", lambda kind, options: Admin())
    broker.create({"in": 1})
    assert broker.n_partitions("in") == 4  # of the mock's topics
    assert late.asked == 4


def test_a_call_of_the_client_that_never_returns_has_failed(monkeypatch):
    monkeypatch.setattr(client, "LONGEST", 0.01)
    never = threading.Event()
    with pytest.raises(KafkaException, match="no return within") as raised:
        client.bounded(never.wait)
    never.set()
    assert raised.value.args[0].code() == KafkaError._TIMED_OUT
