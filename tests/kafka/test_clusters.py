"""A cluster that loses a broker, and one that asks who comes."""

from __future__ import annotations

import pytest

from tests.kafka.worlds import World, events

pytestmark = pytest.mark.kafka

OPTIONS = ["--id-field", "id", "--batch", "50", "--snapshot-every", "200"]
# A busy machine takes seconds to find the next coordinator; a session that ends meanwhile is the
# matter of another test.
PATIENT = ["-X", "session.timeout.ms=30000"]


def test_a_broker_that_is_lost_for_good_loses_and_doubles_nothing(cluster, tmp_path):
    with World(cluster.address, tmp_path, copies=3) as world:
        world.produce(events(3000, seed=41, bad=0.01))
        worker = world.start("w", *OPTIONS, *PATIENT)
        world.until_committed(500, worker)
        cluster.nodes[0].kill()
        world.until_done(worker)
        world.produce(events(1000, seed=42))
        world.until_done(worker)
        assert worker.stop() == 0, worker.told()
        world.check_exactly_once()


def settings_file(folder, guarded, password):
    path = folder / f"{len(password)}.toml"
    path.write_text(
        "[librdkafka]\n"
        f'bootstrap.servers = "{guarded.locked}"\n'
        'security.protocol = "SASL_SSL"\nsasl.mechanisms = "PLAIN"\n'
        f'sasl.username = "{guarded.user}"\nsasl.password = "{password}"\n'
        f'ssl.ca.location = "{guarded.certificate}"\n'
    )
    return path


def test_a_worker_gives_its_name_and_password_and_tells_them_nobody(guarded, tmp_path):
    with World(guarded.node.address, tmp_path) as world:
        world.produce(events(500, seed=43))

        def start(password):
            path = settings_file(tmp_path, guarded, password)
            arguments = world.arguments("w", *OPTIONS, "--config", path)
            place = arguments.index("--brokers")
            del arguments[place : place + 2]
            return world.run("w", arguments)

        refused = start("not-the-word")
        assert refused.end() == 1
        assert "cannot reach a broker" in refused.told()
        assert "Authentication failed" in refused.told()
        worker = start(guarded.password)
        world.until_done(worker)
        assert worker.stop() == 0, worker.told()
        world.check_exactly_once()
        told = worker.log.read_text()
        for secret in (guarded.user, guarded.password, "not-the-word"):
            assert secret not in told
