"""``streamclust kafka`` without a broker: usage, a missing extra, and librdkafka's own mock."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from streamclust.errors import AdapterError
from streamclust_adapters import kafka
from streamclust_adapters.claim import Claim
from streamclust_adapters.kafka import KafkaBroker, Membership
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


def test_the_client_reads_and_looks_up_on_a_mock_broker(tmp_path):
    """What librdkafka's mock cannot do (transactional offsets) is for the suite with real Kafka."""
    mock = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    brokers = mock.list_topics(timeout=30).brokers.values()
    address = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    for i in range(20):
        producer.produce("in", b"%d" % i, b"k", 0, headers=[("h", b"1")])
    assert producer.flush(30) == 0
    logger = logging.Logger("quiet")
    logger.addHandler(logging.NullHandler())
    with Shutdown() as shutdown:
        broker = KafkaBroker(
            {"bootstrap.servers": address},
            Membership("in", "g", "w"),
            Claim(tmp_path, "g-w"),
            batch=7,
            shutdown=shutdown,
            logger=logger,
        )
        try:
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
                KafkaBroker(
                    {"bootstrap.servers": address, "no.such": "1"},
                    Membership("in", "g", "v"),
                    Claim(tmp_path, "g-v"),
                    batch=7,
                    shutdown=shutdown,
                    logger=logger,
                )
        finally:
            broker.close()


def test_a_call_of_the_client_that_never_returns_has_failed(monkeypatch):
    monkeypatch.setattr(kafka, "LONGEST", 0.01)
    never = threading.Event()
    with pytest.raises(KafkaException, match="no return within") as raised:
        kafka._bounded(never.wait)
    never.set()
    assert raised.value.args[0].code() == KafkaError._TIMED_OUT
