"""A world: an input topic, its output topics, a group, and workers as processes.

What the workers must have answered is computed here without them: one clusterer per partition that
is asked and taught event by event.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.adapters.commands import REAL, SMALL, environment
from tests.adapters.fake_clusterer import StreamClusterer as SmallClusterer
from tests.kafka.brokers import PATIENCE, until

MODEL = {REAL: ["--window", "100"], SMALL: []}
LAST_LINES = 60
QUICK = ["-X", "session.timeout.ms=6000", "-X", "transaction.timeout.ms=10000"]


class Worker:
    """A process of ``streamclust kafka``."""

    def __init__(self, arguments: list[str], log: Path, **options) -> None:
        self.log = log
        self._begin = log.stat().st_size if log.exists() else 0
        with log.open("ab") as stream:
            self.process = subprocess.Popen(
                arguments,
                env=environment() | {"PYTHONFAULTHANDLER": "1"},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                **options,
            )

    def told(self) -> str:
        """What this process has said so far."""
        return self.log.read_bytes()[self._begin :].decode()

    def started(self) -> bool:
        """Whether it has come as far as to hear signals."""
        return "worker started" in self.told()

    def alive(self) -> bool:
        assert self.process.poll() is None, self.told()
        return True

    def last_words(self) -> str:
        """The end of its log; one that lives still is ended, and says first where it is."""
        if self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGABRT)
        code = self.process.wait(PATIENCE)
        told = self.told().splitlines()
        return "\n".join([f"worker {self.log.stem} (exit {code}):", *told[-LAST_LINES:]])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self) -> int:
        """Ask for the end and wait for it."""
        self.signal(signal.SIGTERM)
        return self.end()

    def end(self) -> int:
        """Wait for the end."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"waited in vain for the end of {self.last_words()}") from None


