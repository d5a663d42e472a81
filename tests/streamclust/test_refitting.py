"""Refits inline and in the background, their schedule, and evidence of drift."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from streamclust import StreamClusterer, snapshot
from streamclust.events import ClusterBorn, ClusterDied, RefitDone, RefitSkipped

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
