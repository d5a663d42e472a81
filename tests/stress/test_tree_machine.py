"""Random actions against the threshold tree, checked after each, with rebuilds made frequent."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from streamclust import rebuilds
from streamclust.errors import InvalidParameter
from streamclust.tree import ThresholdTree
from tests.streamclust.tree_model import built_at_once, told

grid = st.integers(-4, 4).map(float)


class TreeMachine(RuleBasedStateMachine):
    """The model is a dict of centers; structure is compared with the tree built at once."""

    @initialize(d=st.integers(1, 3), p=st.sampled_from([1.0, 2.0, 3.0]), data=st.data())
    def start(self, d, p, data):
        self.tree = ThresholdTree(d, p=p, measure="paper")
        self.position = st.lists(grid, min_size=d, max_size=d).map(np.array)
        self.model = {}
        self.next_id = 0

    def known(self, position, but=None):
        return any(np.array_equal(c, position) for id, c in self.model.items() if id != but)

    @rule(data=st.data())
    def insert(self, data):
        position = data.draw(self.position)
        if self.known(position):
            with pytest.raises(InvalidParameter):
                self.tree.insert(self.next_id, position)
        else:
            self.tree.insert(self.next_id, position)
            self.model[self.next_id] = position
            self.next_id += 1

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete(self, data):
        id = data.draw(st.sampled_from(sorted(self.model)))
        self.tree.delete(id)
        del self.model[id]

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def move(self, data):
        id = data.draw(st.sampled_from(sorted(self.model)))
        position = data.draw(self.position)
        if self.known(position, but=id):
            with pytest.raises(InvalidParameter):
                self.tree.move(id, position)
        else:
            self.tree.move(id, position)
            self.model[id] = position

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def correct(self, data):
        points = np.array(data.draw(st.lists(self.position, min_size=1, max_size=30)))
        ids = np.array(sorted(self.model))
        centers = np.array([self.model[id] for id in ids.tolist()])
        nearest = np.abs(points[:, None] - centers).sum(axis=2).argmin(axis=1)
        self.tree.correct(points, ids[nearest])

    @rule()
    def restore(self):
        twin = ThresholdTree(1)
        twin.from_state(self.tree.to_state())
        self.tree = twin

    @invariant()
    def holds(self):
        if not hasattr(self, "tree"):
            return
        self.tree._check()
        assert self.tree.ids == sorted(self.model)
        if self.model:
            built = built_at_once(
                self.tree._structure.root,
                self.model,
                self.tree._roster.keys,
                self.tree._structure.drawing.p,
            )
            assert told(self.tree._structure.root) == built


TestTreeMachine = TreeMachine.TestCase
TestTreeMachine.settings = settings(max_examples=10, stateful_step_count=25, deadline=None)


def actions(tree, rng, n, place, live):
    """`n` random updates; yields after each what it cost and what it changed."""
    next_id = max(live, default=-1) + 1
    for _ in range(n):
        before = tree.cuts
        kind = rng.choice(4)
        try:
            if kind < 2 or not live:
                recourse = tree.insert(next_id, place())
                live.append(next_id)
                next_id += 1
            elif kind == 2:
                recourse = tree.delete(live.pop(int(rng.integers(len(live)))))
            else:
                recourse = tree.move(live[int(rng.integers(len(live)))], place())
        except InvalidParameter:
            continue
        yield recourse, before ^ tree.cuts


def loop(seed, n, limit, monkeypatch):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(rebuilds, "update_limit", lambda built: max(limit, built / 4))
    d, kind = int(rng.integers(1, 6)), seed % 3
    tree = ThresholdTree(
        d,
        p=float(rng.choice([1.0, 1.5, 2.0, 8.0, 20.0])),
        measure=str(rng.choice(["gap", "paper"])),
        draws=3,
        seed=seed,
    )

    def place():
        x = rng.normal(size=d) * 3
        return x if kind == 0 else np.round(x) if kind == 1 else np.round(x) * 1e-6 + 1e8

    tree.set_window(np.array([place() for _ in range(200)]), rng.integers(0, 40, size=200))
    for recourse, changed in actions(tree, rng, n, place, []):
        tree._check()
        if not recourse.rebuilt:
            assert len(changed) <= recourse.own


@pytest.mark.parametrize("seed", range(9))
def test_a_hundred_updates(seed, monkeypatch):
    loop(seed, 100, 2, monkeypatch)


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(100, 130))
@pytest.mark.parametrize("limit", [1, 8])
def test_thousands_of_updates(seed, limit, monkeypatch):
    loop(seed, 1500, limit, monkeypatch)
