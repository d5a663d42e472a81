import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamclust import export
from streamclust.errors import InvalidParameter, InvariantBroken, UnknownCluster
from streamclust.rebuilds import WORTH, is_overdue, pays, uneven, update_limit
from streamclust.tree import ThresholdTree
from tests.kernels.mistakes_references import distances
from tests.streamclust.tree_model import built_at_once, told


def tree_of(centers, points=None, **options):
    """A checked tree over rows, with a window labelled by the nearest center."""
    centers = np.asarray(centers, dtype=np.float64)
    tree = ThresholdTree(centers.shape[1], **options)
    if points is not None:
        tree.set_window(points, distances(points, centers, 1.0, 2.0).argmin(axis=1))
    tree.build(dict(enumerate(centers)))
    tree._check()
    return tree


def blobs(seed, k=12, d=4, n=400):
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-10, 10, size=(k, d))
    points = centers[rng.integers(0, k, size=n)] + rng.normal(size=(n, d))
    return centers, points


def same_table(a, b, factor=1.0):
    return (
        np.array_equal(a.feature, b.feature)
        and np.array_equal(a.threshold * factor, b.threshold)
        and np.array_equal(a.child, b.child)
        and np.array_equal(a.owner, b.owner)
    )


class TestAnswers:
    def test_an_empty_tree_answers_noise(self):
        tree = ThresholdTree(2)
        assert tree.route(np.zeros(2)) == -1
        assert tree.route_many(np.zeros((3, 2))).tolist() == [-1, -1, -1]
        assert tree.as_dict() == {}
        assert (tree.n_leaves, tree.depth, tree.ids) == (0, 0, [])
        assert math.isnan(tree.cost_ratio(np.zeros((3, 2))))

    def test_one_center_answers_everything_without_a_comparison(self):
        tree = ThresholdTree(2)
        tree.insert(7, np.array([1.0, 2.0]))
        tree._check()
        table = tree.table()
        assert (table.feature.size, table.owner.tolist()) == (0, [7])
        assert tree.path(np.zeros(2)) == []
        assert tree.boxes(7) == [{}]
        assert tree.route(np.full(2, 1e300)) == 7

    @pytest.mark.parametrize("measure", ["gap", "paper"])
    def test_every_center_is_its_own_answer(self, measure):
        centers, points = blobs(0)
        tree = tree_of(centers, points, measure=measure)
        assert tree.route_many(centers).tolist() == list(range(12))
        assert tree.n_leaves == 12

    def test_the_path_tells_exactly_the_comparisons_used(self):
        centers, points = blobs(1)
        tree = tree_of(centers, points)
        tree.correct(points, distances(points, centers, 1.0, 2.0).argmin(axis=1))
        for x in points[:50]:
            path = tree.path(x)
            assert len(path) <= tree.depth
            assert all((x[i] > threshold) == right for i, right, threshold in path)
            box = tree.as_dict()
            for i, right, threshold in path:
                assert (box["feature"], box["threshold"]) == (i, threshold)
                box = box["right" if right else "left"]
            assert box == {"center": tree.route(x)}

    def test_boxes_hold_exactly_the_points_of_their_center(self):
        centers, points = blobs(2)
        tree = tree_of(centers, points)
        tree.correct(points, distances(points, centers, 1.0, 2.0).argmin(axis=1))
        assert tree.n_leaves > 12
        answers = tree.route_many(points)
        for id in tree.ids:
            inside = np.zeros(len(points), dtype=int)
            for box in tree.boxes(id):
                held = [(points[:, i] > a) & (points[:, i] <= b) for i, (a, b) in box.items()]
                inside += np.all(held, axis=0)
            assert np.array_equal(inside, answers == id)  # boxes do not overlap either

    def test_touching_boxes_are_told_as_one(self):
        tree = tree_of([[0.0], [1.0], [2.0]])
        assert [len(tree.boxes(id)) for id in range(3)] == [1, 1, 1]

    def test_the_price_is_the_cost_of_answers_over_the_cost_of_the_nearest(self):
        centers, points = blobs(3)
        tree = tree_of(centers, points, measure="paper", p=1.0)
        tree.set_features(np.array([1.0, 2.0, 0.5, 1.0]), tree._roster.keys)
        costs = distances(points, centers, np.array([1.0, 2.0, 0.5, 1.0]), 1.0)
        expected = costs[np.arange(len(points)), tree.route_many(points)].sum()
        assert tree.cost_ratio(points) == pytest.approx(expected / costs.min(axis=1).sum())

    def test_at_the_centers_themselves_the_price_is_one(self):
        centers, _ = blobs(3)
        assert tree_of(centers).cost_ratio(centers) == 1.0

    def test_the_table_is_kept_until_the_tree_changes(self):
        centers, _ = blobs(4)
        tree = tree_of(centers)
        table, version = tree.table(), tree.version
        tree.route_many(centers)
        assert tree.table() is table
        tree.insert(99, np.full(4, 0.5))
        assert tree.version > version
        assert tree.table() is not table


