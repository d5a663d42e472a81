"""A bound on calls into a foreign library that may never return."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


class Overdue(Exception):
    """A call did not return in time; it goes on in its thread, and nobody hears of it any more."""


def within(seconds: float, call: Callable[[], Result]) -> Result:
    """Make a call in a thread of its own and wait for it so long.

    The thread is left behind when it is late: nothing can end a call inside a foreign library. What
    the call uses must therefore not be used again. Meanwhile signals are heard, which they are not
    while the main thread is inside such a library.

    Parameters
    ----------
    seconds : float
        How long to wait.
    call : callable
        What to call.

    Returns
    -------
    object
        What the call returned.

    Raises
    ------
    Overdue
        When it did not return in time.
    """
    done: queue.SimpleQueue[tuple[Result | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put((call(), None))
        except BaseException as error:
            done.put((None, error))

    threading.Thread(target=run, name="call", daemon=True).start()
    try:
        result, error = done.get(timeout=seconds)
    except queue.Empty:
        raise Overdue(f"no return within {seconds:g} s") from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]
