import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree

from streamclust.kernels.linkage import bridge_components, single_linkage, ward_linkage
from tests.kernels.linkage_references import bridges, greedy_ward, heights, ward_rise


def graph_of(linked):
    sparse = csr_array(linked)
    return sparse.indptr.astype(np.int64), sparse.indices.astype(np.int64)


def ward(linked, points, weights):
    n = len(points)
    left, right = np.full(n - 1, -1, np.int64), np.full(n - 1, -1, np.int64)
    start, entry = graph_of(linked)
    made = ward_linkage(start, entry.copy(), points.copy(), weights.copy(), left, right)
    return left[:made], right[:made]


@pytest.mark.parametrize("seed", range(4))
def test_single_linkage_equals_scipy(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(30, 2))
    first, second = np.triu_indices(30, 1)
    length = np.linalg.norm(points[first] - points[second], axis=1)
    order = np.argsort(length)
    left, right = np.empty(29, np.int64), np.empty(29, np.int64)
    used = np.empty(len(first), np.bool_)
    assert single_linkage(first, second, order, left, right, used) == 29
    forest = minimum_spanning_tree(csr_array((length, (first, second)), (30, 30)))
    assert length[used].sum() == pytest.approx(forest.sum())
    assert used.sum() == 29

    def nearest(a, b):
        return np.linalg.norm(points[a][:, None] - points[b][None], axis=2).min()

    _, found = heights(left, right, nearest, 30)
    assert np.allclose(found, linkage(points, "single")[:, 2])


def test_single_linkage_of_two_parts_stops_early():
    left, right, used = np.empty(3, np.int64), np.empty(3, np.int64), np.empty(3, np.bool_)
    ends = np.array([0, 0, 2]), np.array([1, 1, 3])
    assert single_linkage(*ends, np.array([1, 0, 2]), left, right, used) == 2
    assert used.tolist() == [False, True, True]


@pytest.mark.parametrize("seed", range(4))
def test_ward_on_the_full_graph_equals_scipy(seed):
    points = np.random.default_rng(seed).normal(size=(40, 3))
    left, right = ward(~np.eye(40, dtype=bool), points, np.ones(40))
    _, found = heights(left, right, lambda a, b: ward_rise(points, np.ones(40), a, b), 40)
    # scipy's height h is sqrt(2 * rise)
    assert np.allclose(np.sqrt(2.0 * found), linkage(points, "ward")[:, 2])


@pytest.mark.parametrize("seed", range(8))
def test_ward_on_a_sparse_graph_is_greedy(seed):
    rng = np.random.default_rng(seed)
    n = 25
    points, weights = rng.normal(size=(n, 2)), rng.uniform(0.5, 3.0, n)
    linked = rng.random((n, n)) < 0.08
    linked = np.triu(linked, 1)
    chain = rng.permutation(n)
    if seed % 2:
        linked[np.minimum(chain[1:], chain[:-1]), np.maximum(chain[1:], chain[:-1])] = True
    linked = linked | linked.T
    left, right = ward(linked, points, weights)
    members, found = heights(left, right, lambda a, b: ward_rise(points, weights, a, b), n)
    assert np.allclose(found, greedy_ward(linked, points, weights))
    if seed % 2:
        assert sorted(members[-1]) == list(range(n))


def test_ward_of_equal_points():
    left, right = ward(~np.eye(6, dtype=bool), np.zeros((6, 2)), np.ones(6))
    assert sorted(np.concatenate((left, right)).tolist()) == list(range(10))


@pytest.mark.parametrize("m", [0, 20, 200])
@pytest.mark.parametrize("d", [1, 3])
def test_bridges_lead_to_the_nearest_part(d, m):
    rng = np.random.default_rng(m)
    points = rng.normal(size=(60, d))
    first, second = np.sort(rng.integers(0, 60, (2, m)), axis=0)
    found = bridge_components(points, first, second)
    assert list(map(tuple, found.T.tolist())) == bridges(points, first, second)
