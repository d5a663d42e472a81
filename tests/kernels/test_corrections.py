import numpy as np
import pytest

from streamclust.kernels.corrections import cells_of, grow, worths
from tests.kernels.corrections_references import grown


def sprout(points, labels, own, tolerated=0.0, most=63):
    """What the kernel grows, as the oracle tells it."""
    common = labels == np.bincount(labels).argmax()
    rows, others = np.flatnonzero(common), np.flatnonzero(~common)
    feature, threshold = np.zeros(most, dtype=np.int64), np.zeros(most)
    child = np.zeros((most, 2), dtype=np.int64)
    answer, errors = np.zeros((2, most), dtype=np.int64)
    worth = np.zeros(most)
    n = grow(
        points,
        np.arange(points.shape[1]),
        rows,
        others,
        np.argsort(points[others].T, axis=1),
        np.concatenate([labels[common], labels[~common]]),
        int(labels.max()) + 1,
        own,
        tolerated,
        feature,
        threshold,
        child,
        answer,
        errors,
        worth,
    )
    told = zip(
        feature.tolist(),
        threshold.tolist(),
        map(tuple, child.tolist()),
        answer.tolist(),
        errors.tolist(),
        strict=True,
    )
    return list(told)[:n]


@pytest.mark.parametrize("seed", range(40))
def test_only_cuts_beside_another_label_are_tried_and_none_is_missed(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 90)), int(rng.integers(1, 4))
    points = rng.normal(size=(n, d))
    if seed % 2:
        points = np.round(points, 1)  # equal values, of equal and of different labels
    labels = rng.choice(4, size=n, p=rng.dirichlet(np.ones(4)))
    labels[:2] = 0, 1
    own, tolerated = rng.normal(size=d), float(rng.integers(0, 3))
    most = 63 if seed % 3 else 7
    assert sprout(points, labels, own, tolerated, most) == grown(
        points, labels, own, tolerated, most
    )


def test_far_values_change_nothing():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 2)) * np.array([1e-300, 1.0])
    points[0, 1], points[1, 1] = 1e15, -1e15
    labels = (points[:, 1] > 0).astype(np.int64) + (rng.random(60) < 0.2)
    own = np.zeros(2)
    assert sprout(points, labels, own) == grown(points, labels, own, 0.0, 63)


def test_cells_tell_between_which_others_a_point_lies():
    points = np.array([[0.0], [1.0], [1.5], [2.0], [9.0], [1.0], [2.0], [2.0]])
    common, others = np.arange(5), np.arange(5, 8)
    cells = np.empty((8, 1), dtype=np.uint32)
    cells_of(points, np.arange(1), common, others, np.array([[0, 2, 1]]), cells)
    assert cells[:, 0].tolist() == [0, 1, 2, 3, 4, 1, 3, 3]


def test_the_weakest_link_goes_first():
    child = np.array([[1, 2], [3, 4], [-1, -1], [-1, -1], [-1, -1]])
    errors, worth = np.array([10, 4, 2, 1, 1]), np.zeros(5)
    worths(child, errors, worth)
    assert worth.tolist() == [4.0, 2.0, 0.0, 0.0, 0.0]
