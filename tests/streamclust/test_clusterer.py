"""The river face: promises of the product, bad input, equality of one and many."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import pytest
from river import checks, compose, preprocessing
from river.checks import common
from sklearn.metrics import adjusted_rand_score

from streamclust import StreamClusterer, snapshot
from streamclust.errors import InvalidParameter, InvalidPoint, NotReady, UnknownCluster
from streamclust.events import Change, ClusterBorn, FeatureAdded, RefitDone, RefitSkipped
from streamclust.results import Box, Region

CENTERS = np.array([[0.0, 0.0, 0.0], [10.0, 0.0, 5.0], [0.0, 12.0, -5.0]])


def blobs(n: int, seed: int = 0, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = CENTERS[y] + rng.normal(size=(n, 3))
    far = rng.random(n) < noise
    X[far] = rng.uniform(-40, 40, (int(far.sum()), 3))
    y[far] = -1
    return X, y


def events(X: np.ndarray) -> list[dict[str, float]]:
    names = [f"f{j}" for j in range(X.shape[1])]
    return [dict(zip(names, row, strict=True)) for row in X.tolist()]


def taught(n: int = 600, data: int = 0, noise: float = 0.05, **options: object) -> StreamClusterer:
    model = StreamClusterer(**options)
    for x in events(blobs(n, data, noise)[0]):
        model.learn_one(x)
    return model


def state(model: StreamClusterer) -> bytes:
    return snapshot.encode(model._state(None))


# ------------------------------------------------------------ the main job


def test_it_finds_the_clusters_the_noise_and_their_rules():
    model = taught()
    assert len(model.clusters) == 3
    X, y = blobs(300, seed=1, noise=0.1)
    labels = np.array([model.predict_one(x) for x in events(X)])
    assert adjusted_rand_score(y[y >= 0], labels[y >= 0]) > 0.97
    assert np.mean(labels[y < 0] == -1) > 0.9
    assert np.mean(labels[y >= 0] == -1) < 0.03


@pytest.mark.parametrize(
    "options",
    [
        {"p": 1},
        {"p": 3.5},
        {"measure": "paper"},
        {"assign": "nearest"},
        {"scale": "standard"},
        {"scale": "none"},
        {"half_life": None},
        {"half_life": 100},
        {"leaves_per_center": 1},
        {"draws": 1},
        {"window": 50},
        {"n_clusters": 3},
        {"seed": -7},
        {"boundary_ratio": 0.9},
    ],
    ids=str,
)
def test_every_setting_does_the_main_job(options):
    model = taught(**options)
    X, y = blobs(300, seed=1)
    labels = [model.predict_one(x) for x in events(X)]
    assert adjusted_rand_score(y, labels) > 0.9
    model._engine.tracker._check()
    model._engine.router.tree._check()


def test_n_clusters_is_obeyed():
    assert len(taught(n_clusters=2).clusters) == 2


def test_max_clusters_is_a_hard_cap():
    assert len(taught(max_clusters=2).clusters) <= 2


def test_without_noise_every_event_gets_a_cluster():
    model = StreamClusterer(noise=False)
    for x in events(blobs(300)[0]):
        model.learn_one(x)
    assert model.predict_one({"f0": 1e6, "f1": 0, "f2": 0}) >= 0


def test_an_estimator_of_the_users_own_finds_the_clusters():
    from sklearn.cluster import DBSCAN, KMeans

    for estimator in (KMeans(3, n_init=2, random_state=0), DBSCAN(eps=0.6)):
        model = taught(refit=estimator, noise=0.0)
        assert len(model.clusters) == 3
        assert model.clone()._get_params()["refit"].get_params() == estimator.get_params()


def test_without_refits_clusters_are_born_from_outliers():
    model = taught(n=2000, refit=None)
    assert len(model.clusters) == 3
    kinds = {type(e) for e in model.events_since(0)}
    assert RefitDone not in kinds
    assert {e.found_by for e in model.events_since(0) if isinstance(e, ClusterBorn)} == {"outliers"}


# ------------------------------------------------------------ promises


def test_cold_is_not_a_cluster():
    model = StreamClusterer()
    assert model.predict_one({"f0": 1.0}) == -1
    assert model.predict_many(np.ones((3, 2))).tolist() == [-1] * 3
    for x in events(blobs(39)[0]):
        assert model.predict_one(x) == -1
        assert model.assign_one(x).region is Region.COLD
        assert model.score_one(x) == 0.0
        assert model.transform_one(x) == {}
        model.learn_one(x)
    with pytest.raises(NotReady, match="no cluster yet after 39 events"):
        model.explain_one(x)


def test_asking_changes_nothing(tmp_path):
    model = taught()
    model.save(tmp_path / "before")
    heard = []
    model.on(Change, heard.append)
    for x in [*events(blobs(50, 3, 0.2)[0]), {"f0": 1.0}, {"f0": 1.0, "new": 3.0}]:
        model.predict_one(x), model.assign_one(x), model.explain_one(x)
        model.score_one(x), model.transform_one(x)
    model.predict_many(blobs(50)[0])
    for c in model.clusters:
        model.rule(c)
    model.centers, model.metrics(), model.events_since(0)
    model.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert not heard


def test_same_seed_same_stream_same_bytes():
    assert state(taught()) == state(taught())


def test_another_seed_draws_another_tree():
    one, two = (taught(seed=s, measure="paper", leaves_per_center=1) for s in (1, 2))
    assert str(one.rule(0)) != str(two.rule(0))


@pytest.mark.parametrize("options", [{}, {"assign": "nearest"}, {"leaves_per_center": 1}], ids=str)
def test_the_rule_is_the_truth(options):
    model = taught(n=900, **options)
    rules = {c: model.rule(c) for c in model.clusters}
    origin = model._engine.scaling.origin
    X = np.concatenate([blobs(300, 5, 0.3)[0], origin + model._engine.window.points()[:100]])
    for x in events(X):
        label, why = model.predict_one(x), model.explain_one(x)
        assert why.label == label
        assert all(condition.holds(x) for condition in why.conditions)
        held = [c for c, rule in rules.items() if any(box.contains(x) for box in rule.boxes)]
        assert len(held) == 1  # the boxes partition space
        if model.assign == "tree" and label >= 0:
            assert held == [label]
            assert why.by_rule
        if label < 0:
            assert not why.fence.holds
            assert model.score_one(x) > 1
        else:
            assert why.fence.holds
            assert model.score_one(x) <= 1


def test_the_printed_threshold_is_the_used_one_at_any_offset():
    for offset in (1e8, -3e15, 7.0):
        model = StreamClusterer()
        X = blobs(400)[0] * 1e-3 + offset
        for x in events(X):
            model.learn_one(x)
        for c in model.clusters:
            for box in model.rule(c).boxes:
                for feature, (low, high) in box.intervals.items():
                    for bound in (low, high):
                        if math.isfinite(bound):
                            for value in (bound, math.nextafter(bound, math.inf)):
                                x = {**events(X[-1:])[0], feature: value}
                                why = model.explain_one(x)
                                assert all(condition.holds(x) for condition in why.conditions)


def test_ids_are_never_used_again():
    model = StreamClusterer(half_life=200)
    seen: set[int] = set()
    dead: set[int] = set()
    rng = np.random.default_rng(0)
    for phase in range(6):
        center = np.array([30.0 * (phase % 3), -20.0 * phase])
        for row in rng.normal(size=(400, 2)) + center:
            model.learn_one({"a": row[0], "b": row[1]})
            now = set(model._engine.tracker.ids)
            assert not now & dead
            dead |= seen - now
            seen |= now
    assert len(seen) >= 4
    assert dead


def test_every_cluster_is_told_when_it_comes_and_when_it_goes():
    model = StreamClusterer(half_life=200)
    rng = np.random.default_rng(1)
    for phase in range(4):
        for row in rng.normal(size=(500, 2)) + 25.0 * phase:
            model.learn_one({"a": row[0], "b": row[1]})
    living: set[int] = set()
    for e in model.events_since(0):
        kind = type(e).__name__
        if kind == "ClusterBorn":
            living.add(e.cluster)
        elif kind == "ClusterDied":
            living.remove(e.cluster)
        elif kind == "ClusterSplit":
            living |= set(e.children)
        elif kind == "ClustersMerged":
            living -= set(e.parents) - {e.child}
    assert living == set(model.clusters)


def test_memory_does_not_grow_with_the_stream():
    model = taught(n=3000)
    size = len(pickle.dumps(model))
    for x in events(blobs(6000, 9, 0.05)[0]):
        model.learn_one(x)
    assert len(pickle.dumps(model)) < 1.3 * size


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_powers_of_two_and_exact_shifts_change_no_answer(noise):
    X, _ = blobs(700, 2, noise)
    X = np.round(X * 2.0**20) / 2.0**20
    runs = []
    for moved in (X, X * 2.0**20, X + 2.0**20):
        model = StreamClusterer()
        labels = []
        for x in events(moved):
            labels.append((model.predict_one(x), model.score_one(x), model.assign_one(x).region))
            model.learn_one(x)
        runs.append(labels)
    assert runs[0] == runs[1]
    assert runs[0] == runs[2]


@pytest.mark.parametrize(("factor", "shift"), [(1e6, 0.0), (1.0, 1e6), (3.7, 12.0)])
def test_units_do_not_matter(factor, shift):
    X, _ = blobs(700, 3, 0.05)
    one, two = StreamClusterer(), StreamClusterer()
    labels = []
    for x, z in zip(events(X), events(X * factor + shift), strict=True):
        labels.append((one.predict_one(x), two.predict_one(z)))
        one.learn_one(x), two.learn_one(z)
    assert adjusted_rand_score(*np.array(labels[100:]).T) >= 0.99


def test_a_zero_weight_is_refused_and_a_large_one_counts():
    model = StreamClusterer()
    for w in (0, -1, float("nan"), float("inf"), "x", None):
        with pytest.raises(InvalidPoint, match=r"w="):
            model.learn_one({"a": 1.0}, w=w)
    assert model.tick_count == 0
    model = taught()
    before = model.clusters[model.predict_one(events(CENTERS[:1])[0])].weight
    model.learn_one(events(CENTERS[:1])[0], w=50)
    after = model.clusters[model.predict_one(events(CENTERS[:1])[0])].weight
    assert after == pytest.approx(before + 50, rel=0.02)


# ------------------------------------------------------------ bad input changes nothing

BAD = [
    {"f0": float("nan"), "f1": 0, "f2": 0},
    {"f0": float("inf"), "f1": 0, "f2": 0},
    {"f0": 0, "f1": "1", "f2": 0},
    {"f0": 0, "f1": None, "f2": 0},
    {"f0": 0, "f1": 0, "f2": 1e151},
    {"f0": 0, "f1": 0, "f2": 10**400},
    {"f0": 0, "f1": 0, "f2": [1]},
    {"f0": float("nan")},
    {"f0": 0, "f1": 0, "f2": 0, "new": "x"},
    {"f0": 0, "f1": 0, "f2": 0, (1, 2): 3},
    {},
    [1, 2, 3],
    None,
]


@pytest.mark.parametrize("warm", [0, 1, 200])
@pytest.mark.parametrize("x", BAD, ids=repr)
def test_a_refused_event_changes_nothing(x, warm):
    model = taught(warm)
    before = state(model)
    for call in (
        model.learn_one,
        model.predict_one,
        model.assign_one,
        model.score_one,
        model.transform_one,
        model.explain_one,
    ):
        with pytest.raises(InvalidPoint, match="event"):
            call(x)
    assert state(model) == before


def test_a_refused_row_is_named_and_the_rows_before_it_stay_learned():
    X = blobs(100)[0]
    X[60, 1] = np.nan
    model = StreamClusterer()
    with pytest.raises(InvalidPoint, match="row 60: feature 'f1' is nan"):
        model.learn_many(X)
    before = StreamClusterer()
    before.learn_many(X[:60])
    assert state(model) == state(before)
    with pytest.raises(InvalidPoint, match="row 60"):
        model.predict_many(X)
    with pytest.raises(InvalidPoint, match="2 columns; 3 features are known"):
        model.learn_many(X[:, :2])


def test_numbers_of_every_type_are_the_same_number():
    models = [StreamClusterer() for _ in range(4)]
    for row in blobs(60)[0].round(3).tolist():
        for model, kind in zip(models, (float, np.float64, Decimal, lambda v: v), strict=True):
            model.learn_one({f"f{j}": kind(v) for j, v in enumerate(row)})
    assert len({state(model) for model in models}) == 1


def test_absent_features_are_stood_in_for_and_told():
    model = taught()
    x = events(CENTERS[1:2])[0]
    del x["f2"]
    found = model.assign_one(x)
    assert found.substituted == ("f2",)
    assert model.explain_one(x).substituted == ("f2",)
    model.learn_one(x)
    zero, refuse = taught(missing="zero"), taught(missing="refuse")
    assert zero.assign_one(x).substituted == ("f2",)
    for call in (refuse.learn_one, refuse.predict_one):
        with pytest.raises(InvalidPoint, match="'f2' is absent and missing='refuse'"):
            call(x)


def test_a_new_feature_joins_at_the_next_refit_and_an_event_says_so():
    rng = np.random.default_rng(0)
    model = StreamClusterer()
    for row in rng.normal(size=(300, 2)).tolist():
        model.learn_one({"a": row[0], "b": row[1]})
    for i, row in enumerate(rng.normal(size=(800, 2)).tolist()):
        model.learn_one({"a": row[0], "b": row[1], "c": 100.0 * (i % 2) + rng.normal()})
        if i == 0:
            told = model.events_since(0)[-1]
            assert isinstance(told, FeatureAdded)
            assert told.features == ("c",)
            assert model._engine.scaling.weights[2] == 0
    model.refit()
    assert model._engine.scaling.weights[2] > 0
    labels = {model.predict_one({"a": 0, "b": 0, "c": c}) for c in (0, 100)}
    assert len(labels) == 2
    assert min(labels) >= 0


def test_too_many_features_are_refused():
    model = StreamClusterer(max_features=3)
    with pytest.raises(InvalidPoint, match="max_features=3"):
        model.learn_one(dict.fromkeys("abcd", 1.0))
    model.learn_one(dict.fromkeys("abc", 1.0))
    before = state(model)
    with pytest.raises(InvalidPoint, match="max_features=3"):
        model.learn_one(dict.fromkeys("abcd", 1.0))
    assert state(model) == before


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((200, 3)),
        np.ones((200, 1)),
        np.tile([[1.0, 2.0], [1.0, 5.0]], (100, 1)),
        np.arange(200.0)[:, None],
        np.full((60, 2), 1e150),
        np.full((60, 2), 5e-324),
        np.random.default_rng(0).integers(-1, 2, (400, 4)).astype(float),
        np.repeat(np.random.default_rng(1).normal(size=(30, 2)), 10, axis=0),
    ],
    ids=["zeros", "d1", "two", "line", "huge", "subnormal", "ternary", "duplicates"],
)
@pytest.mark.parametrize("p", [1, 2, 8])
def test_degenerate_streams_work(X, p):
    model = StreamClusterer(p=p)
    for x in events(X):
        model.predict_one(x), model.learn_one(x)
    assert model.clusters
    for x in events(X[-5:]):
        assert model.predict_one(x) in model.clusters or model.predict_one(x) == -1
        model.explain_one(x)
    model._engine.tracker._check()
    model._engine.router.tree._check()


def test_ten_thousand_features_work():
    rng = np.random.default_rng(0)
    model = StreamClusterer(window=50)
    model.learn_many(rng.normal(size=(60, 10_000)) + 3 * (np.arange(60) % 2)[:, None])
    assert 1 <= len(model.clusters) <= 3


def test_time_may_not_go_back_further_than_allowed():
    model = StreamClusterer(max_lateness=5)
    model.learn_one({"a": 1}, t=100)
    model.learn_one({"a": 1}, t=100)
    model.learn_one({"a": 1}, t=95.5)
    model.learn_one({"a": 1})
    before = state(model)
    with pytest.raises(InvalidPoint, match=r"got t=94\.0, 6 before the latest, 100\.0"):
        model.learn_one({"a": 1}, t=94)
    with pytest.raises(InvalidPoint, match="before the latest"):
        model.learn_many([[1.0]], t=[94])
    assert state(model) == before


@pytest.mark.parametrize("t", [float("nan"), float("inf"), "noon", [1]], ids=repr)
def test_what_is_no_time_is_refused(t):
    model = StreamClusterer()
    with pytest.raises(InvalidPoint, match="t="):
        model.learn_one({"a": 1}, t=t)
    with pytest.raises(InvalidPoint, match="t="):
        model.tick(t)


def test_seconds_need_a_time_with_every_event():
    model = StreamClusterer(time_unit="seconds")
    with pytest.raises(InvalidPoint, match="needs the time of every event"):
        model.learn_one({"a": 1})
    assert model.tick_count == 0


def test_fading_by_seconds_follows_the_clock_not_the_count():
    start = datetime(2026, 1, 1, tzinfo=UTC)
    model = StreamClusterer(time_unit="seconds", half_life=60)
    for i, x in enumerate(events(blobs(300)[0])):
        model.learn_one(x, t=start + timedelta(seconds=i))
    weights = [c.weight for c in model.clusters.values()]
    assert sum(weights) == pytest.approx(60 / math.log(2), rel=0.25)
    model.learn_one(x, t=(start + timedelta(seconds=359)).replace(tzinfo=None))
    assert model.clusters[0].weight < 0.7 * weights[0]


def test_silence_is_noticed_while_time_passes():
    model = StreamClusterer(time_unit="seconds", half_life=600)
    for i, x in enumerate(events(blobs(400)[0])):
        model.learn_one(x, t=float(i))
    model.tick(450)
    assert len(model.clusters) == 3
    model.tick(5000)
    assert not model.clusters
    assert [type(e).__name__ for e in model.events_since(0)[-3:]] == ["ClusterDied"] * 3
    with pytest.raises(InvalidPoint, match="does not go back"):
        model.tick(4000)
    with pytest.raises(InvalidPoint, match="before the latest"):
        model.learn_one(x, t=4000)


@pytest.mark.parametrize(
    "bad",
    [
        {"p": 0.5},
        {"p": math.inf},
        {"p": "2"},
        {"n_clusters": 0},
        {"window": 49},
        {"window": 100_001},
        {"half_life": 0},
        {"half_life": -1},
        {"scale": "iqr"},
        {"assign": "leaf"},
        {"draws": 0},
        {"leaves_per_center": 65},
        {"boundary_ratio": 1.0},
        {"missing": "mean"},
        {"event_log": -1},
        {"max_lateness": -1},
        {"seed": 0.5},
        {"noise": 1},
        {"refit": "kmeans"},
        {"refit": 3},
        {"refit_mode": "thread"},
        {"refit_lag": 0},
        {"time_unit": "minutes"},
    ],
    ids=str,
)
def test_a_bad_parameter_is_named_with_its_value_and_range(bad):
    (name,) = bad
    with pytest.raises(InvalidParameter, match=f"{name}=.*accepted"):
        StreamClusterer(**bad)


def test_an_unknown_cluster_is_told():
    with pytest.raises(UnknownCluster, match="no living cluster has id 99; living: 0, 1, 2"):
        taught().rule(99)


# ------------------------------------------------------------ one and many


@pytest.mark.parametrize("block", [1, 7, 256, 10_000])
def test_many_equals_one_by_one_to_the_bit(block):
    X, _ = blobs(1500, 4, 0.08)
    model = StreamClusterer()
    for start in range(0, len(X), block):
        model.learn_many(X[start : start + block])
    one = taught(1500, 4, 0.08)
    assert state(model) == state(one)
    many = model.predict_many(X)
    assert many.dtype == np.int64
    assert many.tolist() == [one.predict_one(x) for x in events(X)]


def test_many_with_times_and_weights_equals_one_by_one():
    X, _ = blobs(300)
    t, w = np.arange(300) * 0.5, np.random.default_rng(0).uniform(0.5, 2, 300)
    one, many = (StreamClusterer(time_unit="seconds", half_life=100) for _ in range(2))
    many.learn_many(X, t=t, w=w)
    for x, when, weight in zip(events(X), t, w, strict=True):
        one.learn_one(x, t=when, w=weight)
    assert state(one) == state(many)


def test_data_frames_are_read_by_column_name():
    import pandas as pd

    X, _ = blobs(400)
    frame = pd.DataFrame(X, columns=["f0", "f1", "f2"])
    one, two = StreamClusterer(), StreamClusterer()
    one.learn_many(frame)
    two.learn_many(frame.iloc[:200])
    two.learn_many(frame[["f2", "f0", "f1"]].iloc[200:])
    assert state(one) == state(two)
    assert one.predict_many(frame[["f1", "f2", "f0"]]).tolist() == one.predict_many(X).tolist()
    less = one.predict_many(frame[["f0", "f1"]])
    assert less.tolist() == [one.predict_one(x) for x in frame[["f0", "f1"]].to_dict("records")]


def test_float32_rows_equal_their_float64_values():
    X = blobs(300)[0].astype(np.float32)
    one, two = StreamClusterer(), StreamClusterer()
    one.learn_many(X)
    two.learn_many(X.astype(np.float64))
    assert state(one) == state(two)


def test_empty_tables_are_nothing():
    model = taught()
    before = state(model)
    model.learn_many(np.zeros((0, 3)))
    assert model.predict_many(np.zeros((0, 3))).tolist() == []
    assert state(model) == before


# ------------------------------------------------------------ changes


def test_subscribers_hear_what_the_log_keeps():
    model = StreamClusterer()
    born, everything = [], []
    model.on(ClusterBorn, born.append)
    end = model.on(Change, everything.append)
    X = blobs(200)[0]
    model.learn_many(X)
    assert tuple(everything) == tuple(model.events_since(0))
    assert [e.cluster for e in born] == [0, 1, 2]
    end()
    end()
    count = len(everything)
    model.refit()
    assert len(everything) == count
    assert [e.number for e in model.events_since(0)] == list(
        range(1, model.metrics()["changes"] + 1)
    )


def test_a_subscribers_exception_reaches_the_caller_after_the_event_was_learned():
    model = StreamClusterer()

    def fail(_):
        raise RuntimeError("mine")

    model.on(RefitDone, fail)
    for x in events(blobs(39)[0]):
        model.learn_one(x)
    with pytest.raises(RuntimeError, match="mine"):
        model.learn_one(x)
    assert model.tick_count == 40
    assert model.clusters


def test_a_refit_can_be_asked_for():
    model = StreamClusterer()
    assert isinstance(model.refit(), RefitSkipped)
    model.learn_many(blobs(30)[0])
    done = model.refit()
    assert isinstance(done, RefitDone)
    assert done.reason == "asked for"
    assert model.clusters


def test_figures_are_flat_numbers():
    figures = taught().metrics()
    assert all(isinstance(v, int | float) for v in figures.values())
    assert figures["events"] == 600
    assert figures["clusters"] == 3
    assert 0 < figures["noise_share"] < 0.15
    assert figures["window_fidelity"] > 0.95
    assert 1 <= figures["window_price"] < 1.1
    cold = StreamClusterer().metrics()
    assert cold["events"] == 0
    assert math.isnan(cold["window_fidelity"])


# ------------------------------------------------------------ river


class Dataset:
    """Events with a target that river's check functions can iterate over again and again."""

    def __init__(self, n: int) -> None:
        X, y = blobs(n)
        self.rows = [
            (x, int(c)) for x, c in zip(events(np.hstack([X, X * 2, X + 1])), y, strict=True)
        ]

    def __iter__(self):
        return iter(self.rows)


