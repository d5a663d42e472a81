"""The live table: what stands on it, and the command in a pipe and on a terminal."""

import os
import pty
import re
import select
import signal
import struct
import termios
from contextlib import contextmanager
from fcntl import ioctl

import pytest
from rich.console import Console

from streamclust import StreamClusterer
from streamclust.events import ClusterBorn, ClusterMoved, ClusterSplit
from streamclust_adapters.live import Watched
from streamclust_adapters.top import change_line, page
from tests.adapters.commands import REAL, TIMEOUT, blobs, lines, run, start

EVENTS = blobs(400, seed=1, k=3)
HOSTILE = "\x1b]0;owned\x07[bold]"


def learned(n, feature="x"):
    model = StreamClusterer()
    for event in EVENTS[:n]:
        model.learn_one({feature: event["x"], "y": event["y"]})
    return model


@pytest.fixture(scope="module")
def model():
    model = learned(400)
    assert len(model.clusters) == 3
    return model


def written(model, height=None):
    console = Console(width=100, height=height)
    with console.capture() as got:
        console.print(page(Watched().view(model), height))
    return got.get()


def test_the_page_has_clusters_with_sizes_noise_and_changes(model):
    text = written(model)
    head, *rows = text.splitlines()
    assert head.startswith("400 events   3 clusters   noise ")
    by_weight = sorted(model.clusters.values(), key=lambda one: -one.weight)
    for row, cluster in zip(rows[1:4], by_weight, strict=True):
        assert row.split()[:2] == [str(cluster.id), f"{cluster.size:,}"]
        assert cluster.rule.lines[0][:40] in row
    assert "ClusterBorn: cluster" in text or "RefitDone: reason" in text
    assert "RuleChanged" not in text


def test_a_low_terminal_gets_the_heaviest_clusters():
    many = StreamClusterer()
    many.fit_initial(centers=[[float(i * i), 0.0] for i in range(20)])
    text = written(many, height=20)
    assert len(text.splitlines()) <= 20
    assert "lighter ones" in text


def test_a_cold_model_is_told():
    text = written(StreamClusterer())
    assert text.splitlines()[0].split() == ["0", "events", "0", "clusters"]
    assert "none yet" in text


def test_nothing_of_the_stream_is_obeyed():
    model = learned(400, feature=HOSTILE)
    model.name(min(model.clusters), HOSTILE)
    text = written(model)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]" in text


def test_a_change_is_one_line():
    born = ClusterBorn(tick=1040, time=0.0, cluster=3, weight=30.123456, found_by="refit")
    assert change_line(born) == "     1,040  ClusterBorn: cluster 3; weight 30.12; found_by refit"
    split = ClusterSplit(tick=1, time=0.0, parent=0, children=(0, 2), overlaps=(0.75, 0.25))
    assert change_line(split).endswith("parent 0; children 0, 2; overlaps 0.75, 0.25")
    moved = ClusterMoved(tick=1, time=0.0, cluster=0, distance=1.0, old={}, new={"x" * 99: 1.0})
    line = change_line(moved)
    assert line.endswith("x...")
    assert "\n" not in line


# the command


def test_in_a_pipe_the_last_page_is_written(tmp_path):
    events = tmp_path / "in.jsonl"
    events.write_bytes(lines(EVENTS) + b"broken\n")
    done = run("top", "--source", events, "--ignore", "id", command=REAL)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert text.count("events   ") == 1
    assert text.startswith("400 events   3 clusters   noise ")
    assert text.endswith("\n")
    assert "1 refused; first refusal: event 401 (line 401" in done.stderr.decode()


def test_a_snapshot_is_shown_in_a_pipe(model, tmp_path):
    model.save(tmp_path / "snapshot-00000000000000000400.safetensors")
    for source in (tmp_path, tmp_path / "snapshot-00000000000000000400.safetensors"):
        done = run("top", source, command=REAL)
        assert done.returncode == 0, done.stderr
        assert b"400 events   3 clusters" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["top"], 2, "give a SNAPSHOT, or --source FILE, or --attach EVENTS"),
        (["top", ".", "--source", "-"], 2, "give a SNAPSHOT, or --source FILE, or --attach EVENTS"),
        (["top", "--source", "-", "--follow"], 2, "--follow needs --source FILE"),
        (["top", "missing"], 2, "does not exist"),
        (["top", "text"], 1, "text"),
    ],
)
def test_mistakes_are_told(tmp_path, arguments, code, words):
    (tmp_path / "text").write_text("hello\n")
    done = run(*arguments, command=REAL, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert words in done.stderr.decode()
    assert b"Traceback" not in done.stderr


@contextmanager
def terminal(monkeypatch):
    """Both ends of a terminal of 30 lines."""
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    try:
        yield ours, theirs
    finally:
        os.close(ours)
        os.close(theirs)


def read_until(ours, pattern):
    """Read a terminal until a pattern has come."""
    got = b""
    while not re.search(pattern, got):
        assert select.select([ours], [], [], TIMEOUT)[0], got
        got += os.read(ours, 4096)


def test_on_a_terminal_the_page_follows_the_stream_until_it_is_stopped(monkeypatch):
    with (
        terminal(monkeypatch) as (ours, theirs),
        start("top", "--source", "-", "--ignore", "id", command=REAL, stdout=theirs) as process,
    ):
        read_until(ours, rb"0 events")
        for n in (200, 400):
            process.stdin.write(lines(EVENTS[n - 200 : n]))
            process.stdin.flush()
            read_until(ours, rb"%d events +3 clusters" % n)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, process.stderr.read()


def test_on_a_terminal_a_folder_is_read_again(tmp_path, monkeypatch):
    with (
        terminal(monkeypatch) as (ours, theirs),
        start("top", tmp_path, "--seconds", "0.1", command=REAL, stdout=theirs) as process,
    ):
        read_until(ours, rb"no snapshot in ")
        for n in (200, 400):
            learned(n).save(tmp_path / f"snapshot-{n:020d}.safetensors")
            read_until(ours, rb"%d events +3 clusters" % n)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, process.stderr.read()
