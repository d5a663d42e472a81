"""Settings of a worker, its secrets and its log."""

from __future__ import annotations

import io
import json
import logging

import click
import pytest

from streamclust_adapters.logs import ClientLog, Log
from streamclust_adapters.settings import Secrets, read_file, read_pairs


@pytest.fixture
def written(tmp_path):
    def write(text):
        (tmp_path / "worker.toml").write_text(text)
        return read_file(tmp_path / "worker.toml", ["topic", "features", "window"], ["features"])

    return write


def test_a_file_holds_options_and_those_of_the_client(written):
    options, client = written(
        'topic = "in"\nwindow = 200\nfeatures = ["a", "b"]\n'
        '[librdkafka]\n"sasl.password" = "p"\nsocket.keepalive.enable = true\n'
        "socket.max.fails = 5\n"
    )
    assert options == {"topic": "in", "window": 200, "features": "a,b"}
    assert client == {
        "sasl.password": "p",
        "socket.keepalive.enable": "true",
        "socket.max.fails": "5",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('topics = "in"', "there is no option --topics"),
        ("topic", "Expected"),
        ("librdkafka = 1", "is a table"),
    ],
)
def test_a_wrong_file_is_told(written, text, words):
    with pytest.raises(click.UsageError, match=words):
        written(text)


def test_pairs_are_split_at_the_first_sign():
    assert read_pairs(["a.b=c=d", " e =", "f=1"]) == {"a.b": "c=d", "e": "", "f": "1"}
    for bad in ("word", "=x"):
        with pytest.raises(click.UsageError, match="NAME=VALUE"):
            read_pairs([bad])


def test_a_pair_without_a_sign_does_not_show_what_it_may_hold():
    with pytest.raises(click.UsageError) as told:
        read_pairs(["=hush"])
    assert "hush" not in str(told.value)


@pytest.mark.parametrize(
    "name",
    [
        "sasl.password",
        "ssl.key.password",
        "ssl.keystore.password",
        "ssl.key.pem",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "sasl.username",
    ],
)
def test_secrets_are_starred_out_of_every_line(name):
    out = io.StringIO()
    log = Log(out, hide=Secrets({name: "hush", "client.id": "me"}).hide)
    log.error("cannot use hush", me="hush-hush")
    assert "hush" not in out.getvalue()
    assert "cannot use *** me=***-***" in out.getvalue()


def test_lines_are_for_people_or_for_machines():
    for form in ("text", "json"):
        out = io.StringIO()
        log = Log(out, form, clock=lambda: 0.0)
        log.info("engine opened", events=3, offsets={1: 2})
        log.warning("w")
        if form == "text":
            first = "1970-01-01T00:00:00.000+00:00 info engine opened events=3 offsets={1: 2}"
            assert out.getvalue().splitlines()[0] == first
        else:
            told = [json.loads(line) for line in out.getvalue().splitlines()]
            assert told[0]["offsets"] == {"1": 2}
            assert [line["level"] for line in told] == ["info", "warning"]


def test_the_client_logs_into_ours_without_its_notes_on_options():
    out = io.StringIO()
    logger = logging.Logger("client")
    logger.addHandler(ClientLog(Log(out)))
    logger.warning("CONFWARN: %s is a producer property", "linger.ms")
    logger.warning("FAIL: %s", "refused")
    logger.info("nothing")
    (line,) = out.getvalue().splitlines()
    assert line.endswith("warning client said=FAIL: refused")
