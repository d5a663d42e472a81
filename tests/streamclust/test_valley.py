import numpy as np
import pytest
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import adjusted_rand_score

from streamclust.refit.code import Code, compact
from streamclust.refit.graph import neighbour_graph
from streamclust.refit.valley import join_without_valley


def joined(points, labels):
    code = Code(points, np.ones(len(points)))
    labels = compact(np.asarray(labels, dtype=np.int64), np.ones(len(points)), 0.0)
    return join_without_valley(code.best(labels), code, neighbour_graph(points, 9))


@pytest.mark.parametrize("d", [1, 2, 6, 12])
def test_two_halves_of_a_gaussian_are_one(d):
    points = np.random.default_rng(d).normal(size=(500, d))
    assert joined(points, points[:, 0] > 0.1).max() == 0


@pytest.mark.parametrize("d", [1, 2, 6, 12])
@pytest.mark.parametrize("share", [0.5, 0.25])
def test_two_gaussians_four_deviations_apart_are_two(d, share):
    rng = np.random.default_rng(d)
    truth = (rng.random(600) < share).astype(int)
    points = rng.normal(size=(600, d))
    points[:, 0] += 4.0 * truth
    assert joined(points, truth).max() == 1


def test_a_dense_cluster_in_the_flank_of_a_thin_one_is_another():
    rng = np.random.default_rng(0)
    points = np.concatenate((rng.normal(0.0, 0.3, (300, 2)), rng.normal(2.0, 1.5, (300, 2))))
    assert joined(points, np.repeat([0, 1], 300)).max() == 1


@pytest.mark.parametrize("make", [make_moons, make_circles])
def test_arcs_are_joined_along_the_curve_and_not_across(make):
    factor = {"factor": 0.4} if make is make_circles else {}
    points, truth = make(900, noise=0.05, random_state=0, **factor)
    center = points - np.where(truth[:, None] & (make is make_moons), [1.0, 0.5], 0.0)
    arcs = np.floor(np.arctan2(center[:, 1], center[:, 0]) / (np.pi / 3)) + 10 * truth
    arcs = np.unique(arcs, return_inverse=True)[1]
    assert adjusted_rand_score(truth, joined(points, arcs)) > 0.97


def test_too_few_points_tell_nothing():
    points = np.random.default_rng(0).normal(size=(16, 2))
    assert joined(points, points[:, 0] > 0.0).max() == 1


def test_equal_values_have_no_inside():
    points = np.c_[np.repeat([0.0, 1.0], 50), np.zeros(100)]
    points += 1e-13 * np.random.default_rng(0).normal(size=points.shape)
    assert joined(points, points[:, 0] > 0.5).max() == 1


def test_noise_stays_noise():
    points = np.random.default_rng(0).normal(size=(400, 2))
    labels = (points[:, 0] > 0.0).astype(np.int64)
    labels[:20] = -1
    found = joined(points, labels)
    assert (found[:20] == -1).all()
    assert (found[20:] == 0).all()
