"""Where a live view comes from: a stream that is learned, a worker's lines, or its snapshots.

Each feed shows a `View` on a screen whenever there is something new, until its end or a request to
stop. A view costs the engine time, so the next one waits until it is worth it.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from streamclust.errors import AdapterError
from streamclust_adapters.attached import Attached, Blocks, Lines
from streamclust_adapters.following import Followed
from streamclust_adapters.inputs import Descriptor, opened
from streamclust_adapters.live import Answer, View, Watched
from streamclust_adapters.report import NO_NUMBERS
from streamclust_adapters.runner import Runner, Shutdown
from streamclust_adapters.snapshots import load_newest, newest_first
from streamclust_adapters.stdio import LineSource

if TYPE_CHECKING:
    from streamclust import StreamClusterer
    from streamclust_adapters.answering import Totals
    from streamclust_adapters.decoding import LineDecoder
    from streamclust_adapters.inputs import Input
    from streamclust_adapters.ports import Record

LEAST = 0.5
"""Seconds between two views at least ..."""

COST = 20
"""... and so many times what the last view took: looking takes a twentieth of the time at most."""

WHY = 0.05
"""Seconds between two events whose rule is asked for, which costs ten times a lesson."""

STDIN = 0


class Screen(Protocol):
    """What a view is shown on."""

    def show(self, view: View) -> None:
        """Show a view."""

    def wait(self, text: str) -> None:
        """Show what is waited for."""


class Pace:
    """Says when the next view is due.

    Parameters
    ----------
    clock : callable
        Seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = clock()

    def due(self) -> bool:
        """Whether it is time for a view."""
        return self._clock() >= self._next

    def taking(self, look: Callable[[], object]) -> None:
        """Look, and put off the next view by what it took."""
        begin = self._clock()
        look()
        end = self._clock()
        self._next = end + max(LEAST, COST * (end - begin))


class Heard:
    """A sink that keeps some of the last answers for a view.

    Parameters
    ----------
    watched : Watched
        Where they are kept.
    clock : callable
        Seconds.
    """

    def __init__(self, watched: Watched, clock: Callable[[], float] = time.monotonic) -> None:
        self._watched = watched
        self._clock = clock
        self._next = clock()
        self._asked = 0

    def asks(self, record: Record) -> bool:
        """Whether the rule of this record is wanted."""
        if (now := self._clock()) < self._next:
            return False
        self._next, self._asked = now + WHY, record.number
        return True

    def answer(self, record: Record, label: int, region: str, rule: str | None) -> None:
        """Keep an answer whose rule was wanted."""
        if record.number == self._asked:
            told = Answer(record.number, record.key, label, str(region), rule)
            self._watched.answers.append(told)

    def change(self, number: int, change: object) -> None:
        """Drop a change event; the model's log has it."""

    def dead_letter(self, record: Record, reason: str) -> None:
        """Drop a dead letter; it is counted."""

    def flush(self) -> None:
        """Hand out nothing."""

    def sync(self) -> None:
        """Hand out nothing."""


def learn(
    model: StreamClusterer,
    file: str,
    decoder: LineDecoder,
    screen: Screen,
    shutdown: Shutdown,
    *,
    follow: bool = False,
    why: bool = False,
) -> Totals:
    """Learn the events of a file or of stdin, and show the model meanwhile and at the end.

    Parameters
    ----------
    model : StreamClusterer
    file : str
        ``"-"`` for stdin.
    decoder : LineDecoder
        The layout of the lines.
    screen : Screen
    shutdown : Shutdown
    follow : bool
        Whether the file is waited for as it grows.
    why : bool
        Whether some of the answers are kept with their rule.

    Raises
    ------
    AdapterError
        Where the input cannot be read, or ends without an event.
    """
    watched, pace = Watched(), Pace()
    heard = Heard(watched)
    shown = -1  # records of the last view
    with ExitStack() as stack:
        source = _input(file, follow, screen, shutdown, stack)

        def look(totals: Totals) -> None:
            nonlocal shown
            shown = totals.last
            screen.show(watched.view(model, totals.refused, totals.first_refusal))

        def after_batch(totals: Totals) -> None:
            if totals.last != shown and pace.due():
                pace.taking(lambda: look(totals))

        runner = Runner(
            model,
            LineSource(source, decoder),
            heard,
            shutdown=shutdown,
            explain=heard.asks if why else False,
            after_batch=after_batch,
        )
        look(runner.totals)
        totals = runner.run()
        look(totals)
    if not totals.answered and not shutdown.requested:
        name = "stdin" if file == "-" else file
        first = f"; first refusal: {totals.first_refusal}\n{NO_NUMBERS}" if totals.refused else ""
        raise AdapterError(f"{name} holds no event{first}")
    return totals