class TestUpdates:
    def test_between_rebuilds_no_other_centers_cut_changes(self):
        rng = np.random.default_rng(0)
        centers, points = blobs(5, k=60)
        tree = tree_of(centers, points)
        calm = 0
        for step in range(300):
            before = tree.cuts
            id = int(rng.choice(tree.ids))
            kind = step % 3
            if kind == 0:
                recourse = tree.insert(1000 + step, rng.uniform(-10, 10, size=4))
            elif kind == 1:
                recourse = tree.delete(id)
            else:
                recourse = tree.move(id, tree.center(id) + rng.normal(size=4))
            changed = len(before ^ tree.cuts)
            if recourse.rebuilt == 0:
                calm += 1
                assert recourse.foreign == 0
                assert changed == recourse.own if kind < 2 else changed <= recourse.own
        assert calm > 200
        assert tree.counters["rebuilds"] > 0
        assert tree.recourse == tree.counters["own_cuts"] + tree.counters["foreign_cuts"]

    @pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
    @pytest.mark.parametrize("seed", range(3))
    def test_the_tree_equals_the_one_built_at_once(self, p, seed):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(1, 5))
        tree = ThresholdTree(d, p=p, measure="paper", seed=seed)
        for id in range(60):
            tree.insert(id, rng.normal(size=d))
            if id % 2:
                tree.move(int(rng.choice(tree.ids)), rng.normal(size=d))
            if id % 3 == 2:
                tree.delete(int(rng.choice(tree.ids)))
        tree._check()
        centers = {id: tree.center(id) for id in tree.ids}
        assert told(tree._structure.root) == built_at_once(
            tree._structure.root, centers, tree._roster.keys, p
        )

    def test_a_move_that_changes_no_cut_is_no_update(self):
        centers, points = blobs(6)
        tree = tree_of(centers, points)
        version, updates = tree.version, tree.counters["updates"]
        recourse = tree.move(3, centers[3] + 1e-9)
        assert recourse == (0, 0, 0)
        assert (tree.version, tree.counters["updates"]) == (version, updates)
        assert np.array_equal(tree.center(3), centers[3] + 1e-9)
        tree._check()

    def test_insert_and_delete_leave_what_was(self):
        centers, points = blobs(7, k=40)
        tree = tree_of(centers, points)
        before = tree.cuts
        tree.insert(99, np.full(4, 0.25))
        tree.delete(99)
        tree._check()
        assert tree.cuts == before

    def test_all_centers_can_go_and_come_back(self):
        centers, points = blobs(8)
        tree = tree_of(centers, points)
        for id in range(12):
            tree.delete(id)
            tree._check()
        assert tree.route(points[0]) == -1
        for id in range(12):
            tree.insert(id, centers[id])
            tree._check()
        assert tree.route_many(centers).tolist() == list(range(12))

    def test_a_refused_update_changes_nothing(self):
        centers, _ = blobs(9)
        tree = tree_of(centers)
        state = tree.to_state()
        for refused in (
            lambda: tree.insert(50, centers[4]),
            lambda: tree.insert(4, np.zeros(4)),
            lambda: tree.move(4, centers[5]),
            lambda: tree.insert(50, np.array([0.0, np.nan, 0.0, 0.0])),
            lambda: tree.insert(50, np.full(4, 1e151)),
            lambda: tree.insert(50, np.zeros(3)),
            lambda: tree.build({0: centers[0], 1: centers[0]}),
        ):
            with pytest.raises(InvalidParameter):
                refused()
        for unknown in (
            lambda: tree.delete(50),
            lambda: tree.move(50, np.zeros(4)),
            lambda: tree.boxes(50),
            lambda: tree.center(50),
        ):
            with pytest.raises(UnknownCluster):
                unknown()
        np.testing.assert_equal(tree.to_state(), state)

    @pytest.mark.parametrize(
        "options",
        [
            {"p": 0.5},
            {"p": math.inf},
            {"p": math.nan},
            {"measure": "x"},
            {"draws": 0},
            {"leaves_per_center": 0},
            {"n_features": -1},
        ],
    )
    def test_bad_parameters_are_refused(self, options):
        with pytest.raises(InvalidParameter):
            ThresholdTree(**{"n_features": 2, **options})

    def test_what_is_given_is_copied(self):
        center = np.array([1.0, 2.0])
        tree = ThresholdTree(2)
        tree.insert(0, center)
        center[:] = 9
        assert tree.center(0).tolist() == [1.0, 2.0]
        tree.center(0)[:] = 9
        assert tree.center(0).tolist() == [1.0, 2.0]


