"""Run two workers on a Kafka topic, kill one, and count what was lost or doubled.

A broker is started on the loopback interface (needs Java and Maven), a real stream is sent, the
image segments of `demo_stream.py`, and two workers share its partitions. One is killed with SIGKILL
and the other takes over. At the end the answers are counted.
"""

from __future__ import annotations

import json
import os
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


@contextmanager
def broker() -> Iterator[str]:
    """A broker of our own: its address."""
    serve = [sys.executable, "-m", "tests.kafka.brokers"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(serve, cwd=ROOT, text=True, **pipes) as process:
        try:
            address = process.stdout.readline().strip()
            if not address:
                sys.exit("no broker: Java and Maven are needed")
            yield address
        finally:
            process.stdin.close()


def send(address: str) -> int:
    """Make the topic and send the stream; how many events that were."""
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic("segments", PARTITIONS, 1)])["segments"].result(30)
    producer = Producer({"bootstrap.servers": address, "linger.ms": 20})
    n = 0
    for _ in range(ROUNDS):
        for features, _ in ImageSegments():
            producer.produce("segments", json.dumps(features), f"segment-{n}", n % PARTITIONS)
            n += 1
    producer.flush(60)
    return n


def worker(address: str, name: str, folder: str) -> subprocess.Popen[bytes]:
    """A worker of the group."""
    command = [sys.executable, "-m", "streamclust_adapters", "kafka", "--brokers", address]
    command += ["--topic", "segments", "--output", "answers", "--create-topics"]
    command += ["--group", "demo", "--worker", name, "--snapshot", folder, "--batch", "100"]
    command += ["-X", "session.timeout.ms=6000", "-X", "transaction.timeout.ms=10000"]
    with open(os.path.join(folder, f"{name}.log"), "wb") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log)


def answers(address: str) -> Counter[tuple[int, int]]:
    """How often each event, by partition and offset, has a committed answer."""
    options = {"bootstrap.servers": address, "group.id": "count", "enable.partition.eof": True}
    reader = Consumer(options | {"isolation.level": "read_committed"})
    reader.assign([TopicPartition("answers", p, 0) for p in range(PARTITIONS)])
    found: Counter[tuple[int, int]] = Counter()
    ended = 0
    while ended < PARTITIONS:
        for message in reader.consume(500, 1.0):
            if message.error() is None:
                answer = json.loads(message.value())
                found[answer["partition"], answer["offset"]] += 1
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended += 1
    reader.close()
    return found


def wait(address: str, enough: int, *workers: subprocess.Popen[bytes]) -> Counter[tuple[int, int]]:
    """Wait for so many answers."""
    topics = AdminClient({"bootstrap.servers": address})
    while True:
        for process in workers:
            if process.poll() is not None:
                sys.exit("a worker ended")
        made = "answers" in topics.list_topics(timeout=30).topics
        if made and sum((found := answers(address)).values()) >= enough:
            return found
        time.sleep(0.2)


def main() -> None:
    """Run the demonstration; exit with 1 if anything was lost or doubled."""
    with tempfile.TemporaryDirectory() as folder, broker() as address:
        n = send(address)
        print(f"{n:,} events in {PARTITIONS} partitions on {address}")
        workers = {name: worker(address, name, folder) for name in ("one", "two")}
        try:
            found = wait(address, n // 4, *workers.values())
            workers["one"].kill()
            print(f"worker one killed after {sum(found.values()):,} answers; two takes over")
            found = wait(address, n, workers["two"])
            workers["two"].send_signal(signal.SIGTERM)
            workers["two"].wait(60)
        finally:
            for process in workers.values():
                process.kill()
                process.wait()
        lost, doubled = n - len(found), sum(found.values()) - len(found)
        print(f"{sum(found.values()):,} answers: {lost} lost, {doubled} doubled")
        sys.exit(bool(lost or doubled))


if __name__ == "__main__":
    main()
