"""The reading half of a worker: its membership of the group, its messages, and the commits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from streamclust.errors import AdapterError
from streamclust_adapters.broker import Commit, Extent, Listener, LostPartitions, Message, Stopped
from streamclust_adapters.deadline import Overdue, within
from streamclust_adapters.kafka.client import LONGEST, PATIENCE, STEP, WAIT, Client, told

Result = TypeVar("Result")

_READING = {"isolation.level": "read_committed", "auto.offset.reset": "error"}
_READING |= {"enable.auto.commit": "false"}


class Reading:
    """The consumer of a worker.

    Parameters
    ----------
    owner : Client
        What all connections share.
    batch : int
        Most messages of one read.
    """

    def __init__(self, owner: Client, batch: int) -> None:
        self._client = owner
        self._batch = batch
        self._listener: Listener | None = None
        self._failure: BaseException | None = None
        self._rejoining = False
        self._locked_out: str | None = None
        strategy = {"partition.assignment.strategy": "cooperative-sticky"} | owner.options
        newer = strategy.get("group.protocol", "").lower() == "consumer"
        self._incremental = newer or "cooperative" in strategy["partition.assignment.strategy"]
        if newer:
            del strategy["partition.assignment.strategy"]
        self._group = {"group.id": owner.member.group}
        own = {**self._group, "group.instance.id": owner.member.name}
        self._options = strategy | _READING | own
        self._consumer = owner.made(Consumer, self._options, error_cb=self._on_error)

    def metadata(self) -> object:
        """What a transaction must know of the group."""
        return self._consumer.consumer_group_metadata()

    def reach(self) -> None:
        """Wait for a broker.

        Raises
        ------
        AdapterError
            When none answers, or none lets us in.
        """
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self._consumer.list_topics(timeout=STEP)
                return
            except KafkaException as error:
                self._consumer.poll(0)  # hears of errors
                if self._locked_out is not None or time.monotonic() > end:
                    why = self._locked_out or told(error)
                    raise AdapterError(f"cannot reach a broker: {why}") from error
                self._client.check_stop(error.args[0])

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in {KafkaError._AUTHENTICATION, KafkaError._SSL}:
            self._locked_out = error.str()
        self._client.logger.warning("%s", error.str())

    # ------------------------------------------------------------ topics and offsets

    def n_partitions(self, topic: str, *, made: bool) -> int:
        """How many partitions a topic has; if we have just made it, brokers may learn of it yet."""

        def count() -> int:
            found = self._consumer.list_topics(topic, PATIENCE).topics[topic]
            if found.error is not None:
                raise KafkaException(found.error)
            return len(found.partitions)

        ask = self._client.again if made else self._client.first
        return ask(count, f"use topic {topic}")

    def extent(self, topic: str, partition: int) -> Extent:
        """Which offsets a partition holds; see `Broker`."""
        place = TopicPartition(topic, partition)
        ends = self._client.again(
            lambda: self._consumer.get_watermark_offsets(place, timeout=STEP),
            f"ask for the offsets of {topic}, partition {partition}",
        )
        return Extent(*ends)

    def committed(self, partitions: Iterable[int]) -> dict[int, Commit]:
        """The group's commits; see `Broker`."""
        places = [TopicPartition(self._client.member.topic, p) for p in partitions]

        def ask() -> list[TopicPartition]:
            answer = self._consumer.committed(places, timeout=STEP)
            for place in answer:
                if place.error is not None:
                    raise KafkaException(place.error)
            return answer

        answer = self._client.again(ask, "ask for the group's commits")
        return {
            place.partition: Commit(place.offset, _number(place.metadata))
            for place in answer
            if place.offset >= 0
        }

    def values(self, topic: str, start: int) -> tuple[list[bytes], int]:
        """The values in partition 0 of a topic; see `Broker`."""
        options = {**self._group, **_READING, "enable.partition.eof": "true"}
        reader = self._client.made(Consumer, options)
        found: list[bytes] = []
        behind = start
        try:
            reader.assign([TopicPartition(topic, 0, start)])
            while not self._client.shutdown.requested:
                for message in reader.consume(self._batch, WAIT):
                    error = message.error()
                    if error is None:
                        found.append(message.value() or b"")
                        behind = (message.offset() or 0) + 1
                    elif error.code() == KafkaError._PARTITION_EOF:
                        return found, behind
                    else:
                        self._client.judge(error)
            raise Stopped("stopped while the recorded order was read")
        finally:
            reader.close()

    def lag(self) -> dict[int, int]:
        """How far behind each partition is; see `Broker`."""
        lags = {}
        for place in self._consumer.position(self._consumer.assignment()):
            _, high = self._consumer.get_watermark_offsets(place, cached=True)
            if place.offset >= 0 and high >= 0:
                lags[place.partition] = max(high - place.offset, 0)
        return lags

    # ------------------------------------------------------------ membership

    def join(self, listener: Listener) -> None:
        """Share partitions with the group; see `Broker`."""
        self._listener = listener
        self._consumer.subscribe(
            [self._client.member.topic],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )

    def rejoin(self) -> None:
        """Join anew; see `Broker`."""
        assert self._listener is not None
        try:
            self._consumer.unsubscribe()
            self.join(self._listener)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._FATAL:
                raise AdapterError(f"cannot join the group: {told(error)}") from error
            self._client.check_name("its group goes on with the other")
            self._replace(self._listener)
        self._rejoining = True

    def take(self, offsets: Mapping[int, int]) -> None:
        """Read partitions without the group; see `Broker`."""
        topic = self._client.member.topic
        self._consumer.assign([TopicPartition(topic, p, at) for p, at in offsets.items()])

    def close(self) -> None:
        """Leave; see `Broker`. A static member keeps its partitions until its session ends."""
        self._listener = None
        with suppress(KafkaException, RuntimeError, Overdue):
            within(LONGEST, self._consumer.close)

    def _replace(self, listener: Listener) -> None:
        """Join as a new consumer of our name: the old one is dead."""
        self.close()
        self._consumer = self._client.made(Consumer, self._options, error_cb=self._on_error)
        self.join(listener)

    def _probe(self) -> None:
        """Raise when the consumer is dead: a fatal error while it joined is not told by itself."""
        try:
            self._consumer.commit(offsets=[], asynchronous=False)  # commits nothing
        except KafkaException as error:
            if error.args[0].code() == KafkaError._FATAL:
                self._client.check_name("its group goes on with the other")
                raise LostPartitions("the group took us for another") from error

    def _on_assign(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self._rejoining = False
        offsets = self._tell(lambda heard: heard.assigned([p.partition for p in places])) or {}
        at = [TopicPartition(p.topic, p.partition, offsets[p.partition]) for p in places if offsets]
        if self._incremental:
            consumer.incremental_assign(at)
        else:
            consumer.assign(at)

    def _on_revoke(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self._tell(lambda heard: heard.revoked([p.partition for p in places]))

    def _on_lost(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self._tell(lambda heard: heard.lost([p.partition for p in places]))

    def _tell(self, what: Callable[[Listener], Result]) -> Result | None:
        """Tell the listener; its failure waits until the library has returned to us."""
        if self._failure is None and self._listener is not None:
            try:
                return what(self._listener)
            except BaseException as failure:
                self._failure = failure
        return None

    # ------------------------------------------------------------ messages

    def read(self) -> list[Message]:
        """The next messages; see `Broker`."""
        try:
            got = self._consumer.consume(self._batch, WAIT)
            if self._rejoining and not got:
                self._probe()
        except KafkaException as error:
            self._client.judge(error.args[0])
            got = []
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        messages = []
        for message in got:
            if (why := message.error()) is None:
                messages.append(_message(message))
            else:
                self._client.judge(why)
        return messages

    def hold(self, partitions: Iterable[int]) -> None:
        """Stop reading partitions; see `Broker`."""
        self._consumer.pause([TopicPartition(self._client.member.topic, p) for p in partitions])

    def release(self, partitions: Iterable[int]) -> None:
        """Go on reading partitions; see `Broker`."""
        self._consumer.resume([TopicPartition(self._client.member.topic, p) for p in partitions])


def _message(got: Any) -> Message:
    kind, milliseconds = got.timestamp()
    seconds = milliseconds / 1000 if kind else None
    headers = got.headers() or ()
    return Message(got.partition(), got.offset(), got.key(), got.value(), headers, seconds)


def _number(metadata: str | None) -> int | None:
    return int(metadata) if metadata and metadata.isdecimal() else None
