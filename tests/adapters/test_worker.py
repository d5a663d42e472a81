"""The worker with a broker in memory: what comes of kills, lost partitions and missing pieces."""

from __future__ import annotations

import io
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamclust.errors import AdapterError, SnapshotError
from streamclust_adapters.answering import Refused
from streamclust_adapters.broker import Commit, LostPartitions, Message, Stopped
from streamclust_adapters.codec import Fields, JsonLines
from streamclust_adapters.encoder import Encoder
from streamclust_adapters.lanes import Manner
from streamclust_adapters.logs import Log
from streamclust_adapters.messages import MessageReader, Outbox, Topics
from streamclust_adapters.order import Run, Sequencer, decode, encode
from streamclust_adapters.resuming import Opener, Origin, prepare
from streamclust_adapters.runner import Shutdown
from streamclust_adapters.snapshots import newest_first
from streamclust_adapters.testing import MemoryBroker, MemoryCluster
from streamclust_adapters.worker import Worker
from tests.adapters.fake_clusterer import StreamClusterer

TOPICS = Topics("answers", "changes", "letters")
SHARED = Topics("answers", "changes", "letters", "order")
N = 3


class Killed(BaseException):
    """As a kill -9: nothing of ours runs any more."""


def messages(n=60, *, seed=0, gaps=False):
    """Messages of three partitions; one in nine holds no event."""
    rng = random.Random(seed)
    logs = [[] for _ in range(N)]
    at = [0] * N
    for i in range(n):
        p = rng.randrange(N)
        x = rng.choice([-20.0, 0.0, 20.0]) + rng.gauss(0, 1)
        value = b"broken" if i % 9 == 4 else json.dumps({"x": x}).encode()
        logs[p].append(Message(p, at[p], f"{p}/{at[p]}".encode(), value))
        at[p] += rng.choice([1, 2]) if gaps else 1  # marks of transactions take offsets too
    return logs


def work(cluster, folder, *, shared=False, fail=None, batch=7, manner=None, **more):
    """Run a worker until the input ends."""
    topics = SHARED if shared else TOPICS
    counts = dict.fromkeys(topics.named, N)
    log = io.StringIO()
    with Shutdown() as shutdown:
        broker = MemoryBroker(cluster, shutdown.request, batch=batch, fail=fail)
        opener = Opener(
            broker,
            more.pop("origin", Origin("in", "g", {})),
            folder,
            create=StreamClusterer,
            load=StreamClusterer.load,
            manner=manner or Manner(changes=True, every=10),
            log=Log(log),
        )
        prepare(folder)
        worker = Worker(
            broker,
            opener,
            MessageReader("in", JsonLines(Fields())),
            lambda: Outbox(topics, counts, Encoder(places=True)),
            shutdown=shutdown,
            log=Log(log),
            shared=("in", "order") if shared else None,
            **more,
        )
        worker.run()
    assert broker.closed
    return log.getvalue()


def told(cluster, kind):
    return [output for output in cluster.outputs if output.kind == kind]


def per_partition(cluster, *kinds):
    """Outputs in order, by the partition they went to."""
    found = {p: [] for p in range(N)}
    for output in cluster.outputs:
        if output.kind in kinds:
            found[output.partition].append((output.key, output.value, tuple(output.headers)))
    return found


def kept(folder):
    """The newest snapshot of each lane."""
    return {lane.name: newest_first(lane)[0].read_bytes() for lane in folder.iterdir()}


@pytest.fixture
def whole(tmp_path):
    """The uninterrupted run: its cluster and its snapshots."""
    cluster = MemoryCluster(messages())
    work(cluster, tmp_path / "whole")
    return cluster, kept(tmp_path / "whole")


def test_each_partition_is_answered_from_what_was_known_before(whole):
    cluster, _ = whole
    for p, log in enumerate(cluster.messages):
        model, expected, letters = StreamClusterer(), [], []
        for number, message in enumerate(log, 1):
            try:
                x = json.loads(message.value)
            except ValueError:
                letters.append(message.value)
                continue
            answer = model.assign_one(x)
            model.learn_one(x)
            place = {"event": number, "partition": p, "offset": message.offset}
            expected.append(place | {"cluster": answer.label, "region": answer.region})
        found = per_partition(cluster, "answer")[p]
        assert [json.loads(value) for _, value, _ in found] == expected
        assert [key for key, _, _ in found] == [f"{p}/{e['offset']}".encode() for e in expected]
        assert [value for _, value, _ in per_partition(cluster, "letter")[p]] == letters
        assert cluster.commits[p] == Commit(log[-1].offset + 1, len(log))


