"""Asking a live page over a plain connection, as a browser does."""

import json
import re
from contextlib import contextmanager
from http.client import HTTPConnection

from tests.adapters.commands import REAL, TIMEOUT, start


@contextmanager
def serving(*arguments, **options):
    """`streamclust serve` as a process, and the port that it tells."""
    port = () if "--port" in arguments else ("--port", "0")
    with start("serve", *port, *arguments, command=REAL, **options) as process:
        line = process.stderr.readline().decode()
        found = re.search(r"http://\S+?:(\d+)/", line)
        assert found, line + process.stderr.read().decode()
        yield process, int(found[1])


@contextmanager
def asking(port, path="/", method="GET", body=None, **headers):
    """The answer to one request; its connection is closed behind it."""
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, names)
        yield connection.getresponse()
    finally:
        connection.close()


def messages(response):
    """The server-sent events of a response: name, what it says, and the id where it has one."""
    told = {}
    for line in iter(response.readline, b""):
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            told[name] = value
        elif "data" in told:
            yield told["event"], json.loads(told["data"]), told.get("id")
            told = {}


def until(stream, wanted):
    """Take messages until one is wanted; return the newest of each name, and the last id."""
    newest, last = {}, None
    for name, told, id in stream:
        newest[name], last = told, id or last
        if wanted(name, told):
            return newest, last
    raise AssertionError(f"the stream ended; it told {newest}")
