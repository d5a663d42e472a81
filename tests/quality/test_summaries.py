"""Learning by summaries finds what learning one by one finds."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from simulations.streams import blobs, drift10
from streamclust import StreamClusterer
from streamclust.evaluate import score
from streamclust.summary import Summary, summarise

pytestmark = pytest.mark.quality
STREAMS = {"blobs10": lambda seed: blobs(20_000, seed=seed), "drift10": lambda s: drift10(seed=s)}
BATCH, PARTITIONS = 1000, 8


def one_by_one(X):
    model, answers = StreamClusterer(), []
    for row in X.tolist():
        x = dict(enumerate(row))
        answers.append(model.predict_one(x))
        model.learn_one(x)
    return answers


def by_summaries(X):
    model, answers = StreamClusterer(), []
    for at in range(0, len(X), BATCH):
        batch, frozen = X[at : at + BATCH], model.freeze()
        answers += frozen.predict_many(batch).tolist()
        ids = at + np.arange(len(batch))
        parts = [
            summarise(batch[p::PARTITIONS], frozen, ids=ids[p::PARTITIONS])
            for p in range(PARTITIONS)
        ]
        model.apply(reduce(Summary.merge, parts))
    assert 9 <= len(model.clusters) <= 11
    return answers


@pytest.mark.parametrize("name", STREAMS)
def test_eight_partitions_are_as_good_as_one_process(name):
    found = []
    for seed in range(3):
        stream = STREAMS[name](seed)
        half = len(stream.points) // 2
        truth = list(stream.labels[half:])
        found.append(
            [score(truth, way(stream.points)[half:]).ari for way in (one_by_one, by_summaries)]
        )
    alone, spread = np.mean(found, axis=0)
    assert spread >= alone - 0.02, found
