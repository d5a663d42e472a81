"""The engine as a whole: save and restore anywhere, random use, the golden file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from streamclust import StreamClusterer, snapshot
from streamclust.errors import InvalidPoint, SnapshotError
from streamclust.events import ClusterBorn, ClusterDied, RefitDone, RefitReady, TreeReady

GOLDEN = Path(__file__).parent / "golden_format_1.safetensors"


def drifting(n: int, seed: int) -> list[dict[str, float]]:
    """Three groups that drift, one that comes and one that goes, some noise, absent features."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        live = [0, 1, 2] if i < n // 2 else [1, 2, 3]
        at = np.array([[0, 0], [9, 0], [0, 9], [9, 9]])[rng.choice(live)] + 2.0 * i / n
        point = at + rng.normal(size=2) if rng.random() > 0.05 else rng.uniform(-20, 20, 2)
        x = {"a": float(point[0]), "b": float(point[1])}
        if rng.random() < 0.02:
            del x["b"]
        if i > 2 * n // 3:
            x["c"] = float(rng.normal())
        found.append(x)
    return found


def state(model: StreamClusterer) -> bytes:
    return snapshot.encode(model._state(None))


@pytest.mark.parametrize("options", [{}, {"assign": "nearest", "p": 1}], ids=str)
def test_restored_anywhere_it_goes_on_bit_for_bit_the_same(tmp_path, options):
    stream = drifting(2500, 0)
    stops = set(np.random.default_rng(1).choice(2400, 50, replace=False).tolist()) | {0, 39, 40}
    whole, halting = StreamClusterer(**options), StreamClusterer(**options)
    for i, x in enumerate(stream):
        if i in stops:
            halting.save(tmp_path / "s", source={"event": i})
            halting = StreamClusterer.load(tmp_path / "s")
            assert halting.source == {"event": i}
            assert halting.tick_count == i
        assert whole.predict_one(x) == halting.predict_one(x)
        whole.learn_one(x), halting.learn_one(x)
    assert state(whole) == state(halting)
    whole.save(tmp_path / "one"), halting.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_the_script_of_a_drifting_stream_is_told():
    model = StreamClusterer()
    for x in drifting(4000, 2):
        model.learn_one(x)
    told = model.events_since(0)
    born = [e.tick for e in told if isinstance(e, ClusterBorn) and e.tick > 1100]
    died = [e.tick for e in told if isinstance(e, ClusterDied)]
    assert len(born) == len(died) == 1
    assert 2000 <= born[0] <= 3000
    assert 2000 <= died[0] <= 3000


def test_refits_come_in_growing_intervals():
    model = StreamClusterer(window=100)
    model.learn_many(np.random.default_rng(0).normal(size=(3000, 2)))
    ticks = [e.tick for e in model.events_since(0) if isinstance(e, RefitDone)]
    assert ticks == [40, 60, 90, 135, 270, 540, 1080, 2160]


def test_an_estimator_that_is_no_string_must_be_given_again(tmp_path):
    from sklearn.cluster import KMeans

    model = StreamClusterer(refit=KMeans(2, n_init=1, random_state=0))
    for x in drifting(100, 3):
        model.learn_one(x)
    model.save(tmp_path / "s")
    with pytest.raises(SnapshotError, match="pass it as refit="):
        StreamClusterer.load(tmp_path / "s")
    again = StreamClusterer.load(tmp_path / "s", refit=KMeans(2, n_init=1, random_state=0))
    assert state(again) == state(model)


@pytest.mark.parametrize("tree_first", [False, True])
@pytest.mark.parametrize("seed", [2, 3])
def test_a_refit_and_a_renewed_tree_may_be_due_at_the_same_event(seed, tree_first):
    rng = np.random.default_rng(seed)
    model = StreamClusterer(refit_mode="background", refit_lag=300, seed=seed)
    engine, places, met = model._engine, 12.0 * rng.normal(size=(6, 3)), 0
    for i in range(4000):
        if i % 200 == 199:
            places += 2.0 * rng.normal(size=places.shape)
        point = places[rng.integers(6)] + rng.normal(size=3)
        model.learn_one(dict(zip("abc", point.tolist(), strict=True)))
        if engine.router.is_pending and engine.refitter.is_pending:
            when = {"tick": engine.tracker.tick, "time": engine.tracker.now}
            due = [RefitReady(**when), TreeReady(**when)]
            engine._dispatch(due[::-1] if tree_first else due)
            assert sorted(engine.router.tree.ids) == sorted(engine.tracker.ids)
            met += 1
    assert met > 3


