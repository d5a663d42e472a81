"""Work beside the stream: when its results are used, and what waiting for them is told."""

from __future__ import annotations

import threading

import pytest

from streamclust.beside import Beside


@pytest.mark.parametrize(
    ("tick", "full", "due"),
    [(40, False, 51), (400, False, 501), (9000, False, 10_000), (1000, True, 2000)],
)
def test_results_are_used_at_a_time_that_depends_on_events_alone(tick, full, due):
    assert Beside(1000).due(tick, full) == due
    assert Beside(4000).due(tick, full, part=4) == due
    assert Beside(2).due(tick, full, part=4) == tick + 1


def test_without_a_lag_nothing_is_done_beside_the_stream():
    assert Beside(1)
    assert not Beside(0)


def test_work_is_done_in_one_thread_in_order():
    beside, seen = Beside(10), []
    works = [beside.begin(lambda n: seen.append((n, threading.get_ident())), n) for n in range(5)]
    for work in works:
        beside.result(work)
    assert [n for n, _ in seen] == [0, 1, 2, 3, 4]
    assert len({thread for _, thread in seen} | {threading.get_ident()}) == 2


def test_waiting_is_counted_also_for_what_fails():
    beside, gate = Beside(10), threading.Event()
    assert beside.waited == beside.longest_wait == 0.0
    work = beside.begin(gate.wait, 60)
    threading.Timer(0.05, gate.set).start()
    assert beside.result(work)
    first = beside.waited
    assert first > 0.0
    with pytest.raises(ZeroDivisionError):
        beside.result(beside.begin(divmod, 1, 0))
    assert beside.waited > first
    assert beside.longest_wait == first


def test_no_work_begins_while_it_is_held_back():
    beside, begun = Beside(10), threading.Event()
    with beside.held_back():
        work = beside.begin(begun.set)
        assert not begun.wait(0.05)
    beside.result(work)
    assert begun.is_set()


def test_what_is_waited_for_is_not_held_back():
    beside, begun = Beside(10), threading.Event()
    with beside.held_back():
        assert beside.result(beside.begin(int, "7")) == 7
        later = beside.begin(begun.set)
        assert not begun.wait(0.05)
    beside.result(later)


def test_nothing_after_what_is_waited_for_begins_with_it():
    """It would take turns with the event that waited, from the moment the wait is over."""
    beside, begun = Beside(10), threading.Event()
    with beside.held_back():
        first, work = beside.begin(int, "6"), beside.begin(int, "7")
        later = beside.begin(begun.set)
        assert beside.result(work) == 7
        assert beside.result(first) == 6
        assert not begun.wait(0.05)
    beside.result(later)
    assert begun.is_set()
