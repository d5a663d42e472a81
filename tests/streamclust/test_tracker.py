"""Centers kept online: births, deaths, moves, adoption, state."""

from __future__ import annotations

import numpy as np
import pytest

from streamclust.desk import address_of
from streamclust.errors import InvariantBroken
from streamclust.events import CenterDeleted, CenterInserted, CenterMoved, ClusterBorn, ClusterDied
from streamclust.kernels import stream
from streamclust.tracker import CenterTracker, Placing
from streamclust.windows import RecentPoints, Reservoir

FRAME = np.array([np.zeros(2), np.ones(2)])
RECENT = RecentPoints(10)
RECENT.widen(2, 0)
TABLE = np.array([[0.0, 0.0, -1.0, -1.0]])


def tracker(**changes):
    settings = {
        "p": 2.0,
        "decay": np.log(2) / 2000,
        "by_events": True,
        "lateness": 0.0,
        "seed": 3,
        "max_clusters": 100,
        "by_tree": False,
        "fenced": True,
        "window_decay": 0.0,
    }
    made = CenterTracker(**{**settings, **changes})
    made.widen(2)
    made.counts[stream.NEXT_REFIT] = 10**9
    window = Reservoir(50)
    window.widen(2)
    return made, window


def adopt(made, positions, ids=None, clusters=None, spared=()):
    k = len(positions)
    ids = [made.new_id() for _ in range(k)] if ids is None else ids
    found = Placing(
        ids=ids,
        clusters=ids if clusters is None else clusters,
        positions=np.array(positions, dtype=float),
        scales=np.full(k, 1.2),
        limits=np.full(k, 3.5),
        sizes=np.full(k, 7),
        shares=np.full(k, 1 / k),
    )
    return made.adopt(found, spared)


def observe(row, made, window):
    desk = made.desk(FRAME, window, RECENT, TABLE)
    return stream.observe_at(desk.address, address_of(row), 1) & 3


def feed(made, window, points):
    found = []
    for point in points:
        row = np.array([[*point, np.nan, 1.0]])
        if observe(row, made, window) == stream.ALERT:
            found += made.react(FRAME[1])
        made._check()
    return found


def test_a_refit_is_adopted_and_survivors_keep_their_clocks():
    made, window = tracker()
    feed(made, window, np.zeros((50, 2)))
    events = adopt(made, [[0, 0], [10, 0]])
    assert [type(e) for e in events] == [CenterInserted, CenterInserted]
    feed(made, window, np.random.default_rng(0).normal(size=(100, 2)))
    before = made.living_stats.copy()
    events = adopt(made, [[0.1, 0], [0, 10]], ids=[0, made.new_id()])
    assert [type(e) for e in events] == [CenterDeleted, CenterMoved, CenterInserted]
    assert made.ids == [0, 2]
    kept = [stream.WEIGHT, stream.SIZE, stream.STEPS, stream.GAP, stream.LAST, stream.RATE]
    assert made.stats[0, kept].tolist() == before[0, kept].tolist()


def test_places_are_kept_where_the_window_agrees():
    made, _ = tracker()
    adopt(made, [[0, 0], [10, 0]])
    told = np.array([[0.2, 0.0], [11.0, 0.0]])
    kept = made.keep_places([0, 1], told, np.array([1.2, 1.2]), FRAME[1])
    assert kept.tolist() == [[0.0, 0.0], [11.0, 0.0]]


def test_a_group_of_outliers_is_born_where_it_stands():
    made, window = tracker()
    rng = np.random.default_rng(1)
    feed(made, window, rng.normal(size=(100, 2)))
    adopt(made, [[0, 0]])
    points = np.where(rng.random((400, 1)) < 0.1, 20.0, 0.0) + rng.normal(size=(400, 2))
    events = feed(made, window, points)
    inserted = [e for e in events if isinstance(e, CenterInserted)]
    assert len(inserted) == 1
    assert inserted[0].position == pytest.approx([20, 20], abs=1.5)
    assert not inserted[0].position.flags.writeable
    (born,) = [e for e in events if isinstance(e, ClusterBorn)]
    assert (born.cluster, born.found_by) == (1, "outliers")
    assert born.weight >= 15
    assert made.counts[stream.N_MICRO] < 10  # the group left the store


