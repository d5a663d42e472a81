"""Sums in doubled precision against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamclust.kernels.sums import add_pairs, add_rows, two_sum
from tests.kernels.sums_references import exact_sums

numbers = st.floats(-1e12, 1e12, allow_subnormal=True)


@given(numbers, numbers)
@settings(max_examples=200, deadline=None)
def test_what_rounding_took_is_told_exactly(a, b):
    total, rest = two_sum(a, b)
    assert Fraction(total) + Fraction(rest) == Fraction(a) + Fraction(b)


@given(st.lists(st.tuples(numbers, st.integers(-1, 2)), max_size=40), st.integers(0, 40))
@settings(max_examples=200, deadline=None)
def test_sums_and_merged_sums_are_exact_to_twice_the_digits(told, cut):
    values = np.array([[v, -v / 3] for v, _ in told]).reshape(-1, 2)
    groups = np.array([g for _, g in told], dtype=np.int64)
    exact = exact_sums(values, groups, 3)
    magnitude = np.abs(values).sum()
    high, low, other, other_low = (np.zeros((3, 2)) for _ in range(4))
    add_rows(values[:cut], groups[:cut], high, low)
    add_rows(values[cut:], groups[cut:], other, other_low)
    add_pairs(high, low, other, other_low)
    for g in range(3):
        for j in range(2):
            error = Fraction(high[g, j]) + Fraction(low[g, j]) - exact[g][j]
            assert abs(error) <= Fraction(float(magnitude)) * len(told) / 2**100


@pytest.mark.parametrize("n", [0, 1])
def test_nothing_and_one_row(n):
    high, low = np.zeros((1, 3)), np.zeros((1, 3))
    add_rows(np.full((n, 3), 0.1), np.zeros(n, dtype=np.int64), high, low)
    assert np.array_equal(high, np.full((1, 3), 0.1 * n))
    assert not low.any()


def test_a_sum_that_a_plain_one_loses():
    high, low = np.zeros((1, 1)), np.zeros((1, 1))
    add_rows(np.array([[1e16], [1.0], [-1e16]]), np.zeros(3, dtype=np.int64), high, low)
    assert high[0, 0] == 1.0
