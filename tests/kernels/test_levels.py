import numpy as np
import pytest

from streamclust.kernels.levels import best_cut, finest_cut
from tests.kernels.levels_references import best_cut_length, members_of, random_tree


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("penalty", [0.0, 2.0, -2.0])
def test_best_cut_is_the_best_of_all(seed, penalty):
    rng = np.random.default_rng(seed)
    n = 9
    left, right = random_tree(n, rng)
    codes = np.r_[np.full(n, np.inf), rng.uniform(2.0, 8.0, n - 1)]
    codes[rng.integers(n, 2 * n - 1)] = np.inf
    noise = rng.uniform(0.5, 3.0, n)
    labels = np.empty(n, np.int64)
    length = best_cut(left, right, codes, noise, penalty, labels)
    assert length == pytest.approx(best_cut_length(left, right, codes, noise, penalty))
    members = members_of(left, right, n)
    told = noise[labels < 0].sum()
    for c in range(labels.max() + 1):
        rows = sorted(np.flatnonzero(labels == c))
        node = next(i for i in range(n, 2 * n - 1) if sorted(members[i]) == rows)
        told += codes[node] + penalty
    assert told == pytest.approx(length)


@pytest.mark.parametrize("wanted", [1, 2, 4, 7, 30])
@pytest.mark.parametrize("seed", range(3))
def test_the_finest_cut_is_the_dearest_with_enough_clusters(seed, wanted):
    rng = np.random.default_rng(seed)
    n = 40
    left, right = random_tree(n, rng)
    codes = np.r_[np.full(n, np.inf), rng.uniform(2.0, 8.0, n - 1)]
    noise = rng.uniform(0.5, 3.0, n)

    def at(price):
        labels = np.empty(n, np.int64)
        best_cut(left, right, codes, noise, price, labels)
        return labels

    labels = np.empty(n, np.int64)
    finest_cut(left, right, codes, noise, wanted, 10.0, 12, labels)
    prices = np.linspace(-10.0, 10.0, 2**12 + 1)[:-1]
    enough = [price for price in prices if at(price).max() + 1 >= wanted]
    assert np.array_equal(labels, at(max(enough) if enough else -10.0))
    shown = labels[labels >= 0]
    assert list(dict.fromkeys(shown.tolist())) == list(range(len(set(shown.tolist()))))
