"""Beginning warm; names and pins; clusters of several centers; windows of a user's choice."""

from __future__ import annotations

import numpy as np
import pytest

from streamclust import Reservoir, SlidingWindow, StreamClusterer, snapshot
from streamclust.errors import InvalidParameter, InvalidPoint, UnknownCluster
from streamclust.events import ClusterBorn, ClusterDied, ClustersMerged, RefitDone
from tests.streamclust.test_refitting import PLACES, blobs, told


def moons(n: int, seed: int):
    rng = np.random.default_rng(seed)
    which, angle = rng.integers(0, 2, n), np.pi * rng.random(n)
    turn = np.where(which == 0, 1.0, -1.0)
    X = np.column_stack([np.cos(angle) * turn + which, np.sin(angle) * turn + 0.5 * which])
    return X + 0.05 * rng.normal(size=X.shape), which


# ------------------------------------------------------------ warm start


def test_a_batch_is_learned_and_clustered_at_once():
    model = StreamClusterer()
    X = blobs(700)
    model.fit_initial(X)
    assert model.tick_count == 700
    assert len(model.clusters) == 4
    assert [e.reason for e in told(model, RefitDone)] == ["initial"]
    model.learn_many(blobs(2000, seed=1))
    assert sorted(model.clusters) == [0, 1, 2, 3]


def test_a_small_batch_needs_no_warm_up():
    model = StreamClusterer()
    model.fit_initial(blobs(20))
    assert model.clusters
    assert model.predict_one({"f0": 0.0, "f1": 0.0}) >= 0


def test_given_labels_are_the_clusters():
    X = blobs(400)
    labels = (X[:, 0] > 5).astype(int)
    labels[::50] = -1
    model = StreamClusterer()
    model.fit_initial(X, labels=labels)
    kept = labels >= 0
    assert np.mean(model.predict_many(X)[kept] == labels[kept]) > 0.95
    assert sorted(model.clusters) == [0, 1]


@pytest.mark.parametrize("alone", [True, False])
def test_given_centers_are_where_clusters_begin(alone):
    model = StreamClusterer()
    if alone:
        model.fit_initial(centers=PLACES)
        assert model.tick_count == 0
    else:
        model.fit_initial(blobs(300), centers=PLACES)
    assert model.predict_many(PLACES).tolist() == [0, 1, 2, 3]
    assert model.predict_one({"f0": 1000.0, "f1": 0.0}) == -1
    model.learn_many(blobs(3000, seed=3))
    assert sorted(model.clusters) == [0, 1, 2, 3]
    assert not told(model, ClusterDied)
    model._engine.tracker._check()


def test_named_columns_of_centers_come_in_any_order():
    pandas = pytest.importorskip("pandas")
    model = StreamClusterer()
    X = pandas.DataFrame(blobs(300), columns=["a", "b"])
    model.fit_initial(X, centers=pandas.DataFrame({"b": [0.0, 10.0], "a": [0.0, 0.0]}))
    assert model.predict_one({"a": 0.0, "b": 10.0}) == 1


def test_a_wrong_warm_start_is_refused_and_leaves_the_model_cold(tmp_path):
    X = blobs(60)
    cases = [
        ({}, "takes X"),
        ({"centers": PLACES[:1]}, "at least two centers"),
        ({"X": X, "labels": [0]}, "60 integers"),
        ({"X": X, "labels": np.full(60, 0.5)}, "60 integers"),
        ({"X": X, "labels": np.full(60, -1)}, "at least 0"),
        ({"X": X, "labels": np.zeros(60, dtype=int), "centers": PLACES}, "one of them"),
    ]
    for given, words in cases:
        model = StreamClusterer()
        before = snapshot.encode(model._state(None))
        with pytest.raises(InvalidParameter, match=words):
            model.fit_initial(**given)
        assert snapshot.encode(model._state(None)) == before
    model = StreamClusterer()
    with pytest.raises(InvalidPoint, match="row 1"):
        model.fit_initial(centers=[[0.0, 1.0], [np.nan, 1.0]])
    model = StreamClusterer()
    model.learn_one({"a": 1.0})
    with pytest.raises(InvalidParameter, match="before the first event; 1 were learned"):
        model.fit_initial(X)


# ------------------------------------------------------------ names and pins


def test_a_name_goes_with_its_cluster(tmp_path):
    model = StreamClusterer(window=200)
    model.learn_many(blobs(1000))
    model.name(2, "fraud")
    assert model.clusters[2].name == "fraud"
    assert model.clusters[1].name is None
    model.save(tmp_path / "s")
    again = StreamClusterer.load(tmp_path / "s")
    again.learn_many(blobs(2000, seed=5))
    assert again.clusters[2].name == "fraud"
    again.name(2, None)
    assert again.clusters[2].name is None
    for wrong in (99, -1):
        with pytest.raises(UnknownCluster):
            again.name(wrong, "x")
        with pytest.raises(UnknownCluster):
            again.pin(wrong)
    with pytest.raises(InvalidParameter, match="a string"):
        again.name(2, 3)


