"""What is live, of a model and of the lines that a worker writes."""

import json
import math
from dataclasses import replace

import pytest

from streamclust import StreamClusterer
from streamclust.errors import AdapterError
from streamclust.events import (
    ClusterBorn,
    ClusterDied,
    ClustersMerged,
    ClusterSplit,
    RefitDone,
    RuleChanged,
)
from streamclust_adapters.attached import RECENT, Attached, Lines
from streamclust_adapters.encoder import Encoder
from streamclust_adapters.feeds import COST, LEAST, WHY, Heard, Pace
from streamclust_adapters.inputs import NextFile
from streamclust_adapters.live import ANSWERS, CHANGES, POINTS, Course, Watched, lasting
from streamclust_adapters.records import MAX_BYTES
from streamclust_adapters.testing import MemoryPosition, MemoryRecord
from tests.adapters.commands import REAL, blobs, lines, run

HISTORY = [
    ClusterBorn(number=1, tick=40, time=40.0, cluster=0, weight=20.0, found_by="refit"),
    ClusterBorn(number=2, tick=40, time=40.0, cluster=1, weight=20.0, found_by="refit"),
    RuleChanged(number=3, tick=40, time=40.0, cluster=0, old="", new="x <= 1"),
    RefitDone(
        number=4,
        tick=60,
        time=60.0,
        reason="schedule",
        asked=60,
        clusters=2,
        noise_share=0.25,
        weights={0: 30.0, 1: 10.0},
    ),
    ClusterSplit(number=5, tick=80, time=80.0, parent=1, children=(1, 2), overlaps=(0.75, 0.25)),
    ClustersMerged(number=6, tick=90, time=90.0, parents=(0, 1), child=1, overlaps=(1.0, 1.0)),
    RefitDone(number=7, tick=95, time=95.0, reason="drift", asked=95, clusters=2, noise_share=0.5),
    ClusterDied(number=8, tick=99, time=99.0, cluster=2, reason="silence"),
]


class Blocks:
    """Bytes that come as they are pushed."""

    def __init__(self, *blocks):
        self.blocks = list(blocks)

    def read(self):
        block = self.blocks.pop(0) if self.blocks else None
        if isinstance(block, type):
            raise block
        return block


def written(changes, **more):
    encoder = Encoder()
    return encoder.lines([encoder.change(one.tick, one) | more for one in changes])


def answer(event, cluster, region="core", **more):
    told = {"event": event, "cluster": cluster, "region": region, **more}
    return json.dumps(told).encode() + b"\n"


def attached(changes=b"", answers=b""):
    one = Attached()
    one.take_changes(Lines(Blocks(changes), "events"))
    one.take_answers(Lines(Blocks(answers), "answers"))
    return one


# of a worker


@pytest.mark.parametrize("upto", range(1, len(HISTORY) + 1))
def test_changes_tell_who_lives_and_by_which_rule(upto):
    living, rules = {}, {}
    for one in HISTORY[:upto]:
        if isinstance(one, ClusterBorn):
            living[one.cluster] = one.tick
        elif isinstance(one, RuleChanged):
            rules[one.cluster] = (one.new,)
    if upto >= 5:
        living[2] = 80
    if upto >= 6:
        del living[0]
    if upto >= 8:
        del living[2]
    view = attached(written(HISTORY[:upto])).view()
    assert {one.id: one.born for one in view.groups} == living
    assert {one.id: one.rule for one in view.groups} == {id: rules.get(id, ()) for id in living}
    assert view.events == HISTORY[upto - 1].tick
    ends = [one.cluster for one in view.lineage.lives.values() if one.end < 0]
    assert sorted(ends) == sorted(living)
    if upto >= 4:
        assert view.lineage.lives[0].weights[:2] == [(40, 20.0), (60, 30.0)]


def test_refits_tell_noise_and_alarms_where_there_are_no_answers():
    view = attached(written(HISTORY)).view()
    assert view.noise == 0.5
    assert view.course == ((60, 0.25), (95, 0.5))
    assert view.alarms == (95,)
    assert view.groups[0].size is view.groups[0].share is None


def test_answers_tell_sizes_noise_and_why():
    told = answer(1, -1, "cold") + answer(2, 0, device="a", rule="x <= 1; ...")
    told += answer(3, 1) + answer(4, 1) + answer(5, -1, "noise")
    view = attached(written(HISTORY[:2]), told).view()
    assert view.noise == 0.25
    assert [(one.id, one.size, one.share) for one in view.groups] == [(1, 2, 2 / 3), (0, 1, 1 / 3)]
    first = view.answers[3]
    assert (first.event, first.key, first.cluster, first.rule) == (2, "a", 0, "x <= 1; ...")


def test_shares_are_those_of_the_last_answers():
    told = b"".join(answer(n, 0) for n in range(1, 101))
    told += b"".join(answer(n, 1) for n in range(101, 101 + RECENT))
    view = attached(written(HISTORY[:2]), told).view()
    assert [(one.id, one.size, one.share) for one in view.groups] == [(1, RECENT, 1.0), (0, 100, 0)]
    assert len(view.answers) == ANSWERS


def test_what_is_told_again_after_a_crash_counts_once():
    told = written(HISTORY[:5]) + written(HISTORY[2:])
    again = attached(told, answer(1, 0) + answer(2, 0) + answer(2, 0) + answer(3, 1))
    once = attached(written(HISTORY), answer(1, 0) + answer(2, 0) + answer(3, 1))
    assert again.view() == once.view()


