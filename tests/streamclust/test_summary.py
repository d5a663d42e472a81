"""Summaries: parts that are put together in any order, and bytes that may come from anywhere."""

from __future__ import annotations

import pickle
import tracemalloc
from functools import cache, reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamclust import SlidingWindow, StreamClusterer
from streamclust.errors import InvalidPoint, SnapshotError, StaleSummary
from streamclust.frozen import Frozen
from streamclust.summary import CANDIDATES, Summary, summarise

CENTERS = np.array([[0.0, 0, 0], [9, 0, 3], [0, 9, 6]])


def points(n, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = CENTERS[rng.integers(0, 3, n)] + rng.normal(size=(n, 3))
    wild = rng.random(n) < noise
    return np.where(wild[:, None], rng.uniform(-20, 30, (n, 3)), X)


@cache
def warm(seconds=False, p=2.0, window=60):
    options = {"time_unit": "seconds"} if seconds else {}
    model = StreamClusterer(window=window, p=p, **options)
    model.learn_many(points(300), t=np.arange(300) if seconds else None)
    assert model.clusters
    return model


def summary_of(frozen, X, rows, ids=True, **more):
    more = {name: value[rows] for name, value in more.items()}
    return summarise(X[rows], frozen, ids=rows if ids else None, **more)


def same(a, b, *, exact=False):
    """Whether two summaries agree: counts and rows to the bit, sums to 1e-12."""
    for name in Summary.__slots__:
        left, right = getattr(a, name), getattr(b, name)
        if name in ("masses", "pulls", "costs"):
            assert np.allclose(left.high, right.high, rtol=0 if exact else 1e-12, atol=0)
        elif name in ("sample", "outliers"):
            for part in ("rows", "keys", "draws"):
                told = getattr(left, part), getattr(right, part)
                assert np.array_equal(*told, equal_nan=part == "rows"), (name, part)
        else:
            assert np.array_equal(left, right), name
    return True


@st.composite
def cuts(draw):
    """A number of rows, and to which of up to eight parts each goes."""
    n = draw(st.integers(0, 200))
    return np.array(draw(st.lists(st.integers(0, 7), min_size=n, max_size=n)), dtype=int)


@given(cuts(), st.randoms(use_true_random=False), st.booleans(), st.sampled_from([1.0, 1.5, 2.0]))
@settings(max_examples=60, deadline=None)
def test_any_cut_in_any_order_gives_the_same_summary(where, random, seconds, p):
    frozen, n = warm(seconds, p).freeze(), len(where)
    X, more = points(n, seed=n), {"w": np.linspace(0.1, 3.7, n)}
    if seconds:
        more["t"] = 300.0 + np.arange(n) % 17
    whole = summary_of(frozen, X, np.arange(n), **more)
    parts = [summary_of(frozen, X, np.flatnonzero(where == p), **more) for p in range(8)]
    random.shuffle(parts)
    assert same(reduce(Summary.merge, parts), whole)
    while len(parts) > 1:  # as a tree of random shape
        a, b = random.sample(range(len(parts)), 2)
        parts[min(a, b)] = parts[min(a, b)].merge(parts.pop(max(a, b)))
    assert same(parts[0], whole)


@given(cuts())
@settings(max_examples=30, deadline=None)
def test_without_ids_the_content_draws(where):
    frozen, X = warm().freeze(), points(len(where), seed=1)
    parts = [summary_of(frozen, X, np.flatnonzero(where == p), ids=False) for p in range(8)]
    assert same(reduce(Summary.merge, parts), summary_of(frozen, X, np.arange(len(X)), ids=False))


@given(cuts())
@settings(max_examples=30, deadline=None)
def test_bytes_are_read_back(where):
    frozen, X = warm().freeze(), points(len(where), seed=2)
    told = summary_of(frozen, X, np.arange(len(X)))
    assert same(Summary.from_bytes(told.to_bytes()), told, exact=True)
    assert Summary.from_bytes(told.to_bytes()).to_bytes() == told.to_bytes()


@pytest.mark.parametrize("options", [{}, {"assign": "nearest"}, {"noise": False}, {"p": 1.0}])
def test_a_frozen_model_answers_as_the_model(options):
    model = StreamClusterer(window=60, **options)
    assert model.freeze().predict_many(points(5)).tolist() == [-1] * 5
    model.learn_many(points(500))
    for frozen in (
        model.freeze(rules=True),
        Frozen.from_bytes(model.freeze(rules=True).to_bytes()),
        pickle.loads(pickle.dumps(model.freeze(rules=True))),
    ):
        X = points(400, seed=3)
        told = frozen.answer_many(X)
        assert np.array_equal(told.labels, model.predict_many(X))
        for i, x in enumerate(X):
            one = model.assign_one(dict(zip(("f0", "f1", "f2"), x.tolist(), strict=True)))
            assert (told.labels[i], told.regions[i]) == (one.label, one.region)
            assert told.distances[i] == one.distance
        assert frozen.rules == {c: str(model.rule(c)) for c in model.clusters}


def test_rules_make_no_other_state():
    model = StreamClusterer(window=60)
    model.learn_many(points(100))
    model.apply(summarise(points(10), model.freeze(rules=True)))
    assert model.tick_count == 110


def test_a_frozen_model_is_small_and_does_not_change_with_its_model():
    model = StreamClusterer()
    model.learn_many(points(6000))
    frozen = model.freeze()
    X, before = points(100, seed=4), frozen.mark
    labels = frozen.predict_many(X)
    assert len(frozen.to_bytes()) < 30_000
    model.learn_many(points(1000, seed=5) + 3.0)
    assert np.array_equal(frozen.predict_many(X), labels)
    assert model.freeze().mark != before


def test_what_the_model_does_not_take_is_counted_and_told():
    model = StreamClusterer(window=60, time_unit="seconds", max_lateness=5)
    model.learn_many(points(300), t=np.arange(300.0))
    X = points(12, seed=6)
    t = np.full(12, 300.0)
    X[0, 1], X[1, 0], X[2, 2] = np.nan, np.inf, -1e200
    t[3], t[4], t[5], t[6] = np.nan, np.inf, 290.0, 295.0
    absent = np.zeros((12, 3), dtype=bool)
    absent[7], absent[8, 1] = True, True
    w = np.ones(12)
    w[9], w[10] = 0.0, np.nan
    frozen = model.freeze()
    told = summarise(X, frozen, t=t, w=w, absent=absent)
    assert (told.learned, told.refused) == (3, 9)
    refused = frozen.answer_many(X, t=t, absent=absent).refused
    assert sorted(refused) == [0, 1, 2, 3, 4, 5, 7]
    assert "feature 'f1' is nan" in refused[0]
    assert "t=290.0" in refused[5]
    assert "without features" in refused[7]
    model.apply(told)
    assert model.tick_count == 303


def test_texts_and_none_in_a_mapping_of_columns():
    frozen = warm().freeze()
    columns = {
        "f0": np.array([1.0, None, "broken", 4], dtype=object),
        "f1": np.ma.masked_array([1.0, 2.0, 3.0, 4.0], [False, True, False, False]),
        "f2": [0.0, np.nan, 0.0, 0.0],
    }
    told = frozen.answer_many(columns)
    assert sorted(told.refused) == [1, 2]
    assert "'broken'" in told.refused[2]
    assert list(told.regions[[1, 2]]) == ["refused"] * 2
    assert summarise(columns, frozen).learned == 2


def test_missing_refuse_is_heeded():
    model = StreamClusterer(window=60, missing="refuse")
    model.learn_many(points(100))
    told = summarise({"f0": [1.0], "f2": [2.0]}, model.freeze())
    assert (told.learned, told.refused) == (0, 1)


@pytest.mark.parametrize(
    ("X", "more"),
    [
        (np.zeros((3, 2)), {}),
        (np.zeros(3), {}),
        (np.zeros((3, 3)), {"t": np.zeros(2)}),
        (np.zeros((3, 3)), {"ids": ["a"]}),
        (np.zeros((3, 3)), {"absent": np.zeros((3, 2), dtype=bool)}),
        ({"f0": np.zeros(2), "f1": np.zeros(3)}, {}),
        ({0.5: np.zeros(2)}, {}),
    ],
)
def test_arguments_that_do_not_fit_are_refused(X, more):
    with pytest.raises(InvalidPoint, match=r"accepted|known|names are"):
        summarise(X, warm().freeze(), **more)


def test_parts_of_different_states_do_not_merge():
    model = StreamClusterer(window=60)
    model.learn_many(points(100))
    old = summarise(points(10), model.freeze())
    model.learn_many(points(1))
    with pytest.raises(StaleSummary, match="different states"):
        old.merge(summarise(points(10), model.freeze()))
    before = model.freeze().mark
    with pytest.raises(StaleSummary, match="another state"):
        model.apply(old)
    assert model.freeze().mark == before


def test_a_summary_is_bounded():
    model = StreamClusterer(window=60)
    model.learn_many(points(300))
    frozen = model.freeze()
    few = len(summarise(points(3_000, noise=1.0), frozen).to_bytes())
    told = summarise(points(60_000, noise=1.0), frozen)
    assert len(told.sample) == 60
    assert len(told.outliers) == CANDIDATES
    assert len(told.to_bytes()) < few + 500


def test_the_sample_is_fair():
    """Of many batches every event is kept as often as any other, heavy ones more often."""
    frozen, n = StreamClusterer(window=50).freeze(), 500
    w = np.where(np.arange(n) < 250, 1.0, 3.0)
    kept = np.zeros(n)
    for batch in range(200):
        told = summarise(np.arange(n)[:, None], frozen, ids=batch * n + np.arange(n), w=w)
        kept[told.sample.rows[:, 0].astype(int)] += 1
    light, heavy = kept[:250].sum(), kept[250:].sum()
    assert 2.5 < heavy / light < 3.2  # without replacement: a little below 3
    assert kept.max() < 60


def test_texts_draw_as_texts_whatever_their_array():
    frozen, X = warm().freeze(), points(30)
    texts = [f"id-{i}" for i in range(30)]
    told = summarise(X, frozen, ids=texts)
    assert same(told, summarise(X, frozen, ids=np.array(texts, dtype=object)))
    assert len(set(told.sample.draws.tolist())) == 30


@pytest.mark.parametrize("kind", [Summary, Frozen])
def test_a_thousand_hostile_bytes_are_refused_without_large_allocations(kind):
    frozen = warm().freeze()
    whole = (summarise(points(200), frozen) if kind is Summary else frozen).to_bytes()
    rng = np.random.default_rng(0)
    tracemalloc.start()
    try:
        for turn in range(1000):
            content = bytearray(whole)
            if turn % 3 == 0:
                del content[rng.integers(0, len(content)) :]
            elif turn % 3 == 1:
                content[rng.integers(0, len(content))] ^= 1 << rng.integers(0, 8)
            else:
                content[:8] = int(rng.integers(0, 2**62)).to_bytes(8, "little")
            try:
                found = kind.from_bytes(bytes(content))
            except SnapshotError:
                continue
            assert found.to_bytes() == whole  # the change touched nothing that is read
        assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    finally:
        tracemalloc.stop()


FORGED = {
    "learned": -1,
    "refused": 0.5,
    "capacity": 2**63,
    "agreed": 10**6,
    "first": float("nan"),
    "last": float("inf"),
    "names": ["f0", "f0", "f2"],
    "arrivals": np.array([-1, 5, 5]),
    "latest": np.zeros(7),
    "masses": {"high": np.full((4, 1), np.nan), "low": np.zeros((4, 1))},
    "sample": {"rows": np.zeros((1, 5)), "keys": np.zeros(1), "draws": np.zeros(1)},
    "kind": "frozen",
}


@pytest.mark.parametrize("name", FORGED)
def test_well_formed_bytes_that_lie_are_refused(name, monkeypatch):
    from streamclust import snapshot

    state = snapshot.decode(summarise(points(200), warm().freeze()).to_bytes())
    with pytest.raises(SnapshotError, match="no summary"):
        Summary.from_bytes(snapshot.encode({**state, name: FORGED[name]}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("table", np.array([[0.0, 0, 0, -1]])),  # a path that does not end
        ("table", np.array([[9.0, 0, -1, -1]])),
        ("centers", np.zeros((2, 9))),
        ("capacity", 10**9),
        ("gauges", np.zeros(3)),
    ],
)
def test_a_frozen_model_that_would_lead_astray_is_refused(name, value):
    from streamclust import snapshot

    state = snapshot.decode(warm().freeze().to_bytes())
    with pytest.raises(SnapshotError, match="no frozen model"):
        Frozen.from_bytes(snapshot.encode({**state, name: value}))


def test_a_sliding_window_keeps_the_newest_batch():
    model = StreamClusterer(window=SlidingWindow(50))
    for batch in range(5):
        model.apply(summarise(points(40, seed=batch) + 100 * batch, model.freeze()))
    assert model.window_points()["f0"].min() > 250
