"""Thresholds in the user's units equal the comparisons that the tree makes."""

from __future__ import annotations

import math

from hypothesis import example, given
from hypothesis import strategies as st

from streamclust.rules import last_below

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
