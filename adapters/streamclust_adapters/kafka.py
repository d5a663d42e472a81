"""Kafka through confluent-kafka: the one module that knows the client library.

A batch is one transaction that holds its outputs and the group's offsets; a failed one is tried
again with the same outputs, since the engines have learned the batch already. The library's word
"offset metadata" holds the number of records an engine has dealt with.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, TypeVar

import msgspec

from streamclust.errors import AdapterError, MissingExtra
from streamclust_adapters.broker import (
    Commit,
    Extent,
    Fenced,
    Listener,
    LostPartitions,
    Message,
    Output,
    Stopped,
)
from streamclust_adapters.claim import Claim
from streamclust_adapters.deadline import Overdue, within
from streamclust_adapters.runner import Shutdown

try:
    from confluent_kafka import (
        Consumer,
        KafkaError,
        KafkaException,
        Producer,
        TopicPartition,
    )
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic
except ImportError as error:
    raise MissingExtra("kafka") from error

WAIT = 0.1
"""Seconds to wait for messages: no answer is held back for longer."""

PATIENCE = 30.0
"""Seconds after which a broker that was not reached at the start is given up."""

STEP = 5.0
"""Seconds of one attempt at a call that is repeated until it succeeds or a stop is requested."""

LONGEST = 3 * STEP
"""Seconds after which a transactional call is given up that has not returned after its `STEP`.

