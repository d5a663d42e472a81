"""Outputs and offsets as one transaction.

One that fails is tried again with the same outputs, since the engines have learned the batch
already; after a failure that leaves open what has become of it, the partitions are given up, and
the group's commits tell where to go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import msgspec
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from streamclust.errors import AdapterError
from streamclust_adapters.broker import Commit, LostPartitions, Output
from streamclust_adapters.kafka import client
from streamclust_adapters.kafka.client import PATIENCE, STEP, WAIT, Client, bounded

REPEATS = 3
"""Attempts at a transaction before its partitions are given up, since something else is wrong."""

KEPT_OF_LARGE_VALUE = 1 << 10
"""Bytes of a value that its dead letter keeps where the topic does not take the whole."""

_GONE_ON = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.FENCED_INSTANCE_ID,
}


class Transactions:
    """The producing half of a worker.

    Parameters
    ----------
    owner : Client
        What all connections share.
    whose : callable
        The metadata of the group, as the reading half has them now.
    """

    def __init__(self, owner: Client, whose: Callable[[], object]) -> None:
        self._client = owner
        self._whose = whose
        self._options = {"message.max.bytes": "100000000"} | owner.options  # the topic decides
        self._options |= {"transactional.id": owner.member.name}
        self._producer = owner.made(Producer, self._options)

    def begin(self) -> None:
        """Take the transactions of our name over; what was open is aborted."""
        self._client.first(lambda: self._producer.init_transactions(PATIENCE), "begin transactions")

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
                if why.code() in client.TAKEN_OVER:
                    self._client.check_name(why.str())
                if why.code() in client.REFUSED:
                    raise AdapterError(f"cannot deliver: {why.str()}") from error
                failed += 1
                if why.code() in _GONE_ON or failed == REPEATS:
                    raise LostPartitions(why.str()) from error
                self._client.logger.warning("transaction repeated: %s", why.str())

    def _attempt(self, outputs: Sequence[Output], commits: Mapping[int, Commit]) -> int | None:
        producer, topic = self._producer, self._client.member.topic
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
            whose: Any = self._whose()
            # Neither call is repeated on this producer: a second one may never return.
            bounded(lambda: producer.send_offsets_to_transaction(places, whose, STEP))
            bounded(lambda: producer.commit_transaction(STEP))
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
                if error.args[0].code() not in client.UNKNOWN or time.monotonic() > end:
                    raise
                self._producer.poll(WAIT)

    def _abort(self) -> None:
        producer = self._producer
        try:
            bounded(lambda: producer.abort_transaction(STEP))
        except KafkaException as error:
            self._renew(error.args[0])

    def _renew(self, why: KafkaError) -> NoReturn:
        """Begin anew with a producer of the same name: what was open is committed or aborted then.

        Which of the two, the commits tell. A producer is fenced by another worker of our name, and
        by a transaction that took too long.
        """
        if why.code() in client.TAKEN_OVER:
            self._client.check_name(why.str())
        if why.code() in client.END:
            raise AdapterError(f"cannot deliver: {why.str()}")
        self._client.logger.warning("producer renewed: %s", why.str())
        while True:
            self._producer.purge(blocking=False)
            self._producer = producer = self._client.made(Producer, self._options)
            try:
                bounded(partial(producer.init_transactions, STEP))
                break
            except KafkaException as error:
                again: KafkaError = error.args[0]
                if not (again.retriable() or again.code() in client.PASSING):
                    raise AdapterError(f"cannot deliver: {again.str()}") from error
                self._client.check_stop(again)
        raise LostPartitions(f"a transaction failed: {why.str()}")


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
