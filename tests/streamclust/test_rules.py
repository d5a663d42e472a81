"""Thresholds in the user's units equal the comparisons that the tree makes."""

from __future__ import annotations

import math

from hypothesis import example, given
from hypothesis import strategies as st

from streamclust.rules import fewest_digits, last_below

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


@given(NUMBERS, st.lists(NUMBERS, max_size=20))
def test_printed_digits_keep_every_window_value_on_its_side(bound, values):
    told = float(fewest_digits(bound, sorted(values)))
    assert all((v <= bound) == (v <= told) for v in values)


def test_printed_digits_are_few():
    assert fewest_digits(29.736890066394846, [20.0, 40.0]) == "29.7"
    assert fewest_digits(29.736890066394846, [29.736, 29.738]) == "29.737"
    assert fewest_digits(0.5, []) == "0.5"
    assert fewest_digits(1e-7, [0.0, 1.0]) == "1e-07"
