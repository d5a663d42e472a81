"""Sums in exact arithmetic, for `streamclust.kernels.sums`."""

from __future__ import annotations

from fractions import Fraction


def exact_sums(values, groups, n_groups):
    """The sums of rows by group, as fractions."""
    sums = [[Fraction(0)] * values.shape[1] for _ in range(n_groups)]
    for row, group in zip(values.tolist(), groups.tolist(), strict=True):
        if group >= 0:
            sums[group] = [a + Fraction(b) for a, b in zip(sums[group], row, strict=True)]
    return sums
