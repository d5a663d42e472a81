"""Any order of use, by the public face alone, against a model that only counts and remembers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from simulations.streams import drift10, mappings
from streamclust import StreamClusterer
from streamclust.errors import InvalidPoint
from streamclust.events import ClusterBorn, ClusterDied, ClustersMerged, ClusterSplit, RefitDone
from streamclust.results import Region

COLD = 40  # events before anything is clustered
PLACES = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
SPREADS = st.sampled_from([2.0, 6.0, 15.0])  # one, touching, apart: groups split and merge
NUMBERS = st.integers(0, 2**32)


def group(place: int, spread: float, n: int, seed: int) -> list[dict[str, float]]:
    """Events of one of four groups, a tenth of them anywhere."""
    rng = np.random.default_rng([seed, place])
    points = spread * PLACES[place] + rng.normal(size=(n, 2))
    wild = rng.random(n) < 0.1
    points[wild] = rng.uniform(-30, 40, (int(wild.sum()), 2))
    return mappings(points)


class Use(RuleBasedStateMachine):
    """Random use; `living`, `dead` and `ticks` are what a user can know from what was told."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.ticks = self.last = 0
        self.living, self.dead = set(), set()
        self.twin = None

    @initialize(
        assign=st.sampled_from(["tree", "nearest"]),
        refit=st.sampled_from(["comet", "comet", "mean_shift", None]),
        mode=st.sampled_from(StreamClusterer.parameter_table()["refit_mode"].options),
        half_life=st.sampled_from([50, 400, None]),
        seed=st.integers(0, 3),
    )
    def begin(self, assign, refit, mode, half_life, seed):
        self.model = StreamClusterer(
            assign=assign,
            refit=refit,
            refit_mode=mode,
            refit_lag=30,
            half_life=half_life,
            window=60,
            seed=seed,
        )
        self.x = {"f0": 0.0, "f1": 0.0}

    @rule(
        places=st.sets(st.integers(0, 3), min_size=1),
        spread=SPREADS,
        n=st.integers(1, 100),
        seed=NUMBERS,
    )
    def learn(self, places, spread, n, seed):
        stream = [x for place in sorted(places) for x in group(place, spread, n, seed)]
        for i in np.random.default_rng(seed).permutation(len(stream)).tolist():
            self.x = stream[i]
            answer = self.model.predict_one(self.x)
            assert answer in self.living | {-1}
            if self.ticks < COLD and not self.living:
                assert answer == -1
                assert self.model.assign_one(self.x).region is Region.COLD
            for model in self.models():
                model.learn_one(self.x)
            self.ticks += 1
            self.hear()

    @rule(spread=SPREADS, n=st.integers(1, 60), seed=NUMBERS)
    def learn_a_block(self, spread, n, seed):
        stream = [x for place in range(4) for x in group(place, spread, n, seed)]
        rows = np.array([[*x.values()] for x in stream])
        rows = np.random.default_rng(seed).permutation(rows)
        for model in self.models():
            model.learn_many(rows)
        self.ticks += len(rows)
        self.hear()

    @rule()
    def ask(self):
        before = self.bytes_of(self.model)
        answer = self.model.predict_one(self.x)
        assert self.model.predict_many(np.array([[*self.x.values()]])).tolist() == [answer]
        assert self.model.assign_one(self.x).label == answer
        self.model.score_one(self.x), self.model.transform_one(self.x), self.model.metrics()
        if self.living:
            assert self.model.explain_one(self.x).label == answer
        assert self.bytes_of(self.model) == before

    @rule(bad=st.sampled_from([float("nan"), float("-inf"), "x", None, 1e200]))
    def refuse(self, bad):
        before = self.bytes_of(self.model)
        with pytest.raises(InvalidPoint, match="f0"):
            self.model.learn_one({**self.x, "f0": bad})
        assert self.bytes_of(self.model) == before

    @rule()
    def refit(self):
        for model in self.models():
            model.refit()
        self.hear()

    @rule(ahead=st.floats(0, 2000))
    def pass_time(self, ahead):
        now = self.model.metrics()["time"]
        for model in self.models():
            model.tick(now + ahead)
        self.hear()

    @rule()
    def restore(self):
        """From here on the model goes on beside one that was loaded."""
        self.agree()
        self.model.save(Path(self.folder.name) / "saved")
        self.twin = StreamClusterer.load(Path(self.folder.name) / "saved")

    @precondition(lambda self: self.twin is not None)
    @rule()
    def agree(self):
        if self.twin is not None:
            assert self.bytes_of(self.twin) == self.bytes_of(self.model)

    @invariant()
    def what_was_told_is_what_lives(self):
        if hasattr(self, "model"):
            assert self.model.tick_count == self.ticks
            assert set(self.model.clusters) == self.living
            assert len(self.model.centers) >= len(self.living)

    def teardown(self):
        if hasattr(self, "model"):
            self.agree()
        self.folder.cleanup()

    def models(self):
        return [self.model] if self.twin is None else [self.model, self.twin]

    def bytes_of(self, model):
        model.save(Path(self.folder.name) / "compared")
        return (Path(self.folder.name) / "compared").read_bytes()

    def hear(self):
        """Follow births, deaths, splits and merges; numbers have no gap and no id comes back."""
        for change in self.model.events_since(self.last):
            assert change.number == self.last + 1
            self.last = change.number
            assert change.tick <= self.ticks
            if isinstance(change, ClusterBorn):
                self.enter(change.cluster)
            elif isinstance(change, ClusterDied):
                self.leave(change.cluster)
            elif isinstance(change, ClusterSplit):
                assert change.parent in self.living
                assert change.parent in change.children
                for child in {*change.children} - {change.parent}:
                    self.enter(child)
            elif isinstance(change, ClustersMerged):
                assert change.child in change.parents
                for parent in {*change.parents} - {change.child}:
                    self.leave(parent)

    def enter(self, cluster):
        assert cluster not in self.living | self.dead
        self.living.add(cluster)

    def leave(self, cluster):
        self.living.remove(cluster)
        self.dead.add(cluster)


TestUse = Use.TestCase
TestUse.settings = settings(max_examples=12, stateful_step_count=15, deadline=None)


def test_a_center_that_dies_as_a_renewed_tree_is_taken_is_followed():
    use = Use()
    use.begin(assign="tree", mode="background", refit="comet", half_life=400, seed=0)
    use.learn_a_block(n=60, seed=1, spread=2.0)
    use.pass_time(ahead=1629.1799853554633)
    use.learn_a_block(n=22, seed=24632, spread=15.0)
    use.teardown()


@pytest.mark.stress
class TestMuchUse(Use.TestCase):
    settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.mark.stress
def test_a_million_events_keep_every_bound():
    block = drift10(20_000, seed=5).points  # over and over: births and deaths without end
    model = StreamClusterer(event_log=100)
    refits = []
    model.on(RefitDone, refits.append)
    sizes, ids = [], []
    for _ in range(50):
        model.learn_many(block)
        sizes.append(model.memory_usage())
        ids.append(len(model.clusters))
        assert len(model.events_since(0)) <= 100
    assert model.tick_count == 1_000_000
    assert max(sizes[10:]) <= 1.1 * max(sizes[:10])
    assert max(ids) <= 30
    # The world changes at the seam and in the middle of every block; each restarts the schedule,
    # which doubles its intervals from half a window on: six refits to the next.
    assert len(refits) <= 50 * 2 * 10
    told = model.events_since(0)
    assert told.evicted + len(told) == model.metrics()["changes"]
    assert max(model.clusters) < model.metrics()["changes"]