class World:
    """See above; `n` is the number of partitions, `more` are settings of the input topic."""

    def __init__(self, address: str, folder: Path, n: int = 4, **more: str) -> None:
        self.address, self.folder, self.n = address, folder, n
        self.name = f"t{uuid.uuid4().hex[:12]}"
        self.topic, self.answers, self.changes, self.letters = (
            f"{self.name}-{kind}" for kind in ("in", "answers", "changes", "letters")
        )
        self.order = f"{self.answers}-order"
        self.snapshots = folder / "snapshots"
        self.workers: list[Worker] = []
        self.admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        self.sent = dict.fromkeys(range(n), 0)
        topics = [self.answers, self.changes, self.letters]
        made = [NewTopic(topic, n, 1) for topic in topics] + [NewTopic(self.order, 1, 1)]
        made.append(NewTopic(self.topic, n, 1, config=more))
        for future in self.admin.create_topics(made).values():
            future.result(PATIENCE)

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.process.send_signal(signal.SIGCONT)
                worker.kill()

    # ------------------------------------------------------------ in

    def produce(self, messages: list[tuple[int, bytes | None]], **more) -> None:
        """Send values to partitions; each has a key that names its partition and place."""
        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 20} | more)

        def arrived(error, message) -> None:
            assert error is None, error

        for partition, value in messages:
            key = f"{partition}/{self.sent[partition]}".encode()
            while True:
                try:
                    producer.produce(self.topic, value, key, partition, on_delivery=arrived)
                    break
                except BufferError:
                    producer.poll(0.1)
            self.sent[partition] += 1
        assert producer.flush(PATIENCE) == 0

    def arguments(self, name: str, *options, command=SMALL) -> list[str]:
        given = ["--topic", self.topic, "--group", self.name, "--worker", name]
        given += ["--output", self.answers, "--events", self.changes]
        given += ["--dead-letter", self.letters, "--snapshot", self.snapshots, *QUICK]
        given += ["--brokers", self.address, *MODEL[command], *options]
        return [*command, "kafka", *map(str, given)]

    def start(self, name: str, *options, command=SMALL, **process) -> Worker:
        arguments = self.arguments(name, *options, command=command)
        worker = Worker(arguments, self.folder / f"{name}.log", **process)
        self.workers.append(worker)
        return worker

    # ------------------------------------------------------------ out

    def read(self, topic: str, partitions: int | None = None) -> list:
        """Everything that was committed to a topic, in order per partition."""
        reader = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": f"{self.name}-reader",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
            }
        )
        try:
            ends = set()
            places = [TopicPartition(topic, p, 0) for p in range(partitions or self.n)]
            reader.assign(places)
            found = []
            while len(ends) < len(places):
                for message in reader.consume(1000, 1.0):
                    if (error := message.error()) is None:
                        found.append(message)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        ends.add(message.partition())
                    else:
                        raise AssertionError(error)
            return found
        finally:
            reader.close()

    def written(self, topic: str) -> int:
        """How much was written to a topic, committed or not, marks included."""
        return sum(self.end(topic, p) for p in range(self.n))

    def end(self, topic: str, partition: int) -> int:
        reader = Consumer({"bootstrap.servers": self.address, "group.id": f"{self.name}-ends"})
        place = TopicPartition(topic, partition)

        def asked() -> tuple[int, int] | None:
            with suppress(KafkaException):  # its leader is not known everywhere yet
                return reader.get_watermark_offsets(place, timeout=30)
            return None

        try:
            return until(asked, lambda: f"no end of {topic}, partition {partition}")[1]
        finally:
            reader.close()

    def committed(self) -> dict[int, int]:
        """The group's offsets; empty while no broker tells them."""
        options = {"bootstrap.servers": self.address, "group.id": self.name, "log_level": 0}
        reader = Consumer(options)
        try:
            places = [TopicPartition(self.topic, p) for p in range(self.n)]
            told = reader.committed(places, timeout=30)
        except KafkaException:
            return {}
        finally:
            reader.close()
        return {place.partition: max(place.offset, 0) for place in told}

    def until(self, condition: Callable[[], object], *workers: Worker) -> None:
        """Wait for something; these workers must live until then."""
        until(lambda: all(w.alive() for w in workers) and condition(), self.state)

    def until_done(self, *workers: Worker) -> None:
        """Wait until the group has committed everything; these workers must live until then."""
        self.until(lambda: all(w.started() for w in workers), *workers)
        self.until(lambda: self.committed() == self.sent, *workers)

    def until_committed(self, n: int, *workers: Worker) -> None:
        """Wait until the group has committed more than so many messages."""
        self.until(lambda: sum(self.committed().values()) > n, *workers)

    def state(self) -> str:
        """How things stand; ends the workers, which say where they are."""
        told = [f"committed {self.committed()} of {self.sent}"]
        with suppress(AssertionError):
            told.append(f"written to {self.answers}, marks included: {self.written(self.answers)}")
        return "\n".join(told + [worker.last_words() for worker in self.workers])

    def newest(self, lane: str) -> bytes:
        """The newest snapshot of an engine."""
        return max((self.snapshots / lane).glob("snapshot-*.safetensors")).read_bytes()

    def handled(self) -> dict[int, list[int]]:
        """The offsets that were answered or refused, per partition, in the order of their topic."""
        done: dict[int, list[int]] = {p: [] for p in range(self.n)}
        for p, offsets in self.answered().items():
            done[p] += offsets
        for letter in self.read(self.letters):
            told = dict(letter.headers())
            done[int(told["streamclust.partition"])].append(int(told["streamclust.offset"]))
        return done

    def answered(self) -> dict[int, list[int]]:
        """The offsets that were answered, per partition, in the order of the answers."""
        done: dict[int, list[int]] = {p: [] for p in range(self.n)}
        for message in self.read(self.answers):
            answer = json.loads(message.value())
            assert message.key() == f"{answer['partition']}/{answer['offset']}".encode()
            done[answer["partition"]].append(answer["offset"])
        return done

    def check_exactly_once(self) -> None:
        """Every message was answered or refused once, answers in the order of their partition."""
        for p, offsets in self.answered().items():
            assert offsets == sorted(offsets), f"partition {p} is out of order"
        for p, offsets in self.handled().items():
            assert sorted(offsets) == list(range(self.sent[p])), f"partition {p}"


def events(n: int, *, partitions: int = 4, seed: int = 0, bad: float = 0.0) -> list:
    """Messages around four places, to partitions at random; a share of them holds no event."""
    rng = random.Random(seed)
    places = [(rng.uniform(-40, 40), rng.uniform(-40, 40)) for _ in range(4)]
    made = []
    for i in range(n):
        x, y = rng.choice(places)
        event = {"x": x + rng.gauss(0, 1), "y": y + rng.gauss(0, 1), "id": f"e{i}"}
        value = b"broken" if rng.random() < bad else json.dumps(event).encode()
        made.append((rng.randrange(partitions), value))
    return made


def model_of(command):
    """A new clusterer as the workers make it."""
    if command is SMALL:
        return SmallClusterer()
    from streamclust import StreamClusterer

    return StreamClusterer(window=100)


def answer_of(model, value: bytes) -> tuple[int, str] | None:
    """What the model says of a message, which it learns then; None for a broken one."""
    try:
        event = json.loads(value)
    except ValueError:
        return None
    x = {"x": event["x"], "y": event["y"]}
    told = model.assign_one(x)
    model.learn_one(x)
    return told.label, str(told.region)