def test_another_run_in_the_same_file_begins_anew():
    other = [replace(HISTORY[0], cluster=0, weight=7.0)]
    one = Attached()
    told = Lines(Blocks(written(HISTORY), NextFile, written(other)), "events")
    answered = Lines(Blocks(answer(1, 0) + answer(2, 0), NextFile, answer(1, 0)), "answers")
    for _ in range(3):
        one.take_changes(told)
        one.take_answers(answered)
    view = one.view()
    assert [(group.id, group.size) for group in view.groups] == [(0, 1)]
    assert len(view.changes) == 1


def test_lines_come_in_pieces():
    whole = written(HISTORY)
    lines = Lines(Blocks(*(whole[at : at + 7] for at in range(0, len(whole), 7)), b""), "events")
    one = Attached()
    while not lines.ended:
        one.take_changes(lines)
    assert one.view() == attached(whole).view()
    assert lines.number == len(HISTORY)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"hello\n", "events, line 1: no change event"),
        (answer(1, 0), "no field 'kind'"),
        (b'{"kind": "Nothing"}\n', "unknown kind 'Nothing'"),
        (b"\xff\n", "line 1: no change event"),
        (b"x" * (MAX_BYTES + 1), "longer than"),
    ],
)
def test_a_wrong_line_of_changes_is_named(line, words):
    with pytest.raises(AdapterError, match=words):
        Attached().take_changes(Lines(Blocks(line), "events"))


@pytest.mark.parametrize(
    "line", [b"[1]\n", b"{}\n", b'{"event": "a", "cluster": 0, "region": ""}\n']
)
def test_a_wrong_line_of_answers_is_named(line):
    with pytest.raises(AdapterError, match="answers, line 1: no answer, as run --output writes"):
        Attached().take_answers(Lines(Blocks(line), "answers"))


def test_engines_of_several_partitions_are_not_mixed():
    told = written(HISTORY[:2], partition=0) + written(HISTORY[2:3], partition=1)
    with pytest.raises(AdapterError, match="partition 0 before, 1 now"):
        attached(told)


# of a model


def test_weights_and_noise_are_kept_as_they_were_seen():
    model, watched = StreamClusterer(), Watched()
    views = []
    for n, event in enumerate(blobs(600, seed=1, k=3), start=1):
        model.learn_one({"x": event["x"], "y": event["y"]})
        if n % 100 == 0:
            views.append(watched.view(model))
    last = views[-1]
    assert [event for event, _ in last.course] == [view.events for view in views if view.groups]
    for group in last.groups:
        weights = dict(last.lineage.lives[group.id].weights)
        seen = [view.events for view in views if view.events >= group.born]
        assert [event for event in weights if event % 100 == 0 and event >= seen[0]] == seen
        assert weights[600] == model.clusters[group.id].weight
    assert math.isclose(sum(group.share for group in last.groups), 1.0)


def test_a_course_stays_bounded_and_keeps_its_ends():
    course = Course()
    for event in range(10 * POINTS):
        course.add(event, float(event))
        assert len(course.points) <= 2 * POINTS
    assert course.points[0] == (0, 0.0)
    assert course.points[-1] == (10 * POINTS - 1, 10 * POINTS - 1.0)
    assert list(course.points) == sorted(course.points)
    course.add(10 * POINTS, math.nan)
    assert course.points[-1][0] == 10 * POINTS - 1


def test_routine_does_not_push_out_a_birth():
    born = HISTORY[0]
    refits = [replace(HISTORY[3], number=n) for n in range(2, 3 * CHANGES)]
    told = lasting((born, *refits, HISTORY[2]))
    assert told[-1] == born
    assert len(told) == CHANGES // 2 + 1
    assert [one.number for one in told] == sorted((one.number for one in told), reverse=True)


# pace


def test_looking_takes_a_twentieth_of_the_time_at_most():
    now = 0.0
    pace = Pace(lambda: now)

    def look(seconds):
        nonlocal now
        now += seconds

    assert pace.due()
    for cost in (0.0, 2.0):
        pace.taking(lambda cost=cost: look(cost))
        look(max(LEAST, COST * cost) - 0.01)
        assert not pace.due()
        look(0.02)
        assert pace.due()


def test_a_rule_is_asked_for_now_and_then():
    now, watched = 0.0, Watched()
    heard = Heard(watched, lambda: now)
    for n in range(1, 101):
        record = MemoryRecord(n, {"x": 1.0}, None, None, b"", MemoryPosition(n))
        asked = heard.asks(record)
        heard.answer(record, 0, "core", "rule" if asked else None)
        now += WHY / 10.01
    assert [one.event for one in watched.answers] == [1, 12, 23, 34, 45, 56, 67, 78, 89, 100]
    assert all(one.rule for one in watched.answers)


# the table of a worker


def test_top_shows_what_a_worker_writes(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(lines(blobs(400, seed=1, k=3)))
    done = run(
        "run",
        "in.jsonl",
        "--ignore",
        "id",
        "-o",
        "out.jsonl",
        "--events",
        "events.jsonl",
        command=REAL,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    done = run(
        "top", "--attach", "events.jsonl", "--answers", "out.jsonl", command=REAL, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()
    assert text.startswith("400 events   3 clusters   noise ")
    assert "ClusterBorn: cluster" in text
    done = run("top", "--attach", "out.jsonl", command=REAL, cwd=tmp_path)
    assert done.returncode == 1
    assert b"out.jsonl, line 1: no change event" in done.stderr