def test_it_passes_rivers_checks_on_clusterer_data():
    data_checks = [
        getattr(common, name)
        for name in dir(common)
        if name.startswith("check_") and "dataset" in common.__dict__[name].__code__.co_varnames
    ]
    names = {check.__name__ for check in data_checks}
    assert {"check_learn_one", "check_shuffle_features_no_impact", "check_pickling"} <= names
    for check in data_checks:
        if check is not common.check_debug_one:  # an optional method that no clusterer has
            check(StreamClusterer(window=50), Dataset(120))
    for check in checks.yield_checks(StreamClusterer()):
        check(StreamClusterer())


def test_it_stands_at_the_end_of_a_pipeline():
    model = compose.Pipeline(preprocessing.StandardScaler(), StreamClusterer(scale="none"))
    X, y = blobs(600)
    labels = []
    for x in events(X):
        labels.append(model.predict_one(x))
        model.learn_one(x)
    assert adjusted_rand_score(y[300:], labels[300:]) > 0.9


def test_clones_and_copies():
    model = taught()
    clone = model.clone({"p": 1})
    assert clone.p == 1
    assert clone.tick_count == 0
    twin, thawed = copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    for x in events(blobs(200, 8)[0]):
        model.learn_one(x), twin.learn_one(x), thawed.learn_one(x)
    assert state(model) == state(twin) == state(thawed)


