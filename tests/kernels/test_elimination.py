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
    "large": random_graph(150, 0.03, 3),
}


def pattern(linked, most=1e9):
    """Place of every point, first positions of the blocks, where their rows begin, the rows."""
    n = len(linked)
    sparse = csr_array(linked)
    place = np.empty(n, np.int64)
    blocks, bounds = np.empty((2, n + 1), np.int64)
    start, neighbours = sparse.indptr.astype(np.int64), sparse.indices.astype(np.int64)
    rows = eliminate(start, neighbours, most, place, blocks, bounds)
    count = int(np.searchsorted(blocks, n))
    return place, blocks[: count + 1], bounds[: count + 1], rows


def stored(blocks, bounds, rows):
    """Where in the factor every entry stands, (n, n), -1 for none; owners; where blocks begin."""
    n = blocks[-1]
    width = np.diff(blocks)
    tall = width + np.diff(bounds)
    owner = np.repeat(np.arange(len(width)), width)
    at = np.concatenate(([0], np.cumsum(width * tall)))
    spot = np.full((n, n), -1)
    for block in range(len(width)):
        within = np.arange(blocks[block], blocks[block + 1])
        below = rows[bounds[block] : bounds[block + 1]].astype(np.int64)
        for c, column in enumerate(within):
            entries = at[block] + c * tall[block] + np.arange(tall[block])
            spot[np.concatenate((within, below)), column] = entries
    return np.where(np.tri(n, dtype=bool), spot, -1), owner, at


@pytest.mark.parametrize("name", GRAPHS)
def test_the_pattern_is_that_of_the_elimination(name):
    linked = GRAPHS[name]
    n = len(linked)
    place, blocks, bounds, rows = pattern(linked)
    assert sorted(place) == list(range(n))
    assert blocks[0] == 0
    assert blocks[-1] == n
    assert (np.diff(blocks) > 0).all()
    for block in range(len(blocks) - 1):
        below = rows[bounds[block] : bounds[block + 1]].astype(np.int64)
        assert (np.diff(below) > 0).all()
        assert (below >= blocks[block + 1]).all()
    spot, _, _ = stored(blocks, bounds, rows)
    assert np.array_equal(np.tril(spot >= 0, -1), filled(linked, place))


def test_points_with_the_same_neighbours_are_one_block():
    assert pattern(GRAPHS["complete"])[1].tolist() == [0, 7]
    assert pattern(GRAPHS["no edges"])[1].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["path", "star"])
def test_trees_do_not_fill(name):
    place, blocks, bounds, rows = pattern(GRAPHS[name])
    entries = stored(blocks, bounds, rows)[0] >= 0
    assert np.tril(entries, -1).sum() == len(place) - 1


def test_it_is_given_up_when_it_costs_too_much():
    assert pattern(GRAPHS["complete"], most=10.0)[3].tolist() == [7]


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
    place, blocks, bounds, rows = pattern(linked)
    spot, owner, at = stored(blocks, bounds, rows)
    low, high = np.sort((place[first], place[second]), axis=0)
    entries = np.empty(len(first), np.int64)
    find_entries(low, high, blocks, bounds, rows, owner, at, entries)
    assert np.array_equal(entries, spot[high, low])
    order = np.argsort(place)
    U = np.empty((n, d))
    factor = blocks, bounds, rows, owner, at, np.diag(spot).copy(), entries
    solve_directly(low, high, pulls[first, second], held[order], X[order], *factor, U)
    assert np.allclose(U[place], solved(pulls + pulls.T, held, X), atol=1e-7)