class TestFollow:
    def test_the_tree_ends_with_exactly_these_centers(self):
        rng = np.random.default_rng(4)
        centers, points = blobs(19, k=30)
        tree = tree_of(centers, points)
        for _ in range(5):
            wanted = {int(id): rng.uniform(-10, 10, size=4) for id in rng.permutation(40)[:30]}
            tree.follow(wanted)
            tree._check()
            assert tree.ids == sorted(wanted)
            assert all(np.array_equal(tree.center(id), c) for id, c in wanted.items())

    def test_centers_may_change_places(self):
        centers, points = blobs(20, k=12)
        tree = tree_of(centers, points)
        tree.follow({id: centers[(id + 1) % 12] for id in range(12)})
        tree._check()
        assert tree.route_many(centers).tolist() == [11, *range(11)]

    def test_what_stays_costs_nothing(self):
        centers, points = blobs(21, k=12)
        tree = tree_of(centers, points)
        version = tree.version
        assert tree.follow(dict(enumerate(centers))) == (0, 0, 0)
        assert tree.version == version

    def test_a_refused_set_changes_nothing(self):
        centers, points = blobs(22, k=12)
        tree = tree_of(centers, points)
        state = tree.to_state()
        with pytest.raises(InvalidParameter):
            tree.follow({0: centers[1], 1: centers[1]})
        np.testing.assert_equal(tree.to_state(), state)

    def test_nobody_looks_at_what_is_known_to_stay(self):
        centers, points = blobs(25, k=12)
        tree, wanted = tree_of(centers, points), dict(enumerate(centers + 0.01))
        before = {id: tree.center(id) for id in range(12)}
        tree.follow(wanted, among={3, 7, 99})
        tree._check()
        assert all(np.array_equal(tree.center(id), wanted[id]) for id in (3, 7))
        assert all(np.array_equal(tree.center(id), before[id]) for id in before if id not in (3, 7))
        with pytest.raises(InvalidParameter):  # another that stays is there
            tree.follow({**wanted, 3: before[5], 5: before[5]}, among={3})

    def test_what_is_overdue_is_known_after_every_update(self):
        rng = np.random.default_rng(6)
        centers, points = blobs(26, k=30)
        tree, seen = tree_of(centers, points), set()
        for _ in range(30):
            moved = {id: rng.uniform(-10, 10, size=4) for id in rng.permutation(30)[:2].tolist()}
            tree.follow({**{id: tree.center(id) for id in tree.ids}, **moved}, rebuild=False)
            seen.add(tree.is_overdue)
            assert tree.is_overdue == is_overdue(tree._structure) == tree.copied().is_overdue
        assert seen == {False, True}
        tree.rebuild()
        assert not tree.is_overdue

    def test_overdue_subtrees_are_rebuilt_once(self):
        rng = np.random.default_rng(5)
        centers, points = blobs(23, k=30)
        tree = tree_of(centers, points)
        recourse = tree.follow({id: rng.uniform(-10, 10, size=4) for id in range(30)})
        assert recourse.rebuilt == 30
        assert tree.rebuilds == 1


