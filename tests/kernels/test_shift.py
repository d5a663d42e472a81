import numpy as np
import pytest

from streamclust.kernels.shift import (
    GROUP,
    add_visits,
    follow_trajectories,
    merge_ends,
)
from streamclust.refit.leaves import point_tree
from tests.kernels.shift_references import merged, trajectory


def run(points, weights, starts, bandwidth, depth=3, modes=None, shares=None, rows=1):
    order, bounds, boxes, sums = point_tree(points, weights, len(points) / 2**depth)
    modes = np.zeros(len(starts), np.int64) if modes is None else modes
    shares = np.ones(len(starts)) if shares is None else shares
    ends, masses = starts.copy(), np.empty(len(starts))
    trails = np.empty((-(-len(starts) // GROUP), len(points)), np.uint64)
    follow_trajectories(
        np.ascontiguousarray(points[order].T),
        weights[order],
        bounds,
        boxes,
        sums,
        bandwidth,
        1e-3 * bandwidth,
        300,
        ends,
        masses,
        trails,
    )
    found = np.zeros((rows, len(points)))
    add_visits(trails, modes, shares, found)
    visits = np.empty_like(found)
    visits[:, order] = found
    return ends, masses, visits


CLOUDS = {
    "one point": np.ones((1, 3)),
    "line": np.linspace(0.0, 1.0, 40)[:, None],
    "duplicates": np.repeat(np.arange(12.0).reshape(6, 2), 5, axis=0),
    "ties": np.stack(np.meshgrid(np.arange(7.0), np.arange(7.0)), axis=-1).reshape(-1, 2),
    "normal": np.random.default_rng(0).normal(size=(120, 3)),
    "wide": np.random.default_rng(1).normal(size=(50, 20)),
    "huge": np.random.default_rng(2).normal(size=(40, 2)) * 1e100,
    "blobs": np.random.default_rng(4).normal(size=(300, 8)) + np.repeat([[0.0], [9.0]], 150, 0),
    "tiny": np.random.default_rng(2).normal(size=(40, 2)) * 1e-100,
    "far": np.r_[np.random.default_rng(3).normal(size=(40, 2)), [[1e6, 0.0]]],
}


def clouds(name):
    points = CLOUDS[name]
    weights = np.random.default_rng(5).uniform(0.5, 2.0, len(points))
    scale = float(np.ptp(points, axis=0).max()) or 1.0
    return points, weights, scale


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("depth", [0, 1, 3])
def test_the_tree_holds_every_point_once(name, depth):
    points, weights, scale = clouds(name)
    order, bounds, boxes, sums = point_tree(points, weights, len(points) / 2**depth)
    assert sorted(order) == list(range(len(points)))
    for node in range(len(bounds)):
        rows = order[bounds[node, 0] : bounds[node, 1]]
        if len(rows):
            assert np.array_equal(boxes[node, 0], points[rows].min(axis=0))
            assert np.array_equal(boxes[node, 1], points[rows].max(axis=0))
        total = (weights[rows, None] * points[rows]).sum(axis=0)
        assert np.allclose(sums[node, :-1] / scale, total / scale)
        assert sums[node, -1] == pytest.approx(weights[rows].sum())


@pytest.mark.parametrize("name", CLOUDS)
@pytest.mark.parametrize("share", [0.01, 0.23, 0.61, 3.0])
def test_trajectories_equal_a_plain_loop(name, share):
    points, weights, scale = clouds(name)
    bandwidth = share * scale
    ends, masses, visits = run(points, weights, points.copy(), bandwidth)
    count = np.zeros(len(points))
    for i, start in enumerate(points):
        end, mass, seen = trajectory(points, weights, start, bandwidth, 1e-3 * bandwidth, 300)
        assert np.allclose(ends[i] / scale, end / scale, atol=1e-9)
        assert masses[i] == pytest.approx(mass)
        count += seen
    assert np.array_equal(visits[0], count)


def test_points_on_the_border_of_a_ball_count():
    points = np.array([[-1.0], [0.0], [1.0]])
    _, masses, visits = run(points, np.ones(3), np.zeros((1, 1)), 1.0, depth=1)
    assert masses[0] == 3.0
    assert np.array_equal(visits[0], np.ones(3))


def test_a_start_that_sees_nothing_stays():
    points = np.zeros((3, 2))
    start = np.full((1, 2), 9.0)
    ends, masses, visits = run(points, np.ones(3), start, 1.0, depth=0)
    assert np.array_equal(ends, start)
    assert masses[0] == 0.0
    assert not visits.any()


def test_visits_go_to_the_row_of_the_mode_and_weigh_their_share():
    points = np.array([[0.0], [0.1], [5.0]])
    to, shares = np.array([1, -1, 0]), np.array([2.0, 7.0, 3.0])
    _, _, visits = run(points, np.ones(3), points.copy(), 1.0, 1, to, shares, rows=2)
    assert np.array_equal(visits, [[0.0, 0.0, 3.0], [2.0, 2.0, 0.0]])


@pytest.mark.parametrize("seed", range(4))
def test_merging_equals_a_plain_loop(seed):
    rng = np.random.default_rng(seed)
    ends = np.round(rng.uniform(0.0, 4.0, (60, 2)), 1)
    order = rng.permutation(60)
    modes, kept = np.zeros(60, np.int64), np.empty(60, np.int64)
    count = merge_ends(ends, order, 1.0, modes, kept)
    stands, nearest = merged(ends, order, 1.0)
    assert kept[:count].tolist() == stands
    assert np.array_equal(modes, nearest)
