"""Run two workers on a Kafka broker, kill one, and count what was lost or doubled.

A broker is started on the loopback interface and a real stream is sent, the image segments of
`demo_stream.py`. Where Java and Maven are, the broker is Apache Kafka, and two workers share the
partitions of a topic: one is killed with SIGKILL, and the other takes over. Elsewhere it is
noida-db, a small program that speaks Kafka's protocol, transactions included, but does not hand
partitions on: there each worker reads a topic of its own, and the killed one starts again. At the
end the answers are counted.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from river.datasets import ImageSegments

ROOT = Path(__file__).parents[1]
PARTITIONS = 4
ROUNDS = 3
SHARED = {"one": "segments", "two": "segments"}
APART = {"one": "segments-of-one", "two": "segments-of-two"}

Topics = dict[str, str]  # what each worker reads, by its name
Workers = dict[str, "subprocess.Popen[bytes]"]


@contextmanager
def broker() -> Iterator[tuple[str, bool]]:
    """A broker of our own: its address, and whether it hands on what a dead worker had."""
    serve = [sys.executable, "-m", "tests.kafka.brokers"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(serve, cwd=ROOT, text=True, **pipes) as process:
        try:
            told = process.stdout.readline().split()
            if not told:
                sys.exit("the broker did not start")
            kind, address = told
            print(f"the broker is {kind}")
            yield address, kind == "apache-kafka"
        finally:
            process.stdin.close()


def make(address: str, topics: Topics) -> None:
    """Make what the workers read and write."""
    names = sorted({*topics.values(), *map(answers_to, topics.values())})
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic(n, PARTITIONS, 1) for n in names]).values():
        future.result(30)


def answers_to(topic: str) -> str:
    """Where the answers to a topic go."""
    return f"{topic}-answers"


def send(address: str, topics: Topics) -> int:
    """Send the stream to the topics in turn; how many events that were."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 20})
    places = [(topic, p) for p in range(PARTITIONS) for topic in sorted(set(topics.values()))]
    n = 0
    for _ in range(ROUNDS):
        for features, _ in ImageSegments():
            topic, partition = places[n % len(places)]
            producer.produce(topic, json.dumps(features), f"segment-{n}", partition)
            n += 1
    producer.flush(60)
    return n


def worker(address: str, name: str, topic: str, folder: str) -> subprocess.Popen[bytes]:
    """A worker of the topic's group."""
    command = [sys.executable, "-m", "streamclust_adapters", "kafka", "--brokers", address]
    command += ["--topic", topic, "--output", answers_to(topic), "--group", topic]
    command += ["--worker", name, "--snapshot", f"{folder}/{topic}", "--batch", "100"]
    command += ["-X", "session.timeout.ms=6000", "-X", "transaction.timeout.ms=10000"]
    with log_of(name, folder).open("ab") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log)


def log_of(name: str, folder: str) -> Path:
    """What a worker says."""
    return Path(folder, f"{name}.log")


def wait_until_ready(folder: str, topics: Topics, workers: Workers) -> None:
    """Wait until each worker has its share of the partitions."""
    share = PARTITIONS * len(set(topics.values())) // len(workers)
    while any(log_of(name, folder).read_text().count("engine ready") < share for name in workers):
        check(workers)
        time.sleep(0.2)


def check(workers: Workers) -> None:
    """Workers end only when they are asked to."""
    for name, process in workers.items():
        if process.poll() is not None:
            sys.exit(f"worker {name} ended")


def count(address: str, topics: Topics) -> Counter[tuple[str, int, int]]:
    """How often each event, by topic, partition and offset, has a committed answer."""
    options = {"bootstrap.servers": address, "group.id": "count", "enable.partition.eof": True}
    reader = Consumer(options | {"isolation.level": "read_committed"})
    written = sorted(set(map(answers_to, topics.values())))
    places = [TopicPartition(topic, p, 0) for topic in written for p in range(PARTITIONS)]
    reader.assign(places)
    found: Counter[tuple[str, int, int]] = Counter()
    ended = 0
    while ended < len(places):
        for message in reader.consume(500, 1.0):
            if message.error() is None:
                answer = json.loads(message.value())
                found[message.topic(), answer["partition"], answer["offset"]] += 1
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended += 1
    reader.close()
    return found


def wait(address: str, topics: Topics, n: int, workers: Workers) -> Counter[tuple[str, int, int]]:
    """Wait for so many answers."""
    while (found := count(address, topics)).total() < n:
        check(workers)
        time.sleep(0.2)
    return found


def main() -> None:
    """Run the demonstration; exit with 1 if anything was lost or doubled."""
    with tempfile.TemporaryDirectory() as folder, broker() as (address, hands_on):
        topics = SHARED if hands_on else APART
        make(address, topics)
        workers = {name: worker(address, name, topic, folder) for name, topic in topics.items()}
        try:
            wait_until_ready(folder, topics, workers)
            n = send(address, topics)
            print(f"{n:,} events in {PARTITIONS} partitions each of {sorted(set(topics.values()))}")
            found = wait(address, topics, n // 4, workers)
            workers["one"].kill()
            workers["one"].wait()
            told = f"worker one killed after {found.total():,} answers"
            if hands_on:
                print(f"{told}; two takes over")
                del workers["one"]
            else:
                print(f"{told}; it starts again")
                workers["one"] = worker(address, "one", topics["one"], folder)
            found = wait(address, topics, n, workers)
            for process in workers.values():
                process.send_signal(signal.SIGTERM)
                process.wait(60)
        finally:
            for process in workers.values():
                process.kill()
                process.wait()
        lost, doubled = n - len(found), found.total() - len(found)
        print(f"{found.total():,} answers: {lost} lost, {doubled} doubled")
        sys.exit(bool(lost or doubled))


if __name__ == "__main__":
    main()
