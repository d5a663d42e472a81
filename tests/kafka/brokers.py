"""Apache Kafka for tests: nodes of its own, on the loopback interface, in a folder of its own.

Maven brings the server from Maven Central into a cache folder once. Run as a script, it serves
until its standard input is closed, and prints what it is and its address: Apache Kafka, or where
Java or Maven is missing noida-db, a small program that speaks Kafka's protocol.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

POM = Path(__file__).with_name("pom.xml")
CACHE = Path(__file__).parents[2] / ".kafka"
PATIENCE = 120.0  # for whatever hangs; nothing waits so long otherwise

PROPERTIES = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={logs}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
"""

Told = TypeVar("Told")


def until(
    condition: Callable[[], Told],
    tell: Callable[[], str] = str,
    *,
    patience: float = PATIENCE,
) -> Told:
    """Wait until a condition is truthy, and return it; `tell` says how things stand otherwise."""
    end = time.monotonic() + patience
    pause = threading.Event()
    while not (told := condition()):
        assert time.monotonic() < end, f"waited in vain; {tell()}"
        pause.wait(0.02)
    return told


def missing() -> str | None:
    """What this machine lacks to run a broker, or None."""
    lacking = [program for program in ("java", "mvn") if shutil.which(program) is None]
    return f"needs {' and '.join(lacking)}" if lacking else None


def class_path() -> str:
    """The server and what it needs."""
    return f"{fetched(POM)}/*"


def fetched(pom: Path, *settings: str) -> Path:
    """The folder of what a pom names; fetched when the cache does not have it."""
    told = pom.read_bytes() + " ".join(settings).encode()
    kept = CACHE / hashlib.sha256(told).hexdigest()[:16]
    if not kept.is_dir():
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as fresh:
            copy = ["mvn", "-q", "-B", "-f", str(pom), *settings, "dependency:copy-dependencies"]
            done = subprocess.run(
                [*copy, f"-DoutputDirectory={fresh}/jars", "-DincludeScope=runtime"],
                capture_output=True,
                text=True,
                check=False,
                timeout=600,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            os.rename(f"{fresh}/jars", kept)
    return kept


class Kafka:
    """One node.

    Parameters
    ----------
    folder : Path
        Where its logs are; they outlive a stop.
    ports : tuple of int, optional
        Of the broker and of the controller.
    settings : str
        Properties beside those of every node, or instead of them.
    form : sequence of str
        How its log folder is formatted.
    heap : str
        How much memory Java may take.
    """

    def __init__(
        self,
        folder: Path,
        *,
        ports: tuple[int, int] | None = None,
        settings: str = "",
        form: Sequence[str] = ("--standalone",),
        heap: str = "512m",
    ) -> None:
        self._log = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._java = ["java", f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        self._java += ["-cp", class_path()]
        port, controller = ports or free_ports(2)
        self.address = f"127.0.0.1:{port}"
        self._settings = folder / "server.properties"
        self._settings.write_text(
            PROPERTIES.format(port=port, controller=controller, logs=folder / "logs") + settings
        )
        command = ["kafka.tools.StorageTool", "format", "-t", "streamclust-tests-0001", *form]
        self._run([*command, "-c", str(self._settings)])

    def start(self) -> None:
        """Start and wait until it answers."""
        self.launch()
        until(self.answers, self._log.read_text)

    def launch(self) -> None:
        """Start."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._java, "kafka.Kafka", str(self._settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def stop(self) -> None:
        """Stop as a person would."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE)

    def kill(self) -> None:
        """Stop as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)

    def answers(self) -> bool:
        """Whether it answers; it must live."""
        return answers(self.address, self._process, self._log)

    def _run(self, arguments: list[str]) -> None:
        done = subprocess.run(
            [*self._java, *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE
        )
        assert done.returncode == 0, done.stdout + done.stderr


class Light:
    """noida-db: transactions as Kafka has them, but a dead worker's partitions stay its own.

    Parameters
    ----------
    folder : Path
        Where it keeps what it is sent.
    """

    def __init__(self, folder: Path) -> None:
        found = importlib.util.find_spec("noida_db")
        if found is None or found.origin is None:
            sys.exit(f"no broker: Apache Kafka {missing()}, and noida-db is not installed")
        # Not its command, a wrapper that would leave the program behind when it is stopped.
        program = str(Path(found.origin).with_name("noida-db"))
        os.chmod(program, 0o755)
        (port,) = free_ports(1)
        self.address = f"127.0.0.1:{port}"
        self._log = folder / "server.log"
        self._command = [program, "start", "--only", "kafka", "--kafka-port", str(port)]
        self._command += ["--data-dir", str(folder / "data")]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start and wait until it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        until(lambda: answers(self.address, self._process, self._log), self._log.read_text)

    def stop(self) -> None:
        """Stop as a person would."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE)


def answers(address: str, process: subprocess.Popen[bytes] | None, log: Path) -> bool:
    """Whether a broker answers; its process must live."""
    assert process is not None
    assert process.poll() is None, log.read_text()
    try:
        # Quiet: that nobody listens yet is what is waited for.
        client = AdminClient({"bootstrap.servers": address, "log_level": 0})
        return bool(client.list_topics(timeout=1).brokers)
    except KafkaException:
        return False


def free_ports(n: int) -> list[int]:
    """Ports that nobody has."""
    sockets = [socket.socket() for _ in range(n)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def serve() -> None:
    """Serve until standard input is closed."""
    with tempfile.TemporaryDirectory() as folder:
        kind = "noida-db" if missing() else "apache-kafka"
        broker = Light(Path(folder)) if missing() else Kafka(Path(folder))
        try:
            broker.start()
            print(kind, broker.address, flush=True)
            sys.stdin.read()
        finally:
            broker.stop()


if __name__ == "__main__":
    serve()
