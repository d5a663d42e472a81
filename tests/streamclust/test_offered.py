"""The words of `refit`: each makes an estimator, and the engine does its main job with it."""

import numpy as np
import pytest

from streamclust import StreamClusterer
from streamclust.errors import InvalidParameter
from streamclust.parameters import PARAMETERS
from streamclust.refit.comet import COMET
from streamclust.refit.offered import OFFERED, build
from streamclust.refit.rcc import RCC
from streamclust.results import Region

words = pytest.mark.parametrize("word", OFFERED)


def stream(n, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-10.0, 10.0, (4, 3))
    labels = rng.integers(0, 4, n)
    points = centers[labels] + 0.5 * rng.normal(size=(n, 3))
    out = rng.random(n) < noise
    points[out] = rng.uniform(-14.0, 14.0, (int(out.sum()), 3))
    labels[out] = -1
    return points * [1.0, 100.0, 0.01], labels


def test_the_table_of_parameters_offers_exactly_these():
    assert PARAMETERS["refit"].options == tuple(OFFERED)


@words
def test_each_word_serves_the_engine(word):
    X, truth = stream(1200)
    model = StreamClusterer(refit=word)
    answers = np.empty(len(X), dtype=np.int64)
    for i, (a, b, c) in enumerate(X):
        event = {"a": a, "b": b, "c": c}
        answers[i] = model.predict_one(event)
        model.learn_one(event)
    assert len(model.clusters) == 4
    late = np.arange(len(X)) >= 600
    for c in range(4):
        of_cluster = answers[late & (truth == c)]
        assert (of_cluster == np.bincount(of_cluster[of_cluster >= 0]).argmax()).mean() > 0.97
    assert (answers[late & (truth == -1)] == -1).mean() > 0.8
    assert model.rule(next(iter(model.clusters))).boxes
    center = X[(truth == 0)].mean(axis=0)
    told = model.assign_one(dict(zip("abc", center, strict=True)))
    assert told.region is Region.CORE


@words
def test_a_saved_model_goes_on_with_its_refit(word, tmp_path):
    X, _ = stream(400)
    names = ["a", "b", "c"]
    events = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    model = StreamClusterer(refit=word)
    for event in events[:200]:
        model.learn_one(event)
    model.save(tmp_path / "state")
    loaded = StreamClusterer.load(tmp_path / "state")
    for event in events[200:]:
        model.learn_one(event)
        loaded.learn_one(event)
    assert [str(c.rule) for c in model.clusters.values()] == [
        str(c.rule) for c in loaded.clusters.values()
    ]
    assert model.metrics() == loaded.metrics()


@pytest.mark.parametrize("word", ["comet", "rcc", "rcc_dr"])
def test_told_a_number_the_hierarchical_ones_keep_to_it(word):
    X, _ = stream(800, noise=0.0)
    model = StreamClusterer(refit=word, n_clusters=2)
    for a, b, c in X:
        model.learn_one({"a": a, "b": b, "c": c})
    assert len(model.clusters) == 2


@pytest.mark.parametrize("word", ["mean_shift", "three_way"])
def test_mean_shift_finds_the_number_itself(word):
    with pytest.raises(InvalidParameter, match="finds the number itself; accepted is None"):
        StreamClusterer(refit=word, n_clusters=2)


def test_what_is_told_to_whom():
    assert isinstance(build("comet", 3, 5), COMET)
    assert build("comet", 3, 5).get_params()["seed"] == 5
    assert isinstance(build("rcc", 3, 5), RCC)
    assert build("rcc", 3, 5).n_clusters == 3
    assert build(None, None, 0) is None
    own = RCC()
    assert build(own, 3, 0) is own
