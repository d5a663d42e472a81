"""``streamclust`` as a process: pipes, signals, kills, full disks, and what a user mistypes."""

import ctypes
import gzip
import json
import os
import signal
import subprocess
import sys

import pytest

from streamclust.parameters import PARAMETERS
from streamclust_adapters.options import flag_of
from streamclust_adapters.snapshots import newest_first
from tests.adapters.commands import REAL, SMALL, answers, blobs, environment, lines, run, start

EVENTS = blobs(400, seed=1)


@pytest.fixture
def stream(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(lines(EVENTS))
    return path


@pytest.fixture
def expected(stream):
    """The answers of the uninterrupted run."""
    done = run("run", stream, "--id-field", "id")
    assert done.returncode == 0, done.stderr
    return answers(done.stdout)


def asked(process, events, then=b""):
    """Write events to a running command and read its answers."""
    process.stdin.write(lines(events) + then)
    process.stdin.flush()
    got = [process.stdout.readline() for _ in events]
    assert all(got), process.stderr.read()
    return [json.loads(line) for line in got]


# starting


def test_help_is_immediate():
    code = (
        "import sys; from streamclust_adapters.cli import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'numba', 'river', 'scipy', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], env=environment(), check=True)


def test_every_parameter_of_the_model_is_an_option():
    text = run("run", "--help").stdout.decode()
    options, parameters = text.split("Model parameters:")
    for name, row in PARAMETERS.items():
        assert f"{flag_of(row)} " in parameters
        assert f"{flag_of(row)} " not in options, name


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--follow"], "--follow needs a FILE"),
        (["run", "--follow", "a.jsonl.gz"], "a compressed file does not grow"),
        (["run", "a.gz"], "does not exist"),
        (["run", "missing.jsonl"], "does not exist"),
        (["run", "."], "is a directory"),
        (["run", "in.txt"], "give --format"),
        (["run", "--resume"], "--resume needs --snapshot"),
        (["run", "--no-learn"], "--no-learn needs --model"),
        (["run", "--id-field", "cluster"], "an answer has such a field"),
        (["run", "--time-unit", "seconds"], "needs --time-field"),
        (["run", "--features", "a", "--ignore", "a"], "leaves no feature"),
        (["run", "--features", "a,,b"], "empty or repeated"),
        (["run", "in.jsonl", "--output", "./in.jsonl"], "different files"),
        (["run", "--output", "o", "--events", "o"], "different files"),
        (["run", "--window", "3"], "from 50 to 100,000"),
        (["run", "--window", "many"], "a whole number from 50"),
        (["run", "--p", "inf"], "a finite number >= 1"),
        (["run", "--snapshot-every", "0"], "x>=1"),
        (["run", "--no-such-option"], "No such option"),
        (["inspect", "missing"], "does not exist"),
    ],
)
def test_a_wrong_use_is_told_and_exits_with_2(tmp_path, arguments, words):
    for name in ("in.txt", "in.jsonl"):
        (tmp_path / name).write_text("")
    done = run(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert words in " ".join(done.stderr.decode().split())
    assert "Traceback" not in done.stderr.decode()


def test_model_options_reach_the_model(stream, tmp_path):
    options = ["--n-clusters", "none", "--no-noise", "--p", "1", "--refit", "none", "--seed", "7"]
    done = run("run", stream, "--ignore", "id", "--snapshot", tmp_path / "s", *options)
    assert done.returncode == 0, done.stderr
    saved = json.loads(newest_first(tmp_path / "s")[0].read_text()[64:])["given"]
    given = {"n_clusters": None, "noise": False, "p": 1.0, "refit": None, "seed": 7}
    assert saved == given


# answering


def test_a_pipe_is_answered_line_by_line_while_it_is_open(expected):
    with start("run", "-", "--id-field", "id") as process:
        for event, answer in zip(EVENTS[:20], expected, strict=False):
            assert asked(process, [event]) == [answer]
        rest, told = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, b"")
    assert b"20 events answered, 0 refused" in told


