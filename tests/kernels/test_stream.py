"""The per-event kernels against plain NumPy twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamclust.desk import Desk, address_of
from streamclust.kernels import metric, stream
from tests.kernels import stream_references as plain
from tests.kernels.metric_references import P, distance, vectors

NONE = np.zeros(0)


@pytest.mark.parametrize("seed", range(20))
def test_the_nearest_center_does_not_depend_on_where_the_search_begins(seed):
    rng = np.random.default_rng(seed)
    d, k, p = int(rng.integers(1, 5)), int(rng.integers(1, 9)), float(rng.choice([1.0, 2.0, 3.0]))
    centers = rng.integers(-2, 3, (k, d)) / 2.0  # with ties
    stats = np.zeros((k, stream.N_STATS))
    stats[:, stream.FENCE] = rng.integers(0, 4, k) / 2.0
    row, weights = rng.integers(-3, 4, d) / 2.0, np.ones(d)
    far = np.array([metric.distance(row, c, weights, p) for c in centers])
    inside = np.where(far <= stats[:, stream.FENCE], far, np.inf)
    slot = int(inside.argmin()) if np.isfinite(inside).any() else -1
    # The centers were elsewhere, at a known distance at the most, and one feature is not seen.
    shift = rng.normal(size=(k, d)) * rng.choice([0.0, 0.1, 1.0], (k, 1))
    squares = np.square(row - centers - shift)[:, 1:].sum(axis=1)
    moved = np.sqrt(np.square(shift).sum(axis=1))
    for first in range(k):
        for bounds in ((NONE, NONE), (squares, moved))[: 2 if p == 2.0 else 1]:
            found = stream.nearest(row, weights, centers, stats, k, p, first, *bounds)
            assert found == (int(far.argmin()), far.min(), slot, inside.min())


@given(vectors(), P, st.floats(0.001, 1.0))
def test_a_step_descends_the_distance_and_is_no_longer_than_told(ab, p, share):
    a, b, weights = ab[0] % 100.0, ab[1] % 100.0, np.minimum(ab[2], 0.01) + 0.001
    dist = metric.distance(a, b, weights, p)
    if dist == 0.0:
        return
    moved = b.copy()
    stream.step(a, moved, weights, dist, share * dist, p)
    assert metric.distance(b, moved, weights, p) <= share * dist * (1 + 1e-9) + 1e-12
    assert metric.distance(a, moved, weights, p) <= dist * (1 + 1e-9)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 8.0])
def test_a_small_step_follows_the_gradient(p):
    rng = np.random.default_rng(0)
    a, b, weights = rng.normal(size=5), rng.normal(size=5), rng.uniform(0.1, 1, 5)
    dist, moved = metric.distance(a, b, weights, p), b.copy()
    stream.step(a, moved, weights, dist, 1e-3 * dist, p)
    expected = 1e-3 * dist * plain.direction((a - b) * weights, p)
    assert (moved - b) * weights == pytest.approx(expected, rel=1e-6)


def tree_of(rng, d, k, leaves):
    """A random tree as the table of `Router`."""
    m = max(leaves - 1, 1)
    nodes = np.zeros((m, 3), dtype=np.int64)
    nodes[:, 0] = rng.integers(0, d, m)
    open_ends, node = [(0, 1), (0, 2)], 1
    while open_ends:
        at = open_ends.pop(int(rng.integers(len(open_ends))))
        if node < m:
            nodes[at] = node
            open_ends += [(node, 1), (node, 2)]
            node += 1
        else:
            nodes[at] = ~int(rng.integers(k))
    return np.column_stack([nodes[:, 0], rng.normal(size=m), nodes[:, 1:]])


def check_places(desk, rows, parts, k, p, ratio=0.8):
    """How rows, measured from the origin, stand among the centers."""
    frame, centers, stats = parts[0], parts[1], parts[3]
    told = np.zeros(2)
    for row in rows:
        again = row.copy()
        again[: frame.shape[1]] += frame[0]
        slot = stream.place_at(desk.address, address_of(again), ratio, address_of(told))
        far = [distance(again[: frame.shape[1]], c, frame[1], p) for c in centers[:k]]
        relative = np.array(far) / stats[:k, stream.SCALE]
        clusters = stats[:k, stream.CLUSTER]
        mine = clusters == clusters[slot] if slot >= 0 else np.ones(k, dtype=bool)
        own = relative[mine].min()
        assert told[0] == pytest.approx(own)
        rivals = relative[~mine] * ratio
        if np.all(np.abs(rivals - own) > 1e-9):
            assert told[1] == np.count_nonzero(rivals <= own)


@pytest.mark.parametrize("seed", range(30))
def test_assignments_equal_the_plain_ones(seed):
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(1, 6)), int(rng.integers(1, 8))
    tree = tree_of(rng, d, k, int(rng.integers(1, 12)))
    frame = np.array([rng.normal(size=d), rng.uniform(0, 2, d)])
    centers, stats = rng.normal(size=(k + 2, d)), np.zeros((k + 2, stream.N_STATS))
    stats[:, stream.FENCE] = rng.uniform(0.1, 2, k + 2)
    stats[:, stream.SCALE] = rng.uniform(0.1, 1, k + 2)
    stats[:, stream.CLUSTER] = rng.integers(0, 3, k + 2)
    counts, gauges = np.zeros(stream.N_COUNTS, dtype=np.int64), np.zeros(stream.N_GAUGES)
    counts[stream.N_CENTERS] = k
    p = gauges[stream.P] = float(rng.choice([1.0, 2.0, 3.0]))
    for by_tree in (0, 1):
        for fenced in (0, 1):
            gauges[[stream.BY_TREE, stream.FENCED]] = by_tree, fenced
            rows = np.hstack([rng.normal(size=(40, d)), np.ones((40, 2))])
            expected = [
                plain.answer(
                    row - frame[0],
                    centers[:k],
                    stats[:k, stream.FENCE],
                    frame[1],
                    p,
                    tree,
                    by_tree,
                    fenced,
                )
                for row in rows[:, :d]
            ]
            found = np.zeros(40, dtype=np.int64)
            parts = list(blank(d))
            parts[:2], parts[3] = (frame, centers), stats
            parts[8], parts[10:] = tree, (counts, gauges)
            desk, singles = Desk(*parts), []
            for row in rows.copy():
                singles.append(stream.assign_at(desk.address, address_of(row)))
            places = address_of(rows), address_of(found)
            assert stream.assign_rows_at(desk.address, *places, 40) == 40
            assert found.tolist() == expected == singles
            check_places(desk, rows, parts, k, p)


def blank(d, k=0, **settings):
    """Arrays for `observe`: no centers, a window of 20."""
    counts, gauges = np.zeros(stream.N_COUNTS, dtype=np.int64), np.zeros(stream.N_GAUGES)
    counts[[stream.NEXT_REFIT, stream.NEXT_LOOK, stream.NEXT_TREE]] = 10**9
    gauges[[stream.STAMP, stream.P, stream.BY_EVENTS, stream.MIN_WEIGHT]] = -np.inf, 2.0, 1, 15
    frame = np.array([np.zeros(d), np.ones(d)])
    return (
        frame,
        np.zeros((16, d)),
        np.zeros((16, d)),
        np.zeros((16, stream.N_STATS)),
        np.zeros((d + 1, 513)),
        np.zeros((20, d + 3)),
        np.zeros(21, dtype=np.int64),
        np.zeros((5, d)),
        np.array([[0.0, 0.0, -1.0, -1.0]]),
        np.zeros((stream.N_SCRATCH, 16)),
        counts,
        gauges,
    )


def kept(arrays_):
    """All arrays that hold something between two calls."""
    return [a for at, a in enumerate(arrays_) if at != stream.AT_SCRATCH // 3]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.0001e150])
@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_bad_value_or_weight_stops_before_anything_changes(bad, at):
    arrays_ = blank(2)
    before = [a.copy() for a in arrays_]
    rows = np.array([[0.0, 0.0, np.nan, 1.0]])
    rows[0, at] = bad
    assert stream.observe(rows, *arrays_) == (0, stream.BAD_VALUE)
    assert all(np.array_equal(a, b) for a, b in zip(arrays_, before, strict=True))


def test_arrays_that_are_reached_by_address_are_the_same_arrays():
    rng = np.random.default_rng(4)
    rows = np.hstack([rng.normal(size=(60, 3)), np.full((60, 1), np.nan), np.ones((60, 1))])
    one, two = blank(3), blank(3)
    for arrays_ in (one, two):
        arrays_[-1][stream.REACH] = 3.0
        arrays_[3][0, [stream.FENCE, stream.SCALE, stream.GAP, stream.RATE]] = 2.5, 1.5, 1.0, 17.0
        arrays_[-2][stream.N_CENTERS] = 1
    desk = Desk(*two)
    for start in range(0, 60, 20):
        block = rows[start : start + 20]
        expected = stream.observe(block.copy(), *one)
        mine = block.copy()
        assert divmod(stream.observe_at(desk.address, address_of(mine), 20), 4) == expected
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_only_plain_arrays_have_a_place():
    parts = list(blank(2))
    with pytest.raises(ValueError, match="11 arrays"):
        Desk(*parts[:-1])
    for wrong in (np.zeros((2, 4))[:, ::2], np.zeros((2, 2), dtype=np.float32)):
        with pytest.raises(ValueError, match="has no place"):
            Desk(wrong, *parts[1:])


def test_an_array_that_is_replaced_is_laid_out_again_at_the_same_address():
    one, two = list(blank(3)), list(blank(3))
    for parts in (one, two):
        parts[-1][stream.REACH] = 3.0
    desk = Desk(*one)
    address, row = desk.address, np.array([[1.0, 2.0, 3.0, np.nan, 1.0]])
    one[5] = two[5]
    desk.lay(*one)
    assert desk.address == address
    stream.observe_at(address, address_of(row), 1)
    assert one[6][0] == 1
    assert two[5][0, :3].tolist() == [1.0, 2.0, 3.0]
    assert two[6][0] == 0


def test_a_late_row_stops_before_anything_changes():
    arrays_ = blank(1)
    assert stream.observe(np.array([[0.0, 5.0, 1.0]]), *arrays_) == (1, stream.DONE)
    before = [a.copy() for a in arrays_]
    assert stream.observe(np.array([[0.0, 4.0, 1.0]]), *arrays_) == (0, stream.BAD_TIME)
    assert all(np.array_equal(a, b) for a, b in zip(arrays_, before, strict=True))


@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("d", [2, 2 * stream.LOOK_FEATURES + 1])
def test_a_block_finds_the_centers_that_single_rows_find(d, p):
    """Centers that move fast, the first from afar to another one's place; and outliers."""
    rng = np.random.default_rng(d)
    k, n = 12, 2 * stream.LOOK_ROWS
    places = rng.uniform(-4, 4, (k, d))
    points = places[rng.integers(0, k, n)] + rng.normal(size=(n, d))
    points[::3] = places[1] + 1.5 * rng.normal(size=points[::3].shape)
    points[::7] = rng.uniform(-6, 6, points[::7].shape)
    places[0] = places[1]
    places[0, 0] += 100.0
    rows = np.hstack([points, np.full((n, 1), np.nan), np.ones((n, 1))])
    one, many = blank(d), blank(d)
    for arrays_ in (one, many):
        arrays_[1][:k] = arrays_[2][:k] = places
        arrays_[3][:k, stream.FENCE] = d ** (1 / p) * np.linspace(0.5, 2.0, k)
        arrays_[3][:k, stream.SCALE] = d ** (1 / p)
        arrays_[3][0, [stream.FENCE, stream.SCALE]] = np.sqrt(100.0 + 2.5 * d), 10.0
        arrays_[8][0, 2:] = ~1  # the rule says the second center
        arrays_[-2][stream.N_CENTERS] = k
        arrays_[-1][[stream.REACH, stream.P]] = 2.0, p
    for row in rows:
        stream.observe(row[None].copy(), *one)
    at, block = 0, rows.copy()
    while at < len(block):
        done, why = stream.observe(block[at:], *many)
        at += done + (why == stream.ALERT)
    assert 0 < many[-2][stream.OUTLIERS] < n
    assert all(np.array_equal(a, b) for a, b in zip(kept(one), kept(many), strict=True))


