"""The live page without a browser: what is served to whom, and what the stream of states says."""

import asyncio
import json
import re
import signal
import socket
from http.cookies import SimpleCookie
from pathlib import Path

import pytest

from streamclust_adapters import web
from streamclust_adapters.live import Answer, Group, View
from streamclust_adapters.lives import Life, Lineage
from streamclust_adapters.web import app
from streamclust_adapters.web.hub import Hub
from streamclust_adapters.web.sections import LONGEST, MOST_LANES, message, sections
from streamclust_adapters.web.server import PageServer
from tests.adapters.commands import REAL, blobs, lines, run
from tests.adapters.pages import asking, messages, serving, until

starlette = pytest.importorskip("starlette.testclient")

TOKEN = "a token of some length"
HOSTILE = "<img src=x onerror=alert(1)>"


def client(token=None, names=(), host="localhost:8750"):
    served = app.application(Hub(), token, names)
    return starlette.TestClient(served, base_url=f"http://{host}", follow_redirects=False)


# what is served


@pytest.mark.parametrize("path", app.FILES)
def test_every_file_has_strict_headers(path):
    got = client().get(path)
    assert got.status_code == 200
    policy = got.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["x-frame-options"] == "DENY"
    assert got.headers["referrer-policy"] == "no-referrer"
    assert got.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("page", ["index.html", "login.html"])
def test_pages_hold_neither_script_nor_style_nor_foreign_address(page):
    text = (Path(web.__file__).parent / "static" / page).read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|https?:", text)
    named = set(re.findall(r'(?:src|href)="([^"#]+)"', text))
    assert {f"/{name}" for name in named} <= set(app.FILES)


def test_scripts_set_texts_and_never_markup():
    for name in ("page.js", "draw.js"):
        text = (Path(web.__file__).parent / "static" / name).read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)


@pytest.mark.parametrize("path", ["/nothing", "/../app.py", "/static/index.html"])
def test_nothing_else_is_served(path):
    got = client().get(path)
    assert got.status_code == 404
    assert "default-src 'none'" in got.headers["content-security-policy"]


def test_nothing_is_written_over_it():
    assert client().post("/events").status_code == 405
    assert client().post("/").status_code == 405


# to whom


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8750", 200),
        ("LOCALHOST", 200),
        ("127.0.0.1:8750", 200),
        ("[::1]:8750", 200),
        ("192.168.1.5", 200),
        ("box.example:8750", 200),
        ("evil.example", 421),
        ("localhost.evil.example:8750", 421),
        ("127.0.0.1.evil.example", 421),
    ],
)
def test_a_foreign_name_with_our_address_is_refused(host, status):
    got = client(names=["box.example"], host="localhost").get("/", headers={"host": host})
    assert got.status_code == status
    assert ("streamclust" in got.text) == (status == 200)


def test_without_the_token_there_is_the_form_and_nothing_else():
    stranger = client(TOKEN)
    assert stranger.get("/").headers["location"] == "login"
    for path in ("/page.js", "/draw.js", "/events", "/session", "/nothing"):
        assert stranger.get(path).status_code == 401
    for path in ("/login", "/page.css", "/icon.svg"):
        assert stranger.get(path).status_code == 200


@pytest.mark.parametrize(
    "form", ["token=wrong", "token=", "", "token=%ff%fe", "other=1", "token=" + "x" * 5000]
)
def test_a_wrong_token_opens_nothing(form):
    stranger = client(TOKEN)
    got = stranger.post("/login", content=form)
    assert got.status_code == 401
    assert "set-cookie" not in got.headers
    assert stranger.get("/session").status_code == 401


def test_the_token_opens_the_page_by_a_cookie_that_does_not_tell_it():
    known = client(TOKEN)
    got = known.post("/login", data={"token": TOKEN})
    assert (got.status_code, got.headers["location"]) == (303, "./")
    cookie = SimpleCookie(got.headers["set-cookie"])[app.COOKIE]
    assert cookie["httponly"]
    assert cookie["samesite"] == "strict"
    assert TOKEN not in got.headers["set-cookie"]
    assert known.get("/").status_code == 200
    assert known.get("/session").status_code == 204


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"authorization": f"Bearer {TOKEN}"}, 204),
        ({"authorization": f"bearer {TOKEN}"}, 204),
        ({"authorization": f"Basic {TOKEN}"}, 401),
        ({"authorization": "Bearer "}, 401),
        ({"cookie": f"{app.COOKIE}={TOKEN}"}, 401),
        ({"cookie": "=;;broken"}, 401),
    ],
)
def test_programs_may_give_the_token_in_a_header(headers, status):
    assert client(TOKEN).get("/session", headers=headers).status_code == status


# what is sent


def full(rule, k=1):
    lives = {n: Life(n, n, born=True, weights=[(n, 1.0), (99, 2.0)]) for n in range(k)}
    groups = tuple(Group(n, rule, False, 5, 1 / k, n, (rule,) * 5) for n in range(k))
    answers = (Answer(9, rule, 0, "core", rule), Answer(1, None, -1, "cold", None))
    figures = {rule: 1.0, "nothing": float("nan")}
    return View(
        events=99, groups=groups, lineage=Lineage(lives, [], 99), answers=answers, figures=figures
    )


