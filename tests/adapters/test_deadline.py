"""A call that returns, one that fails, and one that does not come back."""

from __future__ import annotations

import threading

import pytest

from streamclust_adapters.deadline import Overdue, within

PATIENCE = 60.0  # for whatever hangs; nothing waits so long otherwise


def test_what_a_call_returns_comes_back():
    assert within(PATIENCE, lambda: 7) == 7


def test_what_a_call_raises_comes_back():
    with pytest.raises(ZeroDivisionError):
        within(PATIENCE, lambda: 1 / 0)


def test_a_call_that_does_not_return_is_left_behind():
    never, ended = threading.Event(), threading.Event()

    def hang():
        never.wait(PATIENCE)
        ended.set()

    with pytest.raises(Overdue, match=r"0\.01 s"):
        within(0.01, hang)
    assert not ended.is_set()
    never.set()
    assert ended.wait(PATIENCE)
