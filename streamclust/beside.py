"""Work beside the stream: one thread, fixed times at which its results are used, and the waiting.

A result is used exactly so many events after its work began, ready or not: learning waits for it,
so that nothing depends on the clock. While an event is at work on the model itself no work begins:
the two would take turns at the interpreter, and the event would wait for its turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from time import perf_counter
from typing import ParamSpec, TypeVar

Told = ParamSpec("Told")
Made = TypeVar("Made")


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
        self._gate, self._is_shut = Lock(), False  # every work passes the gate before it begins
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
    ) -> Future[Made]:
        """Let work be done by the thread, after what it has to do already."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="streamclust-refit")

        def pass_and_work() -> Made:
            with self._gate:
                pass
            return work(*told, **named)

        return self._thread.submit(pass_and_work)

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Let no work begin in the meantime, except while its `result` is waited for."""
        with self._gate:
            self._is_shut = True
            try:
                yield
            finally:
                self._is_shut = False

    def result(self, work: Future[Made]) -> Made:
        """Return what came of it; wait where it is not ready."""
        began = perf_counter()
        if self._is_shut:
            self._gate.release()
        try:
            return work.result()
        finally:
            if self._is_shut:
                self._gate.acquire()
            wait = perf_counter() - began
            self.waited, self.longest_wait = self.waited + wait, max(self.longest_wait, wait)
