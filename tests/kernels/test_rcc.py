import numpy as np
import pytest

from streamclust.kernels.rcc import edge_pulls, edge_squares, laplacian_norm, spread
from tests.kernels.rcc_references import geman_mcclure, laplacian, squares


def edges(n, m, seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, n - 1, m)
    second = first + 1 + rng.integers(0, n - 1 - first)
    return first, second, rng.uniform(0.0, 3.0, m), rng.normal(size=n)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("d", [1, 7])
def test_squares(seed, d):
    first, second, _, _ = edges(20, 50, seed)
    U = np.random.default_rng(seed).normal(size=(20, d))
    out = np.empty(50)
    edge_squares(first, second, U, out)
    assert np.allclose(out, squares(first, second, U))


@pytest.mark.parametrize("d", [1, 2, 7])
@pytest.mark.parametrize("truncation", [1e-3, 1.0, 1e6])
def test_pulls_and_their_penalty(d, truncation):
    first, second, base, _ = edges(20, 50, 0)
    U = np.random.default_rng(1).normal(size=(20, d))
    pulls = np.empty(50)
    penalty = edge_pulls(first, second, base, U, truncation, pulls)
    wanted, total = geman_mcclure(squares(first, second, U), base, truncation)
    assert np.allclose(pulls, wanted, rtol=1e-12)
    assert penalty == pytest.approx(total)


def test_spread_is_weighted():
    rng = np.random.default_rng(2)
    X, U, mass = rng.normal(size=(9, 4)), rng.normal(size=(9, 4)), rng.uniform(size=9)
    assert spread(X, U, mass) == pytest.approx(float(mass @ ((X - U) ** 2).sum(axis=1)))


def test_no_edges():
    none = np.empty(0, np.int64)
    assert edge_pulls(none, none, np.empty(0), np.zeros((3, 2)), 1.0, np.empty(0)) == 0.0
    edge_squares(none, none, np.zeros((3, 2)), np.empty(0))
    assert laplacian_norm(none, none, np.empty(0), np.ones(3), 1e-9, 10) == 0.0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "m"), [(2, 1), (20, 50), (40, 400)])
def test_the_norm_is_the_largest_eigenvalue(seed, n, m):
    first, second, pulls, vector = edges(n, m, seed)
    exact = np.linalg.eigvalsh(laplacian(first, second, pulls, n))[-1]
    found = laplacian_norm(first, second, pulls, vector, 1e-9, 5000)
    assert found == pytest.approx(exact, rel=1e-4)
    assert found <= exact * (1 + 1e-9)


def test_edges_without_pull_have_no_norm():
    first, second, _, vector = edges(20, 50, 0)
    assert laplacian_norm(first, second, np.zeros(50), vector, 1e-9, 10) == 0.0


def test_the_next_call_starts_from_the_vector():
    first, second, pulls, vector = edges(30, 200, 1)
    exact = laplacian_norm(first, second, pulls, vector, 1e-12, 5000)
    assert laplacian_norm(first, second, pulls, vector, 1e-12, 2) == pytest.approx(exact)
