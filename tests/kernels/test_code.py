import numpy as np
import pytest
from scipy.optimize import minimize

from streamclust.kernels.assignment import nearest_law, number_clusters
from streamclust.kernels.code import fit_clusters, node_codes
from streamclust.kernels.groups import ROWS, empty_memo
from tests.kernels.code_references import (
    law,
    log_density,
    skewed_law,
    skewed_log_density,
)
from tests.kernels.levels_references import members_of, random_tree


def fitted(points, weights, labels, floor, student, total=None, skewed=False):
    k, d = labels.max() + 1, points.shape[1]
    out = np.empty(k), np.empty((k, d)), np.empty((k, d, d)), np.empty(k), np.empty((k, d))
    total = weights.sum() if total is None else total
    floor = np.full(d, floor) if np.isscalar(floor) else floor
    fit_clusters(points, weights, labels, total, floor, student, skewed, *empty_memo(d), *out)
    return out


@pytest.mark.parametrize("d", [1, 2, 6])
@pytest.mark.parametrize("seed", range(3))
def test_node_codes(d, seed):
    rng = np.random.default_rng(seed)
    n = 40
    points = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d)) + 3.0
    points[:6] = points[0]
    weights = rng.uniform(0.2, 2.0, n)
    left, right = random_tree(n, rng)
    floor = 0.01 * np.arange(1.0, d + 1.0)
    codes = node_codes(left, right, points, weights, floor, 2.5)
    assert np.isinf(codes[:n]).all()
    for node, rows in enumerate(members_of(left, right, n)[n:], n):
        if weights[rows].sum() < 2.5:
            assert np.isinf(codes[node])
        else:
            code, _, _ = law(points[rows], weights[rows], weights.sum(), floor, False)
            assert codes[node] == pytest.approx(code, rel=1e-9, abs=1e-8)


@pytest.mark.parametrize("student", [False, True])
@pytest.mark.parametrize("d", [1, 3, 7])
def test_fit_clusters(d, student):
    rng = np.random.default_rng(d)
    n = 120
    labels = rng.integers(-1, 3, n)
    points = rng.standard_t(3, (n, d)) * np.exp(rng.normal(size=(3, d)))[labels] + labels[:, None]
    weights = rng.uniform(0.5, 2.0, n)
    floor = 0.02 * np.arange(1.0, d + 1.0)
    codes, means, whiteners, offsets, skews = fitted(points, weights, labels, floor, student, 500.0)
    assert not skews.any()
    for c in range(3):
        own = labels == c
        code, mean, covariance = law(points[own], weights[own], 500.0, floor, student)
        assert codes[c] == pytest.approx(code, rel=1e-9)
        assert np.allclose(means[c], mean)
        assert np.allclose(whiteners[c].T @ whiteners[c], np.linalg.inv(covariance))
        at_center = log_density(mean[None], mean, covariance, student)[0]
        share = np.log(weights[own].sum() / 500.0)
        assert offsets[c] == pytest.approx(at_center + share)


@pytest.mark.parametrize("student", [False, True])
@pytest.mark.parametrize("d", [1, 3, 7])
def test_a_skewed_cluster_is_told_by_a_skewed_law(d, student):
    rng = np.random.default_rng(d)
    points = rng.exponential(size=(200, d)) * np.where(np.arange(d) % 2, -1.0, 2.0) + 5.0
    weights = rng.uniform(0.5, 2.0, 200)
    floor = 0.02 * np.arange(1.0, d + 1.0)
    labels = np.zeros(200, np.int64)
    codes, means, whiteners, offsets, skews = fitted(
        points, weights, labels, floor, student, 500.0, True
    )
    code, mode, low, high = skewed_law(points, weights, 500.0, floor, student)
    assert code < law(points, weights, 500.0, floor, student)[0]
    assert codes[0] == pytest.approx(code, rel=1e-9)
    assert np.allclose(means[0], mode)
    assert np.allclose(whiteners[0], np.diag(1.0 / low))
    assert np.allclose(skews[0], low / high)
    at_mode = skewed_log_density(mode[None], mode, low, high, student)[0]
    assert offsets[0] == pytest.approx(at_mode + np.log(weights.sum() / 500.0))


@pytest.mark.parametrize("student", [False, True])
def test_a_turned_gaussian_is_told_by_an_elliptical_law(student):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 3))
    labels, weights = np.zeros(300, np.int64), np.ones(300)
    plain = fitted(points, weights, labels, 0.01, student)
    offered = fitted(points, weights, labels, 0.01, student, None, True)
    assert all(np.array_equal(given, told) for given, told in zip(offered, plain, strict=True))


@pytest.mark.parametrize("student", [False, True])
def test_a_skewed_law_that_is_shorter_is_hardly_ever_passed_over(student):
    rng = np.random.default_rng(5)
    shorter = missed = 0
    for trial in range(150):
        n, d = int(rng.integers(5, 150)), int(rng.integers(1, 9))
        points = [rng.normal(size=(n, d)), rng.standard_t(3, (n, d)), rng.gamma(2.0, size=(n, d))]
        points = points[trial % 3]
        points[rng.random(n) < 0.03 * (trial % 2)] *= 8.0
        floor, labels = 1e-3 * np.ones(d), np.zeros(n, np.int64)
        found = fitted(points, np.ones(n), labels, floor, student, 1000.0, True)[0][0]
        straight = law(points, np.ones(n), 1000.0, floor, student)[0]
        skewed = skewed_law(points, np.ones(n), 1000.0, floor, student)[0]
        assert min(abs(found - straight), abs(found - skewed)) < 1e-6
        assert found < straight + 1e-6
        shorter += skewed < straight
        missed += found > skewed + 1e-6
    assert 20 < shorter < 130
    assert missed <= 0.03 * shorter


