import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from streamclust.refit.code import Code
from streamclust.refit.comet import COMET
from streamclust.refit.graph import neighbour_count, neighbour_graph
from streamclust.refit.hierarchy import link_single, link_ward
from streamclust.refit.partition import medians, partition


def told(points, k, weights=None, noisy=True, seed=0):
    weights = np.ones(len(points)) if weights is None else weights
    graph = neighbour_graph(points, neighbour_count(len(points)))
    ward = link_ward(graph, points, weights)
    merges = [link_single(graph, points), ward, ward]
    return partition(k, points, merges, Code(points, weights, noisy=noisy), seed)


def heaps(sizes, seed, noise=0, apart=9.0):
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    points = apart * np.eye(len(sizes))[truth] + rng.normal(size=(len(truth), len(sizes)))
    stray = rng.uniform(-3.0 * apart, 3.0 * apart, (noise, len(sizes)))
    return np.concatenate((points, stray)), np.r_[truth, np.full(noise, -1)]


@given(
    n=st.integers(5, 80),
    k=st.integers(1, 5),
    d=st.integers(1, 4),
    noisy=st.booleans(),
    seed=st.integers(0, 99),
)
def test_exactly_k_clusters_whatever_the_points(n, k, d, noisy, seed):
    points = np.random.default_rng(seed).standard_t(2.0, size=(n, d))
    choice = told(points, k, noisy=noisy)
    assert set(choice.labels.tolist()) - {-1} == set(range(k))
    assert np.isfinite(choice.length)
    assert noisy or (choice.labels >= 0).all()


@pytest.mark.parametrize("noise", [0, 40, 120])
def test_uniform_noise_costs_no_cluster(noise):
    points, truth = heaps([120, 120, 60, 60], seed=noise, noise=noise)
    found = told(points, 4).labels
    clean = truth >= 0
    assert adjusted_rand_score(truth[clean], found[clean]) > 0.95
    assert (found[~clean] < 0).sum() >= 0.8 * noise


def test_small_classes_beside_a_large_one_are_found():
    points, truth = heaps([400, 30, 20], seed=1)
    assert adjusted_rand_score(truth, told(points, 3).labels) > 0.98


def test_a_weight_is_a_repetition():
    points, _ = heaps([30, 20, 25], seed=2, apart=4.0)
    weights = np.random.default_rng(3).integers(1, 4, len(points)).astype(float)
    light = told(points, 3, weights)
    heavy = COMET(n_clusters=3).fit(np.repeat(points, weights.astype(int), axis=0)).labels_
    once = COMET(n_clusters=3).fit(points, weights).labels_
    assert np.array_equal(np.repeat(once, weights.astype(int)), heavy)
    assert light.n_clusters == 3


def test_the_unit_and_the_offset_do_not_matter():
    points, _ = heaps([50, 40, 30], seed=4, noise=10, apart=5.0)
    expected = told(points, 3).labels
    assert np.array_equal(told(2.0**40 * points, 3).labels, expected)
    assert np.array_equal(told(points + 64.0, 3).labels, expected)


def test_medians_are_at_least_as_good_as_their_starts():
    points, truth = heaps([60, 50, 40], seed=5, apart=3.0)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(points))

    def cost(labels):
        total = 0.0
        for c in range(3):
            own, mass = points[labels == c], weights[labels == c]
            total += min(mass @ np.linalg.norm(own - place, axis=1) for place in own)
        return total

    start = np.random.default_rng(1).integers(0, 3, len(points))
    assert cost(medians(3, points, weights, [start])) < cost(start)
    assert cost(medians(3, points, weights, [truth])) <= 1.01 * cost(truth)


def test_a_window_of_more_features_than_points():
    points, truth = heaps([12, 10, 8], seed=6, apart=12.0)
    wide = points @ np.random.default_rng(0).normal(size=(3, 500))
    assert adjusted_rand_score(truth, medians(3, wide, np.ones(30), [np.arange(30) % 3])) == 1.0


@pytest.mark.parametrize("rows", [40, 60, 90, 150])
def test_told_three_a_few_irises_are_told_apart(rows):
    X, y = load_iris(return_X_y=True)
    chosen = np.random.default_rng(rows).permutation(150)[:rows]
    X = X[chosen] / np.ptp(X[chosen], axis=0)
    assert adjusted_rand_score(y[chosen], COMET(n_clusters=3).fit(X).labels_) > 0.6