def test_dead_letters_say_why_and_from_where(whole):
    letter = told(whole[0], "letter")[0]
    headers = dict(letter.headers)
    assert headers["streamclust.reason"].startswith(b"broken JSON")
    assert headers["streamclust.topic"] == b"in"
    assert letter.key.decode() == "/".join(
        headers[f"streamclust.{name}"].decode() for name in ("partition", "offset")
    )


def test_change_events_name_the_message_that_caused_them(whole):
    changes = [json.loads(change.value) for change in told(whole[0], "change")]
    assert {change["kind"] for change in changes} == {"ClusterBorn"}
    for change in changes:
        assert whole[0].messages[change["partition"]][change["offset"]].value != b"broken"


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("done", [False, True])
def test_a_kill_at_any_transaction_loses_and_doubles_nothing(tmp_path, shared, done):
    for at in range(0, 9, 2):
        cluster = MemoryCluster(messages(gaps=True))
        folder = tmp_path / f"{at}"

        def kill(number, after, at=at):
            if number == at and after == done:
                raise Killed

        with pytest.raises(Killed):
            work(cluster, folder, shared=shared, fail=kill)
        work(cluster, folder, shared=shared, batch=5)
        check_whole(cluster, folder, shared, tmp_path)


def check_whole(cluster, folder, shared, tmp_path):
    """Everything was handled once, and the engines are those of a run that follows the record."""
    for p, log in enumerate(cluster.messages):
        done = [json.loads(value)["offset"] for _, value, _ in per_partition(cluster, "answer")[p]]
        assert done == [m.offset for m in log if m.value != b"broken"]
        assert len(per_partition(cluster, "letter")[p]) == sum(m.value == b"broken" for m in log)
    if shared:
        values = {(m.partition, m.offset): m.value for log in cluster.messages for m in log}
        runs = [run for value in cluster.orders for run in decode(value)]
        line = [
            values[run.partition, offset]
            for run in runs
            for offset in range(run.start, run.end)
            if (run.partition, offset) in values
        ]
        assert len(line) == len(values)
        lanes = {"shared": line}
    else:
        lanes = {f"partition-{p}": [m.value for m in log] for p, log in enumerate(cluster.messages)}
    for name, line in lanes.items():
        model = StreamClusterer()
        for value in line:
            if value != b"broken":
                model.learn_one(json.loads(value))
        newest = newest_first(folder / name)[0]
        model.save(tmp_path / "expected", StreamClusterer.load(newest).source)
        assert newest.read_bytes() == (tmp_path / "expected").read_bytes()


@pytest.mark.parametrize("shared", [False, True])
def test_many_kills_in_a_row(tmp_path, shared):
    rng = random.Random(5)
    cluster = MemoryCluster(messages(300, seed=1))
    killed = 0
    while True:
        at, done = rng.randrange(4), rng.random() < 0.5

        def kill(number, after, at=at, done=done):
            if number == at and after == done:
                raise Killed

        try:
            work(cluster, tmp_path / "s", shared=shared, fail=kill, batch=rng.randrange(1, 30))
            break
        except Killed:
            killed += 1
    assert killed > 5
    check_whole(cluster, tmp_path / "s", shared, tmp_path)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("done", [False, True])
def test_engines_of_a_failed_transaction_are_opened_anew(tmp_path, shared, done):
    cluster = MemoryCluster(messages(gaps=True))

    def lose(number, after):
        if number in {2, 3, 6} and after == done:  # a transaction in doubt may have been kept
            raise LostPartitions("the group went on")

    log = work(cluster, tmp_path / "s", shared=shared, fail=lose)
    assert log.count("partitions lost") == 3
    check_whole(cluster, tmp_path / "s", shared, tmp_path)


def test_a_stop_without_a_broker_keeps_no_snapshot_of_what_was_not_delivered(tmp_path, whole):
    cluster = MemoryCluster(messages())

    def stop(number, done):
        if number == 3 and not done:
            raise Stopped("no broker")

    with pytest.raises(Stopped):
        work(cluster, tmp_path / "s", fail=stop)
    work(cluster, tmp_path / "s")
    assert per_partition(cluster, "answer", "letter") == per_partition(whole[0], "answer", "letter")
    assert kept(tmp_path / "s") == whole[1]


def test_partitions_move_with_their_state(tmp_path, whole):
    """Two workers in turn, as a group hands partitions over."""
    cluster = MemoryCluster(messages())

    def hand_over(turn):
        if turn.messages and turn.lanes[0].number > 5:
            raise Killed  # leaves everything as it was at the last snapshot: at its start

    with pytest.raises(Killed):
        work(cluster, tmp_path / "s", after_turn=hand_over, manner=Manner(every=1))
    work(cluster, tmp_path / "s", manner=Manner(every=1000))
    assert per_partition(cluster, "answer") == per_partition(whole[0], "answer")
    assert kept(tmp_path / "s") == whole[1]


