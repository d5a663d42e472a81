"""Fences and regions."""

from __future__ import annotations

import numpy as np
import pytest

from streamclust.regions import AMBIGUOUS, ambiguity, fences, region
from streamclust.results import Region


def test_a_fence_stands_four_madn_beyond_the_median():
    distances = np.random.default_rng(0).normal(10, 1, 50_000)
    scale, limit = fences([distances], [np.ones(50_000)])
    assert scale[0] == pytest.approx(10, rel=0.01)
    assert limit[0] == pytest.approx(14, rel=0.01)


def test_a_fifth_of_noise_inside_moves_it_by_less_than_one_spread():
    rng = np.random.default_rng(1)
    clean = rng.normal(10, 1, 800)
    noisy = np.concatenate([clean, rng.uniform(10, 60, 200)])
    limits = [fences([d], [np.ones(len(d))])[1][0] for d in (clean, noisy)]
    assert limits[1] - limits[0] < 2.5


def test_a_small_cluster_borrows_the_typical_spread():
    rng = np.random.default_rng(2)
    large, small = rng.normal(10, 1, 1000), np.full(3, 10.0)
    _, limit = fences([large, small], [np.ones(1000), np.ones(3)])
    assert 11 < limit[1] < limit[0]


def test_identical_points_have_a_fence_of_zero():
    scale, limit = fences([np.zeros(5)], [np.ones(5)])
    assert (scale[0], limit[0]) == (0.0, 0.0)


def test_noise_core_and_boundary():
    relative = np.array([1.0, 3.0, 1.1])
    assert region(-1, relative, [7, 8, 9], 0.8) == (Region.NOISE, ())
    assert region(7, relative, [7, 8, 9], 0.8) == (Region.BOUNDARY, (9,))
    assert region(7, relative, [7, 8, 9], 0.95) == (Region.CORE, ())


def test_a_misrouted_point_is_boundary_with_the_nearer_cluster_first():
    assert region(7, np.array([2.0, 0.5, 1.0]), [7, 8, 9], 0.9) == (Region.BOUNDARY, (8, 9))
    # the nearest center of each cluster counts, and no cluster rivals itself
    assert region(7, np.array([2.0, 0.5, 0.6]), [7, 7, 9], 0.8) == (Region.BOUNDARY, (9,))


def test_at_most_a_twentieth_is_called_ambiguous_where_everything_is():
    rng = np.random.default_rng(3)
    first = rng.uniform(0.9, 1.0, 2000)
    ratio = ambiguity(first, np.ones(2000))
    assert np.mean(first > ratio) == pytest.approx(0.05, abs=0.01)
    assert ambiguity(np.full(10, 0.1), np.ones(10)) == AMBIGUOUS
    assert ambiguity(np.zeros(0), np.zeros(0)) == AMBIGUOUS
