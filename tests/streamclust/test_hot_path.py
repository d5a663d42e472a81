"""What one event costs, counted instead of timed: calls, interpreter instructions, compiled calls.

The counts do not depend on the machine or its load. They hold for the steady state: known features,
plain numbers, nothing that changes. Instructions differ a little between interpreters, hence the
margin; calls do not.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from streamclust import StreamClusterer
from streamclust.kernels import stream

MARGIN = 1.25
"""Instructions that another interpreter may need, over those of the one they were counted on."""


def steady(
    k: int, d: int, n: int = 50, **options
) -> tuple[StreamClusterer, list[dict[str, float]]]:
    """A model of k clusters after 1,100 events, and the next n, which change nothing."""
    rng = np.random.default_rng(k)
    places = 20.0 * rng.normal(size=(k, d))
    X = places[rng.integers(0, k, 1100 + n)] + rng.normal(size=(1100 + n, d))
    model = StreamClusterer(**options)
    model.learn_many(X[:1100])
    names = [f"f{j}" for j in range(d)]
    return model, [dict(zip(names, row, strict=True)) for row in X[1100:].tolist()]


def _counting(counts: Counter[str], name: str, made: Callable[..., object]):
    def kernel(*arguments):
        counts[name] += 1
        trace, _ = sys.gettrace(), sys.settrace(None)
        answer = made(*arguments)
        sys.settrace(trace)
        return answer

    return kernel


def counted(work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Calls of Python functions of ours, their instructions, and compiled calls in `work`."""
    counts: Counter[str] = Counter()
    with monkeypatch.context() as patch:
        for name in ("observe_at", "assign_at", "place_at", "assign_rows_at"):
            patch.setattr(stream, name, _counting(counts, name, getattr(stream, name)))

        def trace(frame, event, argument):
            if not frame.f_globals["__name__"].startswith("streamclust."):
                return None
            frame.f_trace_opcodes = True
            counts["calls"] += event == "call"
            counts["instructions"] += event == "opcode"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            work()
        finally:
            sys.settrace(before)
    return counts


@pytest.mark.parametrize("options", [{}, {"assign": "nearest"}], ids=str)
def test_an_event_costs_one_compiled_call_and_a_handful_of_instructions(options, monkeypatch):
    found = []
    for k, d in ((2, 2), (2, 40), (20, 8)):
        model, events = steady(k, d, **options)
        assert len(model.clusters) == k
        number = model._engine.log.last_number

        def learn(model=model, events=events):
            for x in events:
                model.learn_one(x)

        def predict(model=model, events=events):
            for x in events:
                model.predict_one(x)

        learned, predicted = counted(learn, monkeypatch), counted(predict, monkeypatch)
        assert model._engine.log.last_number == number
        assert (learned["observe_at"], predicted["assign_at"]) == (50, 50)
        assert (learned["calls"], predicted["calls"]) == (3 * 50, 3 * 50)
        found.append((learned["instructions"] / 50, predicted["instructions"] / 50))
    # Neither the number of clusters nor that of features costs the interpreter anything.
    assert found[0] == found[1] == found[2]
    learning, predicting = found[0]
    assert learning <= 97 * MARGIN
    assert predicting <= 76 * MARGIN


def test_a_block_costs_one_compiled_call_however_long_it_is(monkeypatch):
    model, events = steady(4, 5, 1050)
    rows = np.array([list(x.values()) for x in events])
    costs = {}
    for block in (rows[:50], rows[50:]):
        model._engine.tracker.counts[[stream.NEXT_REFIT, stream.NEXT_LOOK]] = 10**9
        learned = counted(lambda block=block: model.learn_many(block), monkeypatch)
        predicted = counted(lambda block=block: model.predict_many(block), monkeypatch)
        assert (learned["observe_at"], predicted["assign_rows_at"]) == (1, 1)
        costs[len(block)] = (learned["instructions"], predicted["instructions"])
    assert costs[50] == costs[1000]


def test_columns_in_the_order_of_rows_are_not_reordered():
    model, _ = steady(4, 5)
    assert model._engine.features.order(None, 5) == slice(None)
    assert model._engine.features.order([f"f{j}" for j in range(5)], 5) == slice(None)


def test_memory_does_not_grow_with_the_events():
    model, events = steady(4, 5)
    rows = np.array([list(x.values()) for x in events])
    tiled = np.tile(rows, (1000, 1))

    def rounds(n):
        for _ in range(n):
            model.learn_many(tiled)
            model.predict_many(tiled)
        return model.memory_usage(), sys.getallocatedblocks()

    arrays, blocks = rounds(2)
    later, blocks_later = rounds(4)
    assert model.tick_count == 301_100
    assert later <= arrays * 1.2
    assert blocks_later - blocks < 5000
