import numpy as np
import pytest
from scipy.sparse import csr_array

from streamclust.kernels.comet import solve_fusion


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