def test_sections_are_bounded_and_texts_are_themselves():
    told = {name: json.loads(value) for name, value in sections(full(HOSTILE, 200)).items()}
    assert told["clusters"][0]["name"] == HOSTILE
    assert told["clusters"][0]["rule"] == [HOSTILE] * 3
    assert told["clusters"][0]["more"] == 2
    assert told["answers"][0]["key"] == HOSTILE
    assert told["figures"] == {HOSTILE: 1.0, "nothing": None}
    assert len(told["timeline"]["lives"]) == MOST_LANES
    assert told["timeline"]["hidden"] == 200 - MOST_LANES
    long = {name: json.loads(value) for name, value in sections(full("y" * 5000)).items()}
    assert len(long["answers"][0]["rule"]) == LONGEST
    assert all(b"\n" not in value for value in sections(full("a\nb")).values())


async def heard(hub, last_id):
    """The first state that a browser gets."""
    stream = hub.stream(last_id)
    await anext(stream)  # the time to wait before another try
    return (await anext(stream)).decode()


def id_of(block):
    return re.search(r"^id: (.+)$", block, re.MULTILINE)[1]


def test_a_browser_gets_the_whole_state_and_then_what_is_newer():
    async def listen():
        hub = Hub()
        hub.publish({"a": b"1", "b": b"1"})
        hub.open()
        whole = await heard(hub, "")
        hub.publish({"a": b"1", "b": b"2"})
        newer = await heard(hub, id_of(whole))
        strangers = ["", "nonsense", "-", id_of(whole).replace("-", "0-"), "1-9"]
        return whole, newer, [await heard(hub, one) for one in strangers]

    whole, newer, others = asyncio.run(listen())
    assert whole.count("event: ") == 2
    assert whole.count("id: ") == 1
    assert newer.startswith("event: b\ndata: 2\n")
    assert all(one.count("event: ") == 2 for one in others)


def test_a_browser_that_does_not_read_misses_states_and_gets_the_newest():
    async def listen():
        hub = Hub()
        hub.open()
        stream = hub.stream("")
        await anext(stream)
        hub.publish({"a": b"0"})
        got = [await anext(stream)]
        for n in range(1, 1000):
            hub.publish({"a": b"%d" % n})
            await asyncio.sleep(0)
        got.append(await anext(stream))
        hub.close()
        return got, [block async for block in stream]

    (first, second), rest = asyncio.run(listen())
    assert b"data: 0\n" in first
    assert b"data: 999\n" in second
    assert rest == []


def test_what_has_not_changed_is_not_sent():
    async def count():
        hub = Hub()
        hub.open()
        versions = []
        for _ in range(3):
            hub.publish({"a": b"1"})
            await asyncio.sleep(0)
            versions.append(hub._version)
        return versions

    assert asyncio.run(count()) == [1, 1, 1]


def test_the_engine_never_waits_for_a_browser_that_does_not_read(capfd):
    state = {"a": b'"' + b"x" * (1 << 20) + b'"'}
    with PageServer("test", "127.0.0.1", 0) as page:
        dead = socket.create_connection(("127.0.0.1", page.port))
        dead.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        dead.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert dead.recv(100).startswith(b"HTTP/1.1 200")
        with asking(page.port, "/events") as response:
            stream = messages(response)
            for n in range(50):  # 50 MiB, of which the dead browser takes next to nothing
                page._hub.publish({**state, "n": b"%d" % n})
            newest, _ = until(stream, lambda name, told: name == "n" and told == 49)
            assert newest["n"] == 49
    assert not page._thread.is_alive()  # the dead one does not hold up the end either
    dead.close()
    assert capfd.readouterr().err == ""


def test_many_browsers_are_too_many(monkeypatch):
    monkeypatch.setattr(app, "MOST_BROWSERS", 2)
    with PageServer("test", "127.0.0.1", 0) as page, asking(page.port, "/events") as one:
        with asking(page.port, "/events") as two:
            assert (one.status, two.status) == (200, 200)
            with asking(page.port, "/events") as three:
                assert three.status == 503
        for _ in range(1000):  # the place of the one that went is free, as soon as it is noticed
            with asking(page.port, "/events") as again:
                if again.status == 200:
                    break
        assert again.status == 200


def test_the_state_says_what_is_waited_for():
    assert json.loads(message("x" * 999, "ended"))["text"].startswith("xxx")
    with PageServer("pump", "127.0.0.1", 0) as page, asking(page.port, "/events") as response:
        stream = messages(response)
        until(stream, lambda name, told: told == {"state": "waiting", "text": "pump: starting"})
        page.end("the stream has ended")
        until(stream, lambda name, told: name == "state" and told["state"] == "ended")


# the command


