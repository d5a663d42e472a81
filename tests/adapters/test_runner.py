"""The order of things in the loop, with doors in memory."""

import os
import signal

import pytest

from streamclust.errors import AdapterError, SnapshotError
from streamclust_adapters.answering import Refused
from streamclust_adapters.runner import Runner, Shutdown
from streamclust_adapters.testing import MemorySink, MemorySource
from tests.adapters.commands import blobs
from tests.adapters.fake_clusterer import StreamClusterer

EVENTS = [{"x": event["x"], "y": event["y"]} for event in blobs(60, seed=3)]


class Kept:
    """Snapshots in memory, with what was safe outside when each was taken."""

    def __init__(self, sink, path):
        self.sink, self.path, self.taken = sink, path, []

    def save(self, model, number, source):
        assert len(self.sink.delivered) == self.sink.synced
        done = [entry[1] for entry in self.sink.delivered if entry[0] != "change"]
        assert [n for n in done if n <= number] == list(range(self.first(), number + 1))
        model.save(self.path, source)
        self.taken.append((number, source, self.path.read_bytes()))

    def first(self):
        return self.sink.delivered[0][1] if self.sink.delivered else 1


def play(events, model=None, sink=None, start=None, **options):
    sink = sink or MemorySink()
    with Shutdown() as shutdown:
        runner = Runner(
            model or StreamClusterer(),
            options.pop("source", None) or MemorySource(events, start=start),
            sink,
            shutdown=shutdown,
            resumed=start,
            **options,
        )
        return runner.run(), sink


def test_every_event_is_answered_from_what_was_known_before_it():
    totals, sink = play(EVENTS)
    model, expected = StreamClusterer(), []
    for number, x in enumerate(EVENTS, 1):
        answer = model.assign_one(x)
        expected.append(("answer", number, answer.label, answer.region, None))
        model.learn_one(x)
    assert sink.delivered == expected
    assert (totals.answered, totals.refused, totals.last) == (60, 0, 60)


def test_a_refused_event_changes_nothing_and_gets_a_dead_letter():
    bad = ["no event", {}, {"x": float("nan")}, {"x": 1e200}]
    mixed = [event for i, x in enumerate(EVENTS) for event in (bad[i % 4], x)]
    totals, sink = play(mixed)
    _, clean = play(EVENTS)
    labels = [entry[2:] for entry in sink.delivered if entry[0] == "answer"]
    assert labels == [entry[2:] for entry in clean.delivered]
    assert [e[1] for e in sink.delivered if e[0] == "dead letter"] == list(range(1, 121, 2))
    assert totals.refused == 60
    assert totals.first_refusal == "event 1 (index 0): no event"


def test_an_event_that_cannot_be_learned_gets_no_answer():
    events = [{"x": 1.0}, {"x": 1.0}, {"x": 1.0}]
    _, sink = play(events, source=MemorySource(events, times=[5.0, 4.0, 5.0]))
    assert [entry[:2] for entry in sink.delivered] == [
        ("answer", 1),
        ("dead letter", 2),
        ("answer", 3),
    ]


def test_strict_stops_at_the_first_refusal_and_keeps_what_was_before(tmp_path):
    sink = MemorySink()
    kept = Kept(sink, tmp_path / "s")
    with pytest.raises(Refused, match=r"event 11 \(index 10\): broken"):
        play([*EVENTS[:10], "broken", *EVENTS[10:]], sink=sink, strict=True, snapshots=kept)
    assert [entry[0] for entry in sink.delivered] == ["answer"] * 10 + ["dead letter"]
    assert [number for number, _, _ in kept.taken] == [0, 10]


def test_snapshots_come_first_on_the_way_and_last(tmp_path):
    sink = MemorySink()
    kept = Kept(sink, tmp_path / "s")
    play(EVENTS, sink=sink, snapshots=kept, every=25)
    assert [number for number, _, _ in kept.taken] == [0, 25, 50, 60]


