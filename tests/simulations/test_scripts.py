"""The simulations run from end to end on short streams, pictures included."""

from __future__ import annotations

import pytest
from river.cluster import KMeans

from simulations import compare_peers, replay_drift, replay_noisy, scale_out
from simulations.streams import DRIFTS, drift, mappings
from simulations.tables import means

PNG = b"\x89PNG"


def is_picture(path):
    return path.read_bytes()[:4] == PNG and path.stat().st_size > 10_000


def test_replays_of_noise_give_rows_and_a_picture(tmp_path):
    rows = [
        replay_noisy.replay(kind, share, assign, 400, 0)
        for kind in replay_noisy.NOISES
        for share in (0.0, 0.2)
        for assign in ("tree", "nearest")
    ]
    assert all(-1 <= row["ARI"] <= 1 and row["living"] >= 1 for row in rows)
    pytest.importorskip("matplotlib")
    replay_noisy.draw(tmp_path / "noisy.png", means(rows, replay_noisy.KEYS))
    assert is_picture(tmp_path / "noisy.png")


def test_replays_of_drift_count_centers_and_tell_the_story(tmp_path):
    runs = {name: replay_drift.replay(drift(name, 1500, seed=0)) for name in DRIFTS[2:]}
    for run in runs.values():
        scores, recourse = replay_drift.figures(run, "tree", 0)
        assert scores["told"] <= scores["scripted"] == len(run.stream.script)
        assert recourse["inserted"] - recourse["deleted"] == len(run.watched.model.centers)
        told = replay_drift.story(run, "tree", 0)
        assert len(told) == len(run.pairs) + len(run.beside)
    pytest.importorskip("matplotlib")
    replay_drift.draw(tmp_path, runs)
    assert is_picture(tmp_path / "replay_drift.png")
    assert is_picture(tmp_path / "replay_drift_recourse.png")


def test_every_peer_is_tuned_and_compared(tmp_path):
    stream = drift("stationary", 260, k=3, d=2, noise=0.0, seed=1)
    rows = list(compare_peers.compare("three", stream.points, stream.labels, 0, 0.5))
    assert [r["clusterer"] for r in rows] == [*compare_peers.OURS, *compare_peers.PEERS]
    assert all(r["events"] == 260 for r in rows)
    best = {r["clusterer"]: r["ARI"] for r in rows}
    assert best["streamclust"] > 0.9
    assert max(best["river KMeans"], best["sklearn MiniBatchKMeans"]) > 0.9
    pytest.importorskip("matplotlib")
    compare_peers.draw(tmp_path / "peers.png", means(rows, (*compare_peers.KEYS, "parameters")))
    assert is_picture(tmp_path / "peers.png")


def test_a_grid_is_searched_with_the_truth():
    stream = drift("stationary", 300, k=3, d=2, noise=0.0, seed=1)

    def make(k, halflife):
        return KMeans(k if halflife > 0.1 else 1, halflife=halflife, seed=1)

    found, cost = compare_peers.tuned(
        make, {"halflife": [0.05, 0.4]}, mappings(stream.points), stream.labels, 3
    )
    assert found == {"halflife": 0.4}
    assert cost > 0


def test_scaling_out_gives_the_same_answers_in_any_number_of_parts(tmp_path):
    parts = [
        row
        for name in scale_out.STREAMS
        for row in scale_out.by_partitions(name, 2100, 0, partitions=(1, 4))
    ]
    assert all(row["other answers"] == 0 for row in parts)
    sizes = [r for name in scale_out.STREAMS for r in scale_out.by_size(name, 1500, 0, (300, 600))]
    loads = list(scale_out.by_load(0, (500, 3000), partitions=2))
    assert all(row["us per event"] > 0 for row in loads)
    pytest.importorskip("matplotlib")
    scale_out.draw(tmp_path / "scale.png", parts, sizes, loads)
    assert is_picture(tmp_path / "scale.png")
