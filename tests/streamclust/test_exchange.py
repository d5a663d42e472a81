"""What a summary does to a model, against the per-event path where the two must agree."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from streamclust import StreamClusterer
from streamclust.events import ClusterBorn, ClusterDied, FeatureAdded, RefitDone
from streamclust.exchange import absorbed, arrive_many, faded
from streamclust.kernels import stream
from streamclust.summary import Summary, summarise

CENTERS = np.array([[0.0, 0], [10, 0], [0, 10]])


def points(n, groups=(0, 1, 2), seed=0):
    rng = np.random.default_rng(seed)
    return CENTERS[rng.choice(groups, n)] + rng.normal(size=(n, 2))


def learn(model, X, parts=1, **more):
    """Apply a batch that is cut into parts."""
    frozen, where = model.freeze(), np.arange(len(X)) % parts
    ids = model.tick_count + np.arange(len(X))
    summaries = []
    for part in range(parts):
        rows = np.flatnonzero(where == part)
        cut = {name: value[rows] for name, value in more.items()}
        summaries.append(summarise(X[rows], frozen, ids=ids[rows], **cut))
    model.apply(reduce(Summary.merge, summaries))


@pytest.mark.parametrize("before", [0, 1, 7, 99, 100, 300])
@pytest.mark.parametrize("n", [1, 5, 250])
def test_many_steps_of_a_running_mean_in_one(before, n):
    left = 1.0
    for i in range(before + 1, before + n + 1):
        left *= 1.0 - max(1.0 / i, 0.01)
    assert absorbed(before, n, 0.01) == pytest.approx(1.0 - left, abs=1e-12)
    assert faded(n, 0.01) == pytest.approx(1.0 - 0.99**n, abs=1e-12)


@pytest.mark.parametrize("gap", [1.0, 4.0, 30.0])
def test_even_arrivals_count_as_one_by_one(gap):
    gauges = np.zeros(stream.N_GAUGES)
    gauges[stream.DECAY], gauges[stream.P] = 0.001, 2.0
    one, many = np.zeros((2, stream.N_STATS))
    for s in (one, many):
        s[stream.WEIGHT], s[stream.GAP], s[stream.RATE] = 50.0, 4.0, stream.RATE_LEVEL
        s[stream.STEPS], s[stream.SCALE] = 400.0, 1.0
    n, place = 60, np.zeros((1, 2))
    row = np.array([0.0, 0.0, 0.0, 1.0])
    for i in range(1, n + 1):
        gauges[stream.NOW] = i * gap
        stream.arrive(row, 0, 0.0, np.ones(2), place, place, one[None], gauges, np.zeros(0))
    arrive_many(many, n, float(n), n * gap, n * gap, gauges)
    for exact in (stream.SIZE, stream.STEPS, stream.LAST, stream.STEADY):
        assert one[exact] == many[exact]
    # The running gap bends the rate while it adapts; the weight fades within the batch.
    assert many[stream.RATE] == pytest.approx(one[stream.RATE], rel=0.15)
    assert many[stream.WEIGHT] == pytest.approx(one[stream.WEIGHT], rel=0.001 * n * gap)
    assert many[stream.GAP] == pytest.approx(one[stream.GAP], rel=0.15)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("parts", [1, 7])
def test_centers_go_where_the_per_event_path_takes_them(p, parts):
    one, many = (StreamClusterer(window=200, p=p, refit_lag=10**6) for _ in range(2))
    start = points(400)
    for model in (one, many):
        model.fit_initial(start, labels=np.argmin(((start[:, None] - CENTERS) ** 2).sum(2), 1))
    rng = np.random.default_rng(1)
    for batch in range(10):
        X = points(100, seed=10 + batch) + 0.1 * batch  # they drift by one deviation
        X[rng.random(100) < 0.05] = [60.0, -60.0]
        for x, y in X.tolist():
            one.learn_one({"f0": x, "f1": y})
        learn(many, X, parts)
    for id, center in one.centers.items():
        assert many.centers[id] == pytest.approx(center, abs=0.4)
    assert many.tick_count == one.tick_count


def test_the_cut_changes_no_bit_of_the_model():
    """Sums agree to 2^-100, so that what is rounded to 2^-53 is equal; and so is all else."""
    states = []
    for parts in (1, 3, 16):
        model = StreamClusterer(window=100)
        for batch in range(12):
            learn(model, points(300, (0, 1) if batch < 5 else (0, 1, 2), seed=batch), parts)
        states.append(model.freeze().mark)
        assert len(model.clusters) == 3
    assert len(set(states)) == 1


def test_groups_are_born_and_die_between_refits():
    model = StreamClusterer(window=400)
    for batch in range(8):
        learn(model, points(400, (0, 1), seed=batch), 4)
    refits = model.metrics()["refits"]
    (at, _), number = model.centers.items(), model.events_since(0)[-1].number
    learn(model, points(300, (0, 1, 2), seed=20), 4)
    born = [e for e in model.events_since(number) if isinstance(e, ClusterBorn)]
    assert [e.found_by for e in born] == ["outliers"]
    assert model.metrics()["refits"] == refits
    assert model.predict_one({"f0": 0.0, "f1": 10.0}) == born[0].cluster
    assert model.clusters[born[0].cluster].size > 60
    for batch in range(3):
        learn(model, points(300, (1, 2), seed=30 + batch), 4)
    died = [e.cluster for e in model.events_since(number) if isinstance(e, ClusterDied)]
    assert died == [at[0]]


def test_a_cold_model_begins_with_its_first_batch():
    model = StreamClusterer()
    learn(model, points(30))
    assert not model.clusters
    learn(model, points(30, seed=1), 3)
    assert isinstance(model.events_since(0)[-1], RefitDone) or model.clusters
    learn(model, points(600, seed=2), 3)
    assert len(model.clusters) == 3


def test_an_empty_batch_is_nothing():
    model = StreamClusterer(window=100)
    learn(model, points(200))
    before = model.freeze().mark
    model.apply(summarise(np.zeros((0, 2)), model.freeze()))
    assert model.freeze().mark == before


def test_new_features_join_within_their_cap():
    model = StreamClusterer(window=100, max_features=3)
    learn(model, points(200))
    columns = {
        "f0": np.zeros(4),
        "f1": np.zeros(4),
        "f10": np.ma.masked_array(np.ones(4), [0, 0, 1, 1]),
        "f9": np.ma.masked_array(np.ones(4), [1, 1, 0, 0]),
    }
    told = summarise(columns, model.freeze())
    assert told.names == ("f0", "f1", "f9", "f10")
    assert told.refused == 0
    model.apply(told)
    added = [e.features for e in model.events_since(0) if isinstance(e, FeatureAdded)]
    assert added == [("f9",)]  # no room for both that came in different events
    with_both = {name: np.ones(1) for name in ("f0", "f1", "f9", "f10")}
    assert summarise(with_both, model.freeze()).refused == 1
    learn(model, points(5)[:, [0, 1, 1]])
    assert len(model.window_points()) == 3


def test_seconds_go_by_the_events_times():
    model = StreamClusterer(window=100, time_unit="seconds", half_life=500)
    rng = np.random.default_rng(0)
    for batch in range(6):
        t = 1e9 + 300.0 * batch + rng.permutation(300)
        learn(model, points(300, seed=batch), 5, t=t)
    assert model._engine.tracker.now == 1e9 + 1799
    assert model._engine.tracker.gauges[stream.MEAN_GAP] == pytest.approx(1.0, rel=0.02)
    assert len(model.clusters) == 3
    weights = [cluster.weight for cluster in model.clusters.values()]
    assert sum(weights) == pytest.approx(500 / np.log(2), rel=0.35)


def test_without_refits_groups_are_born_alone():
    model = StreamClusterer(refit=None, window=100)
    for batch in range(10):
        learn(model, points(200, seed=batch), 2)
    answers = [model.predict_one({"f0": x, "f1": y}) for x, y in CENTERS.tolist()]
    assert len({*answers} - {-1}) >= 2  # as one by one: without refits fences are guesses
    told = [e.found_by for e in model.events_since(0) if isinstance(e, ClusterBorn)]
    assert set(told) == {"outliers"}


def test_background_refits_are_adopted_at_the_batch_after_their_lag():
    model = StreamClusterer(window=100, refit_mode="background", refit_lag=150)
    ticks = []
    model.on(RefitDone, lambda done: ticks.append((done.asked, done.tick)))
    for batch in range(12):
        learn(model, points(100, seed=batch), 2)
    late = [tick - asked for asked, tick in ticks if asked != tick]
    assert late
    assert set(late) == {200}


def test_a_saved_model_goes_on_the_same(tmp_path):
    model = StreamClusterer(window=100)
    for batch in range(5):
        learn(model, points(200, seed=batch), 2)
    model.save(tmp_path / "m")
    again = StreamClusterer.load(tmp_path / "m")
    for other in (model, again):
        for batch in range(5, 9):
            learn(other, points(200, (0, 2), seed=batch), 3)
    assert model.freeze(rules=True).to_bytes() == again.freeze(rules=True).to_bytes()
