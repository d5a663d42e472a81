"""Messages to records, and answers, change events and dead letters to messages."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from streamclust.errors import DecodeError
from streamclust_adapters.broker import Kind, Message, Output
from streamclust_adapters.decoding import LineDecoder
from streamclust_adapters.encoder import Encoder
from streamclust_adapters.ports import Record
from streamclust_adapters.records import NOTHING, Entry, decoded

HEADER = "streamclust."
"""How the names of the headers begin that a dead letter gets."""


class MessagePosition(msgspec.Struct, frozen=True, gc=False):
    """Where a message stands."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"topic {self.topic}, partition {self.partition}, offset {self.offset}"


class MessageRecord(Entry[MessagePosition], gc=False):
    """One message as a `Record`; `raw` is its value, empty where there is none."""

    message: Message


class MessageReader:
    """Messages of one topic to records; every message is one."""

    def __init__(self, topic: str, decoder: LineDecoder) -> None:
        self._topic = topic
        self._decoder = decoder

    def record(self, message: Message, number: int) -> MessageRecord:
        """The record of a message, as the `number`-th of its engine."""
        position = MessagePosition(self._topic, message.partition, message.offset)
        raw = message.value
        if raw is None:
            raw, found = b"", None
            error: DecodeError | None = DecodeError("a message without a value", str(position))
        else:
            found, error = decoded(self._decoder, raw, position, "value")
            if found is None:
                error = DecodeError("the header of a table", str(position))
        return MessageRecord(number, *(found or NOTHING), raw, position, error, message)


class Topics(msgspec.Struct, frozen=True):
    """Where outputs go; None for nowhere. `order` is where a shared engine records its order."""

    answers: str
    changes: str | None = None
    letters: str | None = None
    order: str | None = None

    @property
    def named(self) -> list[str]:
        """All that are somewhere."""
        every = (self.answers, self.changes, self.letters, self.order)
        return [topic for topic in every if topic is not None]


class Outbox:
    """The outputs of one transaction, in order; a `Sink` whose flush is the transaction.

    What comes from partition p goes to partition p modulo the number there, so that outputs keep
    the order of their partition.

    Parameters
    ----------
    topics : Topics
        Where to.
    counts : mapping
        How many partitions each of these topics has.
    encoder : Encoder
        The layout of the values.
    """

    def __init__(self, topics: Topics, counts: Mapping[str, int], encoder: Encoder) -> None:
        self.outputs: list[Output] = []
        self._topics = topics
        self._counts = counts
        self._encoder = encoder
        self._cause: Message | None = None

    def about(self, record: MessageRecord) -> None:
        """Name the record that the next change events are caused by."""
        self._cause = record.message

    def answer(self, record: Record, label: int, region: str, rule: str | None) -> None:
        """Hold one answer, under the key of its message."""
        assert isinstance(record, MessageRecord)
        message = record.message
        place = (message.partition, message.offset)
        value = self._encoder.answer(record.number, record.key, label, region, rule, place)
        self._hold("answer", self._topics.answers, message, value)

    def change(self, number: int, change: object) -> None:
        """Hold one change event, under the key of the message that caused it."""
        topic, cause = self._topics.changes, self._cause
        if topic is not None and cause is not None:
            told = self._encoder.change(number, change)
            told |= {"partition": cause.partition, "offset": cause.offset}
            self._hold("change", topic, cause, told)

    def dead_letter(self, record: Record, reason: str) -> None:
        """Hold the message as it came, with reason and position in headers."""
        assert isinstance(record, MessageRecord)
        topic, message = self._topics.letters, record.message
        if topic is None:
            return
        told = {
            "reason": reason,
            "topic": record.position.topic,
            "partition": message.partition,
            "offset": message.offset,
            "event": record.number,
        }
        headers = [*message.headers]
        headers += [(HEADER + name, str(value).encode()) for name, value in told.items()]
        place = message.partition % self._counts[topic]
        self.outputs.append(Output("letter", topic, place, message.key, message.value, headers))

    def order(self, runs: bytes) -> None:
        """Hold the order in which a shared engine took the messages of this transaction."""
        assert self._topics.order is not None
        self.outputs.append(Output("order", self._topics.order, 0, None, runs))

    def take_back(self) -> None:
        """Drop the dead letter of a record that does not count as done."""
        if self._topics.letters is not None:
            self.outputs.pop()

    def flush(self) -> None:
        """Nothing leaves before the transaction; see `Sink`."""

    def sync(self) -> None:
        """Nothing leaves before the transaction; see `Sink`."""

    def _hold(self, kind: Kind, topic: str, message: Message, value: object) -> None:
        place = message.partition % self._counts[topic]
        encoded = self._encoder.value(value)
        self.outputs.append(Output(kind, topic, place, message.key, encoded))


class Nowhere:
    """A `Sink` for records whose answers were produced before."""

    def answer(self, record: Record, label: int, region: str, rule: str | None) -> None:
        """Drop the answer."""

    def change(self, number: int, change: object) -> None:
        """Drop the change event."""

    def dead_letter(self, record: Record, reason: str) -> None:
        """Drop the dead letter."""

    def flush(self) -> None:
        """Nothing is held."""

    def sync(self) -> None:
        """Nothing is held."""
