import numpy as np
import pytest
from scipy.sparse import csr_array

from streamclust.kernels.comet import draw_together, solve_fusion
from streamclust.kernels.neighbours import list_edges


def system(n, d, seed, density=0.2):
    rng = np.random.default_rng(seed)
    pulls = np.triu(rng.uniform(0.0, 3.0, (n, n)) * (rng.random((n, n)) < density), 1)
    pulls = pulls + pulls.T
    held = rng.uniform(0.01, 2.0, n)
    return pulls, held, rng.normal(size=(n, d)), rng.normal(size=(n, d))


def solved(pulls, held, X, start, tolerance, max_steps):
    sparse = csr_array(pulls)
    U = start.copy()
    indptr, indices = sparse.indptr.astype(np.int64), sparse.indices.astype(np.int64)
    steps = solve_fusion(indptr, indices, sparse.data, held, X, U, tolerance, max_steps)
    return U, steps


def dense(pulls, held, X):
    laplacian = np.diag(pulls.sum(axis=1)) - pulls
    return np.linalg.solve(np.diag(held) + laplacian, held[:, None] * X)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 3), (30, 1), (60, 7)])
@pytest.mark.parametrize("seed", range(3))
def test_equals_a_dense_solve(n, d, seed):
    pulls, held, X, start = system(n, d, seed)
    U, _ = solved(pulls, held, X, start, 1e-10, 500)
    assert np.allclose(U, dense(pulls, held, X), atol=1e-7)


def test_without_edges_the_points_stay():
    X = np.arange(6.0).reshape(3, 2)
    U, _ = solved(np.zeros((3, 3)), np.ones(3), X, np.zeros((3, 2)), 1e-10, 10)
    assert np.allclose(U, X)


def test_a_solution_is_left_alone():
    pulls, held, X, _ = system(20, 3, 0)
    answer = dense(pulls, held, X)
    U, steps = solved(pulls, held, X, answer, 1e-6, 50)
    assert steps == 0
    assert np.array_equal(U, answer)


def test_stops_at_the_most_steps():
    pulls, held, X, start = system(60, 2, 1)
    assert solved(pulls, held, X, start, 1e-14, 3)[1] == 3


def test_a_zero_column_stays_zero():
    pulls, held, X, start = system(30, 2, 2)
    X[:, 1] = 0.0
    start[:, 1] = 0.0
    U, _ = solved(pulls, held, X, start, 1e-10, 500)
    assert np.array_equal(U[:, 1], np.zeros(30))
    assert np.allclose(U, dense(pulls, held, X), atol=1e-7)


@pytest.mark.parametrize("count", [0, 5, 6])
@pytest.mark.parametrize("n", [21, 30])
def test_representatives_are_drawn_together_level_by_level(n, count):
    rng = np.random.default_rng(count)
    Z, weights = rng.normal(size=(n, 5)), rng.uniform(0.5, 2.0, n)
    first, second = np.nonzero(np.triu(rng.random((n, n)) < 0.2, 1))
    base = rng.uniform(0.5, 2.0, len(first))
    start, lists = np.empty(n + 1, np.int64), np.empty((2, 2 * len(first)), np.int64)
    list_edges(first, second, start, *lists)
    bins = np.array([rng.permutation(n) % count for _ in range(4)] if count else [], np.int64)
    U, levels = Z.copy(), (9.0, 4.5, 2.25, 2.0)
    told = base, weights, bins.reshape(-1, n), 10.0, 1e-3, levels[0], levels[-1], 1e-12, 500
    draw_together(start, *lists, first, second, *told, Z, U)
    expected, trust = Z, np.ones(n)
    for level, truncation in enumerate(levels):
        square = ((expected[first] - expected[second]) ** 2).sum(axis=1)
        pulls, held = np.zeros((n, n)), trust * weights
        pulls[first, second] = base * (truncation / (truncation + square)) ** 2
        pulls *= 10.0 * held.sum() / (2.0 * pulls.sum())
        expected = dense(pulls + pulls.T, held, Z)
        moved = ((Z - expected) ** 2).sum(axis=1)
        typical = moved
        if count:
            typical = [
                np.average(moved[b], weights=weights[b]) for b in bins[level] == np.c_[:count]
            ]
        scale = 4.0 * np.median(typical)
        trust = (scale / (scale + moved)) ** 2 + 1e-3
    assert np.allclose(U, expected, atol=1e-7)