def test_a_snapshot_is_there_before_the_first_event(tmp_path):
    cluster = MemoryCluster(messages())

    def kill(number, done):
        raise Killed

    with pytest.raises(Killed):
        work(cluster, tmp_path / "s", fail=kill)
    for p in range(N):
        (only,) = newest_first(tmp_path / "s" / f"partition-{p}")
        source = StreamClusterer.load(only).source
        identity = {"topic": "in", "group": "g", "reading": {}}
        assert source == identity | {"events": 0, "offsets": {str(p): 0}}


def test_snapshots_come_by_events_and_by_time(tmp_path):
    clock = iter(range(1000))
    seen = []

    def look(turn):
        seen.append(len(newest_first(tmp_path / "s" / "partition-0")))

    manner = Manner(every=10**9, seconds=4)
    work(
        MemoryCluster(messages()),
        tmp_path / "s",
        manner=manner,
        clock=lambda: float(next(clock)),
        after_turn=look,
    )
    assert max(seen) == 2


def test_strict_stops_before_the_first_bad_message_each_time(tmp_path):
    cluster = MemoryCluster(messages())
    bad = next(m.offset for m in cluster.messages[0] if m.value == b"broken")
    for _ in range(2):
        with pytest.raises(Refused, match="broken JSON"):
            work(cluster, tmp_path / "s", manner=Manner(strict=True))
    assert told(cluster, "letter") == []
    assert cluster.commits[0].offset <= bad
    work(cluster, tmp_path / "s", manner=Manner())
    check_whole(cluster, tmp_path / "s", False, tmp_path)


# what cannot be gone on from


def interrupted(tmp_path, *, shared=False):
    """A cluster whose worker was killed with more committed than kept."""
    cluster = MemoryCluster(messages())

    def kill(number, done):
        if number == 4 and done:
            raise Killed

    with pytest.raises(Killed):
        work(cluster, tmp_path / "s", shared=shared, fail=kill, manner=Manner(every=1000))
    return cluster


def test_what_retention_deleted_cannot_be_learned_again(tmp_path):
    cluster = interrupted(tmp_path)
    cluster.lows[1] = 2
    with pytest.raises(AdapterError, match="offsets 0 to 1 were deleted by retention"):
        work(cluster, tmp_path / "s")
    assert told(cluster, "order") == []


def test_a_compacted_topic_is_noticed(tmp_path):
    cluster = interrupted(tmp_path)
    del cluster.messages[1][1]
    with pytest.raises(AdapterError, match="some are gone"):
        work(cluster, tmp_path / "s")


def test_a_compacted_topic_is_noticed_by_a_shared_engine(tmp_path):
    for place in (0, 1, 2):
        cluster = interrupted(tmp_path / str(place), shared=True)
        del cluster.messages[1][place]
        with pytest.raises(AdapterError, match="some are gone"):
            work(cluster, tmp_path / str(place) / "s", shared=True)


@pytest.mark.parametrize("shared", [False, True])
def test_commits_without_a_snapshot_are_no_new_start(tmp_path, shared):
    cluster = interrupted(tmp_path, shared=shared)
    with pytest.raises(AdapterError, match="holds no snapshot"):
        work(cluster, tmp_path / "other", shared=shared)


def test_a_snapshot_without_commits_is_told(tmp_path):
    cluster = MemoryCluster(messages())
    work(cluster, tmp_path / "s")
    cluster.commits.clear()
    with pytest.raises(AdapterError, match="has no commit"):
        work(cluster, tmp_path / "s")


def test_a_commit_that_was_set_back_is_told(tmp_path):
    cluster = MemoryCluster(messages())
    work(cluster, tmp_path / "s")
    cluster.commits[2] = Commit(1, None)
    with pytest.raises(AdapterError, match="a second time"):
        work(cluster, tmp_path / "s")


def test_another_topic_group_or_reading_is_told(tmp_path):
    cluster = MemoryCluster(messages())
    work(cluster, tmp_path / "s")
    for origin, word in [
        (Origin("other", "g", {}), "topic in; now it is other"),
        (Origin("in", "h", {}), "group g; now it is h"),
        (Origin("in", "g", {"ignore": ["y"]}), "reading"),
    ]:
        with pytest.raises(SnapshotError, match=word):
            work(cluster, tmp_path / "s", origin=origin)
    cluster.messages[0] = cluster.messages[0][:2]
    with pytest.raises(AdapterError, match="it is another topic"):
        work(cluster, tmp_path / "s")


