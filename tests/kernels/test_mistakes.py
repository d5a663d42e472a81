import numpy as np
import pytest

from streamclust.kernels.mistakes import (
    arrival_order,
    best_draw,
    calmest_cells,
    calmest_cut,
    cell_knots,
    landings,
)
from streamclust.kernels.routing import assignment_costs, leaf_of, leaves_of
from tests.kernels.mistakes_references import distances, fewest_mistakes, landing, mistakes_at


@pytest.mark.parametrize("seed", range(20))
def test_the_calmest_cut_makes_the_fewest_mistakes(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 40))
    points, own = np.round(rng.normal(size=n), 1), np.round(rng.normal(size=n), 1)
    begin, end = np.sort(rng.normal(size=2))
    lows, highs = np.sort(np.minimum(points, own)), np.sort(np.maximum(points, own))
    cut, fewest = calmest_cut(lows, highs, begin, end)
    assert begin <= cut < end
    assert fewest == mistakes_at(cut, points, own) == fewest_mistakes(points, own, begin, end)


def test_without_mistakes_the_cut_is_the_middle_of_the_widest_gap():
    lows = highs = np.array([0.0, 1.0, 5.0, 6.0])
    assert calmest_cut(lows, highs, 0.0, 6.0) == (3.0, 0)


def test_the_cut_of_two_neighbouring_floats_is_the_lower_one():
    begin = 1.0
    end = np.nextafter(1.0, 2.0)
    assert calmest_cut(np.empty(0), np.empty(0), begin, end) == (begin, 0)


