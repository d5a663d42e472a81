"""Sums that can be merged: pairs of floats that hold twice the digits, so that order hardly counts.

A sum is the unevaluated pair high + low (Dekker 1971; Hida, Li, Bailey 2001). Adding a float costs
six operations more than a plain sum and errs by about 2^-104 of what was added up, so the rounded
result is the same in whatever order, but for cases too rare to meet.
"""

from __future__ import annotations

from streamclust.kernels.compiled import kernel
from streamclust.results import FloatArray, IntArray


@kernel
def two_sum(a: float, b: float) -> tuple[float, float]:
    """Return a + b rounded, and exactly what the rounding took (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@kernel
def add_rows(values: FloatArray, groups: IntArray, high: FloatArray, low: FloatArray) -> None:
    """Add every row to the sums of its group.

    Shapes: values (n, m), groups (n,), high and low (n_groups, m). A negative group is left out.
    """
    for i in range(values.shape[0]):
        group = groups[i]
        if group < 0:
            continue
        for j in range(values.shape[1]):
            total, rest = two_sum(high[group, j], values[i, j])
            high[group, j], low[group, j] = two_sum(total, rest + low[group, j])


@kernel
def add_pairs(high: FloatArray, low: FloatArray, other: FloatArray, other_low: FloatArray) -> None:
    """Add the sums ``other + other_low`` to ``high + low`` in place; all have one shape."""
    for g in range(high.shape[0]):
        for j in range(high.shape[1]):
            total, rest = two_sum(high[g, j], other[g, j])
            small, dust = two_sum(low[g, j], other_low[g, j])
            total, rest = two_sum(total, rest + small)
            high[g, j], low[g, j] = two_sum(total, rest + dust)