def test_a_silent_cluster_dies_and_its_id_never_returns():
    made, window = tracker()
    rng = np.random.default_rng(2)
    feed(made, window, rng.normal(size=(60, 2)))
    adopt(made, [[0, 0], [20, 0]])
    both = np.where(rng.random((600, 1)) < 0.5, [[20.0, 0.0]], 0.0) + rng.normal(size=(600, 2))
    assert not [e for e in feed(made, window, both) if isinstance(e, ClusterDied)]
    events = feed(made, window, rng.normal(size=(400, 2)))
    (died,) = [e for e in events if isinstance(e, ClusterDied)]
    assert (died.cluster, died.reason) == (1, "silence")
    assert 190 <= died.tick - 660 <= 320
    assert made.ids == [0]
    assert made.new_id() == 2


def test_time_that_passes_brings_deaths():
    made, window = tracker(by_events=False)
    feed_times = np.arange(100.0)
    for t in feed_times:
        observe(np.array([[0.0, 0.0, t, 1.0]]), made, window)
    adopt(made, [[0, 0], [20, 0]])
    assert not made.pass_time(150.0)
    events = made.pass_time(10_000.0)
    assert [e.cluster for e in events if isinstance(e, ClusterDied)] == [1, 0]
    assert made.k == 0


def test_a_center_is_told_to_have_moved_only_beyond_a_share_of_its_scale():
    made, window = tracker()
    rng = np.random.default_rng(3)
    adopt(made, [[0, 0]])
    assert not feed(made, window, rng.normal(size=(2000, 2)) * 0.5)
    drifting = rng.normal(size=(2000, 2)) * 0.5 + np.linspace(0, 3, 2000)[:, None]
    moves = [e for e in feed(made, window, drifting) if isinstance(e, CenterMoved)]
    assert 3 <= len(moves) <= 15
    assert made.centers[0] == pytest.approx([3, 3], abs=0.5)


def test_max_clusters_bounds_births():
    made, window = tracker(max_clusters=1)
    adopt(made, [[0, 0]])
    rng = np.random.default_rng(4)
    assert not feed(made, window, rng.normal(size=(100, 2)) * 0.2 + 30)
    assert made.k == 1


def test_capacity_grows():
    made, window = tracker()
    adopt(made, [[10.0 * i, 0] for i in range(40)])
    assert made.k == 40
    feed(made, window, np.zeros((5, 2)))
    assert made.living[:, 0].tolist() == [10.0 * i for i in range(40)]


def test_a_state_goes_on_bit_for_bit_and_false_ones_are_refused():
    made, window = tracker()
    rng = np.random.default_rng(5)
    feed(made, window, rng.normal(size=(60, 2)))
    adopt(made, [[0, 0], [5, 5]])
    feed(made, window, rng.normal(size=(60, 2)) * 4)
    other, second = tracker()
    other.from_state(made.to_state(), 2)
    second.from_state(window.to_state(), 2)
    points = rng.normal(size=(200, 2)) * 4
    feed(made, window, points)
    feed(other, second, points)
    one, two = made.to_state(), other.to_state()
    assert all(np.array_equal(one[name], two[name]) for name in one)
    for change in (
        {"ids": [0, 0]},
        {"ids": [0]},
        {"next_id": 1},
        {"centers": np.zeros((2, 3))},
        {"micro": np.zeros((1, 9))},
        {"counts": np.zeros(3)},
        {"gauges": np.zeros(2)},
    ):
        with pytest.raises(ValueError, match="fit"):
            other.from_state({**made.to_state(), **change}, 2)


def test_check_tells_what_is_broken():
    made, _ = tracker()
    adopt(made, [[0, 0], [5, 5]])
    made.centers[0, 0] = np.nan
    with pytest.raises(InvariantBroken, match="not finite"):
        made._check()
    made.ids.append(7)
    with pytest.raises(InvariantBroken, match="differ in number"):
        made._check()