def test_answers_name_event_id_cluster_and_region(expected):
    assert [answer["event"] for answer in expected] == list(range(1, 401))
    assert [answer["id"] for answer in expected] == [event["id"] for event in EVENTS]
    assert expected[0] == {"event": 1, "id": "e0", "cluster": -1, "region": "cold"}
    assert {answer["region"] for answer in expected} == {"cold", "noise", "core"}


def test_the_summary_tells_sizes_rules_and_change_events(stream):
    told = run("run", stream, "--ignore", "id").stderr.decode()
    assert "400 events answered, 0 refused" in told
    assert "ClusterBorn" in told
    assert "x <= " in told
    assert "\r" not in told  # a progress line is for terminals


def test_files_take_answers_changes_and_rules(stream, tmp_path, expected):
    outputs = ["--output", tmp_path / "out", "--events", tmp_path / "changes"]
    done = run("run", stream, "--id-field", "id", "--explain", *outputs)
    assert (done.returncode, done.stdout) == (0, b"")
    explained = answers((tmp_path / "out").read_bytes())
    rules = [answer.pop("rule") for answer in explained]
    assert explained == expected
    assert rules[0] is None
    assert all(rules[1:])
    changes = answers((tmp_path / "changes").read_bytes())
    assert [change["number"] for change in changes] == list(range(1, len(changes) + 1))
    assert changes[0] == {
        "event": 1,
        "kind": "ClusterBorn",
        "number": 1,
        "tick": 1,
        "time": None,
        "cluster": 0,
    }


def test_an_empty_input_is_no_failure():
    done = run("run", "-")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"0 events answered" in done.stderr
    assert b"no clusters yet" in done.stderr


def test_csv_with_header_and_without_answers_as_json_lines_do(tmp_path, expected):
    rows = [f"{e['id']},{e['x']!r},{e['y']!r}\n" for e in EVENTS]
    (tmp_path / "a.csv").write_text("id,x,y\n" + "".join(rows))
    (tmp_path / "b.csv").write_text("".join(rows))
    for name, options in [("a.csv", []), ("b.csv", ["--features", "id,x,y"])]:
        done = run("run", tmp_path / name, "--id-field", "id", *options)
        assert answers(done.stdout) == expected, done.stderr
    done = run("run", tmp_path / "b.csv", "--format", "csv", "--id-field", "id")
    assert done.returncode == 1
    assert b"no column 'id'" in done.stderr


def test_features_and_time_are_taken_from_their_fields(tmp_path):
    events = [{"t": t, "x": 1.0, "name": "any"} for t in (3, 2, 4)]
    done = run(
        *("run", "--features", "x", "--time-field", "t", "--time-unit", "seconds"),
        *("--dead-letter", tmp_path / "dead"),
        input=lines(events),
    )
    assert [answer["event"] for answer in answers(done.stdout)] == [1, 3]
    (letter,) = answers((tmp_path / "dead").read_bytes())
    assert letter["reason"] == "time 2.0 is before 3.0"


# bad input

BAD = [
    b'{"x": 1',
    b'["1"]',
    b"",
    b"{}",
    b'{"x": NaN}',
    b'{"x": -Infinity}',
    b'{"x": "1"}',
    b'{"x": null}',
    b'{"x": {"y": null}}',
    b'{"x": 1e200}',
    b'{"x": 1e400}',
    b'{"x": ' + b"1" * 500 + b"}",
    b'{"x\xff": 1}',
    b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"x": ' + b"1" * (1 << 20) + b"}",
]


@pytest.fixture
def dirty(tmp_path):
    """Good events with a bad line behind each."""
    path = tmp_path / "dirty.jsonl"
    good = [lines([{"x": event["x"], "y": event["y"]}]) for event in EVENTS[: len(BAD)]]
    path.write_bytes(b"".join(g + bad + b"\n" for g, bad in zip(good, BAD, strict=True)))
    return path


