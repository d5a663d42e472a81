"""Thresholds in the user's units equal the comparisons that the tree makes; texts come late."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamclust import StreamClusterer
from streamclust.events import RuleChanged
from streamclust.results import either
from streamclust.texts import Text, all_below, fewest_digits, last_below

NUMBERS = st.floats(-1e150, 1e150)


@given(NUMBERS, NUMBERS)
@example(-1e16, 1e16)  # everything near zero rounds to the same difference
@example(0.0, 1e150)
@example(5e-324, 1.0)
def test_it_is_the_largest_value_that_the_comparison_admits(cut, origin):
    bound = last_below(cut, origin)
    assert bound - origin <= cut
    assert math.nextafter(bound, math.inf) - origin > cut


@given(NUMBERS, st.floats(-1e3, 1e3), NUMBERS)
def test_every_value_is_on_the_side_that_is_printed(cut, origin, value):
    assert (value <= last_below(cut, origin)) == (value - origin <= cut)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=5))
@example([(-1e16, 1e16), (0.0, 1e150), (5e-324, 1.0), (1.0, 2.0)])
def test_many_bounds_are_those_of_one_by_one(pairs):
    cuts, origins = np.array(pairs).reshape(-1, 2).T
    expected = [last_below(*pair) for pair in pairs]
    assert all_below(cuts, origins).tolist() == expected


@given(NUMBERS, st.lists(NUMBERS, max_size=20))
def test_printed_digits_keep_every_window_value_on_its_side(bound, values):
    low = max((v for v in values if v <= bound), default=-math.inf)
    high = min((v for v in values if v > bound), default=math.inf)
    told = float(fewest_digits(bound, low, high))
    assert all((v <= bound) == (v <= told) for v in values)


def test_printed_digits_are_few():
    assert fewest_digits(29.736890066394846, 20.0, 40.0) == "29.7"
    assert fewest_digits(29.736890066394846, 29.736, 29.738) == "29.737"
    assert fewest_digits(0.5, -math.inf, math.inf) == "0.5"
    assert fewest_digits(1e-7, 0.0, 1.0) == "1e-07"


@pytest.mark.parametrize("mode", ["inline", "background"])
def test_a_text_that_is_read_late_says_what_was_true_when_the_rule_changed(mode):
    rng = np.random.default_rng(3)
    places = np.array([[0.0, 0.0, 5.0], [9.0, 0.0, 5.0], [0.0, 9.0, 5.0], [9.0, 9.0, 5.0]])
    X = places[rng.integers(0, 4, 3000)] + rng.normal(size=(3000, 3))
    X[:, 2] += np.linspace(0, 9, 3000)  # rules go on changing
    early, late = (StreamClusterer(refit_mode=mode) for _ in range(2))
    heard, shown = [], []
    early.on(RuleChanged, heard.append)
    early.on(RuleChanged, lambda e: shown.append(either(early.rule(e.cluster).lines)))
    for row in X.tolist():
        x = dict(zip("abc", row, strict=True))
        early.learn_one(x), late.learn_one(x)
    told = [e for e in late.events_since(0) if isinstance(e, RuleChanged)]
    assert len(told) > 10
    assert told == heard
    assert [e.new for e in told] == shown
    for cluster in {e.cluster for e in told}:
        own = [e for e in told if e.cluster == cluster]
        assert [e.old for e in own] == ["", *(e.new for e in own)][:-1]


def test_what_is_written_stays():
    assert str(Text("a <= 1")) == "a <= 1"
    always = Text()
    always.give(("a",), np.array([0]), np.zeros(0, np.int64), np.zeros((0, 2, 3)))
    assert [str(always), str(always)] == ["always", "always"]