def test_an_order_that_does_not_lead_to_the_commits_is_told(tmp_path):
    cluster = interrupted(tmp_path, shared=True)
    outputs = cluster.outputs
    cluster.outputs = [output for output in outputs if output is not told(cluster, "order")[-1]]
    with pytest.raises(AdapterError, match="cannot be rebuilt"):
        work(cluster, tmp_path / "s", shared=True)
    cluster.outputs = outputs
    cluster.order_low = 1
    with pytest.raises(AdapterError, match="the order in order: offsets 0 to 0 were deleted"):
        work(cluster, tmp_path / "s", shared=True)


def test_a_torn_snapshot_is_set_aside_for_the_one_before(tmp_path, whole):
    cluster = interrupted(tmp_path)
    work(cluster, tmp_path / "s")
    for lane in (tmp_path / "s").iterdir():
        newest = newest_first(lane)[0]
        newest.write_bytes(newest.read_bytes()[:-1])
    assert work(cluster, tmp_path / "s").count("snapshot set aside") == N
    assert kept(tmp_path / "s") == whole[1]


def test_a_full_disk_ends_the_worker_and_loses_nothing(tmp_path, whole):
    class Full(StreamClusterer):
        def save(self, path, source=None):
            if self.tick_count:
                raise SnapshotError("no space")
            super().save(path, source)

    cluster = MemoryCluster(messages())
    with pytest.raises(SnapshotError, match="no space"):
        with_model(cluster, tmp_path / "s", Full)
    work(cluster, tmp_path / "s")
    assert per_partition(cluster, "answer", "letter") == per_partition(whole[0], "answer", "letter")
    assert kept(tmp_path / "s") == whole[1]


def with_model(cluster, folder, model):
    """A worker with another kind of model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{__name__}.StreamClusterer", model)
        work(cluster, folder)


def test_new_events_of_latest_are_all_there_is(tmp_path):
    cluster = MemoryCluster(messages())
    work(cluster, tmp_path / "s", origin=Origin("in", "g", {}, "latest"))
    assert cluster.outputs == []
    at = cluster.messages[0][-1].offset + 1
    cluster.messages[0].append(Message(0, at, None, b'{"x": 1}'))
    work(cluster, tmp_path / "s", origin=Origin("in", "g", {}, "latest"))
    (answer,) = told(cluster, "answer")
    assert json.loads(answer.value)["offset"] == at


def test_a_new_partition_joins_a_shared_engine(tmp_path):
    cluster = MemoryCluster(messages())
    work(cluster, tmp_path / "s", shared=True)
    cluster.messages.append([Message(N, 0, None, b'{"x": 1}')])
    cluster.lows[N] = 0
    work(cluster, tmp_path / "s", shared=True)
    assert cluster.commits[N] == Commit(1, sum(map(len, cluster.messages)))


# the recorded order


@given(
    order=st.lists(st.integers(0, 3), max_size=60),
    tail=st.lists(st.integers(0, 3), max_size=10),
    data=st.data(),
)
def test_a_recorded_order_is_followed_however_messages_come(order, tail, data):
    at = [0] * 4
    line = []
    for p in order + tail:
        line.append(Message(p, at[p], None, b""))
        at[p] += 1
    recorded, i = [], 0
    while i < len(order):
        j = i
        while j < len(order) and order[j] == order[i]:
            j += 1
        run = Run(order[i], line[i].offset, line[j - 1].offset + 1, j - i)
        recorded.append(run)
        i = j
    sequencer = Sequencer(decode(encode(recorded)))
    waiting = {p: [m for m in line if m.partition == p] for p in range(4)}
    came = []
    while any(waiting.values()):
        p = data.draw(st.sampled_from([p for p in range(4) if waiting[p]]))
        n = data.draw(st.integers(1, len(waiting[p])))
        came += sequencer.feed(waiting[p][:n])
        del waiting[p][:n]
    came += sequencer.feed([])
    assert came[: len(order)] == line[: len(order)]
    assert sequencer.finished
    assert all(sequencer.held(p) == 0 for p in range(4))
    for p in range(4):
        assert [m for m in came if m.partition == p] == [m for m in line if m.partition == p]


@pytest.mark.parametrize("value", [b"", b"[]", b'{"run": []}', b'{"runs": [[1, 2, 3]]}'])
def test_a_foreign_order_is_told(value):
    with pytest.raises(AdapterError, match="holds something else"):
        decode(value)