def test_bad_lines_cost_no_neighbour_and_go_to_the_dead_letters(dirty, tmp_path, expected):
    done = run("run", dirty, "--dead-letter", tmp_path / "dead")
    assert done.returncode == 0
    got = answers(done.stdout)
    assert [answer["event"] for answer in got] == list(range(1, 2 * len(BAD), 2))
    assert [a["cluster"] for a in got] == [a["cluster"] for a in expected[: len(BAD)]]
    letters = answers((tmp_path / "dead").read_bytes())
    assert [letter["event"] for letter in letters] == list(range(2, 2 * len(BAD) + 1, 2))
    content = dirty.read_bytes()
    for letter, bad in zip(letters, BAD, strict=True):
        assert content[letter["byte"] :].startswith(bad + b"\n")
        assert letter["reason"]
        assert letter.get("raw", "").encode() in (bad, bad[:1024], b"")
    assert f"{len(BAD)} refused".encode() in done.stderr
    assert b"first refusal: event 2 (line 2, byte " in done.stderr


def test_a_bool_and_a_large_number_are_no_bad_input():
    done = run("run", input=b'{"x": true}\n{"x": 123456789012345678901234567890}\n')
    assert len(answers(done.stdout)) == 2


def test_strict_stops_at_the_first_bad_line(dirty, tmp_path):
    done = run("run", dirty, "--strict", "--dead-letter", tmp_path / "dead")
    assert done.returncode == 1
    assert [answer["event"] for answer in answers(done.stdout)] == [1]
    assert b"Error: event 2 (line 2, byte " in done.stderr
    assert len(answers((tmp_path / "dead").read_bytes())) == 1


def test_bad_csv_lines_are_told(tmp_path):
    text = b'a,b\n1,2\n1\n1,2,3\n1,hot\n1,nan\n1,"2\n1,\n\n1,\xff\n5,6\n'
    (tmp_path / "in.csv").write_bytes(text)
    done = run("run", tmp_path / "in.csv", "--dead-letter", tmp_path / "dead")
    assert [answer["event"] for answer in answers(done.stdout)] == [1, 7, 10]
    assert [a["line"] for a in answers((tmp_path / "dead").read_bytes())] == [3, 4, 5, 6, 7, 9, 10]


# being stopped


def kept_going(stream, snapshots, *options):
    return run("run", stream, "--id-field", "id", "--snapshot", snapshots, "--resume", *options)


@pytest.mark.parametrize("after", [1, 49, 50, 51, 137, 399])
def test_a_killed_run_goes_on_as_if_nothing_had_happened(stream, tmp_path, expected, after):
    options = ["--id-field", "id", "--snapshot", tmp_path / "s", "--snapshot-every", 50]
    with start("run", "-", *options) as process:
        got = asked(process, EVENTS[:after])
        process.kill()
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert got == expected[:after]

    kept = int(newest_first(tmp_path / "s")[0].name[9:29])
    assert after - 50 <= kept <= after
    done = kept_going(stream, tmp_path / "s")
    assert done.returncode == 0, done.stderr
    assert answers(done.stdout) == expected[kept:]
    assert f"resumed after event {kept}".encode() in done.stderr


def test_a_killed_run_before_its_first_event_has_a_snapshot(stream, tmp_path, expected):
    with start("run", "-", "--id-field", "id", "--snapshot", tmp_path / "s") as process:
        asked(process, EVENTS[:1])
        process.kill()
    assert [path.name[9:29] for path in newest_first(tmp_path / "s")] == ["0" * 20]
    assert answers(kept_going(stream, tmp_path / "s").stdout) == expected


def test_a_torn_snapshot_is_set_aside_for_the_one_before(stream, tmp_path, expected):
    first = run("run", stream, "--id-field", "id", "--snapshot", tmp_path / "s")
    assert first.returncode == 0
    newest, older = newest_first(tmp_path / "s")
    newest.write_bytes(newest.read_bytes()[:-1])
    done = kept_going(stream, tmp_path / "s", "--snapshot-every", 300)
    assert answers(done.stdout) == expected
    assert b"is broken" in done.stderr
    assert newest.with_suffix(".broken").exists()
    assert older.exists() is False  # 300 and 400 are the last two now