# ------------------------------------------------------------ rules for readers


def test_rules_read_in_few_digits_and_hold_exactly():
    model = taught()
    rule = model.rule(0)
    assert len(rule.lines) == len(rule.boxes)
    digits = [len(word.strip("()").replace(".", "")) for word in str(rule).split() if "." in word]
    assert max(digits) <= 6
    window = model._engine.scaling.origin + model._engine.window.points()
    for x in events(window):
        held = [c for c in model.clusters if any(b.contains(x) for b in model.rule(c).boxes)]
        assert len(held) == 1


def sides(text):
    """The intervals that a printed line tells, by feature."""
    box = {}
    for part in text.split(" and "):
        words = part.split()
        if len(words) == 5:
            box[words[2]] = (float(words[0]), float(words[4]))
        else:
            low, high = (-math.inf, words[2]) if words[1] == "<=" else (words[2], math.inf)
            box[words[0]] = (float(low), float(high))
    return box


def test_a_printed_answer_is_true_of_its_event_and_means_the_same_on_the_window():
    model = taught(n=900)
    window = events(model._engine.scaling.origin + model._engine.window.points())
    X = blobs(100, 5, 0.3)[0]
    bounds = [b for box in model.rule(0).boxes for f, i in box.intervals.items() for b in i]
    X[:, 0] = [
        b if math.isfinite(b) else 0.0 for b in itertools.islice(itertools.cycle(bounds), 100)
    ]
    for x in events(X):
        why = model.explain_one(x)
        told, exact = Box(sides(why.line)), Box.of(why.conditions)
        assert told.contains(x)
        assert exact.contains(x)
        assert all(told.contains(y) == exact.contains(y) for y in window)
        assert str(why) == f"{why.line}; {why.fence}"
        assert told.n_bounds == exact.n_bounds <= len(why.conditions)


