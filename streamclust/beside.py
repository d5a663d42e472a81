"""Work beside the stream: one thread, fixed times at which its results are used, and the waiting.

A result is used exactly so many events after its work began, ready or not: learning waits for it,
so that nothing depends on the clock. While an event is at work on the model itself no work begins,
but for what it waits for: the two would take turns at the interpreter, and the event would wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from threading import Condition
from time import perf_counter
from typing import Generic, ParamSpec, TypeVar

Told = ParamSpec("Told")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Work(Generic[Made]):
    """A work that was begun; `number` counts those before it."""

    number: int
    made: Future[Made]


class Beside:
    """The thread of one model, started when there is work.

    Parameters
    ----------
    lag : int
        Events between the beginning of a work and its use; 0: nothing is done beside the stream.

    Attributes
    ----------
    waited, longest_wait : float
        Seconds that learning has waited for results, in all and at the most at once.
    """

    def __init__(self, lag: int) -> None:
        self._lag = lag
        self._thread: ThreadPoolExecutor | None = None
        self._begun = 0  # works so far
        self._turn = Condition()
        self._last = inf  # the number of the last work that may begin now
        self.waited = self.longest_wait = 0.0

    def __bool__(self) -> bool:
        return self._lag > 0

    def due(self, tick: int, full: bool, part: int = 1) -> int:
        """Return when work that begins at `tick` is used: a part of the lag later.

        While the window is not `full` a young model is in a hurry: a quarter of its events later.
        """
        lag = max(self._lag // part, 1)
        return tick + (lag if full else min(lag, 1 + tick // 4))

    def begin(
        self, work: Callable[Told, Made], *told: Told.args, **named: Told.kwargs
    ) -> Work[Made]:
        """Let work be done by the thread, after what it has to do already."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="streamclust-refit")
        number = self._begun
        self._begun += 1

        def in_turn() -> Made:
            with self._turn:
                self._turn.wait_for(lambda: number <= self._last)
            return work(*told, **named)

        return Work(number, self._thread.submit(in_turn))

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Let no work begin in the meantime, but for that whose `result` is waited for."""
        self._last = -1
        try:
            yield
        finally:
            self._let(inf)

    def result(self, work: Work[Made]) -> Made:
        """Return what came of it; wait where it is not ready."""
        began, last = perf_counter(), self._last
        if not work.made.done():
            self._let(max(last, work.number))
        try:
            return work.made.result()
        finally:
            self._last = last
            wait = perf_counter() - began
            self.waited, self.longest_wait = self.waited + wait, max(self.longest_wait, wait)

    def _let(self, last: float) -> None:
        """Let works up to this number begin."""
        self._last = last
        if self._thread is not None:
            with self._turn:
                self._turn.notify_all()
