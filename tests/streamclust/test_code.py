import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from streamclust.refit.code import Choice, Code, code_space, compact


def window(n=300, k=4, d=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    points = 8.0 * rng.normal(size=(k, d))[truth] + rng.normal(size=(n, d))
    return points, truth.astype(np.int64)


def test_the_truth_has_a_shorter_code_than_its_distortions():
    points, truth = window()
    code = Code(points, np.ones(300))
    length = code.best(truth).length
    rng = np.random.default_rng(0)
    joined = np.where(truth == 3, 2, truth)
    split = np.where((truth == 0) & (points[:, 0] > np.median(points[truth == 0, 0])), 4, truth)
    mixed = np.where(rng.random(300) < 0.1, rng.integers(0, 4, 300), truth)
    dropped = np.where(rng.random(300) < 0.1, -1, truth)
    for worse in (joined, split, mixed, dropped, np.zeros(300, np.int64)):
        assert code.best(worse).length > length


def test_the_code_of_heavy_tails_is_students():
    rng = np.random.default_rng(0)
    whole = np.zeros(400, np.int64)
    assert Code(rng.standard_t(2, (400, 3)), np.ones(400)).best(whole).student
    assert not Code(rng.normal(size=(400, 3)), np.ones(400)).best(whole).student


@pytest.mark.parametrize("plain", [False, True])
def test_refining_never_lengthens(plain):
    points, truth = window(seed=1)
    code = Code(points, np.ones(300), plain=plain)
    rng = np.random.default_rng(1)
    start = code.best(np.where(rng.random(300) < 0.3, rng.integers(0, 4, 300), truth))
    refined = code.refine(start)
    assert refined.length <= start.length
    assert adjusted_rand_score(refined.labels, truth) > 0.98
    assert refined.length == pytest.approx(code.measure(refined.labels, refined.student)[0])


def test_compact():
    labels = np.array([3, 3, -1, 0, 0, 0, 5])
    assert compact(labels, np.ones(7), 2.0).tolist() == [0, 0, -1, 1, 1, 1, -1]
    assert compact(labels, np.ones(7), 0.0).tolist() == [0, 0, -1, 1, 1, 1, 2]
    assert compact(np.full(3, -1), np.ones(3)).tolist() == [-1, -1, -1]


def test_the_number_of_clusters_of_a_choice():
    assert Choice(np.array([-1, 1, 0]), 0.0, False).n_clusters == 2
    assert Choice(np.array([-1]), 0.0, False).n_clusters == 0


@pytest.mark.parametrize(("n", "d"), [(100, 3), (100, 30), (30, 500), (3, 12), (2, 9)])
def test_code_space_is_a_narrow_isometry_of_about_the_main_axes(n, d):
    X = np.random.default_rng(0).normal(size=(n, d)) * np.geomspace(5.0, 0.1, d) + 7.0
    centred = X - X.mean(axis=0)
    Z = code_space(X, np.ones(n)).points
    assert np.allclose(Z.mean(axis=0), 0.0, atol=1e-9)
    assert Z.shape[1] <= min(15, d, max(n - 1, 1))
    if d > 8:
        values, main = np.linalg.svd(centred, full_matrices=False)[1:]
        assert (np.linalg.norm(Z, axis=0) <= values[0] * (1.0 + 1e-9)).all()
        kept = np.linalg.norm(centred @ main[: Z.shape[1]].T)
        assert 0.95 * kept <= np.linalg.norm(Z) <= kept * (1.0 + 1e-9)
        lost = np.linalg.eigvalsh(centred @ centred.T - Z @ Z.T)
        assert lost.min() >= -1e-9 * values[0] ** 2
    else:
        assert np.allclose(Z, centred)


def test_a_few_wild_values_choose_no_coordinate():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12)) * np.r_[np.full(3, 4.0), np.ones(9)]
    X[:6, -1] += 500.0
    Z = code_space(X, np.ones(200)).points
    assert np.abs(Z).max() < 100.0
    assert Z.shape[1] == 3


def test_mostly_constant_features_keep_their_own_coordinates():
    assert code_space(np.eye(40), np.ones(40)).points.any()


@pytest.mark.parametrize("step", [1.0, 0.25])
def test_the_grain_is_the_variance_of_rounding(step):
    rng = np.random.default_rng(0)
    X = np.unique(step * rng.integers(0, 6, (300, 4)), axis=0)
    assert code_space(X, np.ones(len(X))).grain == pytest.approx(np.full(4, step**2 / 12.0))
    drawn = step * (rng.random(10_000) - 0.5)
    assert drawn.var() == pytest.approx(step**2 / 12.0, rel=0.05)


def test_a_third_of_noise_and_wild_values_do_not_hide_the_grain():
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 9, (300, 3)) + np.r_[np.zeros(299), 1e6][:, None]
    X = np.unique(np.concatenate((counts, rng.uniform(0, 9, (110, 3)))), axis=0)
    assert code_space(X, np.ones(len(X))).grain == pytest.approx(np.full(3, 1.0 / 12.0))


@pytest.mark.parametrize("zeros", [0, 60])
def test_what_is_not_rounded_has_no_grain(zeros):
    X = np.random.default_rng(2).normal(size=(100, 4))
    X[:zeros, 0] = 0.0
    assert not code_space(X, np.ones(100)).grain.any()
    assert not code_space(X[:1], np.ones(1)).grain.any()


@pytest.mark.parametrize(("n", "d"), [(120, 12), (40, 60)])
def test_the_grain_turns_with_the_coordinates(n, d):
    X = np.round(2.0 * np.random.default_rng(3).normal(size=(n, d)))
    space = code_space(X, np.ones(n))
    axes = np.linalg.lstsq(X - X.mean(axis=0), space.points, rcond=None)[0]
    assert space.grain == pytest.approx((axes**2).sum(axis=0) / 12.0, rel=1e-6)


def test_clusters_that_agree_in_an_answer_are_not_told_for_next_to_nothing():
    rng = np.random.default_rng(4)
    groups = rng.integers(0, 2, 500)
    answers = (rng.random((500, 8)) < np.where(groups == 1, 0.85, 0.15)[:, None]).astype(float)
    X, weights = np.unique(answers, axis=0, return_counts=True)
    space = code_space(X, weights.astype(float))
    code, rough = (Code(space.points, weights.astype(float), g) for g in (space.grain, None))
    pure = (4.0 * X[:, 0] + 2.0 * X[:, 1] + X[:, 2]).astype(np.int64)
    right = (X.sum(axis=1) > 4.0).astype(np.int64)
    free = rough.best(right).length - rough.best(pure).length
    assert code.best(right).length - code.best(pure).length < 0.5 * free
