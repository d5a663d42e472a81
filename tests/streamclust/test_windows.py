"""The exponentially biased reservoir."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamclust import windows
from streamclust.windows import RecentPoints, Reservoir


def filled(n: int, capacity: int, decay: float, seed: int, weight: float = 1.0) -> Reservoir:
    window = Reservoir(capacity, np.log(2) / decay if decay else None)
    window.widen(1)
    draws = np.random.default_rng(seed).exponential(size=n)
    for i in range(n):
        window.update(np.array([float(i), float(i), weight]), draws[i])
    return window


@given(st.integers(0, 200), st.integers(1, 50), st.integers(0, 99), st.sampled_from([0.0, 0.01, 1]))
def test_it_keeps_the_points_of_smallest_key(n, capacity, seed, decay):
    window = filled(n, capacity, decay, seed)
    keys = np.log(np.random.default_rng(seed).exponential(size=n)) - decay * np.arange(n)
    kept = sorted(window.points()[:, 0].tolist())
    assert kept == sorted(np.argsort(keys, kind="stable")[:capacity].tolist())


@given(st.integers(1, 120), st.integers(1, 40), st.integers(0, 99))
def test_the_heap_has_its_largest_key_on_top(n, capacity, seed):
    window = filled(n, capacity, 0.01, seed)
    heap, keys = window.heap, window.slots[:, -1]
    size = len(window)
    for at in range(2, size + 1):
        assert keys[heap[at]] <= keys[heap[at // 2]]
    assert sorted(heap[1 : size + 1].tolist()) == list(range(size))


def test_without_decay_every_point_is_as_likely():
    counts = np.zeros(200)
    for seed in range(400):
        counts[filled(200, 20, 0.0, seed).points()[:, 0].astype(int)] += 1
    # 40 expected each, binomial; 5 standard deviations over 200 points
    assert np.all(np.abs(counts - 40) < 5 * 6.0)


def test_with_decay_the_weights_stand_for_the_faded_stream():
    decay, n = np.log(2) / 100, 2000
    truth = np.exp(-decay * (n - 1 - np.arange(n)))
    shares = []
    for seed in range(60):
        window = filled(n, 50, decay, seed)
        weights, index = window.weights(n - 1.0), window.points()[:, 0].astype(int)
        shares.append(weights[index >= n - 100].sum() / weights.sum())
    assert np.mean(shares) == pytest.approx(truth[-100:].sum() / truth.sum(), abs=0.03)


def test_weights_sum_to_the_effective_size():
    equal = filled(30, 50, 0.0, 1)
    assert equal.weights(29.0) == pytest.approx(np.ones(30))
    faded = filled(2000, 50, 0.05, 1)
    assert faded.weights(1999.0).sum() < 50


def test_a_weight_counts_like_repetition():
    inside = []
    for seed in range(300):
        window = Reservoir(10)
        window.widen(1)
        draws = np.random.default_rng(seed).exponential(size=100)
        for i in range(100):
            window.update(np.array([float(i), 0.0, 5.0 if i == 0 else 1.0]), draws[i])
        inside.append(0.0 in window.points()[:, 0])
    # five equal points of 104: at least one of them in ten drawn
    assert np.mean(inside) == pytest.approx(1 - (0.9) ** 5, abs=0.08)


def test_two_reservoirs_merge_into_what_one_would_have_kept():
    one, two, both = (Reservoir(20, 70.0) for _ in range(3))
    for window in (one, two, both):
        window.widen(1)
    draws = np.random.default_rng(0).exponential(size=300)
    for i in range(300):
        row = np.array([float(i), float(i), 1.0])
        (one if i % 3 else two).update(row, draws[i])
        both.update(row, draws[i])
    one.merge(two)
    assert set(one.points()[:, 0]) == set(both.points()[:, 0])


def test_new_features_are_nan_until_filled():
    window = filled(5, 10, 0.0, 0)
    window.widen(2)
    assert np.isnan(window.points()[:, 1]).all()
    medians = window.medians(np.array([0.0, 0.0]), np.array([9.0, 9.0]))
    assert medians.tolist() == [2.0, 9.0]
    window.fill(np.array([0.0, 4.0]), np.zeros(5, dtype=np.int64))
    assert window.points()[:, 1].tolist() == [4.0] * 5
    assert window.slots[:5, 2].tolist() == [0, 1, 2, 3, 4]  # times moved along


def test_who_has_a_coordinate_lends_it_to_others_of_the_group():
    window = filled(6, 10, 0.0, 0)
    window.widen(2)
    window.points()[:, 1] = [1.0, 2.0, np.nan, np.nan, np.nan, 7.0]
    window.fill(np.array([0.0, 4.0]), np.array([0, 0, 0, 0, 1, 2]))
    assert window.points()[:, 1].tolist() == [1.0, 2.0, 1.0, 2.0, 4.0, 7.0]


def test_clear_and_is_empty():
    window = filled(5, 10, 0.0, 0)
    assert not window.is_empty
    window.clear()
    assert window.is_empty
    assert len(window.weights(0.0)) == 0


def test_a_state_restores_everything_and_a_false_one_is_refused():
    window = filled(30, 20, 0.1, 3)
    other = Reservoir(20, window.half_life)
    other.from_state(window.to_state(), 1)
    row = np.array([99.0, 31.0, 1.0])
    window.update(row, 0.01)
    other.update(row, 0.01)
    assert np.array_equal(window.slots, other.slots)
    assert np.array_equal(window.heap, other.heap)
    for change in ({"heap": np.zeros(21, dtype=np.int64)}, {"slots": np.zeros((20, 9))}):
        with pytest.raises(ValueError, match="window"):
            Reservoir(20, 7.0).from_state({**window.to_state(), **change}, 1)
    twice = window.to_state()
    twice["heap"][1] = twice["heap"][2]
    with pytest.raises(ValueError, match="every slot once"):
        other.from_state(twice, 1)


def sliding(n: int, capacity: int) -> RecentPoints:
    ring = RecentPoints(capacity)
    ring.widen(1, 0)
    for tick in range(1, n + 1):
        ring.update(np.array([float(tick)]), tick)
    return ring


@given(st.integers(0, 60), st.integers(1, 20))
def test_a_ring_keeps_the_last_points(n, capacity):
    kept = sliding(n, capacity).points(n)[:, 0]
    assert sorted(kept.tolist()) == list(range(max(0, n - capacity) + 1, n + 1))


@given(st.integers(0, 60), st.integers(1, 20))
def test_a_ring_widens_and_goes_on(n, capacity):
    ring = sliding(n, capacity)
    before = sorted(ring.points(n)[:, 0].tolist())
    ring.widen(2, n)
    assert sorted(ring.points(n)[:, 0].tolist()) == before
    assert np.isnan(ring.points(n)[:, 1]).all()
    for tick in range(n + 1, n + 4):
        ring.update(np.array([float(tick), 0.0]), tick)
    kept = sorted(ring.points(n + 3)[:, 0].tolist())
    assert kept == list(range(max(0, n + 3 - capacity) + 1, n + 4))


def test_a_ring_of_wide_rows_is_shorter(monkeypatch):
    monkeypatch.setattr(windows, "MOST_ENTRIES", 12)
    ring = sliding(30, 10)
    ring.widen(4, 30)
    assert ring.capacity == 3
    assert sorted(ring.points(30)[:, 0].tolist()) == [28, 29, 30]


def test_a_ring_is_restored_and_a_false_state_refused():
    ring = sliding(25, 10)
    other = RecentPoints(10)
    other.from_state(ring.to_state(25), 1, 25)
    assert np.array_equal(ring.rows, other.rows)
    with pytest.raises(ValueError, match="do not fit"):
        other.from_state(ring.to_state(25), 1, 4)