def test_a_state_whose_parts_do_not_fit_is_refused(tmp_path):
    model = StreamClusterer()
    for x in drifting(300, 4):
        model.learn_one(x)
    whole = snapshot.decode(state(model))
    parts = {
        "features": {"names": ["a"], "columns": ["a"], "stand_ins": np.zeros(1)},
        "scaling": {"frame": np.zeros((3, 2)), "epoch": 1},
        "window": {"slots": np.zeros((5, 2)), "heap": np.zeros(6, dtype=np.int64)},
        "tracker": {},
        "router": None,
        "log": {"last_number": "x", "kept": [{"kind": "Exception"}]},
        "refitter": {"refits": "many"},
    }
    for name, part in parts.items():
        bad = {**whole, "engine": {**whole["engine"], name: part}}
        snapshot.write(tmp_path / "s", bad)
        with pytest.raises(SnapshotError, match="malformed state"):
            StreamClusterer.load(tmp_path / "s")
    for parameters in ({}, {"p": 0}, {"unheard": 1}, []):
        snapshot.write(tmp_path / "s", {**whole, "parameters": parameters})
        with pytest.raises(SnapshotError):
            StreamClusterer.load(tmp_path / "s")
    snapshot.write(tmp_path / "s", {"hello": 1})
    with pytest.raises(SnapshotError, match="malformed"):
        StreamClusterer.load(tmp_path / "s")


def test_the_golden_file_of_every_format_is_read():
    model = StreamClusterer.load(GOLDEN)
    assert model.source == {"file": "drifting", "event": 700}
    assert model.tick_count == 700
    stream = drifting(3000, 5)[:1000]
    answers = [model.predict_one(x) for x in stream[700:800]]
    assert set(answers) <= {*model.clusters, -1}
    assert len(model.clusters) == 3
    for x in stream[700:]:
        model.learn_one(x)


class Use(RuleBasedStateMachine):
    """Any order of learning, asking, refitting, saving: equal to a twin that only learns."""

    @initialize(seed=st.integers(0, 5), assign=st.sampled_from(["tree", "nearest"]))
    def begin(self, seed, assign):
        self.model = StreamClusterer(window=50, assign=assign, event_log=20)
        self.twin = StreamClusterer(window=50, assign=assign, event_log=20)
        self.stream = iter(drifting(5000, seed))
        self.x = {"a": 0.0, "b": 0.0}

    @rule(n=st.integers(1, 120))
    def learn(self, n):
        for _ in range(n):
            self.x = next(self.stream)
            self.model.learn_one(self.x), self.twin.learn_one(self.x)

    @rule()
    def learn_many_of_the_same(self):
        rows = np.array([[self.x.get(c, 0.0) for c in self.model._engine.features.columns]] * 5)
        if rows.size:
            self.model.learn_many(rows)
            for row in rows.tolist():
                columns = self.twin._engine.features.columns
                self.twin.learn_one(dict(zip(columns, row, strict=True)))

    @rule(value=st.sampled_from([float("nan"), "x", None, 1e200]))
    def refuse(self, value):
        before = state(self.model)
        with pytest.raises(InvalidPoint):
            self.model.learn_one({**self.x, "a": value})
        assert state(self.model) == before

    @rule()
    def ask(self):
        self.model.predict_one(self.x), self.model.assign_one(self.x), self.model.score_one(self.x)
        if self.model.clusters:
            self.model.explain_one(self.x)

    @rule()
    def refit(self):
        self.model.refit(), self.twin.refit()

    @rule()
    def restore(self):
        with tempfile.TemporaryDirectory() as folder:
            self.model.save(Path(folder) / "s")
            self.model = StreamClusterer.load(Path(folder) / "s")

    @rule(ahead=st.floats(0, 1000))
    def pass_time(self, ahead):
        now = self.model.metrics()["time"]
        self.model.tick(now + ahead), self.twin.tick(now + ahead)

    @invariant()
    def every_part_is_whole(self):
        if hasattr(self, "model"):
            self.model._engine.tracker._check()
            self.model._engine.router.tree._check()
            assert sorted(self.model._engine.tracker.ids) == self.model._engine.router.tree.ids
            assert len(self.model.events_since(0)) <= 20

    def teardown(self):
        if hasattr(self, "model"):
            assert state(self.model) == state(self.twin)


TestUse = Use.TestCase
TestUse.settings = settings(max_examples=10, stateful_step_count=20, deadline=None)
