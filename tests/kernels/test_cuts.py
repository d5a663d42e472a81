import math

import numpy as np
import pytest
from scipy import stats

from streamclust.kernels.cuts import Law, first_arrivals, mass_of, threshold_of
from tests.kernels.cuts_references import first_arrival

NOTHING = np.empty(0)


@pytest.fixture(autouse=True)
def _wrapping():
    """Interpreted, 64-bit counters wrap around as they do when compiled."""
    with np.errstate(over="ignore"):
        yield


def law_of(anchor, *, p=2.0, scale=1.0, weights=None, lowest=-10, tables=()):
    """A law; `tables` are (knots, masses) of the lower and the upper side of feature 0."""
    anchor = np.asarray(anchor, dtype=np.float64)
    table_of = np.full(anchor.size, -1, dtype=np.int64)
    table_of[: len(tables) // 2] = 0
    return Law(
        anchor,
        np.ones(anchor.size) if weights is None else np.asarray(weights, dtype=np.float64),
        scale,
        p,
        lowest,
        table_of,
        np.cumsum([0, *(len(knots) for knots, _ in tables)]),
        np.concatenate([NOTHING, *(knots for knots, _ in tables)]),
        np.concatenate([NOTHING, *(masses for _, masses in tables)]),
        np.arange(1, anchor.size + 1, dtype=np.uint64) * np.uint64(7919),
    )


def clocks(keys, anchor, centers, *, bound=math.inf, **options):
    centers = np.asarray(centers, dtype=np.float64)
    keys = np.asarray(keys, dtype=np.uint64)
    shape = (keys.size, centers.shape[0])
    times, thresholds = np.empty(shape), np.empty(shape)
    places = np.empty((*shape, 4), dtype=np.int64)
    first_arrivals(law_of(anchor, **options), keys, centers, bound, times, places, thresholds)
    return times, places, thresholds


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 8.0])
def test_the_first_arrival_is_the_earliest_of_all_arrivals_that_cut(p):
    rng = np.random.default_rng(5)
    for key in range(20):
        d = int(rng.integers(1, 4))
        anchor, weights = rng.normal(size=d), rng.choice([0.0, 0.5, 2.0], size=d)
        centers = rng.normal(size=(6, d))
        times, places, _ = clocks([key], anchor, centers, p=p, scale=4.0, weights=weights)
        for c, center in enumerate(centers):
            horizon = times[0, c] if math.isfinite(times[0, c]) else 50.0
            feature_keys = np.arange(1, d + 1) * 7919
            expected = first_arrival(
                key, feature_keys, anchor, weights, 4.0, p, -10, center, horizon * (1 + 1e-9)
            )
            if expected is None:
                assert times[0, c] == math.inf
            else:
                assert times[0, c] == pytest.approx(expected[0], rel=1e-12)
                assert tuple(places[0, c]) == expected[1:]


@pytest.mark.parametrize("x", [0.9, 1.0, 2.0, 2.0000001, 3.7, 16.0])
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_times_are_exponential_and_marks_uniform(x, p):
    times, _, thresholds = clocks(np.arange(4000), [0.0], [[x]], p=p)
    assert stats.kstest(times[:, 0] * x**p, "expon").pvalue > 1e-3
    assert stats.kstest(thresholds[:, 0] ** p / x**p, "uniform").pvalue > 1e-3


def test_the_rate_is_the_distance_to_the_power_p():
    anchor, center = np.array([1.0, -2.0, 0.5]), np.array([[0.2, 1.0, 0.9]])
    for p in (1.0, 1.5, 3.0):
        times, places, _ = clocks(np.arange(3000), anchor, center, p=p)
        mass = np.abs(center[0] - anchor) ** p
        assert stats.kstest(times[:, 0] * mass.sum(), "expon").pvalue > 1e-3
        chosen = np.bincount(places[:, 0, 0], minlength=3)
        assert stats.chisquare(chosen, 3000 * mass / mass.sum()).pvalue > 1e-3


def test_two_centers_are_parted_as_often_as_their_distance_says():
    anchor = np.zeros(2)
    centers = np.array([[1.0, 1.0], [2.0, 0.5]])
    times, places, _ = clocks(np.arange(6000), anchor, centers, p=1.0)
    apart = (times[:, 0] != times[:, 1]) | (places[:, 0] != places[:, 1]).any(axis=1)
    union = np.maximum(centers[0], centers[1]).sum()  # p = 1: an arrival in the union comes first
    expected = np.abs(centers[0] - centers[1]).sum() / union
    assert stats.binomtest(int(apart.sum()), 6000, expected).pvalue > 1e-3


def test_a_larger_mass_never_arrives_later():
    places = np.sort(np.random.default_rng(1).uniform(0.05, 40, size=60))
    times, _, _ = clocks(np.arange(50), [0.0], places[:, None], p=2.0)
    assert (np.diff(times, axis=1) <= 0).all()


def test_only_arrivals_before_the_bound_count():
    times, _, _ = clocks(np.arange(200), [0.0], [[1.0]])
    bounded, _, _ = clocks(np.arange(200), [0.0], [[1.0]], bound=0.5)
    early = times[:, 0] < 0.5
    assert np.array_equal(bounded[early], times[early])
    assert np.isinf(bounded[~early]).all()


