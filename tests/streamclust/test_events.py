"""The bounded log of changes."""

from __future__ import annotations

import json

import pytest

from streamclust import StreamClusterer
from streamclust.events import (
    KINDS,
    ClusterBorn,
    ClusterMoved,
    ClusterSplit,
    EventLog,
    FeatureAdded,
    RefitDone,
)


def born(cluster: int) -> ClusterBorn:
    return ClusterBorn(tick=cluster, time=0.5, cluster=cluster, weight=1.0, found_by="refit")


def test_changes_are_numbered_from_one_and_read_from_any_number():
    log = EventLog(10)
    assert [log.append(born(c)).number for c in range(3)] == [1, 2, 3]
    assert [e.cluster for e in log.since(0)] == [0, 1, 2]
    assert [e.cluster for e in log.since(2)] == [2]
    assert log.since(3) == ()


def test_it_says_how_many_were_evicted():
    log = EventLog(2)
    for c in range(5):
        log.append(born(c))
    assert [e.number for e in log.since(0)] == [4, 5]
    assert log.since(0).evicted == 3
    assert log.since(2).evicted == 1
    assert log.since(4).evicted == 0
    assert log.since(99).evicted == 0


def test_a_log_of_nothing_still_numbers():
    log = EventLog(0)
    log.append(born(1))
    assert (len(log), log.last_number, log.since(0).evicted) == (0, 1, 1)


def test_records_are_frozen():
    with pytest.raises(AttributeError):
        born(1).cluster = 2  # type: ignore[misc]


def test_a_state_is_json_and_restores_every_record():
    log = EventLog(10)
    log.append(born(3))
    log.append(ClusterSplit(tick=1, time=1.0, parent=1, children=(1, 2), overlaps=(0.5, 0.25)))
    log.append(FeatureAdded(tick=1, time=1.0, features=("a", 7)))
    log.append(
        ClusterMoved(
            tick=1, time=1.0, cluster=1, distance=2.0, old={"a": 1.0, 7: 2.0}, new={7: 3.0}
        )
    )
    other = EventLog(10)
    other.from_state(json.loads(json.dumps(log.to_state())))
    assert other.since(0) == log.since(0)
    assert other.append(born(4)).number == 5


def test_every_kind_of_change_is_known_to_the_log():
    from streamclust import events

    told = {
        name
        for name, kind in vars(events).items()
        if isinstance(kind, type) and issubclass(kind, events.Change) and kind is not events.Change
    }
    assert set(KINDS) == told


def test_a_refit_tells_the_weights_of_the_clusters_that_live_on():
    model = StreamClusterer()
    for n in range(400):
        model.learn_one({"x": 10.0 * (n % 2) + 0.1 * (n % 7)})
    done = model.refit()
    assert done.weights == {one.id: one.weight for one in model.clusters.values()}
    assert list(done.weights.values()) == sorted(done.weights.values(), reverse=True)


def test_a_log_from_before_refits_told_weights_is_read():
    log = EventLog(5)
    log.append(
        RefitDone(
            tick=1, time=1.0, reason="drift", asked=1, clusters=1, noise_share=0.0, weights={3: 0.5}
        )
    )
    state = log.to_state()
    again = EventLog(5)
    again.from_state(state)
    assert again.since(0) == log.since(0)
    del state["kept"][0]["weights"]
    again.from_state(state)
    assert again.since(0)[0].weights == {}