@pytest.mark.parametrize("spread", [1.0, 5.0, 50.0])
def test_how_far_a_center_moves_is_never_understated(spread):
    rng = np.random.default_rng(int(spread))
    weights, gauges = np.array([1.0, 0.5, 2.0]), blank(3)[-1]
    for _ in range(20):
        row = np.array([*spread * rng.normal(size=3), 1.0, 1.0])
        center, stats, moved = np.zeros((1, 3)), np.ones((1, stream.N_STATS)), np.zeros(1)
        dist = metric.distance(row, center[0], weights, 2.0)
        stream.arrive(row, 0, dist, weights, center, center.copy(), stats, gauges, moved)
        assert 0.0 < np.sqrt(np.square(weights * center[0]).sum()) <= moved[0] * (1.0 + 1e-12)


def test_blocks_and_single_rows_leave_the_same_bits():
    rng = np.random.default_rng(0)
    rows = np.hstack([rng.normal(size=(300, 3)), np.full((300, 1), np.nan), np.ones((300, 1))])
    one, many = blank(3), blank(3)
    for arrays_ in (one, many):
        arrays_[-1][stream.REACH] = 3.0
        arrays_[1][0] = rng.standard_normal(3) * 0
        arrays_[3][0, [stream.FENCE, stream.SCALE, stream.GAP, stream.RATE]] = 2.5, 1.5, 1.0, 17.0
        arrays_[-2][stream.N_CENTERS] = 1
    for row in rows:
        stream.observe(row[None].copy(), *one)
    at, block = 0, rows.copy()
    while at < len(block):
        done, why = stream.observe(block[at:], *many)
        at += done + (why == stream.ALERT)
    assert all(np.array_equal(a, b) for a, b in zip(kept(one), kept(many), strict=True))


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0])
def test_a_center_converges_to_the_median_of_its_events(p):
    rng = np.random.default_rng(1)
    arrays_ = blank(2)
    arrays_[-1][stream.P] = p
    arrays_[1][0] = 1.0
    arrays_[3][0, [stream.FENCE, stream.SCALE, stream.GAP, stream.RATE]] = 9.0, 1.0, 1.0, 17.0
    arrays_[-2][stream.N_CENTERS] = 1
    for row in rng.normal(size=(4000, 2)):
        stream.observe(np.array([[*row, np.nan, 1.0]]), *arrays_)
    assert np.abs(arrays_[1][0]).max() < 0.2
    assert arrays_[3][0, stream.SIZE] == 4000