class TestRebuilds:
    def test_a_subtree_is_rebuilt_when_a_quarter_of_it_was_updated(self):
        assert [update_limit(n) for n in (2, 32, 100)] == [8, 8, 25]
        rng = np.random.default_rng(1)
        centers = rng.normal(size=(100, 3))
        tree = tree_of(centers, measure="paper")
        root = tree._structure.root
        for step in range(25):
            tree.insert(200 + step, rng.normal(size=3))
            assert tree._structure.root is root
        assert tree.insert(300, rng.normal(size=3)).rebuilt == 126
        assert tree._structure.root is not root
        assert tree.rebuilds == tree.looks == 1

    def test_an_incumbent_stays_when_nothing_better_is_drawn(self):
        centers, points = blobs(10, k=6, n=600)
        tree = tree_of(centers * 10, points * 10)
        before = tree.table()
        tree.reconsider()
        tree._check()
        assert same_table(tree.table(), before)

    def test_a_window_that_comes_later_improves_the_tree(self):
        centers, points = blobs(11, k=20, n=800)
        tree = tree_of(centers)
        blind = tree.cost_ratio(points)
        tree.set_window(points, distances(points, centers, 1.0, 2.0).argmin(axis=1))
        tree.reconsider()
        tree._check()
        assert tree.cost_ratio(points) < blind

    @pytest.mark.parametrize("kind", ["blind", "stale"])
    def test_what_is_replaced_pays_for_the_answers_that_it_changes(self, kind):
        centers, points = blobs(24, k=60, n=1200)
        owners = distances(points, centers, 1.0, 2.0).argmin(axis=1)
        tree = tree_of(centers, None if kind == "blind" else points + 3)
        tree.set_window(points, owners)
        paid = []
        for _ in range(4):
            before = tree.route_many(points)
            tree.reconsider()
            tree._check()
            after = tree.route_many(points)
            gained = int((after == owners).sum()) - int((before == owners).sum())
            changed = int((before != after).sum())
            assert gained >= WORTH * changed
            paid.append(gained)
        assert paid[0] > 0

    def test_a_rival_must_gain_enough(self):
        centers, points = blobs(25, k=8)
        tree = tree_of(centers, points)
        root, owners = tree._structure.root, tree.route_many(points)
        twin = tree_of(centers, measure="paper", seed=5)
        rival, other = twin._structure.root, twin.route_many(points)
        assert not pays(root, rival, points, owners)  # it only spoils
        assert not pays(root, root, points, owners)  # it changes nothing
        assert pays(root, rival, points, other)
        changed = np.flatnonzero(owners != other)
        for share, worth in ((0.15, False), (0.25, True)):
            mixed = np.full(len(points), 99)  # the changed answers were all wrong
            mixed[changed[: math.ceil(share * changed.size)]] = other[
                changed[: math.ceil(share * changed.size)]
            ]
            assert pays(root, rival, points, mixed) is worth

    def test_a_draw_that_was_not_taken_is_not_tried_again(self):
        centers, points = blobs(26, k=30)
        tree = tree_of(centers, points)
        root = tree._structure.root
        generation = root.record.generation
        tree.reconsider()
        assert tree._structure.root is root
        assert root.record.generation == generation + 1
        assert (root.updates, root.built) == (0, 30)

    def test_an_uneven_node_is_drawn_anew_whatever_it_costs(self):
        rng = np.random.default_rng(7)
        centers = rng.uniform(-10, 10, size=(40, 4))
        tree = tree_of(centers)
        root = tree._structure.root
        assert not uneven(root)
        for step in range(400):
            tree.insert(100 + step, centers[0] + rng.normal(size=4))
        tree._check()
        assert tree.depth < 60
        assert tree._structure.root is not root
        assert not uneven(tree._structure.root)

    def test_under_the_papers_measure_a_rebuild_keeps_clocks_and_central_anchors(self):
        rng = np.random.default_rng(8)
        tree = tree_of(rng.normal(size=(200, 3)), measure="paper")
        root = tree._structure.root
        record, before = root.record, tree.cuts
        for _ in range(200):
            if tree._structure.root is root:
                tree.move(int(rng.choice(tree.ids)), rng.normal(size=3))
        assert tree._structure.root is not root
        renewed = tree._structure.root.record
        assert renewed.key == record.key
        assert np.array_equal(renewed.measure.anchor, record.measure.anchor)
        assert len(before - tree.cuts) < 0.5 * len(before)
        tree._check()

    def test_under_the_papers_measure_an_anchor_beyond_the_quartiles_is_renewed(self):
        rng = np.random.default_rng(9)
        tree = tree_of(rng.normal(size=(100, 2)), measure="paper")
        anchor = tree._structure.root.record.measure.anchor
        for id in range(100):
            tree.move(id, rng.normal(size=2) + np.array([30.0, 0.0]))
        renewed = tree._structure.root.record.measure.anchor
        assert renewed[0] > 20 > anchor[0]
        tree._check()

    def test_later_centers_make_few_cuts_of_their_own_at_the_top(self):
        rng = np.random.default_rng(10)
        centers = rng.uniform(-10, 10, size=(100, 16))
        own = rng.integers(0, 100, size=2000)
        tree = ThresholdTree(16)
        tree.set_window(centers[own] + rng.normal(size=(2000, 16)), own)
        tree.build(dict(enumerate(centers)))
        root = tree._structure.root
        root.built = 10_000  # it is not looked at
        before = len(root.spine)
        for step in range(200):
            tree.insert(100 + step, rng.uniform(-10, 10, size=16))
        assert tree._structure.root is root
        assert len(root.spine) <= before + 3

    def test_a_record_is_dropped_with_its_second_last_center(self):
        tree = tree_of([[0.0], [1.0]])
        tree.delete(0)
        assert tree._structure.root == 1
        tree.delete(1)
        assert tree._structure.root is None


