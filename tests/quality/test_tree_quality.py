"""What the tree costs and how calm it is: means over seeds against stated bounds."""

import numpy as np
import pytest

from simulations.price_of_explainability import (
    METHODS,
    ROWS,
    approximation,
    price_row,
    slope,
    theorem,
)
from simulations.recourse import run

pytestmark = pytest.mark.quality


@pytest.mark.parametrize("row", range(len(ROWS)))
def test_the_price_is_that_of_imm_or_less(row):
    _, load, k, p = ROWS[row]
    means = dict(zip(METHODS, price_row(load(), k, p, range(8)).mean(axis=0), strict=True))
    assert means["gap"] <= means["IMM"] + 0.005


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_under_the_papers_measure_the_ratio_grows_no_faster_than_the_theorem(p):
    ks = [16, 32, 64, 128, 256, 512, 1024]
    ratios = np.array(
        [[approximation(p, k, seed) / theorem(k, p) for seed in range(6)] for k in ks]
    )
    growth, half_width = slope(np.repeat(ks, 6), ratios.ravel())
    assert growth - half_width <= 0


@pytest.mark.parametrize("measure", ["gap", "paper"])
@pytest.mark.parametrize("kind", ["random", "sorted", "drifting"])
def test_a_hundred_centers_change_little_per_update(kind, measure):
    results = [run(100, kind, measure, 200, seed) for seed in range(3)]
    assert all(r["foreign"] == 0 for r in results)
    assert np.mean([r["k_times_share"] for r in results]) <= 1


def test_a_thousand_centers_change_no_more_and_the_tree_stays_as_good_as_a_fresh_one():
    result = run(1000, "random", "gap", 500)
    assert result["foreign"] == 0
    assert result["k_times_share"] <= 1
    worn, fresh = result["price"]
    assert worn <= 1.2 * fresh
