"""The client library as the rest of this package sees it: its options, failures and limits.

What of its failures will pass, what ends the worker, and what only means that the group has gone on
without us, is decided here and nowhere else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from streamclust.errors import AdapterError, MissingExtra
from streamclust_adapters.broker import Fenced, LostPartitions, Stopped
from streamclust_adapters.claim import Holder
from streamclust_adapters.deadline import Overdue, within
from streamclust_adapters.runner import Shutdown

try:
    from confluent_kafka import KafkaError, KafkaException
except ImportError as error:
    raise MissingExtra("kafka") from error

WAIT = 0.1
"""Seconds to wait for messages: no answer is held back for longer."""

PATIENCE = 30.0
"""Seconds after which a broker that was not reached at the start is given up."""

STEP = 5.0
"""Seconds of one attempt at a call that is repeated until it succeeds or a stop is requested."""

LONGEST = 3 * STEP
"""Seconds after which a call is given up that has not returned after its `STEP`.

The library forgets its own time limit when it asks for a coordinator that is going down
(librdkafka's issues 5456 and 5511): the call then never returns.
"""

OWN_OPTIONS = frozenset(
    {
        *("group.id", "group.instance.id", "transactional.id", "isolation.level"),
        *("enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset"),
        *("auto.commit.interval.ms", "enable.idempotence", "enable.partition.eof"),
    }
)
"""Options of librdkafka that the guarantees rest on; nobody else may set them."""

TAKEN_OVER = {
    KafkaError._FENCED,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
}
"""Another has our name, or a broker thinks so."""

PASSING = {
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
"""What passes when the brokers are well again."""

UNKNOWN = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
}
"""What is not there; a broker that has just started may say so of what it has."""

REFUSED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError._AUTHENTICATION,
}
"""What we are not allowed; trying again does not change it."""

END = UNKNOWN | REFUSED | {KafkaError._AUTO_OFFSET_RESET}
"""What does not pass."""

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


class Client:
    """What all connections of one worker share.

    Parameters
    ----------
    options : mapping
        Options of librdkafka; at least ``bootstrap.servers``.
    member : Membership
        Who reads.
    holder : Holder
        Whether another process has the member's name by now.
    shutdown : Shutdown
        Ends waiting for a broker that is not there.
    logger : logging.Logger
        Where the library logs to.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        member: Membership,
        holder: Holder,
        shutdown: Shutdown,
        logger: logging.Logger,
    ) -> None:
        self.options = dict(options)
        self.member = member
        self.holder = holder
        self.shutdown = shutdown
        self.logger = logger

    def made(
        self,
        kind: Callable[..., Result],
        options: Mapping[str, str],
        **callbacks: Callable[..., None],
    ) -> Result:
        """A consumer, producer or admin client of the library, with some options more."""
        try:
            return kind({**self.options, **options, **callbacks}, logger=self.logger)
        except (KafkaException, ValueError, TypeError) as error:
            raise AdapterError(f"librdkafka refuses an option: {told(error)}") from error

    def first(self, call: Callable[[], Result], what: str) -> Result:
        """A call at the start: a broker that does not answer is a failure."""
        try:
            return call()
        except KafkaException as error:
            raise AdapterError(f"cannot {what}: {told(error)}") from error

    def again(self, call: Callable[[], Result], what: str) -> Result:
        """Repeat a call while its failure may pass, until a stop is requested."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return call()
            except KafkaException as error:
                why = error.args[0]
                passing = why.retriable() or why.code() in PASSING
                passing = passing or (why.code() in UNKNOWN and time.monotonic() < end)
                if not passing or why.fatal():
                    self.judge(why)
                    raise AdapterError(f"cannot {what}: {why.str()}") from error
                self.check_stop(why)
                time.sleep(WAIT)

    def check_stop(self, why: KafkaError) -> None:
        """Raise when a stop was requested while the brokers cannot be reached."""
        if self.shutdown.requested:
            raise Stopped(f"stopped while the broker did not answer: {why.str()}")

    def check_name(self, why: str) -> None:
        """Raise when we were fenced for another worker of our name, and not for ourselves."""
        if not self.holder.held():
            raise Fenced(
                f"another worker named {self.member.worker!r} of group {self.member.group!r} has "
                f"taken over ({why}); give each worker a name of its own with --worker"
            )

    def judge(self, error: Any) -> None:
        """Raise for an error that will not pass; the library deals with the others itself."""
        if error.code() in TAKEN_OVER or (error.fatal() and "fence" in error.str().lower()):
            self.check_name(error.str())
            raise LostPartitions(f"the group took us for another: {error.str()}")
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise AdapterError(
                f"offsets that were to be read next are gone, deleted by retention: {error.str()}"
            )
        if error.fatal() or error.code() in END:
            raise AdapterError(f"cannot go on: {error.str()}")


def bounded(call: Callable[[], Result]) -> Result:
    """A call that may not return; a late one has failed, and so has what it was made on."""
    try:
        return within(LONGEST, call)
    except Overdue as late:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"the client: {late}")) from late


def told(error: BaseException) -> str:
    """What the library says of a failure."""
    why = error.args[0] if error.args else error
    return why.str() if isinstance(why, KafkaError) else str(why)