class TestUnits:
    @pytest.mark.parametrize("measure", ["gap", "paper"])
    def test_a_power_of_two_changes_nothing_but_thresholds(self, measure):
        centers, points = blobs(12, k=30, d=3, n=600)
        owners = distances(points, centers, 1.0, 2.0).argmin(axis=1)
        rng = np.random.default_rng(2)
        weights, moved = rng.uniform(0.5, 2, size=3), rng.uniform(-10, 10, size=(30, 3))
        tables = []
        for k in (1.0, 2.0**20):
            tree = ThresholdTree(3, measure=measure, p=1.5)
            tree.set_features(weights / k, tree._roster.keys)
            tree.set_window(points * k, owners)
            tree.build(dict(enumerate(centers * k)))
            for id in range(30):
                tree.move(id, moved[id] * k)
            tree.correct(points * k, owners)
            tables.append(tree.table())
        assert same_table(tables[0], tables[1], 2.0**20)

    def test_the_order_of_features_does_not_matter(self):
        centers, points = blobs(13, k=30, d=5, n=600)
        owners = distances(points, centers, 1.0, 2.0).argmin(axis=1)
        order = np.array([3, 0, 4, 1, 2])
        keys = ThresholdTree(5)._roster.keys
        answers = []
        for at in (np.arange(5), order):
            tree = ThresholdTree(5)
            tree.set_features(np.ones(5), keys[at])
            tree.set_window(points[:, at], owners)
            tree.build(dict(enumerate(centers[:, at])))
            answers.append([(at[i], t) for i, t in zip(*tree.table()[:2], strict=True)])
        assert answers[0] == answers[1]

    def test_new_features_join_with_value_zero_and_serve_when_told_apart(self):
        tree = tree_of([[0.0], [1.0], [2.0]])
        keys = np.concatenate([tree._roster.keys, np.array([5], dtype=np.uint64)])
        tree.set_features(np.array([1.0, 0.0]), keys)
        tree._check()
        assert tree.center(1).tolist() == [1.0, 0.0]
        with pytest.raises(InvalidParameter, match="agree"):
            tree.insert(3, np.array([1.0, 4.0]))
        tree.set_features(np.array([1.0, 1.0]), keys)
        tree.insert(3, np.array([1.0, 4.0]))
        tree._check()
        assert tree.route(np.array([1.0, 3.9])) == 3
        with pytest.raises(InvalidParameter, match="shrink"):
            tree.set_features(np.ones(1), keys[:1])

    def test_centers_that_lost_their_difference_are_still_told_apart(self):
        tree = ThresholdTree(2)
        for id in range(4):
            tree.insert(id, np.array([0.0, float(id)]))
        tree.set_features(np.array([1.0, 0.0]), tree._roster.keys)
        tree.reconsider()
        tree.insert(9, np.array([1.0, 0.0]))
        tree._check()