def test_from_any_snapshot_the_rest_is_answered_as_if_nothing_had_happened(tmp_path):
    sink = MemorySink()
    kept = Kept(sink, tmp_path / "s")
    play(EVENTS, sink=sink, changes=True, snapshots=kept, every=7)
    for number, source, body in kept.taken:
        path = tmp_path / "again"
        path.write_bytes(body)
        _, rest = play(EVENTS, StreamClusterer.load(path), changes=True, start=source)
        assert rest.delivered == [entry for entry in sink.delivered if entry[1] > number]


def test_change_events_carry_the_number_of_the_event_that_caused_them():
    _, sink = play(["bad", *EVENTS], changes=True)
    changes = [entry for entry in sink.delivered if entry[0] == "change"]
    assert [change.number for _, _, change in changes] == list(range(1, len(changes) + 1))
    assert all(number == change.tick + 1 for _, number, change in changes)


def test_without_learning_the_model_stays_as_it_was(tmp_path):
    model = StreamClusterer()
    play(EVENTS, model)
    model.save(tmp_path / "before")
    _, sink = play(EVENTS, model, learn=False)
    model.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert all(entry[2] == model.predict_one(EVENTS[entry[1] - 1]) for entry in sink.delivered)


def test_an_explained_answer_has_a_rule_once_there_is_one():
    _, sink = play(EVENTS, explain=True)
    rules = [entry[4] for entry in sink.delivered]
    assert rules[0] is None
    assert all(rule.startswith("distance") for rule in rules[1:])


@pytest.mark.parametrize("number", Shutdown.SIGNALS)
def test_a_signal_ends_the_loop_between_two_events_with_a_snapshot(tmp_path, number):
    class Signalled(StreamClusterer):
        def learn_one(self, x, *, t=None, w=1.0):
            super().learn_one(x, t=t, w=w)
            if self.tick_count == 17:
                os.kill(os.getpid(), number)

    sink = MemorySink()
    kept = Kept(sink, tmp_path / "s")
    before = signal.getsignal(number)
    totals, _ = play(EVENTS, Signalled(), sink=sink, snapshots=kept)
    assert totals.last == 17
    assert [number for number, _, _ in kept.taken] == [0, 17]
    assert signal.getsignal(number) == before


def test_a_sink_that_fails_leaves_the_snapshot_before_it(tmp_path):
    class Full(MemorySink):
        def flush(self):
            if len(self.delivered) >= 20:
                raise AdapterError("full")
            super().flush()

    sink = Full()
    kept = Kept(sink, tmp_path / "s")
    with pytest.raises(AdapterError, match="full"):
        play(EVENTS, sink=sink, snapshots=kept, every=10)
    assert [number for number, _, _ in kept.taken] == [0, 10, 20]


def test_a_snapshot_that_fails_ends_the_run_after_its_answers():
    class Broken:
        def save(self, model, number, source):
            if number:
                raise SnapshotError("no space")

    sink = MemorySink()
    with pytest.raises(SnapshotError, match="no space"):
        play(EVENTS, sink=sink, snapshots=Broken(), every=10)
    assert len(sink.delivered) == 10


def test_answers_before_a_defect_of_the_model_are_not_lost():
    class Defective(StreamClusterer):
        def learn_one(self, x, *, t=None, w=1.0):
            if self.tick_count == 9:
                raise ZeroDivisionError
            super().learn_one(x, t=t, w=w)

    sink = MemorySink()
    with pytest.raises(ZeroDivisionError):
        play(EVENTS, Defective(), sink=sink)
    assert len(sink.delivered) == 9


def test_no_answer_waits_for_the_whole_batch_when_that_takes_long():
    seconds = iter(range(1000))
    seen = []

    class Slow(MemorySink):
        def answer(self, record, *told):
            seen.append(len(self.delivered))
            super().answer(record, *told)

    source = MemorySource(EVENTS[:5], batch=5)
    play(EVENTS, sink=Slow(), source=source, clock=lambda: next(seconds) * 0.04)
    assert seen == [0, 0, 0, 3, 3]
