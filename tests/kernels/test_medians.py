import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamclust.kernels.medians import alternate
from tests.kernels.medians_references import naive_alternate


def start(n, k, d, seed):
    rng = np.random.default_rng(seed)
    x = 3.0 * rng.normal(size=(k, d))[rng.integers(0, k, n)] + rng.normal(size=(n, d))
    labels = np.arange(n) % k
    centers = np.array([x[labels == c].mean(axis=0) for c in range(k)])
    return x, rng.uniform(0.2, 3.0, n), centers, labels.astype(np.int64)


@given(
    n=st.integers(4, 60),
    k=st.integers(1, 4),
    d=st.integers(1, 5),
    rounds=st.integers(1, 12),
    seed=st.integers(0, 99),
)
def test_the_kernel_takes_the_steps_of_the_reference(n, k, d, rounds, seed):
    x, weights, centers, labels = start(n, k, d, seed)
    expected, places, cost = naive_alternate(x, weights, centers, rounds, 3, labels)
    found = alternate(x, weights, centers, rounds, 3, labels)
    assert found == pytest.approx(cost)
    assert np.array_equal(labels, expected)
    assert centers == pytest.approx(places)


def test_one_cluster_ends_at_the_geometric_median():
    x = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0], [4.0, 3.0], [2.0, 1.0]])
    center = np.array([[9.0, 9.0]])
    alternate(x, np.ones(5), center, 1, 200, np.zeros(5, np.int64))
    around = center[0] + 0.01 * np.random.default_rng(0).normal(size=(50, 2))
    costs = np.linalg.norm(around[:, None] - x, axis=2).sum(axis=1)
    assert np.linalg.norm(center - x, axis=1).sum() <= costs.min() + 1e-6


def test_no_cluster_is_ever_left_empty():
    x = np.zeros((6, 2))
    labels = np.arange(6, dtype=np.int64) % 3
    assert alternate(x, np.ones(6), np.zeros((3, 2)), 10, 3, labels) == 0.0
    assert set(labels.tolist()) == {0, 1, 2}