class TestCorrections:
    def test_they_bring_the_answers_nearer_to_the_nearest_center(self):
        centers, points = blobs(14, k=15, d=2, n=3000)
        labels = distances(points, centers, 1.0, 2.0).argmin(axis=1)
        tree = tree_of(centers, points)
        plain = (tree.route_many(points) == labels).mean()
        tree.correct(points, labels)
        tree._check()
        assert (tree.route_many(points) == labels).mean() > plain + 0.5 * (1 - plain)
        assert 15 < tree.n_leaves <= 15 * tree.leaves_per_center

    def test_with_one_leaf_per_center_there_are_none(self):
        centers, points = blobs(14, k=15, d=2, n=3000)
        tree = tree_of(centers, points, leaves_per_center=1)
        tree.correct(points, distances(points, centers, 1.0, 2.0).argmin(axis=1))
        assert tree.n_leaves == 15

    @pytest.mark.parametrize("change", ["delete", "move"])
    def test_the_end_of_a_named_center_drops_them_and_its_move_does_not(self, change):
        centers, points = blobs(15, k=15, d=2, n=3000)
        tree = tree_of(centers, points)
        tree.correct(points, distances(points, centers, 1.0, 2.0).argmin(axis=1))
        leaf, correction = next(iter(tree._corrections.by_leaf.items()))
        other = next(id for id in correction.owner.tolist() if id != leaf)
        untouched = [leaf for leaf, c in tree._corrections.by_leaf.items() if other not in c.owner]
        version = tree.version
        if change == "move":
            before = set(tree._corrections.by_leaf)
            tree.move(other, centers[other] + 1e-9)
            tree._check()
            assert set(tree._corrections.by_leaf) == before
            return
        tree.delete(other)
        tree._check()
        assert tree.version > version
        assert leaf not in tree._corrections.by_leaf
        assert set(untouched) == set(tree._corrections.by_leaf)

    def test_points_of_unknown_centers_teach_nothing(self):
        centers, points = blobs(15, k=15, d=2, n=3000)
        tree = tree_of(centers, points)
        tree.correct(points, np.full(len(points), 77))
        tree._check()
        assert tree.n_leaves == 15


class TestState:
    def test_a_restored_tree_goes_on_the_same(self):
        rng = np.random.default_rng(3)
        centers, points = blobs(16, k=40)
        tree = tree_of(centers, points)
        tree.correct(points, distances(points, centers, 1.0, 2.0).argmin(axis=1))
        twin = ThresholdTree(1)
        twin.from_state(tree.to_state())
        twin._check()
        for step in range(60):
            id, new = int(rng.choice(tree.ids)), rng.uniform(-10, 10, size=4)
            for t in (tree, twin):
                if step % 3 == 0:
                    t.delete(id)
                elif step % 3 == 1:
                    t.insert(100 + step, new)
                else:
                    t.move(id, new)
            assert same_table(tree.table(), twin.table())
        np.testing.assert_equal(tree.to_state(), twin.to_state())

    @pytest.mark.parametrize("k", [0, 1, 2])
    def test_small_trees_survive_too(self, k):
        tree = ThresholdTree(1)
        tree.build({id: np.array([float(id)]) for id in range(k)})
        twin = ThresholdTree(1)
        twin.from_state(tree.to_state())
        assert same_table(tree.table(), twin.table())
        twin.insert(9, np.array([9.0]))
        twin._check()


