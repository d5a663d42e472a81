"""Residual copies against what they promise, and the labels that they get."""

from __future__ import annotations

import numpy as np
import pytest

from streamclust.kernels import stream
from streamclust.kernels.copies import copy_residuals


def copied(seed, tick, borrow, n=40, d=70, m=5):
    rng = np.random.default_rng(seed)
    centers, scales = rng.normal(size=(3, d)), np.array([1.0, 2.0, 0.0])
    slots = rng.integers(0, 3, n)
    points = centers[slots] + rng.normal(size=(n, d))
    copies = np.empty((m * n, d))
    copy_residuals(points, slots, centers, scales, np.full(3, borrow), seed, tick, copies)
    return points, slots, centers, scales, copies


def test_a_copy_is_its_points_residual_with_other_signs():
    points, slots, centers, scales, copies = copied(0, 1, 0.0)
    home, known = np.tile(centers[slots], (5, 1)), np.tile(scales[slots] > 0, 5)
    residuals = np.tile(points - centers[slots], (5, 1))
    assert np.abs(copies - home)[known] == pytest.approx(np.abs(residuals)[known])
    assert (copies == home)[~known].all()  # a cluster of scale 0 has no residuals of its own
    same = np.sign((copies - home) * residuals)[known]
    assert abs(same.mean()) < 0.05
    assert abs(np.corrcoef(same[:, :69].ravel(), same[:, 1:].ravel())[0, 1]) < 0.05


def test_a_borrowed_residual_is_told_in_units_of_the_own_scale():
    points, slots, centers, scales, copies = copied(1, 1, 1.0)
    residuals = points - centers[slots]
    units = residuals / np.where(scales[slots] > 0, scales[slots], 1.0)[:, None]
    for r in np.flatnonzero(np.tile(scales[slots] > 0, 5))[:50]:
        own = slots[r % 40]
        told = np.abs(copies[r] - centers[own]) / scales[own]
        assert np.isclose(told, np.abs(units)).all(axis=1).sum() == 1


def test_draws_depend_on_seed_and_tick():
    one, again, later = (copied(2, tick, 0.5)[-1] for tick in (3, 3, 4))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, later)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("k", [1, 2, 9, 30])
def test_the_nearest_slot_does_not_depend_on_the_hint(k, p):
    rng = np.random.default_rng(k)
    centers, weights = rng.normal(size=(k, 4)), rng.uniform(0, 8, 4)  # some distances are clipped
    points = np.concatenate([rng.normal(size=(200, 4)), centers])
    expected = stream.distance_table(points, centers, weights, p).argmin(axis=1)
    apart = stream.distance_table(centers, centers, weights, p)
    order = apart.argsort(axis=1, kind="stable")
    for hints in (rng.integers(0, k, len(points)), np.zeros(len(points), dtype=np.int64)):
        found = stream.nearest_slots(points, hints, centers, apart, order, weights, p)
        assert found.tolist() == expected.tolist()
