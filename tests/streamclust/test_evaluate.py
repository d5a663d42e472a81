"""Prequential evaluation, against scikit-learn's indices and hand-made answers."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics as oracle
from hypothesis import given
from hypothesis import strategies as st
from river.cluster import KMeans

from streamclust import StreamClusterer
from streamclust.errors import InvalidParameter, InvalidPoint
from streamclust.evaluate import prequential, score

ORACLES = {
    "ari": oracle.adjusted_rand_score,
    "ami": oracle.adjusted_mutual_info_score,
    "homogeneity": oracle.homogeneity_score,
    "completeness": oracle.completeness_score,
}


class Told:
    """Answers with the feature ``says``, at once or only after so many events."""

    def __init__(self, patience=0):
        self.seen, self.patience, self.times = 0, patience, []

    def predict_one(self, x):
        return x["says"] if self.seen >= self.patience else None

    def learn_one(self, x, t=None):
        self.seen += 1
        self.times.append(t)


def said(answers):
    return [{"says": a} for a in answers]


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 4)), max_size=60))
def test_scores_are_those_of_scikit_learn(pairs):
    truth, answers = [y for y, _ in pairs], [a for _, a in pairs]
    found = score(truth, answers)
    clean = [(y, a) for y, a in pairs if y >= 0]
    for name, index in ORACLES.items():
        value = getattr(found, name)
        if clean:
            assert value == pytest.approx(index(*zip(*clean, strict=True)), abs=1e-9)
        else:
            assert math.isnan(value)
    if clean:
        table = oracle.cluster.contingency_matrix(*zip(*clean, strict=True))
        assert found.purity == pytest.approx(table.max(axis=0).sum() / table.sum())
    noise = [y == -1 for y in truth], [a == -1 for a in answers]
    if any(map(any, noise)):
        assert found.noise_f1 == pytest.approx(oracle.f1_score(*noise, zero_division=0.0))
    else:
        assert math.isnan(found.noise_f1)
    assert found.events == found.labelled == len(pairs)
    assert found.clusters == len({*answers} - {-1})


@pytest.mark.parametrize(
    ("truth", "answers", "ari", "purity"),
    [
        ([], [], math.nan, math.nan),
        ([0], [7], 1.0, 1.0),
        ([0, 0, 0], [1, 1, 1], 1.0, 1.0),
        ([0, 0, 0], [-1, -1, -1], 1.0, 1.0),
        ([0, 1, 2], [4, 4, 4], 0.0, 1 / 3),
        ([0, 1, 2], [4, 5, 6], 1.0, 1.0),
        ([-1, -1], [-1, 3], math.nan, math.nan),
        ([None, None], [0, 1], math.nan, math.nan),
        (["a", "b", None, -1], [0, 1, 0, -1], 1.0, 1.0),
    ],
)
def test_no_or_one_cluster_and_no_event_are_fine(truth, answers, ari, purity):
    found = score(truth, answers)
    assert found.ari == pytest.approx(ari, nan_ok=True)
    assert found.purity == pytest.approx(purity, nan_ok=True)
    assert found.labelled == sum(y is not None for y in truth)


def test_an_empty_stream_is_no_failure():
    result = prequential(Told(), [])
    assert result.answers == result.series == ()
    assert result.scores.events == 0
    assert math.isnan(result.learning.max)
    assert math.isnan(result.flips)


def test_an_event_is_answered_before_it_is_learned():
    result = prequential(Told(patience=3), said([5, 6, 7, 8, 9]))
    assert result.answers == (-1, -1, -1, 8, 9)


def test_the_overall_scores_begin_where_asked_and_the_series_tells_every_stretch():
    answers, truth = [0] * 6 + [0, 1] * 2, [0, 1] * 5
    result = prequential(Told(), said(answers), truth, every=4, from_fraction=0.6)
    assert [c.event for c in result.series] == [4, 8, 10]
    assert [c.scores.events for c in result.series] == [4, 4, 2]
    assert result.scores.events == 4
    assert result.scores.ari == 1.0
    assert result.series[0].scores.ari == 0.0
    assert all(c.living is None for c in result.series)


def test_probes_that_change_their_answer_are_flips():
    class Turning(Told):
        def predict_one(self, x):
            return x["says"] + (x["says"] == 1 and self.seen >= 8)

    result = prequential(Turning(), said([0, 1, 2, 3] * 4), every=4, probes=4)
    flips = [c.flips for c in result.series]
    assert math.isnan(flips[0])
    assert flips[1:] == [0.25, 0.0, 0.0]
    assert result.flips == 0.0
    whole = prequential(Turning(), said([0, 1, 2, 3] * 4), every=4, probes=4, from_fraction=0)
    assert whole.flips == pytest.approx(0.25 / 3)
    assert math.isnan(prequential(Turning(), said([0, 1]), probes=0).flips)


def test_arrays_frames_mappings_and_labelled_pairs_are_one_stream():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    X = 9.0 * y[:, None] + rng.normal(size=(120, 2))
    x = [{"f0": a, "f1": b} for a, b in X.tolist()]
    frame = pd.DataFrame(X, columns=["f0", "f1"])
    runs = [
        prequential(StreamClusterer(), X, y, every=50),
        prequential(StreamClusterer(), frame, pd.Series(y), every=50),
        prequential(StreamClusterer(), x, y.tolist(), every=50),
        prequential(StreamClusterer(), iter(zip(x, y.tolist(), strict=True)), every=50),
    ]
    assert all(one == two for one, two in pairwise(runs))
    assert runs[0].scores.ari > 0.9
    assert runs[0].series[-1].living == 2


def test_rivers_clusterers_can_be_judged():
    events = [{"a": 10.0 * (i % 2) + i / 1000} for i in range(200)]
    result = prequential(KMeans(n_clusters=2, halflife=0.4, seed=1), events, [0, 1] * 100)
    assert result.scores.ari == 1.0
    assert result.scores.noise_share == 0.0
    assert 0 < result.predicting.p50 <= result.predicting.p99 <= result.predicting.p99_9
    assert result.predicting.p99_9 <= result.predicting.max
    assert result == prequential(KMeans(n_clusters=2, halflife=0.4, seed=1), events, [0, 1] * 100)


def test_times_reach_the_model():
    model = Told()
    prequential(model, said([0, 0]), times=[3.0, 4.5])
    assert model.times == [3.0, 4.5]
    with pytest.raises(InvalidParameter, match="times end after 1 events"):
        prequential(Told(), said([0, 0]), times=[3.0])


def test_a_stream_that_reuses_one_mapping_has_different_probes():
    def stream():
        x = {}
        for value in (0, 1, 2, 3):
            x["says"] = value
            yield x

    class Growing(Told):
        def predict_one(self, x):
            return x["says"] if x["says"] < 2 else self.seen

    assert prequential(Growing(), stream(), every=2, probes=4).series[-1].flips == 0.0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"every": 0}, "every=0; a whole number >= 1"),
        ({"probes": -1}, "probes=-1"),
        ({"from_fraction": 1.0}, r"from_fraction=1\.0; a number in \[0, 1\)"),
        ({"labels": [0]}, "labels end after 1 events"),
    ],
)
def test_a_bad_value_is_named(options, told):
    with pytest.raises(InvalidParameter, match=told):
        prequential(Told(), said([0, 0]), **options)


def test_what_the_model_refuses_reaches_the_caller():
    with pytest.raises(InvalidPoint, match="'a'"):
        prequential(StreamClusterer(), [{"a": 1.0}, {"a": math.nan}])
