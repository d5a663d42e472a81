"""What the Kafka door makes of each kind of error, which librdkafka's mock injects.

The mock never applies offsets of transactions; that they are is for the suite with real Kafka.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from streamclust.errors import AdapterError
from streamclust_adapters.broker import Commit, Fenced, LostPartitions, Output
from streamclust_adapters.kafka.client import Client, Membership
from streamclust_adapters.kafka.connection import KafkaBroker
from streamclust_adapters.kafka.transactions import Transactions
from streamclust_adapters.runner import Shutdown
from tests.adapters.mock_cluster import (
    ADD_OFFSETS,
    ADD_PARTITIONS,
    COMMIT_OFFSETS,
    END_TRANSACTION,
    FETCH,
    INIT_PRODUCER,
    LIST_OFFSETS,
    OFFSET_FETCH,
    PRODUCE,
    MockCluster,
)

READER = {"enable.partition.eof": True, "isolation.level": "read_committed", "log_level": 0}


@pytest.fixture
def mock():
    with MockCluster(inputs=1, outputs=1) as made:
        yield made


@pytest.fixture
def shutdown():
    with Shutdown() as made:
        yield made


class Name:
    """Whether our name is still ours."""

    ours = True

    def held(self):
        return self.ours

    def take(self):
        self.ours = True


@pytest.fixture
def name():
    return Name()


@pytest.fixture
def client(mock, shutdown, name):
    logger = logging.Logger("quiet")
    logger.addHandler(logging.NullHandler())
    options = {"bootstrap.servers": mock.address}
    return Client(options, Membership("inputs", "group", "worker"), name, shutdown, logger)


@contextmanager
def transactions(client):
    reader = Consumer(client.options | READER | {"group.id": "group"})
    try:
        made = Transactions(client, reader.consumer_group_metadata)
        made.begin()
        yield made
    finally:
        reader.close()


def deliver(made, value):
    answer = Output("answer", "outputs", 0, None, value, ())
    return made.deliver([answer], {0: Commit(1, 1)})


def outputs(mock, n):
    """The first so many committed outputs."""
    reader = Consumer(READER | {"bootstrap.servers": mock.address, "group.id": "outside"})
    try:
        reader.assign([TopicPartition("outputs", 0, 0)])
        found = []
        while len(found) < n:
            found += [m.value() for m in reader.consume(100, 1.0) if m.error() is None]
        return found
    finally:
        reader.close()


PASSES = [
    (ADD_PARTITIONS, KafkaError.CONCURRENT_TRANSACTIONS),
    (ADD_PARTITIONS, KafkaError.COORDINATOR_NOT_AVAILABLE),
    (ADD_OFFSETS, KafkaError.COORDINATOR_LOAD_IN_PROGRESS),
    (COMMIT_OFFSETS, KafkaError.NOT_COORDINATOR),
    (END_TRANSACTION, KafkaError.CONCURRENT_TRANSACTIONS),
    (PRODUCE, KafkaError.NOT_LEADER_FOR_PARTITION),
    (PRODUCE, KafkaError.NOT_ENOUGH_REPLICAS),
]


@pytest.mark.parametrize(("request_kind", "error"), PASSES)
def test_an_error_that_passes_costs_nothing(mock, client, request_kind, error):
    with transactions(client) as made:
        mock.inject(request_kind, error, error)
        deliver(made, b"one")
        deliver(made, b"two")
    assert outputs(mock, 2) == [b"one", b"two"]


GROUP_WENT_ON = [
    (COMMIT_OFFSETS, KafkaError.ILLEGAL_GENERATION),
    (COMMIT_OFFSETS, KafkaError.UNKNOWN_MEMBER_ID),
    (COMMIT_OFFSETS, KafkaError.FENCED_INSTANCE_ID),
]


@pytest.mark.parametrize(("request_kind", "error"), GROUP_WENT_ON)
def test_partitions_that_the_group_took_are_given_up(mock, client, request_kind, error):
    with transactions(client) as made:
        mock.inject(request_kind, error)
        with pytest.raises(LostPartitions):
            deliver(made, b"one")
        deliver(made, b"two")


FENCED = [
    (END_TRANSACTION, KafkaError.INVALID_PRODUCER_EPOCH),
    (END_TRANSACTION, KafkaError.PRODUCER_FENCED),
    (ADD_PARTITIONS, KafkaError.PRODUCER_FENCED),
]


@pytest.mark.parametrize(("request_kind", "error"), FENCED)
def test_a_producer_that_was_fenced_for_itself_is_renewed(mock, client, request_kind, error):
    with transactions(client) as made:
        mock.inject(request_kind, error)
        with pytest.raises(LostPartitions):
            deliver(made, b"one")
        deliver(made, b"two")


@pytest.mark.parametrize(("request_kind", "error"), FENCED)
def test_a_producer_that_was_fenced_for_another_is_not(mock, client, name, request_kind, error):
    with transactions(client) as made:
        mock.inject(request_kind, error)
        name.ours = False
        with pytest.raises(Fenced, match="another worker named 'worker'"):
            deliver(made, b"one")


REFUSED = [
    (INIT_PRODUCER, KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    (ADD_PARTITIONS, KafkaError.TOPIC_AUTHORIZATION_FAILED),
    (ADD_OFFSETS, KafkaError.GROUP_AUTHORIZATION_FAILED),
    (COMMIT_OFFSETS, KafkaError.GROUP_AUTHORIZATION_FAILED),
]


@pytest.mark.parametrize(("request_kind", "error"), REFUSED)
def test_what_is_not_allowed_ends_the_worker(mock, client, request_kind, error):
    mock.inject(request_kind, error)
    refused = pytest.raises(AdapterError, match=r"cannot .*uthorization failed")
    with refused as raised, transactions(client) as made:
        deliver(made, b"one")
    assert not isinstance(raised.value, LostPartitions | Fenced)


READING = [
    (FETCH, KafkaError.NOT_LEADER_FOR_PARTITION),
    (FETCH, KafkaError.KAFKA_STORAGE_ERROR),
    (LIST_OFFSETS, KafkaError.NOT_LEADER_FOR_PARTITION),
    (OFFSET_FETCH, KafkaError.UNSTABLE_OFFSET_COMMIT),
    (OFFSET_FETCH, KafkaError.COORDINATOR_LOAD_IN_PROGRESS),
]


@pytest.mark.parametrize(("request_kind", "error"), READING)
def test_reading_outlives_an_error_that_passes(mock, client, request_kind, error):
    producer = Producer({"bootstrap.servers": mock.address, "log_level": 0})
    for i in range(20):
        producer.produce("inputs", b"%d" % i, None, 0)
    assert producer.flush(30) == 0
    broker = KafkaBroker(client, batch=7)
    try:
        mock.inject(request_kind, error, error)
        assert broker.committed([0]) == {}
        assert broker.extent("inputs", 0) == (0, 20)
        broker.take({0: 0})
        read = []
        while len(read) < 20:
            read += broker.read()
        assert [message.offset for message in read] == list(range(20))
    finally:
        broker.close()