def test_a_resumed_output_file_has_every_answer(stream, tmp_path, expected):
    options = ["--output", tmp_path / "out", "--snapshot", tmp_path / "s"]
    half = tmp_path / "half.jsonl"
    half.write_bytes(lines(EVENTS[:200]))
    run("run", half, "--id-field", "id", *options)
    (tmp_path / "out").write_bytes((tmp_path / "out").read_bytes() + b'{"event":201,"i')
    assert kept_going(stream, tmp_path / "s", "--output", tmp_path / "out").returncode == 0
    assert answers((tmp_path / "out").read_bytes()) == expected


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_snapshots_and_exits_with_0(stream, tmp_path, expected, number):
    with start("run", "-", "--id-field", "id", "--snapshot", tmp_path / "s") as process:
        got = asked(process, EVENTS[:123], then=b'{"x": ')
        process.send_signal(number)
        process.wait(timeout=60)
        told = process.stderr.read()
    assert process.returncode == 0, told
    assert b"Traceback" not in told
    assert newest_first(tmp_path / "s")[0].name[9:29].lstrip("0") == "123"
    assert got + answers(kept_going(stream, tmp_path / "s").stdout) == expected


def test_resume_over_a_pipe_skips_what_was_done(stream, tmp_path, expected):
    half = tmp_path / "half.jsonl"
    half.write_bytes(lines(EVENTS[:200]))
    run("run", half, "--id-field", "id", "--snapshot", tmp_path / "s")
    options = ["--id-field", "id", "--snapshot", tmp_path / "s", "--resume"]
    done = run("run", "-", *options, input=stream.read_bytes())
    assert answers(done.stdout) == expected[200:]
    done = run("run", "-", *options, input=b"short")
    assert done.returncode == 1
    assert b"another input" in done.stderr


def test_resume_of_nothing_starts_and_resume_at_the_end_does_nothing(stream, tmp_path, expected):
    assert answers(kept_going(stream, tmp_path / "s").stdout) == expected
    assert kept_going(stream, tmp_path / "s").stdout == b""


def test_a_try_that_learned_nothing_is_in_nobodys_way(stream, tmp_path, expected):
    done = run("run", stream, "--snapshot", tmp_path / "s")  # the id is no number
    assert b"0 events answered" in done.stderr
    assert b"nothing was answered: --ignore A,B" in done.stderr
    done = run("run", stream, "--id-field", "id", "--snapshot", tmp_path / "s")
    assert answers(done.stdout) == expected
    assert kept_going(stream, tmp_path / "s").stdout == b""


def test_what_contradicts_a_snapshot_is_refused(stream, tmp_path):
    run("run", stream, "--id-field", "id", "--snapshot", tmp_path / "s", "--seed", "3")
    for options, words in [
        (["--id-field", "id"], b"holds snapshots already"),
        (["--resume", "--id-field", "id", "--seed", "4"], b"--seed: the saved model has 3, not 4"),
        (["--resume", "--ignore", "id"], b"was taken with"),
    ]:
        done = run("run", stream, "--snapshot", tmp_path / "s", *options)
        assert (done.returncode, done.stdout) == (2, b"")
        assert words in done.stderr
    assert kept_going(stream, tmp_path / "s", "--seed", "3").returncode == 0


# the outside fails


def test_a_closed_output_pipe_is_no_failure(tmp_path):
    many = tmp_path / "many.jsonl"
    many.write_bytes(lines(EVENTS) * 50)
    options = ["--id-field", "id", "--snapshot", tmp_path / "s"]
    with start("run", many, *options, stdin=subprocess.DEVNULL) as process:
        process.stdout.readline()
        process.stdout.close()
        told = process.stderr.read()
        assert process.wait(timeout=60) == 0, told
    assert b"was closed by its reader" in told
    assert b"Traceback" not in told


