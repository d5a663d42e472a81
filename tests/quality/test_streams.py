"""Whole streams with known truth: answers, noise, identity, and what is told of changes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from simulations.replay_drift import replay
from simulations.streams import DRIFTS, blobs, drift, drift10

pytestmark = pytest.mark.quality
SEEDS = range(3)
STREAMS = {
    "blobs10": lambda seed: blobs(20_000, seed=seed),
    "drift10": lambda seed: drift10(20_000, seed),
    "30 % noise": lambda seed: blobs(20_000, noise=0.3, seed=seed),
    "heavy noise": lambda seed: blobs(20_000, noise=0.1, kind="heavy", seed=seed),
    "bursts": lambda seed: blobs(20_000, noise=0.1, kind="bursts", seed=seed),
} | {name: lambda seed, name=name: drift(name, seed=seed) for name in DRIFTS}


PASSING = pytest.mark.xfail(
    strict=True,
    reason="two groups that pass 3.6 deviations apart are one for 4,000 events: .93, .96",
)


@cache
def runs(name, assign="tree"):
    return [replay(STREAMS[name](seed), assign) for seed in SEEDS]


def mean(found, figure):
    return np.mean([figure(run) for run in found])


def ari(run):
    return run.found.scores.ari


def noise_f1(run):
    return run.found.scores.noise_f1


@pytest.mark.parametrize(
    ("name", "assign", "least"),
    [
        ("blobs10", "tree", 0.97),
        ("blobs10", "nearest", 0.98),
        pytest.param("drift10", "tree", 0.95, marks=PASSING),
        pytest.param("drift10", "nearest", 0.97, marks=PASSING),
        ("30 % noise", "tree", 0.95),
        ("bursts", "tree", 0.95),
    ],
)
def test_the_groups_are_found(name, assign, least):
    assert mean(runs(name, assign), ari) >= least


@pytest.mark.parametrize("name", ["blobs10", "drift10", "30 % noise"])
def test_uniform_noise_is_answered_as_noise(name):
    assert mean(runs(name), noise_f1) >= 0.9


def test_heavy_tailed_noise_is_answered_as_noise():
    assert mean(runs("heavy noise"), noise_f1) >= 0.9


@pytest.mark.parametrize("assign", ["tree", "nearest"])
def test_answers_to_old_events_stay(assign):
    assert mean(runs("blobs10", assign), lambda run: run.found.flips) <= 0.001


def test_the_number_of_living_clusters_is_that_of_the_groups():
    for run in runs("blobs10") + runs("drift10"):
        assert all(9 <= c.living <= 11 for c in run.found.series[len(run.found.series) // 2 :])


@pytest.mark.parametrize("name", ["drift10", "abrupt", "recurring", "births and deaths"])
def test_every_scripted_birth_and_death_is_told_once_and_in_time(name):
    for run in runs(name):
        assert all(one is not None for _, one in run.pairs)
        assert all(0 < one.tick - change.begins <= 1000 for change, one in run.pairs)


@pytest.mark.parametrize("name", ["stationary", "gradual"])
def test_nothing_is_told_where_nothing_happens(name):
    for run in runs(name):
        assert not run.beside
        n = len(run.watched.series)
        assert run.watched.series[-1][1] <= run.watched.series[n // 2][1] + 30


def test_at_most_two_others_are_told_on_drift10():
    assert mean(runs("drift10"), lambda run: len(run.beside)) <= 2


@pytest.mark.parametrize("name", ["abrupt", "recurring", "births and deaths"])
def test_nothing_but_the_script_is_told(name):
    assert not [one for run in runs(name) for one in run.beside]


@pytest.mark.xfail(strict=True, reason="refits come on a schedule, too late for splits and merges")
def test_splits_and_merges_are_told():
    for run in runs("split and merge"):
        assert all(one is not None for _, one in run.pairs)


@pytest.mark.parametrize("name", ["drift10", *DRIFTS[:-1]])
def test_few_centers_change_at_little_cost(name):
    """Mean recourse per event far below one center, where the theory grants polylog(n)."""
    for run in runs(name):
        _, changes, _ = run.watched.series[-1]
        assert changes <= 0.02 * len(run.stream.points)
        ratios = [ratio for _, _, ratio in run.watched.series]
        assert np.nanmean(ratios) <= 1.05
