"""Frozen answers: what they hold and how they read."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from streamclust.results import Box, Condition, Fence

DISTANCES = st.floats(1e-6, 1e6)


@given(DISTANCES, st.floats(-1e-9, 1e-9))
def test_a_printed_fence_tells_the_same_as_the_exact_one(limit, apart):
    for distance in (limit, math.nextafter(limit, math.inf), limit * (1 + apart)):
        fence = Fence(3, {}, limit, distance)
        left, op, right = str(fence).removeprefix("distance to center of 3: ").split()
        assert op == ("<=" if fence.holds else ">")
        assert (float(left) <= float(right)) == fence.holds


def test_a_fence_reads_in_few_digits():
    assert str(Fence(2, {}, 4.25, 1.123456)) == "distance to center of 2: 1.123 <= 4.25"
    assert str(Fence(2, {}, 4.25, 5.0)) == "distance to center of 2: 5 > 4.25"
    assert str(Fence(2, {}, 4.25)) == "distance to center of 2: <= 4.25"


def test_conditions_make_one_box():
    path = [Condition("a", "<=", 3.0), Condition("b", ">", 1.0), Condition("a", "<=", 2.0)]
    box = Box.of([*path, Condition("a", ">", 0.0)])
    assert box.intervals == {"a": (0.0, 2.0), "b": (1.0, math.inf)}
    assert box.n_bounds == 3
    assert str(box) == "0.0 < a <= 2.0 and b > 1.0"
    assert str(Box.of([])) == "always"
