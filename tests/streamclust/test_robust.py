"""Robust location and spread."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from streamclust.robust import (
    lp_median,
    lp_medians,
    quantile,
    spread,
    spreads,
    weighted_median,
)


def test_the_weighted_median_is_that_of_repetition():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(1, 12))
        values, counts = rng.integers(0, 5, n).astype(float), rng.integers(1, 5, n)
        repeated = np.sort(np.repeat(values, counts))
        assert weighted_median(values, counts.astype(float)) == repeated[(len(repeated) - 1) // 2]


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0, 6.0])
def test_the_lp_median_minimises_the_sum_of_distances(p):
    rng = np.random.default_rng(1)
    points, weights = rng.normal(size=(40, 3)) * [1, 5, 0.1], rng.uniform(0.5, 2, 40)
    scale = np.array([1.0, 0.2, 10.0])

    def cost(c):
        return float(weights @ (np.abs((points - c) * scale) ** p).sum(axis=1) ** (1 / p))

    found = lp_median(points, weights, scale, p)
    best = minimize(cost, points.mean(axis=0), method="Nelder-Mead", options={"xatol": 1e-8})
    assert cost(found) <= best.fun * (1 + 2e-3)


def test_for_p_one_it_is_the_coordinate_wise_median():
    points = np.random.default_rng(2).normal(size=(21, 4))
    assert lp_median(points, np.ones(21), np.ones(4), 1.0) == pytest.approx(
        np.median(points, axis=0)
    )


def test_a_fifth_of_far_points_hardly_moves_it():
    rng = np.random.default_rng(3)
    points = rng.normal(size=(200, 2))
    points[:40] += 1000
    assert np.abs(lp_median(points, np.ones(200), np.ones(2), 2.0)).max() < 1.0


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("p", [1.0, 2.0, 20.0])
def test_identical_points_are_their_own_median(n, p):
    points = np.full((n, 3), 0.1)
    assert lp_median(points, np.ones(n), np.ones(3), p).tolist() == [0.1] * 3
    assert lp_median(points, np.ones(n), np.zeros(3), p).tolist() == [0.1] * 3


def test_spread_of_a_gaussian_is_its_standard_deviation():
    values = np.random.default_rng(4).normal(5, 2, 20_000)
    assert spread(values, np.ones(20_000)) == pytest.approx((5, 2), rel=0.02)


@pytest.mark.parametrize("seed", range(20))
def test_quantiles_are_those_of_numpy_to_the_bit(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(3, int(rng.integers(1, 200)))) * 10.0 ** rng.integers(-5, 5)
    for share in (0.0, 0.05, 0.95, 1.0, float(rng.random())):
        found = quantile(np.sort(values, axis=1), share)
        assert found.tolist() == np.quantile(values, share, axis=1).tolist()


def test_groups_have_the_medians_and_spreads_that_they_have_alone():
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(90, 3)), rng.uniform(0.5, 2.0, 90)
    members, scale = rng.integers(-1, 4, 90), np.array([1.0, 0.0, 2.0])
    found = lp_medians(points, weights, members, scale, 2.0)
    told = spreads(points[:, 0], weights, members)
    for group in range(4):
        mine = members == group
        assert found[group].tolist() == lp_median(points[mine], weights[mine], scale, 2.0).tolist()
        assert tuple(told[group]) == spread(points[mine, 0], weights[mine])