class TestChecks:
    def breakages(self):
        def lose_a_center(tree):
            tree._roster.centers.pop(3)

        def miscount(tree):
            tree._structure.root.size += 1

        def let_a_rebuild_pass(tree):
            tree._structure.root.updates = 1000

        def shift_a_center(tree):
            tree._roster.centers[3] = tree._roster.centers[4]

        def cut_a_center_off_wrongly(tree):
            arrival, part = tree._structure.root.spine.popitem()
            tree._structure.root.spine[arrival._replace(threshold=arrival.threshold + 100)] = part

        return [
            lose_a_center,
            miscount,
            let_a_rebuild_pass,
            shift_a_center,
            cut_a_center_off_wrongly,
        ]

    @pytest.mark.parametrize("which", range(5))
    def test_a_broken_tree_is_noticed(self, which):
        centers, _ = blobs(17)
        tree = tree_of(centers)
        self.breakages()[which](tree)
        with pytest.raises(InvariantBroken):
            tree._check()


class TestExports:
    def test_every_form_names_every_center_and_threshold(self):
        centers, _ = blobs(18, k=5, d=2)
        tree = tree_of(centers)
        table, names = tree.table(), ['a"b', "c"]
        json.dumps(tree.as_dict())
        for write in (export.text, export.mermaid, export.dot):
            told = write(table, names)
            assert all(repr(t) in told for t in table.threshold.tolist())
            assert "c <= " in told or "b <= " in told
        assert export.text(table, names).count("->") == 5
        assert export.dot(table, names).count("->") == 8
        assert '\\"' in export.dot(table, names)
        assert "#quot;" in export.mermaid(table, names)

    def test_an_empty_tree_is_written_too(self):
        table = ThresholdTree(1).table()
        assert export.text(table) == ""
        assert export.mermaid(table) == "flowchart TD"
        assert export.dot(table).startswith("digraph")


coordinates = st.one_of(
    st.integers(-8, 8).map(float),
    st.sampled_from([0.5, 2.0**-20, 2.0**20, 1e150, -1e150, 5e-324, 1e8, 1e8 + 1e-6, 1e-300]),
    st.floats(-1e150, 1e150),
)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 3).flatmap(
        lambda d: st.lists(st.lists(coordinates, min_size=d, max_size=d), min_size=1, max_size=12)
    ),
    st.sampled_from([1.0, 2.0, 8.0, 20.0]),
)
def test_any_centers_however_degenerate_get_a_leaf_each(rows, p):
    tree = ThresholdTree(len(rows[0]), p=p, draws=2)
    for id, row in enumerate(rows):
        known = [tree.center(i).tolist() for i in tree.ids]
        if [x + 0.0 for x in row] in known:
            with pytest.raises(InvalidParameter):
                tree.insert(id, np.array(row))
        else:
            tree.insert(id, np.array(row))
    tree._check()
    tree.build({id: tree.center(id) for id in tree.ids})
    tree._check()


@pytest.mark.parametrize("p", [1.0, 2.0, 8.0, 20.0])
@pytest.mark.parametrize(
    "places",
    [
        np.arange(64.0),
        2.0 ** np.arange(-30, 30),
        1e8 + 1e-6 * np.arange(50),
        np.array([1.0, np.nextafter(1.0, 2.0), np.nextafter(1.0, 0.0)]),
        1e150 * np.linspace(-1, 1, 20),
        5e-324 * np.arange(10),
        10.0 ** np.arange(-140, 150, 10),
    ],
)
def test_hard_places_on_a_line(places, p):
    for d, fixed in ((1, 0), (3, 1.5)):
        centers = np.full((places.size, d), float(fixed))
        centers[:, 0] = places
        tree = tree_of(centers, centers.repeat(20, axis=0), p=p, draws=4)
        for id in range(places.size - 1):
            tree.delete(id)
            tree.insert(id, centers[id])
        tree._check()


def test_ten_thousand_features():
    rng = np.random.default_rng(0)
    tree = tree_of(rng.normal(size=(6, 10_000)), draws=2)
    tree.insert(6, rng.normal(size=10_000))
    tree.delete(2)
    tree._check()
