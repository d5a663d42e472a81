"""Evidence of drift from blocks of events."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from streamclust import drift
from streamclust.drift import Evidence


def looks(n: int, seed: int, mean: float = 1.0, share: float = 0.02):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        outliers = int(rng.binomial(drift.BLOCK, share))
        cost = rng.gamma(9.0, mean / 9.0, drift.BLOCK - outliers)
        yield len(cost), outliers, float(cost.sum()), float((cost**2).sum())


@pytest.mark.parametrize("seed", range(5))
def test_blocks_of_one_law_are_no_drift(seed):
    evidence = Evidence()
    assert not any(evidence.look(*look) for look in looks(400, seed))
    assert evidence.alarms == 0


@pytest.mark.parametrize("change", [{"mean": 1.3}, {"share": 0.1}, {"share": 0.1, "mean": 0.9}])
def test_a_rise_of_cost_or_outliers_is_found_in_a_few_blocks(change):
    evidence = Evidence()
    assert not any(evidence.look(*look) for look in looks(30, 1))
    found = [evidence.look(*look) for look in looks(10, 2, **change)]
    assert any(found[:6])
    assert evidence.alarms >= 1


def test_a_fall_is_no_alarm():
    evidence = Evidence()
    for look in looks(30, 1, share=0.1):
        evidence.look(*look)
    assert not any(evidence.look(*look) for look in looks(30, 2, mean=0.7, share=0.01))


def test_after_a_reset_the_new_level_is_the_measure():
    evidence = Evidence()
    for look in looks(30, 1):
        evidence.look(*look)
    evidence.reset()
    assert not any(evidence.look(*look) for look in looks(100, 2, mean=1.5, share=0.2))


def test_blocks_without_insiders_or_spread_are_borne():
    evidence = Evidence()
    for look in ((0, 256, 0.0, 0.0), (256, 0, 0.0, 0.0), (0, 0, 0.0, 0.0), (1, 0, 1.0, 1.0)):
        assert not evidence.look(*look)


def test_a_state_goes_on_the_same():
    one, two = Evidence(), Evidence()
    for look in looks(20, 3):
        one.look(*look)
    two.from_state(one.to_state())
    rest = list(looks(20, 4, mean=1.1, share=0.04))
    assert [one.look(*look) for look in rest] == [two.look(*look) for look in rest]
    assert one.to_state() == two.to_state()


def test_the_detector_is_rivers_own_and_brings_nothing_else_with_it():
    program = (
        "import sys; from streamclust.drift import _page_hinkley; made = _page_hinkley();"
        "assert not {'river.drift', 'river.datasets', 'sklearn'} & set(sys.modules), 'heavy';"
        "from river.drift import PageHinkley; import inspect;"
        "assert inspect.getsource(made) == inspect.getsource(PageHinkley)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