def test_output_and_messages_into_one_closed_pipe_are_no_failure(tmp_path):
    many = tmp_path / "many.jsonl"
    many.write_bytes(lines(EVENTS) * 50)
    pipes = {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
    with start("run", many, "--ignore", "id", **pipes) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=60) == 0


@pytest.mark.parametrize("option", ["--output", "--events", "--dead-letter"])
def test_a_full_disk_is_told(stream, option):
    features = "x,y,id" if option == "--dead-letter" else "x,y"  # a text is no feature
    done = run("run", stream, "--features", features, option, "/dev/full")
    assert done.returncode == 1
    assert b"Error: cannot write /dev/full: No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_full_stdout_keeps_the_snapshot_before_it(stream, tmp_path, expected):
    with open("/dev/full", "wb") as full:
        options = ["--id-field", "id", "--snapshot", tmp_path / "s", "--snapshot-every", 100]
        done = run("run", stream, *options, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert b"cannot write the output: No space left" in done.stderr
    assert answers(kept_going(stream, tmp_path / "s").stdout) == expected


@pytest.mark.parametrize("folder", ["/proc/nowhere", "/dev/null/s"])
def test_a_snapshot_folder_that_cannot_be_written_stops_before_the_first_event(stream, folder):
    done = run("run", stream, "--ignore", "id", "--snapshot", folder)
    assert (done.returncode, done.stdout) == (1, b"")
    assert f"cannot keep snapshots in {folder}".encode() in done.stderr


def bound_by_permissions():
    """Make the permissions of files count for root, too: what is executed cannot override them."""
    drop_from_bounding_set, override = 24, 1  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE
    if os.geteuid() == 0 and ctypes.CDLL(None).prctl(drop_from_bounding_set, override) != 0:
        raise OSError("root cannot give up its power over permissions")


def test_a_read_only_snapshot_folder_stops_before_the_first_event(stream, tmp_path):
    (tmp_path / "s").mkdir(mode=0o500)
    given = ["run", stream, "--ignore", "id", "--snapshot", tmp_path / "s"]
    done = run(*given, preexec_fn=bound_by_permissions)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"cannot write" in done.stderr


# other inputs


def test_a_compressed_file_is_read_by_its_name(stream, tmp_path, expected):
    packed = tmp_path / "in.jsonl.gz"
    packed.write_bytes(gzip.compress(stream.read_bytes()))
    assert answers(run("run", packed, "--id-field", "id").stdout) == expected


def test_a_followed_file_is_answered_as_it_grows_through_a_rotation(stream, tmp_path, expected):
    path, half = tmp_path / "log.jsonl", lines(EVENTS[:200])
    options = ["--follow", "--id-field", "id", "--snapshot", tmp_path / "s", "--resume"]
    with start("run", path, *options) as process:
        path.write_bytes(half)
        got = [process.stdout.readline() for _ in range(200)]
        path.rename(tmp_path / "log.jsonl.1")
        path.write_bytes(lines(EVENTS[200:300]))
        got += [process.stdout.readline() for _ in range(100)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    path.rename(tmp_path / "log.jsonl.2")
    path.write_bytes(lines(EVENTS[300:]))
    with start("run", path, *options) as process:
        got += [process.stdout.readline() for _ in range(100)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stdout.read() == b""
    assert answers(b"".join(got)) == expected


# models


def test_a_saved_model_answers_without_learning(stream, tmp_path):
    run("run", stream, "--ignore", "id", "--snapshot", tmp_path / "s")
    body = newest_first(tmp_path / "s")[0].read_bytes()
    frozen = [
        run("run", stream, "--ignore", "id", "--no-learn", "--model", model)
        for model in (tmp_path / "s", newest_first(tmp_path / "s")[0])
    ]
    first, second = (answers(done.stdout) for done in frozen)
    assert first == second
    assert -1 not in {answer["cluster"] for answer in first[:50]}
    assert newest_first(tmp_path / "s")[0].read_bytes() == body
    warm = run("run", stream, "--ignore", "id", "--model", tmp_path / "s")
    assert answers(warm.stdout)[0]["cluster"] >= 0
    cold = run("run", stream, "--no-learn", "--model", stream)
    assert cold.returncode == 1


def test_inspect_prints_clusters_and_rules(stream, tmp_path):
    run("run", stream, "--ignore", "id", "--snapshot", tmp_path / "s")
    table = run("inspect", tmp_path / "s").stdout.decode()
    assert table.startswith("400 events learned\n")
    assert "x <= " in table
    told = json.loads(run("inspect", newest_first(tmp_path / "s")[0], "--json").stdout)
    assert told["source"]["events"] == told["learned"] == 400
    assert sum(cluster["size"] for cluster in told["clusters"]) == 400
    assert told["clusters"][0]["rule"][0]["x"][0] is None
    (tmp_path / "empty").mkdir()
    assert run("inspect", tmp_path / "empty").returncode == 1
    assert run("inspect", stream).returncode == 1


# around the real clusterer


def test_the_real_command_survives_a_kill(stream, tmp_path):
    options = ["--id-field", "id", "--window", "50", "--explain"]
    whole = run("run", stream, *options, command=REAL)
    assert whole.returncode == 0, whole.stderr
    expected = answers(whole.stdout)
    assert len(expected) == len(EVENTS)
    assert expected[0]["region"] == "cold"
    assert max(answer["cluster"] for answer in expected) >= 1

    snapshots = ["--snapshot", tmp_path / "s", "--snapshot-every", "100"]
    with start("run", "-", *options, *snapshots, command=REAL) as process:
        got = asked(process, EVENTS[:250])
        process.kill()
    done = run("run", stream, *options, *snapshots, "--resume", command=REAL)
    assert done.returncode == 0, done.stderr
    assert got == expected[:250]
    assert answers(done.stdout) == expected[200:]


def test_the_real_command_takes_what_a_user_throws_at_it(dirty, tmp_path):
    dead, changes, folder = tmp_path / "dead", tmp_path / "changes", tmp_path / "s"
    outputs = ["--dead-letter", dead, "--events", changes, "--snapshot", folder]
    done = run("run", dirty, *outputs, command=REAL)
    assert done.returncode == 0, done.stderr
    assert len(answers(done.stdout)) == len(BAD)
    assert len(answers(dead.read_bytes())) == len(BAD)
    inspected = run("inspect", folder, "--json", command=REAL)
    assert json.loads(inspected.stdout)["learned"] == len(BAD)
    frozen = run("run", dirty, "--no-learn", "--model", folder, command=REAL)
    assert len(answers(frozen.stdout)) == len(BAD)


@pytest.mark.stress
@pytest.mark.parametrize("command", [SMALL, REAL], ids=["small", "real"])
def test_many_kills_at_any_moment_lose_and_change_nothing(tmp_path, command):
    events = blobs(3000, seed=5)
    stream, out = tmp_path / "in.jsonl", tmp_path / "out"
    stream.write_bytes(lines(events))
    options = ["--id-field", "id", "--window", "200"]
    expected = answers(run("run", stream, *options, command=command).stdout)
    snapshots = ["--snapshot", tmp_path / "s", "--snapshot-every", "97", "--resume"]
    options += ["--output", out, *snapshots]
    for killed_after in range(250, 3000, 250):
        with start("run", "-", *options, command=command) as process:
            process.stdin.write(lines(events[:killed_after]))
            process.stdin.flush()
            while not out.exists() or f'"e{killed_after - 50}"'.encode() not in out.read_bytes():
                assert process.poll() is None, process.stderr.read()
            process.kill()
    done = run("run", stream, *options, command=command)
    assert done.returncode == 0, done.stderr
    by_number = {}
    for answer in answers(out.read_bytes()):
        assert by_number.setdefault(answer["event"], answer) == answer
    assert [by_number[number] for number in range(1, 3001)] == expected
