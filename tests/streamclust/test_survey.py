"""What a refit looks at: ended, faint and wide clusters, valleys, and samples kept as states."""

from __future__ import annotations

import numpy as np
import pytest

from streamclust.survey import (
    Sample,
    faint,
    silent,
    survey_of_labels,
    valley,
    without_background,
)


def sample_from(points, times=None):
    n = len(points)
    return Sample(
        tick=n,
        reason="schedule",
        points=np.asarray(points, dtype=float),
        times=np.arange(n, dtype=float) if times is None else times,
        masses=np.ones(n),
        weights=np.ones(np.shape(points)[1]),
        owners=np.full(n, -1),
        centers={4: np.zeros(np.shape(points)[1])},
        full=True,
    )


def census_of(sample, labels):
    return survey_of_labels(sample, np.asarray(labels), 2.0, 100).census


@pytest.mark.parametrize("strays", [0, 1, 5])
@pytest.mark.parametrize("seed", range(3))
def test_a_cluster_without_new_points_has_ended(seed, strays):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, 600)
    labels[400:][labels[400:] == 2] = 0
    labels[np.arange(450, 450 + 25 * strays, 25)] = 2
    sample = sample_from(rng.normal(size=(600, 2)) + 20.0 * labels[:, None])
    census = census_of(sample, labels)
    assert [silent(census, c, sample) for c in range(3)] == [False, False, True]


def test_a_cluster_that_just_began_or_is_rare_has_not_ended():
    rng = np.random.default_rng(3)
    labels = np.zeros(600, dtype=int)
    labels[560:580] = 1
    labels[::60] = 2
    sample = sample_from(rng.normal(size=(600, 2)) + 20.0 * labels[:, None])
    census = census_of(sample, labels)
    assert not any(silent(census, c, sample) for c in range(3))


def test_a_few_points_of_even_noise_are_faint_and_a_dense_group_is_not():
    rng = np.random.default_rng(0)
    noise = rng.uniform(-10, 10, size=(60, 2))
    group = rng.normal(size=(40, 2))
    sample = sample_from(np.concatenate([noise, group]))
    far = np.linalg.norm(noise - [6, 6], axis=1)
    near = far <= np.sort(far)[4]
    labels = np.concatenate([np.where(near, 1, -1), np.zeros(40, dtype=int)])
    census = census_of(sample, labels)
    assert [faint(census, c, sample, 2.0) for c in range(2)] == [False, True]


@pytest.mark.parametrize("d", [2, 8])
def test_a_wide_cluster_around_all_others_is_background(d):
    rng = np.random.default_rng(d)
    places = 15.0 * np.eye(d)[:2]
    labels = rng.integers(0, 2, 500)
    points = places[labels] + rng.normal(size=(500, d))
    wide = rng.random(500) < 0.15
    points[wide] = 20.0 * rng.standard_cauchy((int(wide.sum()), d))
    sample = sample_from(points)
    census = census_of(sample, np.where(wide, 2, labels))
    assert without_background(census, sample, 2.0).k == 2
    clean = census_of(sample, np.where(wide, -1, labels))
    assert without_background(clean, sample, 2.0) is clean


@pytest.mark.parametrize("seed", range(5))
def test_two_heaps_have_a_valley_and_one_that_is_cut_has_none(seed):
    rng = np.random.default_rng(seed)
    for apart, expected in ((5.0, True), (0.0, False)):
        side = rng.integers(0, 2, 400)
        points = rng.normal(size=(400, 4))
        points[:, 0] += apart * side
        if not apart:
            side = (points[:, 0] > 0).astype(int)
        a, b = points[side == 0].mean(axis=0), points[side == 1].mean(axis=0)
        assert valley(sample_from(points), np.arange(400), a, b) == expected
    assert not valley(sample_from(points), np.arange(3), a, b)
    assert not valley(sample_from(points), np.arange(400), a, a)
