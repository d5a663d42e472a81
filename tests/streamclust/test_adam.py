"""The published solver: its authors' figures, digit for digit, and its parts."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from streamclust.refit.adam import cluster_by_descent, descend
from tests.data import reference_set

PUBLISHED = [0.979428, 0.976120, 0.966718, 0.976120, 0.976120, 0.973856]
"""Adjusted Rand indices of the authors' first six runs on Newthyroid, 10 % noise."""


def test_the_published_runs_are_reproduced():
    X, y = reference_set("newthyroid", shuffled=False)  # their graph needs the order of the file
    generator = np.random.default_rng(0)
    low, high = X.min(axis=0), X.max(axis=0)
    found = []
    for _ in PUBLISHED:
        noise = low + (high - low) * generator.uniform(0, 1, (len(X) // 10, X.shape[1]))
        points = np.r_[X, noise]
        points = (points - points.mean(axis=0)) / points.std(axis=0)
        labels = cluster_by_descent(points, generator, n_binned=len(X))
        found.append(round(adjusted_rand_score(y, labels[: len(X)]), 6))
    assert found == PUBLISHED


def standard_blobs(n=200):
    X, y = make_blobs(n, centers=3, cluster_std=0.5, random_state=1)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.parametrize("graph", ["union", "mutual"])
def test_a_symmetric_graph_ignores_the_order_of_rows(graph):
    X, y = standard_blobs()
    order = np.random.default_rng(0).permutation(len(X))

    def labels(points):  # bins are drawn by position: without them only the graph is left
        return cluster_by_descent(
            points, np.random.default_rng(0), n_neighbors=10, n_binned=1, bin_size=1, graph=graph
        )

    first, second = labels(X), labels(X[order])
    assert adjusted_rand_score(first[order], second) > 0.999
    assert adjusted_rand_score(y, first) > 0.9


def test_the_same_generator_gives_the_same_labels():
    X, _ = standard_blobs()
    one, two = (cluster_by_descent(X, np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(one, two)


def test_small_components_are_noise():
    X, _ = standard_blobs()
    X = np.r_[X, [[30.0, 30.0]]]
    labels = cluster_by_descent(X, np.random.default_rng(0), n_neighbors=10, link=0.005)
    assert labels[-1] == -1


@pytest.mark.parametrize("n", [2, 3, 25])
def test_few_points(n):
    X = np.random.default_rng(0).normal(size=(n, 2))
    labels = cluster_by_descent(X, np.random.default_rng(0))
    assert labels.shape == (n,)
    assert set(labels) - {-1} == set(range(labels.max() + 1))


def test_the_descent_equals_a_plain_loop():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    edges = np.array([0, 0, 3, 5]), np.array([1, 2, 4, 11]), np.array([3.0, 1.0, 2.0, 5.0])
    found = descend(
        X,
        edges,
        np.random.default_rng(1),
        truncation=2.0,
        bin_size=4,
        n_binned=10,
        n_steps=7,
        step_length=0.3,
    )
    draws = np.random.default_rng(1)
    U, moment, square = X.copy(), np.zeros_like(X), 0.0
    for step in range(1, 8):
        gradient = np.zeros_like(X)
        for a, b, weight in zip(*edges, strict=True):
            gap = U[a] - U[b]
            if gap @ gap < 2.0:
                gradient[a] += weight * gap
                gradient[b] -= weight * gap
        bins = draws.permutation(10).reshape(2, 5)
        cost = [((U[one] - X[one]) ** 2).sum() for one in bins]
        chosen = bins[next(i for i in range(2) if cost[i] >= np.median(cost))]
        for i in chosen:
            gradient[i] += (U[i] - X[i]) / 5
        moment = 0.9 * moment + 0.1 * gradient
        square = 0.999 * square + 0.001 * (gradient**2).sum()
        U = U - 0.3 * (moment / (1 - 0.9**step)) / np.sqrt(square / (1 - 0.999**step) + 1e-8)
    assert np.allclose(found, U)
