"""Promises to the user that need a longer stream: order of features, returns, regions, units."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from simulations.streams import blobs, drift10
from streamclust import StreamClusterer
from streamclust.evaluate import prequential
from streamclust.events import ClusterBorn, ClusterDied, ClusterMoved
from streamclust.results import Region


def answers(stream, **options):
    return prequential(StreamClusterer(**options), stream, probes=0).answers


@pytest.mark.parametrize("assign", ["tree", "nearest"])
def test_the_order_of_the_features_carries_nothing(assign):
    events = drift10(1500, 4).events
    rng = np.random.default_rng(0)
    once = rng.permutation(list(events[0])).tolist()
    same = [{name: x[name] for name in once} for x in events]
    shuffled = [{name: x[name] for name in rng.permutation(list(x)).tolist()} for x in events]
    assert answers(events, assign=assign) == answers(same, assign=assign)
    assert answers(events, assign=assign) == answers(shuffled, assign=assign)


def coming_and_going(seed):
    """A group that stays, at 0, and one at 20 in the odd ones of five stretches of 800 events."""
    rng = np.random.default_rng(seed)
    for places in ([0.0, 20.0], [0.0], [0.0, 20.0], [0.0], [0.0, 20.0]):
        for _ in range(800):
            a, b = places[rng.integers(len(places))] + rng.normal(size=2)
            yield {"a": a, "b": b}


def test_a_cluster_that_comes_back_after_its_death_gets_a_new_id():
    model, found = StreamClusterer(), []
    for n, x in enumerate(coming_and_going(0), start=1):
        model.learn_one(x)
        if n % 800 == 0:
            found.append(model.predict_one({"a": 20.0, "b": 20.0}))
    assert found[1] == found[3] == -1
    assert len({*found}) == 4


@pytest.mark.parametrize("seed", range(3))
def test_deaths_and_returns_are_told_once_each(seed):
    model = StreamClusterer()
    for x in coming_and_going(seed):
        model.learn_one(x)
    told = [e for e in model.events_since(0) if isinstance(e, ClusterBorn | ClusterDied)]
    kinds = [type(e) for e in told if e.tick > 800]
    assert kinds == [ClusterDied, ClusterBorn] * 2
    assert all(e.tick % 800 <= 500 for e in told)


def test_a_cluster_that_drifts_is_told_to_have_moved():
    rng = np.random.default_rng(0)
    model, n = StreamClusterer(), 4000
    for i in range(n):
        place = np.array([20.0 * (i % 2), 10.0 * i / n])
        model.learn_one(dict(zip("ab", place + rng.normal(size=2), strict=True)))
    moves = [e for e in model.events_since(0) if isinstance(e, ClusterMoved)]
    between = [e for e in moves if 2100 < e.tick < 4000]  # refits come at 2,042 and 4,084
    assert {e.cluster for e in between} == set(model.clusters)
    assert all(e.new["b"] > e.old["b"] for e in between)


@pytest.mark.parametrize("assign", ["tree", "nearest"])
def test_every_event_is_core_boundary_or_noise(assign):
    stream = blobs(2000, 6, 3, noise=0.1, seed=2)
    model = StreamClusterer(assign=assign)
    for x in stream.events[:1500]:
        model.learn_one(x)
    found = [model.assign_one(x) for x in stream.events]
    cores = {a.label for a in found if a.region is Region.CORE}
    assert cores == set(model.clusters)  # none is empty; one label per event: they are disjoint
    for a in found:
        assert (a.label == -1) == (a.region is Region.NOISE)
        assert (len(a.alternatives) > 0) == (a.region is Region.BOUNDARY)
        assert a.label not in a.alternatives
        assert {*a.alternatives} <= set(model.clusters)
    assert {a.region for a in found} == {Region.CORE, Region.BOUNDARY, Region.NOISE}


def test_powers_of_two_and_exact_shifts_change_no_answer_under_drift():
    points = np.round(drift10(2000, 6).points * 2.0**20) / 2.0**20
    first = answers(points)
    assert answers(points * 2.0**20) == first
    assert answers(points + 2.0**20) == first


@pytest.mark.parametrize("change", [lambda x: x * 1e6, lambda x: x + 1e6], ids=["times", "plus"])
def test_units_hardly_matter_under_drift(change):
    points = drift10(2000, 7).points
    assert adjusted_rand_score(answers(points), answers(change(points))) >= 0.99
