"""Frozen per-feature weights."""

from __future__ import annotations

import numpy as np
import pytest

from streamclust.scaling import Scaling, guarded_scale


def frozen(points: np.ndarray, kind: str = "robust") -> Scaling:
    scaling = Scaling(kind)
    scaling.widen(np.zeros(points.shape[1]))
    scaling.freeze(scaling.proposed(points))
    return scaling


def test_a_scale_is_a_quarter_of_the_range():
    points = np.linspace(0, 8, 101)[:, None]
    assert frozen(points).weights == pytest.approx([0.5])


def test_wild_values_do_not_stretch_it():
    points = np.random.default_rng(0).normal(size=(1000, 1))
    wild = points.copy()
    wild[:10] = 1e9
    assert guarded_scale(wild)[0] < 3 * guarded_scale(points)[0]


def test_heavy_tails_do_not_stretch_it():
    scales = [
        guarded_scale(np.random.default_rng(s).standard_cauchy((1000, 1)))[0] for s in range(20)
    ]
    assert max(scales) < 4 * min(scales)


def test_a_constant_feature_does_not_count_and_a_mostly_constant_one_does():
    points = np.zeros((100, 2))
    points[:3, 1] = 1.0
    assert frozen(points).weights.tolist() == [0.0, 4.0]


def test_kinds():
    points = np.random.default_rng(1).normal(size=(500, 3)) * [1, 10, 100]
    assert frozen(points, "none").weights.tolist() == [1, 1, 1]
    assert frozen(points, "standard").weights == pytest.approx(1 / points.std(axis=0))


def test_the_frozen_scale_is_kept_until_a_feature_drifts():
    points = np.random.default_rng(2).uniform(size=(500, 2))
    scaling = frozen(points)
    before = scaling.weights.copy()
    assert not scaling.freeze(scaling.proposed(points * [1.2, 1.0]))
    assert np.array_equal(scaling.weights, before)
    assert scaling.freeze(scaling.proposed(points * [1.0, 1.5]))
    assert scaling.epoch == 2


def test_the_origin_is_a_value_of_the_data():
    points = np.random.default_rng(3).normal(size=(40, 2))
    scaling = Scaling("robust")
    scaling.widen(np.zeros(2))
    scaling.place(points)
    assert all(scaling.origin[j] in points[:, j] for j in range(2))
    assert np.all(np.abs((points <= scaling.origin).mean(axis=0) - 0.5) <= 0.05)


def test_new_features_wait_with_weight_zero():
    scaling = frozen(np.random.default_rng(4).normal(size=(50, 2)))
    scaling.widen(np.array([7.0]))
    assert scaling.origin.tolist() == [0.0, 0.0, 7.0]
    assert scaling.weights[2] == 0.0


def test_powers_of_two_change_no_bit():
    points = np.random.default_rng(5).normal(size=(200, 4))
    one, two = frozen(points), frozen(points * 2.0**20)
    assert np.array_equal(one.weights, two.weights * 2.0**20)


def test_a_state_restores_everything():
    scaling = frozen(np.random.default_rng(6).normal(size=(50, 2)))
    other = Scaling("robust")
    other.from_state(scaling.to_state(), 2)
    assert np.array_equal(other.frame, scaling.frame)
    assert other.epoch == 1
    with pytest.raises(ValueError, match="does not fit"):
        other.from_state(scaling.to_state(), 3)
