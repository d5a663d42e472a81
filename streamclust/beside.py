"""Work beside the stream: one thread, fixed times at which its results are used, and the waiting.

A result is used exactly so many events after its work began, ready or not: learning waits for it,
so that nothing depends on the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
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
        self.waited = self.longest_wait = 0.0

    def __bool__(self) -> bool:
        return self._lag > 0

    def due(self, tick: int, full: bool) -> int:
        """Return when work that begins at `tick` is used.

        While the window is not `full` a young model is in a hurry: a quarter of its events later.
        """
        return tick + (self._lag if full else min(self._lag, 1 + tick // 4))

    def begin(
        self, work: Callable[Told, Made], *told: Told.args, **named: Told.kwargs
    ) -> Future[Made]:
        """Let work be done by the thread, after what it has to do already."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="streamclust-refit")
        return self._thread.submit(work, *told, **named)

    def result(self, work: Future[Made]) -> Made:
        """Return what came of it; wait where it is not ready."""
        began = perf_counter()
        try:
            return work.result()
        finally:
            wait = perf_counter() - began
            self.waited, self.longest_wait = self.waited + wait, max(self.longest_wait, wait)
