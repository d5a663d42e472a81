"""The keys of the reservoir: what they depend on, and how they spread."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamclust.kernels import reservoir
from tests.kernels.stream_references import uniform


@given(st.integers(0, 2**53 - 1), st.integers(0, 2**62))
def test_uniform_numbers_depend_on_seed_and_tick_alone(seed, tick):
    assert reservoir.uniform(seed, tick) == uniform(seed, tick)
    assert 0.0 < reservoir.uniform(seed, tick) < 1.0


def test_uniform_numbers_are_uniform_and_uncorrelated():
    from scipy.stats import kstest

    draws = np.array([reservoir.uniform(5, t) for t in range(20_000)])
    assert kstest(draws, "uniform").pvalue > 0.01
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 0.02