def test_what_is_printed_against_an_answer_is_untrue_of_its_event():
    model = taught()
    for x in events(blobs(40, 3, 0.3)[0]):
        for c in model.clusters:
            why = model.why_not_one(x, c)
            if why.conditions:
                told = Box(sides(why.line))
                assert not any(
                    Box({f: interval}).contains(x) for f, interval in told.intervals.items()
                )


def test_why_not_names_the_smallest_change_that_lands_an_event_there():
    model = taught()
    for start, end in itertools.permutations(range(3), 2):
        x = events(CENTERS[start : start + 1])[0]
        here, there = model.predict_one(x), model.predict_one(events(CENTERS[end : end + 1])[0])
        why = model.why_not_one(x, there)
        assert (why.cluster, why.label) == (there, here)
        if why.change is None:
            assert why.conditions
            assert not all(c.holds(x) for c in why.conditions)
        else:
            assert model.predict_one({**x, **why.change}) == there
            assert why.fence.holds or model.score_one({**x, **why.change}) <= 1
        assert str(why)
    assert model.why_not_one(x, here).change == {}
    with pytest.raises(UnknownCluster):
        model.why_not_one(x, 99)


def test_why_not_of_a_near_event_is_one_step_over_the_threshold():
    rng = np.random.default_rng(0)
    model = StreamClusterer()
    for i in range(600):
        model.learn_one({"load": rng.normal(0.3 + 0.1 * (i % 2), 0.01), "temp": rng.normal(50, 2)})
    low, high = (model.predict_one({"load": v, "temp": 50}) for v in (0.3, 0.4))
    why = model.why_not_one({"load": 0.33, "temp": 50.0}, high)
    assert low != high
    assert list(why.change) == ["load"]
    assert 0.33 < why.change["load"] < 0.39
    assert str(why).startswith("with load = 0.3")


def test_fidelity_and_price_are_live():
    assert math.isnan(StreamClusterer().fidelity())
    assert math.isnan(StreamClusterer().price_of_explainability())
    model = taught(1500)
    assert 0.98 <= model.fidelity() <= 1.0
    assert 1.0 <= model.price_of_explainability() < 1.05
