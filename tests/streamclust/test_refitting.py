"""Refits inline and in the background, their schedule, and evidence of drift."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from streamclust import StreamClusterer, glance, renewal, router, snapshot
from streamclust.events import ClusterBorn, ClusterDied, ClustersMerged, RefitDone, RefitSkipped
from streamclust.kernels import stream
from streamclust.refitting import CALM, LONGEST
from streamclust.router import MOST_MOVES, SOONER
from streamclust.texts import Telling
from streamclust.tree import ThresholdTree

PLACES = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])


def blobs(n: int, seed: int = 0, places=PLACES, spread: float = 1.0):
    rng = np.random.default_rng(seed)
    return places[rng.integers(0, len(places), n)] + spread * rng.normal(size=(n, 2))


def told(model, kind):
    return [e for e in model.events_since(0) if isinstance(e, kind)]


def bytes_of(model):
    return snapshot.encode(model._state(None))


def background(**changes):
    return StreamClusterer(
        **{"window": 100, "refit_mode": "background", "refit_lag": 70, **changes}
    )


def test_a_background_refit_is_adopted_exactly_the_lag_later():
    model = background()
    model.learn_many(blobs(3000))
    done = told(model, RefitDone)
    young = [e for e in done if e.asked < 100]
    assert young
    assert all(e.tick == e.asked + 1 + e.asked // 4 for e in young)
    grown = [e for e in done if e.asked >= 100]
    assert len(grown) >= 3
    assert all(e.tick == e.asked + 70 for e in grown)
    assert len(model.clusters) == 4


@pytest.mark.parametrize("stop", [150, 170, 205, 206, 230, 500])
def test_a_pending_refit_outlives_a_snapshot(tmp_path, stop):
    X = blobs(800)
    whole, parted = background(), background()
    whole.learn_many(X)
    parted.learn_many(X[:stop])
    parted.save(tmp_path / "s")
    again = StreamClusterer.load(tmp_path / "s")
    for row in X[stop:].tolist():
        again.learn_one(dict(zip(("f0", "f1"), row, strict=True)))
    assert bytes_of(again) == bytes_of(whole)


def restless(n: int, seed: int = 0):
    """Many groups on the move, some of which come and go: trees are renewed without end."""
    rng = np.random.default_rng(seed)
    places, speeds = rng.uniform(-20, 20, (20, 4)), rng.normal(size=(20, 4))
    group = rng.integers(0, 16, n) + 4 * (np.arange(n) // 500 % 2)
    late = np.arange(n)[:, None] / 400
    return places[group] + late * speeds[group] + 0.5 * rng.normal(size=(n, 4))


def test_a_pending_renewal_outlives_a_snapshot_at_any_tick(tmp_path):
    X = restless(2600)
    whole = background(window=200, refit_lag=90)
    whole.learn_many(X)
    going = background(window=200, refit_lag=90)
    stops, found = np.random.default_rng(1).permutation(2500)[:25], set()
    for row, tick in zip(X.tolist(), range(1, 2601), strict=True):
        going.learn_one(dict(zip(("f0", "f1", "f2", "f3"), row, strict=True)))
        router = going._engine.router
        if tick in stops or (router._left and tick % 20 == 0):
            found.add((router.is_pending, going.metrics()["refit_pending"], bool(router._left)))
            going.save(tmp_path / "s")
            going = StreamClusterer.load(tmp_path / "s")
    assert {pending for pending, _, _ in found} == {False, True}
    assert any(left for _, _, left in found)
    assert bytes_of(going) == bytes_of(whole)
    going._engine.router.tree._check()


def test_beside_the_stream_no_event_pays_for_a_survey_a_renewal_or_many_moves(monkeypatch):
    """What is heavy is counted instead of timed: where it is done, and how often in one event."""
    heavy, moves = [], [0]

    def watched(made):
        def work(*arguments):
            heavy.append(threading.current_thread() is threading.main_thread())
            return made(*arguments)

        return work

    def move(tree, *arguments, made=ThresholdTree.move):
        moves[-1] += threading.current_thread() is threading.main_thread()
        return made(tree, *arguments)

    monkeypatch.setattr(glance, "make_survey", watched(glance.make_survey))
    monkeypatch.setattr(renewal, "renew", watched(renewal.renew))
    monkeypatch.setattr(ThresholdTree, "move", move)
    model = background(window=300, refit_lag=200)
    left = 0
    for row in restless(2500, seed=2).tolist():
        model.learn_one(dict(zip("abcd", row, strict=True)))
        left += bool(model._engine.router._left)
        moves.append(0)
    assert len(heavy) >= 20
    assert not any(heavy)
    assert left  # a refit moved more centers than one event may follow
    # Those that moved while a renewal was on its way are moved again in the renewed tree.
    assert 0 < max(moves) <= 2 * MOST_MOVES
    model.refit()
    assert heavy[-1]  # what is asked for is made at once


def test_texts_are_worked_out_by_the_thread_unless_too_much_would_wait_for_it(monkeypatch):
    mine, work = [], Telling.work

    def watched(telling):
        mine.append(threading.current_thread() is threading.main_thread())
        work(telling)

    monkeypatch.setattr(Telling, "work", watched)
    X, models = restless(1200, seed=2), []
    for room in (router.TOLD_LATER, 2 * 300 * 4):
        monkeypatch.setattr(router, "TOLD_LATER", room)
        model = background(window=300, refit_lag=200)
        waiting = set()
        for row in X.tolist():
            model.learn_one(dict(zip("abcd", row, strict=True)))
            waiting.add(len(model._engine.router._tellings))
        models.append(model)
        if len(models) == 1:
            assert len(mine) > 10
            assert not any(mine)
        else:
            assert max(waiting) == 2
    assert bytes_of(models[0]) == bytes_of(models[1])


def test_a_renewed_tree_is_used_exactly_a_quarter_of_the_lag_later():
    model = background(window=200, refit_lag=90)
    begun, waits = 0, set()
    for row in restless(3000, seed=3).tolist():
        model.learn_one(dict(zip("abcd", row, strict=True)))
        due = int(model._engine.tracker.counts[stream.NEXT_TREE])
        if model.metrics()["tree_pending"] and due != begun:
            begun = due
            if model.tick_count > 200:
                waits.add(due - model.tick_count)
    assert waits == {90 // SOONER}


def test_the_longest_interval_grows_while_nothing_changes():
    model = StreamClusterer()
    model.learn_many(np.tile(blobs(50_000), (9, 1)))
    ticks = [e.tick for e in told(model, RefitDone)]
    gaps = np.diff([t for t in ticks if t > LONGEST])
    assert gaps[0] <= LONGEST
    assert gaps[-1] == CALM * LONGEST
    assert np.all(np.diff(gaps) >= 0)


@pytest.mark.parametrize("what", ["birth", "death", "merge"])
def test_after_a_long_calm_what_changes_is_told_in_time(what):
    calm, n = np.tile(blobs(50_000), (5, 1)), 30_000
    rng = np.random.default_rng(5)
    places = np.repeat(PLACES[None], n, axis=0)
    group = rng.integers(0, 3 if what == "death" else 4, n)
    if what == "birth":
        places[:, 3] = np.where(rng.random((n, 1)) < 0.5, PLACES[3], [20.0, 20.0])
    if what == "merge":
        way = np.minimum(np.arange(n) / 5000, 1.0)[:, None]
        places[:, 3] = (1 - way) * PLACES[3] + way * PLACES[2]
    model = StreamClusterer()
    model.learn_many(calm)
    model.learn_many(places[np.arange(n), group] + rng.normal(size=(n, 2)))
    kind = {"birth": ClusterBorn, "death": ClusterDied, "merge": ClustersMerged}[what]
    late = [e.tick - len(calm) for e in told(model, kind) if e.tick > len(calm)]
    assert len(late) == 1
    assert late[0] <= (LONGEST + 5000 if what == "merge" else 1000)


class Slow:
    """An estimator that finds one cluster, once it may."""

    def __init__(self, gate: threading.Event) -> None:
        self.gate = gate
        self.begun = threading.Event()

    def fit(self, X):
        if len(X) == 50:
            self.begun.set()
            assert self.gate.wait(60)
        self.labels_ = np.zeros(len(X), dtype=np.int64)


def test_learning_goes_on_beside_a_refit_and_waits_where_it_is_late():
    gate = threading.Event()
    slow = Slow(gate)
    model = background(window=50, refit=slow, refit_lag=200)
    X = blobs(600)
    model.learn_many(X[:60])
    model.learn_many(X[60:120])
    assert slow.begun.wait(60)
    assert model.metrics()["refit_pending"] == 1
    model.learn_many(X[120:200])  # the refit cannot end, and learning does not mind
    assert model.metrics()["refit_pending"] == 1
    threading.Timer(0.2, gate.set).start()
    model.learn_many(X[200:400])
    figures = model.metrics()
    assert figures["refit_wait"] >= figures["refit_wait_longest"] > 0
    assert [e.tick - e.asked for e in told(model, RefitDone)][-1] == 200


def test_a_refit_that_is_asked_for_is_made_at_once_in_the_background_mode_too():
    model = background()
    X = blobs(400)
    model.learn_many(X[:180])
    assert model.metrics()["refit_pending"] == 1
    done = model.refit()
    assert (done.tick, done.asked, done.reason) == (180, 180, "asked for")
    assert model.metrics()["refit_pending"] == 0
    model.learn_many(X[180:])
    assert len(model.clusters) == 4


def test_a_failing_estimator_is_told_when_its_refit_is_due_and_the_model_goes_on():
    class Failing(Slow):
        def fit(self, X):
            super().fit(X)
            if len(X) == 50:
                raise ZeroDivisionError("no clusters today")

    gate = threading.Event()
    gate.set()
    model = background(window=50, refit=Failing(gate), refit_lag=20)
    rows = [{"a": float(a), "b": float(b)} for a, b in blobs(400)]
    raised = []
    for i, x in enumerate(rows):
        try:
            model.learn_one(x)
        except ZeroDivisionError:
            raised.append(i + 1)
    assert raised
    assert model.tick_count == 400
    assert len(model.clusters) == 1


def test_features_that_come_while_a_refit_is_pending_do_not_disturb_it():
    model = background()
    X, noise = blobs(900), np.random.default_rng(4).normal(size=900)
    for i, (a, b) in enumerate(X.tolist()):
        x = {"a": a, "b": b}
        model.learn_one(x if i < 180 else {**x, "c": float(noise[i])})
        if i == 179:
            assert model.metrics()["refit_pending"] == 1
    assert len(model.clusters) == 4
    model._engine.tracker._check()


def test_a_cluster_that_dies_while_a_refit_is_pending_is_not_born_again():
    model = background(window=400, refit_lag=700, half_life=None)
    X = np.concatenate([blobs(800), blobs(1200, places=PLACES[:3])])
    model.learn_many(X)
    died = told(model, ClusterDied)
    assert len(died) == 1
    late = [e for e in told(model, RefitDone) if e.asked < died[0].tick < e.tick]
    assert late, "no refit was pending when the cluster died"
    assert not [e for e in told(model, ClusterBorn) if e.tick > 450]


def test_the_mode_makes_no_difference_to_what_a_steady_stream_ends_in():
    X, new = blobs(4000), blobs(500, seed=9)
    inline, behind = StreamClusterer(window=300), background(window=300, refit_lag=400)
    inline.learn_many(X), behind.learn_many(X)
    assert np.mean(inline.predict_many(new) == behind.predict_many(new)) >= 0.98


def test_no_drift_is_found_where_there_is_none():
    for seed in range(3):
        model = StreamClusterer()
        model.learn_many(blobs(60_000, seed))
        assert model.metrics()["drift_alarms"] == 0
        assert {e.reason for e in told(model, RefitDone)} == {"schedule"}


@pytest.mark.parametrize("change", ["wider", "noise"])
def test_drift_brings_a_refit_soon_and_the_schedule_anew(change):
    rng = np.random.default_rng(1)
    before, after = blobs(12_000), blobs(6000, seed=2, spread=1.6 if change == "wider" else 1.0)
    if change == "noise":
        junk = rng.random(6000) < 0.2
        after[junk] = rng.uniform(-40, 50, size=(int(junk.sum()), 2))
    model = StreamClusterer()
    model.learn_many(np.concatenate([before, after]))
    drift = [e.tick for e in told(model, RefitDone) if e.reason == "drift"]
    assert drift
    assert 12_000 < drift[0] < 14_000
    later = [e.tick for e in told(model, RefitDone) if e.tick > drift[0]]
    assert len(later) >= 2  # soon again: the window at the alarm is mostly of the old world
    assert model.metrics()["drift_alarms"] >= 1


def test_evidence_outlives_a_snapshot(tmp_path):
    model = StreamClusterer(window=200)
    X = np.concatenate([blobs(8000), blobs(3000, spread=1.5)])
    model.learn_many(X[:7500])
    model.save(tmp_path / "s")
    again = StreamClusterer.load(tmp_path / "s")
    model.learn_many(X[7500:]), again.learn_many(X[7500:])
    assert [e.reason for e in told(again, RefitDone)].count("drift") >= 1
    assert bytes_of(again) == bytes_of(model)


def test_without_events_a_refit_is_skipped():
    assert isinstance(StreamClusterer().refit(), RefitSkipped)
    assert isinstance(background().refit(), RefitSkipped)


class Nobody:
    """An estimator that calls all noise."""

    def fit(self, X):
        self.labels_ = np.full(len(X), -1)


def test_an_estimator_that_calls_all_noise_finds_no_cluster():
    model = StreamClusterer(window=100, refit=Nobody())
    model.learn_many(blobs(100))
    assert {e.reason for e in told(model, RefitSkipped)} == {"no cluster found"}
    assert not model.clusters
