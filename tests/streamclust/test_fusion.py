"""The fusion graph: its weights, its penalty, its two solvers; the levels of the truncation."""

import numpy as np
import pytest

from streamclust.refit.fusion import FusionGraph, Schedule
from streamclust.refit.graph import neighbour_graph


def test_the_penalty_is_geman_mcclures():
    points = np.random.default_rng(0).normal(size=(40, 3))
    edges = FusionGraph(neighbour_graph(points, 5), np.ones(40))
    square = ((points[edges.first] - points[edges.second]) ** 2).sum(axis=1)
    for truncation in (0.1, 1.0, 50.0):
        told, pulls = edges.penalty(points, truncation)
        rho = truncation * square / (truncation + square)  # at its best line process
        assert told == pytest.approx(float(edges.base @ rho))
        assert np.allclose(pulls, edges.base * (truncation / (truncation + square)) ** 2)


def test_weights_of_edges_are_the_published_ones():
    graph = neighbour_graph(np.random.default_rng(1).normal(size=(30, 2)), 4)
    edges = FusionGraph(graph, np.ones(30))
    degree = np.bincount(np.r_[edges.first, edges.second], minlength=30)
    wanted = degree.mean() / np.sqrt(degree[edges.first] * degree[edges.second])
    assert np.allclose(edges.base, wanted)


@pytest.mark.parametrize("n", [40, 600])
def test_both_solvers_agree(n, monkeypatch):
    points = np.random.default_rng(2).normal(size=(n, 3))
    graph, held = neighbour_graph(points, 6), np.random.default_rng(3).uniform(0.5, 2.0, n)
    found = []
    for typical in (0, 10**9):  # conjugate gradients; a factorisation at any price
        monkeypatch.setattr("streamclust.refit.fusion.TYPICAL_STEPS", typical)
        monkeypatch.setattr("streamclust.refit.fusion.RESIDUAL", 1e-10)
        edges = FusionGraph(graph, np.ones(n), columns=3)
        U = points[edges.order]
        edges.solve(3.0 * edges.base, held[edges.order], U.copy(), U)
        found.append(U[edges.place])
    assert np.allclose(*found, atol=1e-7)
    assert not np.allclose(found[0], points, atol=0.1)


def test_positions_are_numbers_of_the_same_points():
    points, mass = np.random.default_rng(4).normal(size=(60, 3)), np.linspace(1.0, 2.0, 60)
    graph = neighbour_graph(points, 6)
    plain, moved = FusionGraph(graph, mass), FusionGraph(graph, mass, columns=3)
    assert np.array_equal(plain.order, np.arange(60))
    assert not np.array_equal(moved.order, plain.order)
    assert np.array_equal(moved.order[moved.place], np.arange(60))
    ends = np.sort((moved.order[moved.first], moved.order[moved.second]), axis=0)
    told = {(a, b): weight for a, b, weight in zip(*ends, moved.base, strict=True)}
    for a, b, weight in zip(plain.first, plain.second, plain.base, strict=True):
        assert told[a, b] == pytest.approx(weight)
    assert len(told) == len(plain.first)


def test_levels_halve_and_end_at_half_the_end():
    schedule = Schedule(8.0, 1.5, 1e-3, relative=True)
    seen = [schedule.truncation]
    objective = 100.0
    for _ in range(100):
        if schedule.ended:
            break
        schedule.advance(objective)  # constant: every second solve ends a level
        seen.append(schedule.truncation)
    assert schedule.ended
    assert seen[0] == 8.0
    assert seen[-1] == 1.0
    assert sorted(set(seen), reverse=True) == [8.0, 4.0, 2.0, 1.0]


def test_a_level_lasts_four_solves_at_the_most():
    schedule = Schedule(8.0, 1.5, 1e-3, relative=True)
    assert [schedule.advance(2.0**-i) for i in range(8)] == [False, False, False, True] * 2