@pytest.mark.parametrize("p", [1.0, 2.0, 8.0, 20.0])
@pytest.mark.parametrize(
    ("anchor", "x"),
    [
        (0.0, 5e-324),
        (0.0, -5e-324),
        (1.0, math.nextafter(1.0, 2.0)),
        (1.0, math.nextafter(1.0, 0.0)),
        (1e8, 1e8 + 1e-6),
        (1e150, -1e150),
        (1e8, math.nextafter(1e8, 0.0)),
    ],
)
def test_a_center_is_cut_by_the_comparison_however_near_it_lies(anchor, x, p):
    scale = math.ldexp(1.0, math.frexp(abs(x - anchor))[1])
    times, places, thresholds = clocks(
        np.arange(10), [anchor], [[x]], p=p, scale=scale, lowest=-math.ceil(10 * max(1, p / 2))
    )
    assert np.isfinite(times).all()
    for threshold in thresholds[:, 0]:
        assert (x > threshold) != (anchor > threshold)
    assert (places[:, 0, 1] == (x > anchor)).all()


TABLE_KNOTS = np.array([0.0, 1.0, 1.0, 3.0, 3.0, 3.0, 4.0])
TABLE_MASSES = np.array([0.0, 0.1, 0.8, 0.9, 0.95, 1.5, 1.6])


TABLES = ((-TABLE_KNOTS, TABLE_MASSES), (TABLE_KNOTS, TABLE_MASSES))


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("tabulated", [False, True])
def test_no_mark_beyond_a_centers_mass_cuts_it(side, offset, tabulated):
    rng = np.random.default_rng(3)
    tables = [(offset + knots, masses) for knots, masses in TABLES] if tabulated else ()
    law = law_of([offset], p=1.5, scale=8.0, tables=tables)
    offsets = np.concatenate([rng.uniform(1e-6, 8, 40), [1, 3, 4]])
    for x in offset + (1 if side else -1) * offsets:
        mass = mass_of(law, 0, side, x)
        for mark in mass * (1 + np.concatenate([[1e-15], rng.exponential(1e-6, 20)])):
            assert (x > threshold_of(law, 0, side, mark)) != (side == 1)
        for mark in mass * (1 - rng.uniform(1e-2, 0.99, 20)):
            threshold = threshold_of(law, 0, side, mark)
            # A mark within the mass cuts, unless the center stands where the threshold jumps to.
            cut = (x > threshold) == (side == 1)
            assert cut or mass_of(law, 0, side, threshold) >= mark


def test_thresholds_grow_outward_with_the_mark():
    law = law_of([0.0], scale=2.0, tables=TABLES)
    marks = np.linspace(1e-9, 4.0, 400)
    up = [threshold_of(law, 0, 1, z) for z in marks]
    down = [threshold_of(law, 0, 0, z) for z in marks]
    assert (np.diff(up) >= 0).all()
    assert (np.diff(down) <= 1e-15).all()
    assert up[-1] > 4.0


@pytest.mark.parametrize("x", [5.0, 8.0, -6.0])
def test_beyond_the_tables_mass_goes_on_as_within(x):
    law = law_of([0.0], p=2.0, scale=2.0, tables=TABLES)
    share = TABLE_MASSES[-1] / (TABLE_KNOTS[-1] / 2.0) ** 2
    assert mass_of(law, 0, int(x > 0), x) == pytest.approx(share * (x / 2.0) ** 2)


def test_a_side_without_tables_takes_the_rate_of_the_other():
    bare = (np.zeros(1), np.zeros(1))
    law = law_of([0.0], p=2.0, scale=2.0, tables=(bare, TABLES[1]))
    share = TABLE_MASSES[-1] / (TABLE_KNOTS[-1] / 2.0) ** 2
    assert mass_of(law, 0, 0, -1.0) == pytest.approx(share * 0.25)
    assert threshold_of(law, 0, 0, share * 0.25) == pytest.approx(-1.0)


def test_tables_whose_masses_are_all_zero_leave_the_papers_rate():
    nothing = np.zeros(3)
    law = law_of([0.0], scale=1.0, tables=((nothing, nothing), (np.array([0.0, 1, 2]), nothing)))
    assert mass_of(law, 0, 1, 3.0) == pytest.approx(5.0)
    assert threshold_of(law, 0, 1, 5.0) == pytest.approx(3.0)


@pytest.mark.parametrize("x", [0.4, 2.0, 3.5, 6.0, -2.0])
def test_under_a_table_times_are_exponential_in_the_tables_mass(x):
    law = law_of([0.0], scale=2.0, tables=TABLES)
    mass = mass_of(law, 0, int(x > 0), x)
    times, _, _ = clocks(np.arange(4000), [0.0], [[x]], scale=2.0, tables=TABLES)
    assert stats.kstest(times[:, 0] * mass, "expon").pvalue > 1e-3


def test_a_power_of_two_in_the_units_changes_nothing():
    rng = np.random.default_rng(8)
    anchor, centers = rng.normal(size=3), rng.normal(size=(5, 3))
    weights = rng.uniform(0.5, 2, size=3)
    for p in (1.0, 1.7, 2.0):
        plain = clocks(np.arange(20), anchor, centers, p=p, weights=weights)
        k = 2.0**20
        scaled = clocks(np.arange(20), anchor * k, centers * k, p=p, weights=weights / k)
        assert np.array_equal(plain[0], scaled[0])
        assert np.array_equal(plain[1], scaled[1])
        assert np.array_equal(plain[2] * k, scaled[2])