def test_a_stream_is_learned_and_shown_as_it_comes():
    events = blobs(400, seed=1, k=3)
    with serving("--source", "-", "--id-field", "id") as (process, port):
        with asking(port, "/events") as response:
            stream = messages(response)
            process.stdin.write(lines(events[:200]) + b"broken\n")
            process.stdin.flush()
            until(stream, lambda name, told: name == "now" and told["refused"] == 1)
            process.stdin.write(lines(events[200:]))
            process.stdin.flush()
            newest, id = until(
                stream, lambda name, told: name == "figures" and told["events"] == 400
            )
            assert len(newest["clusters"]) == newest["now"]["clusters"] == 3
            assert newest["answers"][0]["key"].startswith("e")
            process.stdin.close()
            until(stream, lambda name, told: name == "state" and told["state"] == "ended")
        with asking(port, "/events", Last_Event_ID=id) as response:
            name, told, _ = next(messages(response))
            assert (name, told["state"]) == ("state", "ended")  # nothing else is newer
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        told = process.stderr.read().decode()
        assert "1 refused; first refusal: event 201" in told
        assert "Traceback" not in told


def test_a_worker_is_followed_as_it_goes_on(tmp_path):
    events = blobs(400, seed=1, k=3)
    work = ["run", "-", "--ignore", "id", "--explain", "--snapshot", "state", "--resume"]
    work += ["-o", "out", "--events", "changes"]
    done = run(*work, command=REAL, cwd=tmp_path, input=lines(events[:200]))
    assert done.returncode == 0, done.stderr
    attach = ["--attach", "changes", "--answers", "out"]
    with serving(*attach, cwd=tmp_path) as (process, port), asking(port, "/events") as response:
        stream = messages(response)
        until(stream, lambda name, told: name == "now" and told["events"] == 200)
        done = run(*work, command=REAL, cwd=tmp_path, input=lines(events))
        assert done.returncode == 0, done.stderr
        newest, _ = until(stream, lambda _, told: "answers" in told and told["answers"] == 400)
        assert len(newest["clusters"]) == 3
        assert "distance to center" in newest["answers"][0]["rule"]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, process.stderr.read()


def test_another_host_is_served_with_a_token_that_is_never_told(tmp_path):
    (tmp_path / "token").write_text(TOKEN + "\n")
    arguments = ["--source", "-", "--host", "0.0.0.0", "--token-file", tmp_path / "token"]
    with serving(*arguments) as (process, port):
        with asking(port, "/session") as response:
            assert response.status == 401
        with asking(port, "/session", Authorization=f"Bearer {TOKEN}") as response:
            assert response.status == 204
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0
        assert TOKEN.encode() not in out + err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "give --source FILE, or --attach EVENTS"),
        (["--source", "-", "--attach", "text"], 2, "give --source FILE, or --attach EVENTS"),
        (["--source", "missing.jsonl"], 2, "does not exist"),
        (["--source", "text"], 2, "give --format, or a name that ends in .jsonl"),
        (["--source", "-", "--answers", "text"], 2, "--answers goes with --attach"),
        (["--attach", "text", "--p", "1"], 2, "the model of --attach is the worker's"),
        (["--attach", "text", "--answers", "text"], 2, "must be different"),
        (["--source", "-", "--follow"], 2, "--follow needs --source FILE"),
        (["--source", "-", "--host", "0.0.0.0"], 2, "give a token, by --token-file FILE"),
        (["--source", "-", "--token-file", "empty.csv"], 2, "should hold the token"),
        (["--source", "-", "--token-file", "short"], 2, "16 letters at least"),
        (["--source", "-", "--host", "nowhere.invalid", "--token-file", "long"], 1, "cannot serve"),
        (["--source", "-", "--time-unit", "seconds"], 2, "needs --time-field"),
        (["--source", "empty.csv"], 1, "empty.csv holds no event"),
        (
            ["--source", "text", "--format", "jsonl"],
            1,
            "text holds no event; first refusal: ",
        ),
        (["--attach", "text"], 1, "text, line 1: no change event, as run --events writes them"),
    ],
)
def test_mistakes_are_told(tmp_path, arguments, code, words):
    (tmp_path / "text").write_text("hello\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "short").write_text("abc")
    (tmp_path / "long").write_text(TOKEN)
    done = run("serve", "--port", "0", *arguments, command=REAL, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert words in " ".join(done.stderr.decode().split())
    assert b"Traceback" not in done.stderr
    assert b"abc" not in done.stderr


def test_a_port_that_is_taken_is_told():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("serve", "--source", "-", "--port", port, command=REAL)
    assert done.returncode == 1
    assert b"cannot serve on 127.0.0.1:%d: Address already in use; --port" % port in done.stderr


@pytest.mark.parametrize("library", ["starlette", "uvicorn"])
def test_a_missing_extra_is_told(tmp_path, library):
    (tmp_path / f"{library}.py").write_text("raise ImportError\n")
    first = f"import sys; sys.path.insert(0, {str(tmp_path)!r})"
    code = f"{first}; from streamclust_adapters.cli import main; main()"
    done = run("-c", code, "serve", "--source", "-", "--port", "0", command=REAL[:1])
    assert done.returncode == 1, done.stderr
    assert b"pip install 'streamclust[web]'" in done.stderr