@pytest.mark.parametrize("student", [False, True])
def test_the_scales_and_the_mode_are_about_the_likeliest(student):
    x = np.random.default_rng(0).gamma(2.0, size=(400, 1))
    weights, floor, labels = np.ones(400), np.zeros(1), np.zeros(400, np.int64)
    codes, means, whiteners, _, skews = fitted(x, weights, labels, floor, student, None, True)

    def nats(mode, low, high):
        return -skewed_log_density(x, mode, low, high, student).sum()

    at = np.array([means[0, 0], 1.0 / whiteners[0, 0, 0], 1.0 / whiteners[0, 0, 0] / skews[0, 0]])
    best = minimize(lambda v: nats(*v), at, method="Nelder-Mead").fun
    assert nats(*at) == pytest.approx(codes[0] - 2.5 * np.log(400.0))
    assert nats(*at) < best + 5.0


@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("student", [False, True])
@pytest.mark.parametrize("points", [np.zeros((5, 2)), np.ones((1, 3)), np.array([[0.0], [1.0]])])
def test_degenerate_clusters_have_finite_codes(points, student, skewed):
    labels = np.zeros(len(points), np.int64)
    for out in fitted(points, np.ones(len(points)), labels, 1e-3, student, None, skewed):
        assert np.isfinite(out).all()


@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("student", [False, True])
@pytest.mark.parametrize("noise", [-np.inf, -4.0])
def test_nearest_law(student, noise, skewed):
    rng = np.random.default_rng(0)
    n = 600  # more than one tile
    labels = rng.integers(0, 4, n)
    drawn = np.where(labels[:, None] % 2, rng.exponential(size=(n, 3)), rng.normal(size=(n, 3)))
    points = drawn + 2.0 * labels[:, None]
    weights, floor = np.ones(n), np.full(3, 0.01)
    _, *laws, skews = fitted(points, weights, labels, 0.01, student, None, skewed)
    assert (skews > 0.0).all(axis=1).tolist() == [False, skewed, False, skewed]
    given = np.empty(n, np.int64)
    nearest_law(points, *laws, skews, noise, student, given)
    columns = [np.full(n, noise)]
    for c in range(4):
        own = labels == c
        if skews[c, 0] > 0.0:
            _, *told = skewed_law(points[own], weights[own], n, floor, student)
            density = skewed_log_density(points, *told, student)
        else:
            _, mean, covariance = law(points[own], weights[own], n, floor, student)
            density = log_density(points, mean, covariance, student)
        columns.append(density + np.log(own.mean()))
    assert np.array_equal(given, np.argmax(columns, axis=0) - 1)


def test_a_group_is_found_again_by_its_members():
    rng = np.random.default_rng(7)
    points, weights, floor = rng.normal(size=(90, 3)), rng.uniform(0.5, 2.0, 90), np.full(3, 0.01)
    memo, told = empty_memo(3), []
    for labels in (rng.integers(-1, 4, 90), rng.integers(-1, 4, 90)):
        for student in (False, True, False, True):
            out = np.empty(4), np.empty((4, 3)), np.empty((4, 3, 3)), np.empty(4), np.empty((4, 3))
            rest = weights.sum(), floor, student, True, *memo
            outside = fit_clusters(points, weights, labels, *rest, *out)
            alone = fitted(points, weights, labels, floor, student, None, True)
            assert outside == pytest.approx(weights[labels < 0].sum())
            assert all(np.array_equal(one, other) for one, other in zip(out, alone, strict=True))
        told.append(int(memo.places[-1]))
    assert told == [8, 16]


def test_a_full_memo_changes_nothing():
    rng = np.random.default_rng(8)
    points, floor = rng.normal(size=(60, 1)), np.full(1, 0.01)
    memo = empty_memo(1)
    for _ in range(120):
        labels = rng.integers(0, 30, 60)
        labels[:30] = rng.permutation(30)  # every one used
        out = np.empty(30), np.empty((30, 1)), np.empty((30, 1, 1)), np.empty(30), np.empty((30, 1))
        fit_clusters(points, np.ones(60), labels, 60.0, floor, False, False, *memo, *out)
        alone = fitted(points, np.ones(60), labels, floor, False)
        assert all(np.array_equal(one, other) for one, other in zip(out, alone, strict=True))
    assert memo.places[-1] == ROWS


@pytest.mark.parametrize("least", [0.0, 1.5, 100.0])
def test_number_clusters(least):
    rng = np.random.default_rng(0)
    labels = rng.integers(-1, 12, 60)
    weights = rng.uniform(0.1, 1.0, 60)
    out = np.empty(60, np.int64)
    count = number_clusters(labels, weights, least, out)
    names = {}
    for label, given in zip(labels, out, strict=True):
        if label < 0 or weights[labels == label].sum() < least:
            assert given == -1
        else:
            assert given == names.setdefault(label, len(names))
    assert count == len(names)
