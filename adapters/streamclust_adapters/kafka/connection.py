"""A `Broker` on a Kafka cluster: the reading and the producing half of one worker.

The library's word "offset metadata" holds the number of records an engine has dealt with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from streamclust.errors import AdapterError
from streamclust_adapters.broker import Commit, Extent, Listener, Message, Output
from streamclust_adapters.kafka.client import PATIENCE, Client, told
from streamclust_adapters.kafka.reading import Reading
from streamclust_adapters.kafka.transactions import Transactions


class KafkaBroker:
    """See above.

    Parameters
    ----------
    client : Client
        What all connections of the worker share.
    batch : int
        Most messages of one read.

    Raises
    ------
    AdapterError
        For an option that librdkafka refuses, or when no broker answers.
    """

    def __init__(self, client: Client, *, batch: int) -> None:
        self._client = client
        self._made: set[str] = set()
        self._reading = Reading(client, batch)
        self._transactions = Transactions(client, self._reading.metadata)
        self._reading.reach()
        client.holder.take()  # before anything of the name's last holder is fenced
        self._transactions.begin()

    def create(self, counts: Mapping[str, int]) -> None:
        """Make topics with so many partitions each, where they are not there yet."""
        admin = self._client.made(AdminClient, {})
        listed = self._client.first(lambda: admin.list_topics(timeout=PATIENCE), "list topics")
        wanted = [
            NewTopic(t, num_partitions=n) for t, n in counts.items() if t not in listed.topics
        ]
        for topic, made in (admin.create_topics(wanted) if wanted else {}).items():
            try:
                made.result(PATIENCE)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise AdapterError(f"cannot create {topic}: {told(error)}") from error
            self._made.add(topic)

    def n_partitions(self, topic: str) -> int:
        """How many partitions a topic has; see `Broker`."""
        return self._reading.n_partitions(topic, made=topic in self._made)

    def extent(self, topic: str, partition: int) -> Extent:
        """Which offsets a partition holds; see `Broker`."""
        return self._reading.extent(topic, partition)

    def committed(self, partitions: Iterable[int]) -> dict[int, Commit]:
        """The group's commits; see `Broker`."""
        return self._reading.committed(partitions)

    def values(self, topic: str, start: int) -> tuple[list[bytes], int]:
        """The values in partition 0 of a topic; see `Broker`."""
        return self._reading.values(topic, start)

    def join(self, listener: Listener) -> None:
        """Share partitions with the group; see `Broker`."""
        self._reading.join(listener)

    def rejoin(self) -> None:
        """Join anew; see `Broker`."""
        self._reading.rejoin()

    def take(self, offsets: Mapping[int, int]) -> None:
        """Read partitions without the group; see `Broker`."""
        self._reading.take(offsets)

    def read(self) -> list[Message]:
        """The next messages; see `Broker`."""
        return self._reading.read()

    def hold(self, partitions: Iterable[int]) -> None:
        """Stop reading partitions; see `Broker`."""
        self._reading.hold(partitions)

    def release(self, partitions: Iterable[int]) -> None:
        """Go on reading partitions; see `Broker`."""
        self._reading.release(partitions)

    def lag(self) -> dict[int, int]:
        """How far behind each partition is; see `Broker`."""
        return self._reading.lag()

    def deliver(self, outputs: Sequence[Output], commits: Mapping[int, Commit]) -> int | None:
        """One transaction; see `Broker`."""
        return self._transactions.deliver(outputs, commits)

    def close(self) -> None:
        """Leave; see `Broker`."""
        self._reading.close()