def attach(
    changes: str,
    answers: str | None,
    screen: Screen,
    shutdown: Shutdown,
    *,
    once: bool = False,
) -> None:
    """Show what a worker writes, from the start of its files on.

    It ends with a pipe, or when a stop is requested.

    Parameters
    ----------
    changes : str
        The file of change events, or ``"-"`` for stdin.
    answers : str, optional
        The file of answers.
    screen : Screen
    shutdown : Shutdown
    once : bool
        Whether files are read to their present end only.

    Raises
    ------
    AdapterError
        For a line that is not of such a file.
    """
    attached, pace, new = Attached(), Pace(), False
    with ExitStack() as stack:

        def lines(file: str) -> Lines:
            source: Blocks = _input(file, file != "-" and not once, screen, shutdown, stack)
            return Lines(source, "stdin" if file == "-" else file)

        told = lines(changes)
        answered = None if answers is None else lines(answers)
        screen.wait(f"nothing in {told.name} yet")
        while not shutdown.requested and not told.ended:
            while attached.take_changes(told):
                new = True
                if pace.due():
                    break
            while answered is not None and attached.take_answers(answered):
                new = True
                if pace.due():
                    break
            if new and pace.due():
                new = False
                pace.taking(lambda: screen.show(attached.view()))
        while answered is not None and attached.take_answers(answered):
            new = True
        if new:
            screen.show(attached.view())


def watch(
    snapshot: Path,
    load: Callable[[Path], StreamClusterer],
    seconds: float,
    screen: Screen,
    shutdown: Shutdown,
    *,
    once: bool = False,
) -> None:
    """Show the newest snapshot, again whenever there is a newer one.

    Parameters
    ----------
    snapshot : Path
        A file, or the folder of a run.
    load : callable
        What loads one file.
    seconds : float
        Between two looks.
    screen : Screen
    shutdown : Shutdown
    once : bool
        Whether the first look is the last.
    """
    watched = Watched()
    last: object = None
    while not shutdown.requested:
        now = _state(snapshot)
        if now != last:
            last = now
            found = load_newest(snapshot, load) if snapshot.is_dir() else None
            if found is not None:
                screen.show(watched.view(found.model))
            elif snapshot.is_dir():
                screen.wait(f"no snapshot in {snapshot} yet")
            else:
                screen.show(watched.view(load(snapshot)))
        if once:
            return
        select.select([shutdown], [], [], seconds)


def _input(file: str, follow: bool, screen: Screen, shutdown: Shutdown, stack: ExitStack) -> Input:
    """The bytes of a file or of stdin."""
    if file == "-":
        return Descriptor(STDIN, shutdown, pause=LEAST)
    if follow:
        source = Followed(Path(file), shutdown, screen.wait)
        stack.callback(source.close)
        return source
    return opened(file, shutdown)


def _state(snapshot: Path) -> object:
    """What differs once there is something new to read."""
    files = newest_first(snapshot) if snapshot.is_dir() else [snapshot]
    try:
        return [(path, os.stat(path).st_mtime_ns) for path in files[:1]]
    except FileNotFoundError:  # a newer one has just replaced it
        return None