@pytest.mark.parametrize("pinned", [True, False])
def test_a_pinned_cluster_outlives_its_silence_and_every_refit(tmp_path, pinned):
    model = StreamClusterer(window=200, half_life=300)
    model.learn_many(blobs(1000))
    gone = model.predict_one({"f0": 10.0, "f1": 10.0})
    if pinned:
        model.pin(gone)
        assert model.clusters[gone].pinned
    model.learn_many(blobs(6000, seed=1, places=PLACES[:3]))
    model.refit()
    assert (gone in model.clusters) == pinned
    if pinned:
        model.save(tmp_path / "s")
        again = StreamClusterer.load(tmp_path / "s")
        assert again.clusters[gone].pinned
        assert again.predict_one({"f0": 10.0, "f1": 10.0}) == gone
        again.unpin(gone)
        again.learn_many(blobs(6000, seed=2, places=PLACES[:3]))
        assert gone not in again.clusters
        again._engine.tracker._check()


def test_a_pinned_cluster_is_never_absorbed():
    near = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 40.0]])
    for pinned in (0, 1):
        model = StreamClusterer(window=300, half_life=300)
        model.learn_many(blobs(1500, places=near))
        ids = [model.predict_one({"f0": a, "f1": b}) for a, b in near.tolist()]
        assert len(set(ids)) == 3
        model.pin(ids[pinned])
        rng = np.random.default_rng(0)
        for share in np.linspace(0, 1, 30):  # the two come together
            places = near + np.array([[4.0 * share, 0.0], [-4.0 * share, 0.0], [0.0, 0.0]])
            model.learn_many(blobs(200, int(rng.integers(1e6)), places))
        model.refit()
        assert ids[pinned] in model.clusters
        merged = told(model, ClustersMerged)
        assert all(e.child == ids[pinned] for e in merged if ids[pinned] in e.parents)


# ------------------------------------------------------------ several centers


@pytest.mark.parametrize("assign", ["nearest", "tree"])
def test_bent_clusters_get_several_centers_and_keep_one_id(assign, tmp_path):
    X, truth = moons(4000, 0)
    model = StreamClusterer(assign=assign, refit=Truth(X, truth), noise=False)
    model.learn_many(X[:2500])
    clusters = model.clusters
    assert sorted(clusters) == sorted({e.cluster for e in told(model, ClusterBorn)})
    assert len(clusters) == 2
    assert all(len(c.centers) > 1 for c in clusters.values())
    assert sorted(model.centers) == sorted(i for c in clusters.values() for i in c.centers)
    found = model.predict_many(X[2500:])
    ids = sorted(clusters)
    right = np.mean(np.array(ids)[truth[2500:]] == found)
    assert max(right, 1 - right) > 0.95
    for x in ({"f0": a, "f1": b} for a, b in X[2500:2600].tolist()):
        label = model.predict_one(x)
        boxes = model.rule(label).boxes
        if assign == "tree":
            assert any(box.contains(x) for box in boxes)
            assert model.explain_one(x).by_rule
        assert set(model.transform_one(x)) == set(ids)
        assert label not in model.assign_one(x).alternatives
        other = next(i for i in ids if i != label)
        assert model.why_not_one(x, other).cluster == other
    model.save(tmp_path / "s")
    again = StreamClusterer.load(tmp_path / "s", refit=Truth(X, truth))
    model.learn_many(X[2500:]), again.learn_many(X[2500:])
    assert snapshot.encode(again._state(None)) == snapshot.encode(model._state(None))
    assert sorted(model.clusters) == ids
    model._engine.tracker._check()


class Truth:
    """An estimator that knows the true label of every point, up to scale."""

    def __init__(self, X, truth):
        self._X, self._truth = (X - X.mean(axis=0)) / X.std(axis=0), truth

    def fit(self, X):
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        apart = ((X[:, None] - self._X[None]) ** 2).sum(axis=2)
        self.labels_ = self._truth[apart.argmin(axis=1)].astype(np.int64)


# ------------------------------------------------------------ windows


def test_a_sliding_window_keeps_the_newest(tmp_path):
    given = SlidingWindow(80)
    model = StreamClusterer(window=given)
    X = blobs(500)
    model.learn_many(X[:300])
    model.save(tmp_path / "s")
    model = StreamClusterer.load(tmp_path / "s")
    model.learn_many(X[300:])
    window = model._engine.window
    kept = window.points() + model._engine.scaling.origin
    assert sorted(map(tuple, kept.round(9))) == sorted(map(tuple, X[-80:].round(9)))
    assert given.is_empty
    assert repr(model.window) == "SlidingWindow(capacity=80)"


def test_a_uniform_reservoir_remembers_the_beginning():
    model = StreamClusterer(window=Reservoir(200), half_life=100)
    model.learn_many(blobs(2000))
    times = model._engine.window.slots[:, -3]
    assert abs(times.mean() - 1000) < 4 * 577 / np.sqrt(200)
    fading = StreamClusterer(window=200, half_life=100)
    fading.learn_many(blobs(2000))
    assert fading._engine.window.slots[:, -3].mean() > 1700


def test_wrong_windows_are_refused():
    for wrong in (0, 1.5, True, "many"):
        with pytest.raises(InvalidParameter, match="capacity"):
            SlidingWindow(wrong)
    with pytest.raises(InvalidParameter, match="half_life"):
        Reservoir(10, 0)
