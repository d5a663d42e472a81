"""More than a bare broker: three nodes that replicate, and one with a door that asks who comes."""

from __future__ import annotations

import base64
import subprocess
import uuid
from pathlib import Path

from tests.kafka.brokers import PATIENCE, Kafka, free_ports, until

REPLICATED = """
node.id={node}
controller.quorum.bootstrap.servers={quorum}
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""

LOCKED = """
listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{locked},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{locked}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
ssl.keystore.type=PKCS12
ssl.keystore.location={store}
ssl.keystore.password={store_password}
ssl.key.password={store_password}
"""  # noqa: E501  # a property is one line


class Cluster:
    """Three nodes; each partition is on all of them, and two must have what is acknowledged.

    Parameters
    ----------
    folder : Path
        Where their logs are.
    """

    def __init__(self, folder: Path) -> None:
        ports = free_ports(6)
        pairs = list(zip(ports[::2], ports[1::2], strict=True))
        names = [base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[:22] for _ in pairs]
        voters = [
            f"{i}@127.0.0.1:{controller}:{name.replace('-', '_')}"
            for i, ((_, controller), name) in enumerate(zip(pairs, names, strict=True), 1)
        ]
        quorum = ",".join(f"127.0.0.1:{controller}" for _, controller in pairs)
        self.nodes = []
        for i, pair in enumerate(pairs, 1):
            place = folder / f"node-{i}"
            place.mkdir()
            settings = REPLICATED.format(node=i, quorum=quorum)
            form = ["--initial-controllers", ",".join(voters)]
            self.nodes.append(Kafka(place, ports=pair, settings=settings, form=form, heap="256m"))
        self.address = ",".join(node.address for node in self.nodes)

    def __enter__(self) -> Cluster:
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            until(node.answers)
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            node.kill()


class Guarded:
    """One node with a second door: encrypted, and with a user name and a password.

    Parameters
    ----------
    folder : Path
        Where its logs and its certificate are.
    """

    user, password = "warden", "hush-hush-9"

    def __init__(self, folder: Path) -> None:
        self.certificate = folder / "certificate.pem"
        store, store_password = folder / "store.p12", "store-words"
        key = ["keytool", "-keystore", str(store), "-storepass", store_password, "-alias", "node"]
        self._run([*key, "-genkeypair", "-keyalg", "RSA", "-storetype", "PKCS12"], "-dname",
                  "CN=127.0.0.1", "-ext", "SAN=ip:127.0.0.1")  # fmt: skip
        self._run([*key, "-exportcert", "-rfc"], "-file", str(self.certificate))
        port, controller, locked = free_ports(3)
        settings = LOCKED.format(
            port=port,
            controller=controller,
            locked=locked,
            user=self.user,
            password=self.password,
            store=store,
            store_password=store_password,
        )
        (folder / "broker").mkdir()
        self.node = Kafka(folder / "broker", ports=(port, controller), settings=settings)
        self.locked = f"127.0.0.1:{locked}"

    def __enter__(self) -> Guarded:
        self.node.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.node.kill()

    def _run(self, begin: list[str], *rest: str) -> None:
        done = subprocess.run(
            [*begin, *rest], capture_output=True, text=True, check=False, timeout=PATIENCE
        )
        assert done.returncode == 0, done.stdout + done.stderr
