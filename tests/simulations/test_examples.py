"""The examples find what their scripts say, in their quick form; none finds what is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from simulations.examples import (
    payments,
    river_pipeline,
    sensor_drift,
    server_telemetry,
    text_embeddings,
)
from simulations.examples.telling import news
from streamclust.events import ClusterBorn, ClusterDied
from tests.simulations.test_scripts import is_picture

FULL = {server_telemetry: 12_000, payments: 12_000, sensor_drift: 12_000, text_embeddings: 6_000}
COLD = 300  # events in which the first clusters are found


def test_a_fault_is_born_with_a_rule_and_dies_with_its_repair():
    n = 4000
    model, rules = server_telemetry.run(n)
    born, died = news(model.events_since(0), COLD)
    assert isinstance(born, ClusterBorn)
    assert isinstance(died, ClusterDied)
    assert born.cluster == died.cluster
    assert server_telemetry.BEGINS * n < born.tick < server_telemetry.ENDS * n < died.tick
    assert any(feature in rules[born.cluster] for feature in ("latency", "memory", "disk"))
    assert len(model.clusters) == 3


def test_a_new_kind_of_fraud_becomes_a_cluster():
    n = 5000
    model, answers, kinds = payments.run(n)
    cluster, born, before, precision, recall = payments.caught(model, answers, kinds)
    assert [one.cluster for one in news(model.events_since(0), COLD)] == [cluster]
    assert payments.BEGINS * n < born
    assert before < 30
    assert precision > 0.95
    assert recall > 0.95


def test_slow_drift_keeps_the_ids_and_a_jump_is_told():
    n = 5000
    model, ids = sensor_drift.run(n)
    for state in sensor_drift.STATES:
        ruling = [tenth[state].most_common(1)[0][0] for tenth in ids]
        assert len(set(ruling[:6])) == len(set(ruling[7:])) == 1
    told = news(model.events_since(0), COLD)
    assert all(one.tick > sensor_drift.AT * n for one in told)
    born = [one.tick for one in told if isinstance(one, ClusterBorn)]
    assert len(born) == len(sensor_drift.STATES)
    assert max(born) < sensor_drift.AT * n + 200
    assert sum(isinstance(one, ClusterDied) for one in told) == len(sensor_drift.STATES)


def test_a_new_topic_is_found_and_told_by_its_words():
    model, words, topics = text_embeddings.run(3000)
    late = [one for one in model.clusters if topics[one].most_common(1)[0][0] == "outage"]
    assert late
    told = {word for one in late for word in text_embeddings.keywords(words, one)}
    assert told <= set(text_embeddings.TOPICS["outage"].split())
    assert {topics[one].most_common(1)[0][0] for one in model.clusters} == {*text_embeddings.TOPICS}


def test_the_clusterer_works_behind_transformers():
    pipeline, score = river_pipeline.run(1000)
    assert score.get() > 0.3
    names = pipeline["StreamClusterer"].window_points()
    assert not set(names) & set(river_pipeline.WHERE)


EVERY = [server_telemetry, payments, sensor_drift, text_embeddings, river_pipeline]


@pytest.mark.parametrize("example", EVERY, ids=lambda one: one.__name__.rpartition(".")[2])
def test_each_prints_its_story_and_writes_a_picture(example, tmp_path, capsys):
    example.main(3000, tmp_path)
    assert "cluster" in capsys.readouterr().out
    pytest.importorskip("matplotlib")
    (picture,) = tmp_path.iterdir()
    assert is_picture(picture)


@pytest.mark.quality
def test_what_the_documentation_quotes_is_what_they_print(tmp_path, capsys):
    page = Path(__file__).parents[2] / "docs" / "examples.md"
    quoted = re.findall(r"```none\n(.*?)```", page.read_text(), flags=re.DOTALL)
    for example, n in FULL.items():
        example.main(n, tmp_path)
    printed = {line.strip() for line in capsys.readouterr().out.splitlines()}
    assert quoted
    assert {line.strip() for block in quoted for line in block.splitlines()} <= printed
