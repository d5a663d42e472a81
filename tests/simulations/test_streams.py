"""The streams are what they say, and what is told is matched to their script one to one."""

from __future__ import annotations

import numpy as np
import pytest

from simulations.replay_drift import Told, groups_of, match
from simulations.streams import BURST, DRIFTS, NOISES, Scripted, blobs, drift, drift10, standardised
from simulations.tables import means, show, write


@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
def test_noise_has_its_share_and_is_labelled(kind, share):
    stream = blobs(8000, noise=share, kind=kind, seed=3)
    noise = np.array([label == -1 for label in stream.labels])
    assert abs(noise.mean() - share) < 0.02
    assert np.array_equal(noise, np.isnan(stream.means[:, 0]))
    clean = stream.points[~noise] - stream.means[~noise]
    assert abs(clean.std() - 1) < 0.02


def test_a_burst_is_dense_and_short():
    stream = blobs(8000, noise=0.1, kind="bursts", seed=1)
    junk = np.flatnonzero([label == -1 for label in stream.labels])
    for burst in junk.reshape(-1, BURST):
        assert burst[-1] - burst[0] < 2 * BURST
        assert stream.points[burst].std(axis=0).max() < 0.5


def test_heavy_noise_has_wild_values():
    stream = blobs(8000, noise=0.1, kind="heavy", seed=1)
    assert np.abs(stream.points).max() > 1000


@pytest.mark.parametrize("name", DRIFTS)
def test_the_labels_follow_the_script(name):
    stream = drift(name, 4000, seed=2)
    labels = np.array(stream.labels, dtype=object)
    for change in stream.script:
        before, after = labels[: change.begins], labels[change.ends :]
        last = change.groups[-1]
        if change.kind in ("birth", "split"):
            assert last not in before
            assert last in after
        else:
            assert last in before
            assert last not in after
    clean = [label for label in stream.labels if label not in (-1, None)]
    assert len(set(clean)) >= 6


def test_a_seed_makes_a_stream():
    one, two, other = drift10(500, 1), drift10(500, 1), drift10(500, 2)
    assert np.array_equal(one.points, two.points)
    assert one.labels == two.labels
    assert not np.array_equal(one.points, other.points)
    assert list(one.events[0].values()) == one.points[0].tolist()


def test_rows_are_standardised_by_what_came_before():
    points = np.random.default_rng(0).normal(5, 3, (200, 2))
    found = standardised(points)
    for n in (2, 50, 200):
        seen = points[:n]
        assert found[n - 1] == pytest.approx((seen[-1] - seen.mean(0)) / seen.std(0))
    assert not found[0].any()


def test_what_is_told_belongs_to_one_scripted_change_of_its_kind_group_and_time():
    script = [
        Scripted("birth", 5000, 5000, (7,)),
        Scripted("death", 6000, 6000, (1,)),
        Scripted("split", 7000, 8000, (2, 8)),
    ]
    groups = {0: 1, 1: 2, 2: 7, 3: 8, 4: 5}
    told = [
        Told("birth", 50, (0,)),  # before anything is settled
        Told("birth", 4990, (2,)),  # too early
        Told("birth", 5100, (4,)),  # of another group
        Told("birth", 5200, (2,)),
        Told("birth", 5300, (2,)),  # once is enough
        Told("death", 7001, (0,)),  # too late
        Told("split", 8900, (1, 1, 3)),
    ]
    pairs, beside = match(script, told, groups)
    assert [one.tick if one else None for _, one in pairs] == [5200, None, 8900]
    assert [one.tick for one in beside] == [4990, 5100, 5300, 7001]


def test_a_cluster_is_of_the_group_that_most_of_its_events_have():
    answers, labels = [0, 0, 0, 1, 1, -1, 2], [5, 5, 6, 6, None, 5, -1]
    assert groups_of(answers, labels) == {0: 5, 1: 6}


def test_tables_are_means_and_files(tmp_path, capsys):
    rows = [
        {"stream": "a", "seed": 0, "ARI": 1.0, "F1": float("nan")},
        {"stream": "a", "seed": 1, "ARI": 0.5, "F1": 0.25},
        {"stream": "b", "seed": 0, "ARI": 2000.0, "F1": float("nan")},
    ]
    found = means(rows, ("stream",))
    assert found[0] == {"stream": "a", "ARI": 0.75, "F1": 0.25}
    show("title", found)
    printed = capsys.readouterr().out
    assert "0.75" in printed
    assert "2,000" in printed
    assert "-" in printed
    write(tmp_path / "new" / "rows.csv", rows)
    lines = (tmp_path / "new" / "rows.csv").read_text().splitlines()
    assert lines[:2] == ["stream,seed,ARI,F1", "a,0,1.0,nan"]
