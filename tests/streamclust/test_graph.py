import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from streamclust.refit import graph as graph_module
from streamclust.refit.graph import distinct_points, neighbour_count, neighbour_graph


def naive(points, k):
    """Mutual and one-sided pairs by the definition: at most the k-th distance away."""
    gaps = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    np.fill_diagonal(gaps, np.inf)
    near = gaps <= np.sort(gaps, axis=1)[:, k - 1 : k] * (1.0 + 1e-9)
    return gaps, np.triu(near & near.T), np.triu(near | near.T)


def components(graph):
    links = coo_array((np.ones(len(graph.first)), (graph.first, graph.second)), (graph.n, graph.n))
    return connected_components(links, directed=False)[0]


def pairs(first, second):
    return set(zip(first.tolist(), second.tolist(), strict=True))


@pytest.mark.parametrize("d", [1, 2, 5, 20, 200])
@pytest.mark.parametrize("seed", range(2))
def test_mutual_neighbours_and_a_forest(d, seed):
    points = np.random.default_rng(seed).normal(size=(70, d))
    graph = neighbour_graph(points, 5)
    gaps, mutual, union = naive(points, 5)
    fused = pairs(graph.first[graph.fused], graph.second[graph.fused])
    everything = pairs(graph.first, graph.second)
    assert pairs(*np.nonzero(mutual)) <= fused
    assert pairs(*np.nonzero(union)) <= everything
    forest = minimum_spanning_tree(np.where(union, gaps, 0.0))
    assert fused == pairs(*np.nonzero(mutual)) | pairs(*forest.nonzero())
    assert np.allclose(graph.lengths, gaps[graph.first, graph.second])
    assert components(graph) == 1


def test_far_groups_are_bridged_but_not_fused():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(20, 2)) + c for c in (0.0, 100.0, 210.0)])
    graph = neighbour_graph(points, 5)
    group = np.repeat([0, 1, 2], 20)
    across = group[graph.first] != group[graph.second]
    assert across.sum() == 2
    assert not graph.fused[across].any()


def test_all_ties_are_kept():
    grid = np.stack(np.meshgrid(np.arange(7.0), np.arange(7.0)), axis=-1).reshape(-1, 2)
    graph = neighbour_graph(grid, 2)
    side = np.isclose(graph.lengths, 1.0)
    assert side.sum() == 2 * 7 * 6  # every grid side, though each point asked for two neighbours
    assert np.allclose(graph.lengths[graph.fused], 1.0)


def test_a_layer_of_too_many_ties_is_not_kept():
    points = np.eye(200)
    graph = neighbour_graph(points, 5)
    assert len(graph.first) <= 5 * 200 + 200
    assert components(graph) == 1


@pytest.mark.parametrize("points", [np.zeros((1, 3)), np.array([[0.0, 1.0], [0.0, 2.0]])])
def test_one_and_two_points(points):
    graph = neighbour_graph(points, 1)
    assert len(graph.first) == len(points) - 1


def test_blocks_change_nothing(monkeypatch):
    points = np.random.default_rng(1).normal(size=(90, 30))
    whole = neighbour_graph(points, 6)
    monkeypatch.setattr(graph_module, "BLOCK", 400)
    parts = neighbour_graph(points, 6)
    assert np.array_equal(whole.first, parts.first)
    assert np.array_equal(whole.second, parts.second)
    assert np.array_equal(whole.fused, parts.fused)


@settings(deadline=None)
@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 30), st.integers(1, 3)),
        elements=st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0]),
    ),
    st.integers(0, 1000),
)
def test_distinct_points(X, seed):
    weights = np.random.default_rng(seed).integers(1, 5, len(X)).astype(float)
    window = distinct_points(X, weights)
    assert np.array_equal(window.points, np.unique(X + 0.0, axis=0))
    assert np.array_equal(window.points[window.member], X)
    assert window.weights.sum() == weights.sum()
    for i, weight in enumerate(window.weights):
        assert weight == weights[window.member == i].sum()


def test_neighbour_count_grows_slowly():
    assert [neighbour_count(n) for n in (2, 5, 100, 1000, 100_000)] == [1, 4, 7, 10, 15]
