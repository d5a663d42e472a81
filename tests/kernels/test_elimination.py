import numpy as np
import pytest
from scipy.sparse import csr_array

from streamclust.kernels.elimination import eliminate, find_entries, solve_directly
from tests.kernels.elimination_references import filled, solved


def random_graph(n, density, seed):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < density, 1)
    return upper | upper.T


GRAPHS = {
    "one point": np.zeros((1, 1), dtype=bool),
    "no edges": np.zeros((5, 5), dtype=bool),
    "one edge": np.eye(2, dtype=bool)[::-1],
    "path": np.eye(9, k=1, dtype=bool) | np.eye(9, k=-1, dtype=bool),
    "star": np.array([[(i == 0) != (j == 0) for j in range(8)] for i in range(8)]),
    "complete": ~np.eye(7, dtype=bool),
    "sparse": random_graph(60, 0.04, 0),
    "medium": random_graph(60, 0.1, 1),
    "dense": random_graph(40, 0.5, 2),
}


def pattern(linked, most=1e9):
    n = len(linked)
    sparse = csr_array(linked)
    place, bounds = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    start, neighbours = sparse.indptr.astype(np.int64), sparse.indices.astype(np.int64)
    return place, bounds, eliminate(start, neighbours, most, place, bounds)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_pattern_is_that_of_the_elimination(name):
    linked = GRAPHS[name]
    n = len(linked)
    place, bounds, rows = pattern(linked)
    assert sorted(place) == list(range(n))
    found = np.zeros((n, n), dtype=bool)
    for k in range(n):
        column = rows[bounds[k] : bounds[k + 1]].astype(np.int64)
        assert (np.diff(column) > 0).all()
        found[column, k] = True
    assert np.array_equal(found, filled(linked, place))


@pytest.mark.parametrize("name", ["path", "star"])
def test_trees_do_not_fill(name):
    _, bounds, _ = pattern(GRAPHS[name])
    assert bounds[-1] == len(GRAPHS[name]) - 1


def test_it_is_given_up_when_it_costs_too_much():
    place, _, rows = pattern(GRAPHS["complete"], most=10.0)
    assert rows.tolist() == [len(place)]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("d", [1, 6])
@pytest.mark.parametrize("strength", [1e-6, 1.0, 1e6])
def test_equals_a_dense_solve(name, d, strength):
    linked = GRAPHS[name]
    n = len(linked)
    rng = np.random.default_rng(3)
    pulls = np.triu(rng.uniform(0.0, strength, (n, n)) * linked, 1)
    first, second = (at.astype(np.int64) for at in np.nonzero(np.triu(linked, 1)))
    held, X = rng.uniform(0.1, 2.0, n), rng.normal(size=(n, d))
    place, bounds, rows = pattern(linked)
    entries = np.empty(len(first), np.int64)
    find_entries(first, second, place, bounds, rows, entries)
    U = np.empty((n, d))
    solve_directly(first, second, pulls[first, second], held, X, place, bounds, rows, entries, U)
    assert np.allclose(U, solved(pulls + pulls.T, held, X), atol=1e-7)