The library forgets its own time limit when it asks for a coordinator that is going down
(librdkafka's issues 5456 and 5511): the call then never returns.
"""

REPEATS = 3
"""Attempts at a transaction before its partitions are given up, since something else is wrong."""

KEPT_OF_LARGE_VALUE = 1 << 10
"""Bytes of a value that its dead letter keeps where the topic does not take the whole."""

OWN_OPTIONS = frozenset(
    {
        *("group.id", "group.instance.id", "transactional.id", "isolation.level"),
        *("enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset"),
        *("auto.commit.interval.ms", "enable.idempotence", "enable.partition.eof"),
    }
)
"""Options of librdkafka that the guarantees rest on; nobody else may set them."""

_GONE_ON = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.FENCED_INSTANCE_ID,
}
_TAKEN_OVER = {
    KafkaError._FENCED,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
}
_PASSING = {
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._WAIT_COORD,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.UNSTABLE_OFFSET_COMMIT,  # a transaction of the partition's last worker is open
}
_UNKNOWN = {  # a broker that has just started may say so of what it has
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}
_END = _UNKNOWN | {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError._AUTHENTICATION,
}

Result = TypeVar("Result")


class Membership(msgspec.Struct, frozen=True):
    """Who a worker is: its topic, its group and its name, which no other worker has."""

    topic: str
    group: str
    worker: str

    @property
    def name(self) -> str:
        """What the brokers know the worker by."""
        return f"{self.group}-{self.worker}"


class KafkaBroker:
    """A `Broker` on a Kafka cluster.

    Parameters
    ----------
    options : mapping
        Options of librdkafka; at least ``bootstrap.servers``.
    member : Membership
        Who reads.
    claim : Claim
        Whether another process has the member's name by now.
    batch : int
        Most messages of one read.
    shutdown : Shutdown
        Ends waiting for a broker that is not there.
    logger : logging.Logger
        Where the library logs to.

    Raises
    ------
    AdapterError
        For an option that librdkafka refuses, or when no broker answers.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        member: Membership,
        claim: Claim,
        *,
        batch: int,
        shutdown: Shutdown,
        logger: logging.Logger,
    ) -> None:
        self._member = member
        self._batch = batch
        self._shutdown = shutdown
        self._options = dict(options)
        self._logger = logger
        self._listener: Listener | None = None
        self._failure: BaseException | None = None
        self._rejoining = False
        self._claim = claim
        strategy = {"partition.assignment.strategy": "cooperative-sticky"} | self._options
        self._incremental = (
            "cooperative" in strategy["partition.assignment.strategy"]
            or strategy.get("group.protocol", "").lower() == "consumer"
        )
        if strategy.get("group.protocol", "").lower() == "consumer":
            del strategy["partition.assignment.strategy"]
        common = {"group.id": member.group, "isolation.level": "read_committed"}
        common |= {"auto.offset.reset": "error", "enable.auto.commit": "false"}
        self._joining = strategy | common | {"group.instance.id": member.name}
        self._producing = {"message.max.bytes": "100000000"} | self._options  # the topic decides
        self._producing |= {"transactional.id": member.name}
        self._consumer = self._made(Consumer, self._joining)
        self._producer = self._made(Producer, self._producing)
        self._reading = common | {"enable.partition.eof": "true"}
        self._first(lambda: self._consumer.list_topics(timeout=PATIENCE), "reach a broker")
        claim.take()  # before anything of the name's last holder is fenced
        self._first(lambda: self._producer.init_transactions(PATIENCE), "begin transactions")

    # ------------------------------------------------------------ topics and offsets

    def create(self, counts: Mapping[str, int]) -> None:
        """Make topics with so many partitions each, where they are not there yet."""
        admin = self._made(AdminClient, {})
        known = self._first(lambda: admin.list_topics(timeout=PATIENCE), "list topics").topics
        wanted = [NewTopic(t, num_partitions=n) for t, n in counts.items() if t not in known]
        for topic, made in (admin.create_topics(wanted) if wanted else {}).items():
            try:
                made.result(PATIENCE)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise AdapterError(f"cannot create {topic}: {_told(error)}") from error

    def n_partitions(self, topic: str) -> int:
        """How many partitions a topic has; see `Broker`."""
        told = self._first(lambda: self._consumer.list_topics(topic, PATIENCE), "list topics")
        if (found := told.topics[topic]).error is not None:
            raise AdapterError(f"topic {topic}: {found.error.str()}")
        return len(found.partitions)

    def extent(self, topic: str, partition: int) -> Extent:
        """Which offsets a partition holds; see `Broker`."""
        place = TopicPartition(topic, partition)
        ends = self._again(
            lambda: self._consumer.get_watermark_offsets(place, timeout=STEP),
            f"ask for the offsets of {topic}, partition {partition}",
        )
        return Extent(*ends)

    def committed(self, partitions: Iterable[int]) -> dict[int, Commit]:
        """The group's commits; see `Broker`."""
        places = [TopicPartition(self._member.topic, p) for p in partitions]

        def ask() -> list[TopicPartition]:
            told = self._consumer.committed(places, timeout=STEP)
            for place in told:
                if place.error is not None:
                    raise KafkaException(place.error)
            return told

        told = self._again(ask, "ask for the group's commits")
        return {
            place.partition: Commit(place.offset, _number(place.metadata))
            for place in told
            if place.offset >= 0
        }

    def values(self, topic: str, start: int) -> tuple[list[bytes], int]:
        """The values in partition 0 of a topic; see `Broker`."""
        reader = self._made(Consumer, self._options | self._reading)
        found: list[bytes] = []
        behind = start
        try:
            reader.assign([TopicPartition(topic, 0, start)])
            while not self._shutdown.requested:
                for message in reader.consume(self._batch, WAIT):
                    error = message.error()
                    if error is None:
                        found.append(message.value() or b"")
                        behind = (message.offset() or 0) + 1
                    elif error.code() == KafkaError._PARTITION_EOF:
                        return found, behind
                    else:
                        self._judge(error)
            raise Stopped("stopped while the recorded order was read")
        finally:
            reader.close()

    # ------------------------------------------------------------ reading

    def join(self, listener: Listener) -> None:
        """Share partitions with the group; see `Broker`."""
        self._listener = listener
        self._consumer.subscribe(
            [self._member.topic],
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
                raise AdapterError(f"cannot join the group: {_told(error)}") from error
            self._check_claim("its group goes on with the other")
            self._replace_consumer(self._listener)
        self._rejoining = True

    def _replace_consumer(self, listener: Listener) -> None:
        """Join as a new consumer of our name: the old one is dead."""
        old, self._listener = self._consumer, None
        with suppress(KafkaException, RuntimeError, Overdue):
            within(LONGEST, old.close)
        self._consumer = self._made(Consumer, self._joining)
        self.join(listener)

    def take(self, offsets: Mapping[int, int]) -> None:
        """Read partitions without the group; see `Broker`."""
        topic = self._member.topic
        self._consumer.assign([TopicPartition(topic, p, at) for p, at in offsets.items()])

    def read(self) -> list[Message]:
        """The next messages; see `Broker`."""
        try:
            got = self._consumer.consume(self._batch, WAIT)
            if self._rejoining and not got:
                self._probe()
        except KafkaException as error:
            self._judge(error.args[0])
            got = []
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        messages = []
        for message in got:
            if (why := message.error()) is None:
                messages.append(_message(message))
            else:
                self._judge(why)
        return messages

    def hold(self, partitions: Iterable[int]) -> None:
        """Stop reading partitions; see `Broker`."""
        self._consumer.pause([TopicPartition(self._member.topic, p) for p in partitions])

    def release(self, partitions: Iterable[int]) -> None:
        """Go on reading partitions; see `Broker`."""
        self._consumer.resume([TopicPartition(self._member.topic, p) for p in partitions])

    def lag(self) -> dict[int, int]:
        """How far behind each partition is; see `Broker`."""
        lags = {}
        for place in self._consumer.position(self._consumer.assignment()):
            _, high = self._consumer.get_watermark_offsets(place, cached=True)
            if place.offset >= 0 and high >= 0:
                lags[place.partition] = max(high - place.offset, 0)
        return lags

    def _probe(self) -> None:
        """Raise when the consumer is dead: a fatal error while it joined is not told by itself."""
        try:
            self._consumer.commit(offsets=[], asynchronous=False)  # commits nothing
        except KafkaException as error:
            if error.args[0].code() == KafkaError._FATAL:
                self._check_claim("its group goes on with the other")
                raise LostPartitions("the group took us for another") from error

    def _on_assign(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self._rejoining = False
        offsets = self._told(lambda heard: heard.assigned([p.partition for p in places])) or {}
        at = [TopicPartition(p.topic, p.partition, offsets[p.partition]) for p in places if offsets]
        if self._incremental:
            consumer.incremental_assign(at)
        else:
            consumer.assign(at)

    def _on_revoke(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self._told(lambda heard: heard.revoked([p.partition for p in places]))

    def _on_lost(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        self._told(lambda heard: heard.lost([p.partition for p in places]))

    def _told(self, tell: Callable[[Listener], Result]) -> Result | None:
        """Tell the listener; its failure waits until the library has returned to us."""
        if self._failure is None and self._listener is not None:
            try:
                return tell(self._listener)
            except BaseException as failure:
                self._failure = failure
        return None

    # ------------------------------------------------------------ transactions

    def deliver(self, outputs: Sequence[Output], commits: Mapping[int, Commit]) -> int | None:
        """One transaction; see `Broker`."""
        outputs = list(outputs)
        failed = 0
        while True:
            try:
                return self._attempt(outputs, commits)
            except _TooLarge as large:
                self._abort()
                outputs[large.at] = _shortened(outputs[large.at])
            except KafkaException as error:
                why = error.args[0]
                if not why.txn_requires_abort():
                    self._renew(why)
                self._abort()
                if why.code() in _TAKEN_OVER:
                    self._check_claim(why.str())
                failed += 1
                if why.code() in _GONE_ON or failed == REPEATS:
                    raise LostPartitions(why.str()) from error
                self._logger.warning("transaction repeated: %s", why.str())

    def _attempt(self, outputs: Sequence[Output], commits: Mapping[int, Commit]) -> int | None:
        producer, topic = self._producer, self._member.topic
        behind: list[int] = []
        large: list[int] = []
        try:
            producer.begin_transaction()
            for i, output in enumerate(outputs):
                self._produce(output, _report(i, output, behind, large))
            places = [
                TopicPartition(topic, p, commit.offset, metadata=str(commit.number))
                for p, commit in commits.items()
            ]
            whose = self._consumer.consumer_group_metadata()
            # Neither call is repeated on this producer: a second one may never return.
            _bounded(lambda: producer.send_offsets_to_transaction(places, whose, STEP))
            _bounded(lambda: producer.commit_transaction(STEP))
        except KafkaException as error:
            if large:
                raise _TooLarge(large[0]) from error
            raise
        return behind[0] if behind else None

    def _produce(self, output: Output, report: Callable[..., None] | None) -> None:
        more: dict[str, Any] = {} if report is None else {"on_delivery": report}
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self._producer.produce(
                    output.topic,
                    value=output.value,
                    key=output.key,
                    partition=output.partition,
                    headers=list(output.headers),
                    **more,
                )
                return
            except BufferError:  # the library's queue is full
                self._producer.poll(WAIT)
            except KafkaException as error:
                if error.args[0].code() not in _UNKNOWN or time.monotonic() > end:
                    raise
                self._producer.poll(WAIT)

    def _abort(self) -> None:
        producer = self._producer
        try:
            _bounded(lambda: producer.abort_transaction(STEP))
        except KafkaException as error:
            self._renew(error.args[0])

    def _renew(self, why: KafkaError) -> NoReturn:
        """Begin anew with a producer of the same name: what was open is committed or aborted then.

        Which of the two, the commits tell. A producer is fenced by another worker of our name, and
        by a transaction that took too long.
        """
        if why.code() in _TAKEN_OVER:
            self._check_claim(why.str())
        if why.code() in _END:
            raise AdapterError(f"cannot deliver: {why.str()}")
        self._logger.warning("producer renewed: %s", why.str())
        while True:
            self._producer.purge(blocking=False)
            self._producer = producer = self._made(Producer, self._producing)
            try:
                _bounded(partial(producer.init_transactions, STEP))
                break
            except KafkaException as error:
                again: KafkaError = error.args[0]
                if not (again.retriable() or again.code() in _PASSING):
                    raise AdapterError(f"cannot deliver: {again.str()}") from error
                if self._shutdown.requested:
                    raise Stopped(
                        f"stopped while the broker did not answer: {again.str()}"
                    ) from None
        raise LostPartitions(f"a transaction failed: {why.str()}")

    def close(self) -> None:
        """Leave; see `Broker`. A static member keeps its partitions until its session ends."""
        self._listener = None
        with suppress(KafkaException, RuntimeError):
            self._consumer.close()

    # ------------------------------------------------------------ failures

    def _made(self, kind: Callable[..., Result], options: Mapping[str, str]) -> Result:
        try:
            return kind({**self._options, **options}, logger=self._logger)
        except (KafkaException, ValueError, TypeError) as error:
            raise AdapterError(f"librdkafka refuses an option: {_told(error)}") from error

    def _first(self, call: Callable[[], Result], what: str) -> Result:
        """A call at the start: a broker that does not answer is a failure."""
        try:
            return call()
        except KafkaException as error:
            raise AdapterError(f"cannot {what}: {_told(error)}") from error

    def _again(self, call: Callable[[], Result], what: str) -> Result:
        """Repeat a call while its failure may pass, until a stop is requested."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return call()
            except KafkaException as error:
                why = error.args[0]
                passing = why.retriable() or why.code() in _PASSING
                passing = passing or (why.code() in _UNKNOWN and time.monotonic() < end)
                if not passing or why.fatal():
                    self._judge(why)
                    raise AdapterError(f"cannot {what}: {why.str()}") from error
                if self._shutdown.requested:
                    raise Stopped(f"stopped while the broker did not answer: {why.str()}") from None
                time.sleep(WAIT)

    def _check_claim(self, why: str) -> None:
        """Raise when we were fenced for another worker of our name, and not for ourselves."""
        if not self._claim.held():
            raise Fenced(
                f"another worker named {self._member.worker!r} of group {self._member.group!r} has "
                f"taken over ({why}); give each worker a name of its own with --worker"
            )

    def _judge(self, error: Any) -> None:
        """Raise for an error that will not pass; the library deals with the others itself."""
        if error.code() in _TAKEN_OVER or (error.fatal() and "fence" in error.str().lower()):
            self._check_claim(error.str())
            raise LostPartitions(f"the group took us for another: {error.str()}")
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise AdapterError(
                f"offsets that were to be read next are gone, deleted by retention: {error.str()}"
            )
        if error.fatal() or error.code() in _END:
            raise AdapterError(f"cannot go on: {error.str()}")


def _bounded(call: Callable[[], Result]) -> Result:
    """A transactional call that may not return; a late one has failed, and so has its producer."""
    try:
        return within(LONGEST, call)
    except Overdue as late:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"the client: {late}")) from late


def _message(got: Any) -> Message:
    kind, milliseconds = got.timestamp()
    time = milliseconds / 1000 if kind else None
    headers = got.headers() or ()
    return Message(got.partition(), got.offset(), got.key(), got.value(), headers, time)


class _TooLarge(Exception):
    """An output that its topic does not take."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def _report(
    at: int, output: Output, behind: list[int], large: list[int]
) -> Callable[..., None] | None:
    """What notes the fate of the outputs whose fate matters."""

    def order(error: KafkaError | None, message: Any) -> None:
        if error is None:
            behind.append(message.offset() + 1)

    def letter(error: KafkaError | None, message: Any) -> None:
        if error is not None and error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            large.append(at)

    if output.kind == "order":
        return order
    return letter if output.kind == "letter" else None


def _shortened(letter: Output) -> Output:
    """A dead letter with the beginning of its value, which says how long it was."""
    value = letter.value or b""
    told = ("streamclust.bytes", str(len(value)).encode())
    return msgspec.structs.replace(
        letter, value=value[:KEPT_OF_LARGE_VALUE], headers=[*letter.headers, told]
    )


def _number(metadata: str | None) -> int | None:
    return int(metadata) if metadata and metadata.isdecimal() else None


def _told(error: BaseException) -> str:
    why = error.args[0] if error.args else error
    return why.str() if isinstance(why, KafkaError) else str(why)
