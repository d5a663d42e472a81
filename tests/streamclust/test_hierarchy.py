import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from streamclust.refit.code import Choice, Code, compact
from streamclust.refit.graph import neighbour_graph
from streamclust.refit.hierarchy import (
    NEAR,
    choose,
    choose_exactly,
    give_up,
    join,
    link_single,
    link_ward,
    polish,
)
from tests.kernels.code_references import naive_join


def window(n=300, k=4, d=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    points = 8.0 * rng.normal(size=(k, d))[truth] + rng.normal(size=(n, d))
    return points, truth.astype(np.int64)


def ward_of(points):
    return link_ward(neighbour_graph(points, 8), points, np.ones(len(points)))


def test_joining_undoes_a_split():
    points, truth = window(seed=2)
    code = Code(points, np.ones(300))
    split = 2 * truth + (points[:, 1] > 0.0)
    joined = join(code.best(compact(split, np.ones(300))), code)
    assert joined.n_clusters == 4
    assert joined.length == pytest.approx(code.measure(joined.labels, joined.student)[0])


@pytest.mark.parametrize("label", [-1, 0])
def test_joining_none_or_one_changes_nothing(label):
    points, _ = window(n=50)
    choice = Choice(np.full(50, label), 1.0, False)
    assert join(choice, Code(points, np.ones(50))) is choice


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_joining_down_to_k(k):
    points, _ = window(k=9, seed=3)
    code = Code(points, np.ones(300))
    labels = compact(np.random.default_rng(0).integers(0, 12, 300), np.ones(300))
    joined = join(code.best(labels), code, k)
    assert joined.n_clusters == k
    assert joined.length == pytest.approx(code.measure(joined.labels, joined.student)[0])


@pytest.mark.parametrize("student", [False, True])
@pytest.mark.parametrize("k", [None, 1, 5])
def test_joining_takes_the_best_pair_every_time(k, student):
    points, truth = window(n=150, d=2, seed=4)
    labels = np.random.default_rng(4).integers(-1, 3, 150) + 3 * truth
    weights = np.random.default_rng(5).uniform(0.5, 2.0, 150)
    code = Code(points, weights)
    start = Choice(compact(labels, weights), 100.0, student)
    joined = join(start, code, k)
    expected, grown = naive_join(points, weights, start.labels, NEAR, k, code.floor, student)
    assert np.array_equal(joined.labels, compact(expected, weights, 0.0))
    assert joined.length == pytest.approx(100.0 + grown)


def test_clusters_of_background_become_noise():
    points, truth = window(seed=6)
    rng = np.random.default_rng(6)
    far = rng.uniform(points.min(axis=0), points.max(axis=0), (40, 3))
    everything, weights = np.concatenate((points, far)), np.ones(340)
    code = Code(everything, weights, plain=True)
    parts = np.concatenate((truth, 4 + np.repeat(np.arange(8), 5)))
    kept = give_up(code.best(parts), code)
    assert np.array_equal(kept.labels, compact(np.where(parts < 4, parts, -1), weights, 0.0))
    assert kept.length == pytest.approx(code.measure(kept.labels, kept.student)[0])
    polished = polish(code.best(parts), code)
    assert polished.length <= kept.length
    assert polished.n_clusters == 4


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("noisy", [True, False])
def test_real_clusters_and_the_last_one_are_kept(noisy, plain):
    points, truth = window()
    code = Code(points, np.ones(300), noisy=noisy, plain=plain)
    for labels in (truth, np.zeros(300, np.int64), np.full(300, -1)):
        choice = Choice(labels, 0.0, False)
        assert give_up(choice, code) is choice


@pytest.mark.parametrize("embedded", [True, False])
def test_one_good_hierarchy_is_enough(embedded):
    points, truth = window(seed=4)
    graph = neighbour_graph(points, 8)
    merges = link_single(graph, points) if embedded else ward_of(points)
    choice = choose([merges], Code(points, np.ones(300)))
    assert adjusted_rand_score(truth, choice.labels) > 0.95


def test_polishing_finds_the_truth_from_a_fine_start():
    points, truth = window(seed=7)
    code = Code(points, np.ones(300))
    fine = compact(3 * truth + np.searchsorted([-1.0, 1.0], points[:, 1]), np.ones(300))
    start = code.best(fine)
    polished = polish(start, code)
    assert polished.length < start.length
    assert adjusted_rand_score(truth, polished.labels) > 0.98


def test_the_former_clustering_competes():
    points, truth = window(seed=8)
    code = Code(points, np.ones(300))
    poor = link_ward(neighbour_graph(points, 8), np.zeros_like(points), np.ones(300))
    assert choose([poor], code, truth).length <= code.best(truth).length


@pytest.mark.parametrize("k", [1, 4, 30, 300])
def test_exactly_k(k):
    points, _ = window(seed=5)
    choice = choose_exactly(k, [ward_of(points)], Code(points, np.ones(300)))
    assert set(np.unique(choice.labels)) - {-1} == set(range(k))


def test_choosing_among_nothing_is_one_cluster():
    points, _ = window(seed=6)
    assert choose([], Code(points, np.ones(300))).n_clusters == 1
