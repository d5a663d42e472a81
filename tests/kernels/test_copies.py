"""Residual copies against what they promise, and the labels that they get."""

from __future__ import annotations

import numpy as np
import pytest

from streamclust.kernels import metric
from streamclust.kernels.copies import LENDERS, copy_residuals, direction
from streamclust.kernels.groups import by_group


def copied(seed, tick, borrow, n=60, d=70, m=5, shape=None):
    rng = np.random.default_rng(seed)
    centers, scales = rng.normal(size=(3, d)), np.array([1.0, 2.0, 0.0])
    slots = rng.integers(0, 3, n)
    points = centers[slots] + rng.normal(size=(n, d)) @ (np.eye(d) if shape is None else shape)
    copies = np.empty((m * n, d))
    copy_residuals(points, slots, centers, scales, np.full(3, borrow), seed, tick, copies)
    return points, slots, centers, scales, copies


def test_a_direction_is_uniform_on_the_sphere():
    drawn = np.empty((20_000, 3))
    for key, out in enumerate(drawn):
        direction(np.uint64(key), out)
    assert np.linalg.norm(drawn, axis=1) == pytest.approx(1.0)
    assert np.abs(drawn.mean(axis=0)).max() < 0.02
    assert drawn.T @ drawn / len(drawn) == pytest.approx(np.eye(3) / 3, abs=0.01)
    # A coordinate of such a vector is itself uniform (Archimedes).
    assert np.histogram(drawn[:, 0], 10, (-1, 1))[0] == pytest.approx(2000, rel=0.1)


def test_rows_are_told_by_group():
    slots = np.array([2, 0, 2, 3, 0], dtype=np.int64)
    rows, starts = by_group(slots, 5)
    assert rows.tolist() == [1, 4, 0, 2, 3]
    assert starts.tolist() == [0, 2, 2, 4, 5, 5]


def test_a_copy_mixes_residuals_of_its_own_cluster():
    points, slots, centers, scales, copies = copied(0, 1, 0.0)
    for own in range(3):
        found = copies[np.tile(slots, 5) == own] - centers[own]
        residuals = points[slots == own] - centers[own]
        if scales[own] == 0:  # a cluster of scale 0 has no residuals of its own
            assert (found == 0).all()
            continue
        told, *_ = np.linalg.lstsq(residuals.T, found.T, rcond=None)
        assert residuals.T @ told == pytest.approx(found.T)
        assert (np.abs(told) > 1e-9).sum(axis=0).max() <= LENDERS
        alone = (np.abs(told) > 1e-9).sum(axis=0) == LENDERS
        assert (told[:, alone] ** 2).sum(axis=0) == pytest.approx(1.0)


def test_copies_keep_the_covariance_of_their_cluster():
    shape = np.array([[2.0, 0.0, 0.0], [1.5, 0.5, 0.0], [0.0, 0.3, 1.0]])
    points, slots, centers, _, copies = copied(3, 1, 0.0, n=300, d=3, m=200, shape=shape)
    for own in range(2):
        residuals = points[slots == own] - centers[own]
        found = copies[np.tile(slots, 200) == own] - centers[own]
        expected = residuals.T @ residuals / len(residuals)
        assert found.T @ found / len(found) == pytest.approx(expected, abs=0.15)


def test_a_borrowed_residual_is_told_in_units_of_the_own_scale():
    points, slots, centers, scales, copies = copied(1, 1, 1.0, n=30, m=200)
    residuals = points - centers[slots]
    units = residuals / np.where(scales[slots] > 0, scales[slots], 1.0)[:, None]
    owners = np.tile(slots, 200)
    for own in range(2):
        found = (copies[owners == own] - centers[own]) / scales[own]
        assert found.T @ found / len(found) == pytest.approx(units.T @ units / 30, abs=0.3)


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
    expected = metric.distance_table(points, centers, weights, p).argmin(axis=1)
    apart = metric.distance_table(centers, centers, weights, p)
    order = apart.argsort(axis=1, kind="stable")
    for hints in (rng.integers(0, k, len(points)), np.zeros(len(points), dtype=np.int64)):
        found = metric.nearest_slots(points, hints, centers, apart, order, weights, p)
        assert found.tolist() == expected.tolist()
