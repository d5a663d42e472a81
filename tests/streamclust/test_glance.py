"""What a refit and a renewal take with them: whole through a snapshot, and worked out later."""

from __future__ import annotations

import numpy as np
import pytest

from streamclust.glance import Glance, glance_of
from streamclust.renewal import COPIES, Lesson, lesson_of, renewed, rows_of
from streamclust.tree import ThresholdTree

RNG = np.random.default_rng(1)
POINTS = np.concatenate([RNG.normal(size=(20, 3)), 9.0 + RNG.normal(size=(20, 3)), [[99.0] * 3]])
CENTERS = np.array([[0.0] * 3, [9.0] * 3])
GLANCE = Glance(
    tick=41,
    reason="schedule",
    full=True,
    points=POINTS,
    times=np.arange(41.0),
    masses=np.ones(41),
    ids=np.array([5, 7]),
    clusters=np.array([5, 3]),
    centers=CENTERS,
    fences=np.full(2, 6.0),
    weights=np.ones(3),
    scale="robust",
    frozen=True,
)
LESSON = Lesson(
    tick=41,
    reconsider=True,
    ids=np.array([5, 7]),
    placed=CENTERS,
    centers=CENTERS,
    scales=np.full(2, 1.6),
    fences=np.full(2, 6.0),
    weights=np.ones(3),
    points=POINTS,
    p=2.0,
    seed=3,
)


@pytest.mark.parametrize(("told", "read"), [(GLANCE, glance_of), (LESSON, lesson_of)])
def test_they_outlive_their_state(told, read):
    again, state = read(told.to_state()).to_state(), told.to_state()
    assert again.keys() == state.keys()
    assert all(np.array_equal(again[name], state[name]) for name in state)


@pytest.mark.parametrize("part", ["times", "masses", "clusters", "centers", "fences", "weights"])
def test_parts_of_a_glance_that_do_not_fit_are_refused(part):
    with pytest.raises(ValueError, match="do not fit"):
        glance_of({**GLANCE.to_state(), part: np.ones(4)})


@pytest.mark.parametrize("part", ["ids", "placed", "centers", "scales", "fences", "points"])
def test_parts_of_a_lesson_that_do_not_fit_are_refused(part):
    with pytest.raises(ValueError, match="do not fit"):
        lesson_of({**LESSON.to_state(), part: np.ones((4, 4))})


def test_a_sample_says_which_cluster_held_each_point():
    sample = GLANCE.sample(2.0)
    assert sample.owners.tolist() == [5] * 20 + [3] * 20 + [-1]
    assert sample.centers.keys() == {5, 7}
    assert not np.array_equal(sample.weights, np.ones(3))  # the window suggests others


def test_a_lesson_labels_points_and_copies_by_the_nearest_center():
    rows, labels = rows_of(LESSON)
    assert len(rows) == 40 * (1 + COPIES)
    squares = ((rows[:, None] - CENTERS) ** 2).sum(axis=2)
    assert np.array_equal(labels, LESSON.ids[squares.argmin(axis=1)])


def test_a_tree_is_renewed_apart_from_itself_and_follows_first():
    tree = ThresholdTree(3)
    tree.build({5: np.full(3, -50.0), 8: np.ones(3)})
    before = tree.to_state()
    made = renewed(tree, LESSON)
    assert made.ids == [5, 7]
    assert np.array_equal(made.center(5), CENTERS[0])
    after = tree.to_state()
    assert np.array_equal(after["centers"], before["centers"])
    assert after["counters"] == before["counters"]
    assert tree.ids == [5, 8]
    tree.become(made, tree.copied())
    assert tree.ids == [5, 7]
    tree._check()
