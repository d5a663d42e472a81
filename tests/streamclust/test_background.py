import numpy as np
import pytest

from streamclust.refit.background import background
from streamclust.refit.graph import distinct_points


def window(n=300, d=15, extra=30, seed=0):
    rng = np.random.default_rng(seed)
    X = 3.0 * rng.normal(size=(4, d))[rng.integers(0, 4, n)] + rng.normal(size=(n, d))
    noise = rng.uniform(X.min(axis=0), X.max(axis=0), (extra, d))
    return np.concatenate((X, noise)), np.arange(n + extra) >= n


@pytest.mark.parametrize("d", [9, 15, 60, 400])
@pytest.mark.parametrize("seed", range(3))
def test_uniform_noise_is_told_apart(d, seed):
    X, noise = window(d=d, seed=seed)
    found = background(X, np.ones(len(X)))
    assert found[noise].mean() >= 0.9
    assert found[~noise].mean() <= 0.02


@pytest.mark.parametrize("d", [10, 20, 50])
@pytest.mark.parametrize("law", ["normal", "uniform", "laplace"])
def test_one_cluster_has_next_to_none(law, d):
    X = getattr(np.random.default_rng(0), law)(size=(500, d))
    assert background(X, np.ones(500)).mean() <= 0.02


def test_a_thin_class_on_one_side_is_none():
    rng = np.random.default_rng(0)
    X = np.concatenate((0.3 * rng.normal(size=(400, 10)), rng.uniform(2.0, 9.0, (60, 10))))
    assert background(X, np.ones(460)).mean() <= 0.02


def test_lonely_points_are_background_wherever_they_lie():
    X, _ = window(extra=0)
    X[:2] += 1e3
    found = background(X, np.ones(len(X)))
    assert found[:2].all()
    assert not found[2:].any()


def test_what_weighs_as_much_as_a_cluster_is_none():
    X, noise = window()
    weights = np.where(np.arange(len(X)) == len(X) - 1, 3.0, 1.0)
    found = background(X, weights)
    assert not found[-1]
    assert found[noise][:-1].mean() >= 0.9


@pytest.mark.parametrize("n", [1, 2, 20, 21])
def test_few_or_equal_distances_tell_nothing(n):
    assert not background(np.eye(n), np.ones(n)).any()


def test_unit_offset_and_order_change_nothing():
    X, _ = window()
    first = distinct_points(X, np.ones(len(X)))
    moved = distinct_points(1e-3 * X[::-1] + 7.0, np.ones(len(X)))
    found = background(first.points, first.weights)[first.member]
    assert np.array_equal(found[::-1], background(moved.points, moved.weights)[moved.member])