def test_a_dense_group_of_outliers_is_born_and_uniform_noise_is_not():
    rng = np.random.default_rng(2)
    group = rng.normal(size=(60, 2)) * 0.3 + 5.0
    uniform = rng.uniform(-6, 6, (400, 2))
    for points, expected in ((group, True), (uniform, False)):
        arrays_ = blank(2)
        arrays_[-1][stream.REACH] = 1.0
        alerts = []
        for point in points:
            stream.observe(np.array([[*point, np.nan, 1.0]]), *arrays_)
            alerts.append(bool(arrays_[-2][stream.ALERTS] & stream.BORN))
        assert any(alerts) is expected


def test_a_steady_cluster_is_never_silent_and_a_stopped_one_is_after_forty_gaps():
    stats, gauges = np.zeros((1, stream.N_STATS)), np.zeros(stream.N_GAUGES)
    stats[0, [stream.GAP, stream.RATE]] = 4.0, stream.RATE_LEVEL
    gauges[stream.SILENCE] = 10.0
    for now, expected in ((40, False), (150, False), (170, True)):
        gauges[stream.NOW] = now
        assert stream.silent(0, stats, gauges) is expected


def test_fidelity_and_price_are_of_before_the_row_is_learned():
    arrays_ = list(blank(1))
    arrays_[1][:2, 0] = 0.0, 4.0
    arrays_[3][:2, stream.FENCE] = 3.0
    arrays_[3][:2, stream.GAP] = 1.0
    arrays_[3][:2, stream.CLUSTER] = 0, 1
    arrays_[8] = np.array([[0, 3.0, ~0, ~1]])  # the border of the centers lies at 2
    arrays_[-2][stream.N_CENTERS] = 2
    for x, fidelity in ((0.5, 1.0), (2.5, 0.5), (3.5, 2 / 3), (20.0, 2 / 3)):
        stream.observe(np.array([[x, np.nan, 1.0]]), *arrays_)
        assert arrays_[-1][stream.FIDELITY] == pytest.approx(fidelity)
    assert arrays_[-1][stream.INSIDE_COST] == pytest.approx((0.5 + 1.5 + 0.5) / 3)
    assert arrays_[-1][stream.RULE_COST] == pytest.approx((0.5 + 2.5 + 0.5) / 3)
