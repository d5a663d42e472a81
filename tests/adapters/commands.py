"""Starting the command as a process of its own, around the real or the small clusterer."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
SMALL = (sys.executable, str(Path(__file__).with_name("fake_clusterer.py")))
REAL = (sys.executable, "-m", "streamclust_adapters")
TIMEOUT = 300  # of a process that hangs; no test waits for it otherwise


def environment() -> dict[str, str]:
    """The environment of a process; the packages are found whether they are installed or not."""
    paths = [str(ROOT), str(ROOT / "adapters"), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run(*arguments, command=SMALL, **options) -> subprocess.CompletedProcess:
    """Run to the end; stdin is empty unless `input` is given."""
    options = {"capture_output": True, "input": b"", "timeout": TIMEOUT} | options
    if "stdin" in options or "stdout" in options:
        for name in {"capture_output", "input"} if "stdout" in options else {"input"}:
            del options[name]
    arguments = [*command, *map(str, arguments)]
    return subprocess.run(arguments, env=environment(), check=False, **options)


@contextmanager
def start(*arguments, command=SMALL, **options) -> Iterator[subprocess.Popen]:
    """A running process with pipes for stdin, stdout and stderr; killed if a test leaves it."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    arguments = [*command, *map(str, arguments)]
    with subprocess.Popen(arguments, env=environment(), **(pipes | options)) as process:
        try:
            yield process
        finally:
            process.kill()


def answers(output: bytes) -> list[dict]:
    """The lines of an output."""
    return [json.loads(line) for line in output.splitlines()]


def blobs(n: int, *, seed: int = 0, k: int = 4) -> list[dict]:
    """Events around `k` places, with an id."""
    rng = random.Random(seed)
    places = [(rng.uniform(-40, 40), rng.uniform(-40, 40)) for _ in range(k)]
    events = []
    for i in range(n):
        x, y = rng.choice(places)
        events.append({"x": x + rng.gauss(0, 1), "y": y + rng.gauss(0, 1), "id": f"e{i}"})
    return events


def lines(events: list[dict]) -> bytes:
    """Events as JSON lines."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)