def cells(points, owners, centers, n_cells, p=2.0):
    anchor = np.sort(centers, axis=0)[(len(centers) - 1) // 2]
    features = np.arange(centers.shape[1])
    shape = (features.size, 2, n_cells + 2)
    counts, edges = np.empty(shape[:2], dtype=np.int64), np.empty((*shape[:2], n_cells + 3))
    cuts, mistakes = np.empty(shape), np.zeros(shape, dtype=np.int64)
    own = centers[owners]
    lows, highs = np.sort(np.minimum(points, own).T), np.sort(np.maximum(points, own).T)
    calmest_cells(lows, highs, centers, anchor, features, n_cells, counts, edges, cuts, mistakes)
    starts = np.empty(2 * features.size + 1, dtype=np.int64)
    knots, masses = np.empty((2, int((1 + 3 * counts).sum())))
    cell_knots(
        anchor,
        np.ones(features.size),
        2.0,
        p,
        features,
        counts,
        edges,
        cuts,
        np.ones(shape),
        starts,
        knots,
        masses,
    )
    return anchor, counts, edges, cuts, mistakes, starts, knots, masses


@pytest.mark.parametrize("n_cells", [1, 3, 100])
def test_cells_tile_each_side_of_the_anchor(n_cells):
    rng = np.random.default_rng(2)
    centers = np.round(rng.normal(size=(12, 3)), 1)
    centers[:, 2] = 1.0
    points, owners = rng.normal(size=(50, 3)), rng.integers(0, 12, size=50)
    anchor, counts, edges, cuts, mistakes, starts, knots, masses = cells(
        points, owners, centers, n_cells
    )
    for i in range(3):
        for side in range(2):
            n = counts[i, side]
            own_edges = edges[i, side, : n + 1]
            far = centers[:, i].max() if side else centers[:, i].min()
            assert own_edges[0] == anchor[i]
            assert own_edges[-1] == far
            assert (np.diff(own_edges) * (1 if side else -1) > 0).all()
            assert n <= n_cells + 1
            for j in range(n):
                begin, end = np.sort(own_edges[j : j + 2])
                assert begin <= cuts[i, side, j] < end
                expected = fewest_mistakes(points[:, i], centers[owners, i], begin, end)
                assert mistakes[i, side, j] == expected
            part = slice(starts[2 * i + side], starts[2 * i + side + 1])
            assert (np.diff(knots[part]) * (1 if side else -1) >= 0).all()
            assert (np.diff(masses[part]) >= 0).all()
            assert masses[part][-1] == pytest.approx((abs(far - anchor[i]) / 2) ** 2)


def test_landings_follow_the_first_cut_that_parts():
    rng = np.random.default_rng(4)
    points = np.round(rng.normal(size=(200, 3)), 1)
    features, sides = rng.integers(0, 3, size=(2, 6)) % np.array([[3], [2]])
    thresholds = np.round(rng.normal(size=6), 1)
    out = np.empty(200, dtype=np.int64)
    landings(points, features, sides, thresholds, out)
    assert out.tolist() == [landing(x, features, sides, thresholds) for x in points]


def test_the_best_draw_makes_the_fewest_mistakes():
    rng = np.random.default_rng(7)
    for _ in range(20):
        k, n, d, n_draws = int(rng.integers(2, 12)), int(rng.integers(0, 60)), 3, 5
        points, owners = np.round(rng.normal(size=(n, d)), 1), rng.integers(0, k, size=n)
        which = rng.integers(0, 6, size=(n_draws, k))  # six arrivals, the last at infinity
        times = np.array([0.1, 0.2, 0.3, 0.4, 0.5, np.inf])[which]
        places = np.zeros((n_draws, k, 4), dtype=np.int64)
        places[..., 0], places[..., 1], places[..., 3] = which % d, which % 2, which
        thresholds = (which - 2.5) / 2
        heads, part_of = np.empty((2, k), dtype=np.int64)
        landing = np.empty(n, dtype=np.int64)
        keys = np.array([5, 3, 9], dtype=np.uint64)
        got = best_draw(times, places, thresholds, keys, points, owners, heads, part_of, landing)
        trials = []
        for j in range(n_draws):
            stop = np.sort(times[j])[k - k // 2 - 1]
            spine = sorted({a for a in which[j].tolist() if a < 5})
            spine = [a for a in spine if (a + 1) / 10 <= stop + 1e-12]
            parts = [spine.index(a) if a in spine else len(spine) for a in which[j].tolist()]
            cuts = [(a % d, a % 2, (a - 2.5) / 2) for a in spine]
            landed = [landing_by(x, cuts) for x in points]
            wrong = sum(
                at != parts[owner] for at, owner in zip(landed, owners.tolist(), strict=True)
            )
            trials.append((wrong, j, len(spine), parts, landed, spine))
        wrong, j, n_cuts, parts, landed, spine = min(trials, key=lambda t: t[:2])
        assert got == (j, n_cuts, wrong)
        assert part_of.tolist() == parts
        assert landing.tolist() == landed
        assert which[j, heads[:n_cuts]].tolist() == spine


def landing_by(x, cuts):
    return landing(x, *(zip(*cuts, strict=True) if cuts else ((), (), ())))


def test_equal_times_are_ordered_by_the_features_keys():
    times = np.array([0.5, 0.5, 0.1, 0.5, np.inf])
    places = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [1, 0, -1, 0], [0, 0, 0, 0]])
    keys = np.array([9, 4], dtype=np.uint64)
    assert arrival_order(times, places, keys).tolist() == [2, 3, 1, 0, 4]


def test_a_table_is_walked_by_one_comparison_per_node():
    feature, threshold = np.array([0, 1]), np.array([0.5, -1.0])
    child = np.array([[1, ~0], [~1, ~2]])
    points = np.array([[0.5, -1.0], [0.5, -0.9], [0.6, 0.0]])
    out = np.empty(3, dtype=np.int64)
    leaves_of(points, feature, threshold, child, out)
    assert out.tolist() == [1, 2, 0]
    empty = np.empty(0, dtype=np.int64)
    assert leaf_of(points[0], empty, np.empty(0), empty.reshape(0, 2)) == 0


@pytest.mark.parametrize("p", [1.0, 2.0, 3.5])
def test_costs_are_sums_of_distances(p):
    rng = np.random.default_rng(6)
    points, centers, weights = (
        rng.normal(size=(30, 4)),
        rng.normal(size=(5, 4)),
        rng.uniform(size=4),
    )
    answers, nearest = rng.integers(0, 5, size=30), np.empty(30, dtype=np.int64)
    answered, least = assignment_costs(points, centers, weights, p, answers, nearest)
    expected = distances(points, centers, weights, p)
    assert np.array_equal(nearest, expected.argmin(axis=1))
    assert answered == pytest.approx(expected[np.arange(30), answers].sum())
    assert least == pytest.approx(expected.min(axis=1).sum())
