"""Pictures, by what stands in them, and the command that draws them."""

import json
import random
import struct
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from streamclust import StreamClusterer
from streamclust.errors import AdapterError, InvalidParameter, NotReady
from streamclust.events import (
    ClusterBorn,
    ClusterDied,
    ClusterMoved,
    ClustersMerged,
    ClusterSplit,
    RefitDone,
)
from streamclust_adapters import plot
from streamclust_adapters.changes import read_changes
from streamclust_adapters.encoder import Encoder
from streamclust_adapters.lives import lineage
from streamclust_adapters.plot.canvas import COLOURS, MARKERS, MOST_PIXELS, empty, plain, render
from streamclust_adapters.plot.scatter import components
from tests.adapters.commands import REAL, lines, run

HOSTILE = '<script>alert("$x_{$")</script>\x00\n'
PLACES = {HOSTILE: (0.0, 10.0, 30.0), "temp": (20.0, 60.0, 20.0)}

CHANGES = (
    ClusterBorn(tick=40, time=40.0, number=1, cluster=0, weight=30.0, found_by="refit"),
    ClusterBorn(tick=50, time=50.0, number=2, cluster=1, weight=10.0, found_by="outliers"),
    RefitDone(tick=60, time=60.0, number=3, reason="schedule", asked=60, clusters=2, noise_share=0),
    ClusterSplit(tick=100, time=100.0, number=4, parent=0, children=(0, 2), overlaps=(0.75, 0.25)),
    ClusterMoved(tick=120, time=120.0, number=5, cluster=2, distance=0.5, old={}, new={}),
    RefitDone(tick=130, time=1.0, number=6, reason="drift", asked=130, clusters=3, noise_share=0.1),
    ClustersMerged(tick=200, time=200.0, number=7, parents=(0, 1), child=0, overlaps=(1.0, 0.9)),
    ClusterDied(tick=300, time=300.0, number=8, cluster=2, reason="silent"),
)


@pytest.fixture(scope="module")
def model():
    draw = random.Random(3)
    model = StreamClusterer()
    for i in range(600):
        x = {name: draw.gauss(places[i % 3], 1.0) for name, places in PLACES.items()}
        model.learn_one(x)
    model.name(min(model.clusters), "R$D$ & <b>")
    assert len(model.clusters) == 3
    return model


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "snapshot-1.safetensors"
    model.save(path)
    return path


@pytest.fixture
def told(tmp_path):
    path = tmp_path / "changes.jsonl"
    encoder = Encoder()
    path.write_bytes(encoder.lines([encoder.change(c.tick, c) for c in CHANGES]))
    return path


def texts(figure):
    """Everything that stands in a figure, as a reader sees it."""
    figure.draw_without_rendering()
    found = figure.findobj(lambda artist: hasattr(artist, "get_text") and artist.get_visible())
    return [artist.get_text().replace(r"\$", "$") for artist in found if artist.get_text()]


# the model's own answers that pictures are made of


def test_the_tree_is_what_answers_in_the_users_units(model):
    def answer(part, x):
        if "cluster" in part:
            return part["cluster"]
        return answer(part["right" if x[part["feature"]] > part["threshold"] else "left"], x)

    columns = model.window_points()
    points = [
        dict(zip(columns, row, strict=True)) for row in np.array([*columns.values()]).T.tolist()
    ]
    answers = [model.predict_one(x) for x in points]
    assert len(set(answers)) >= 3
    whole = model.tree()
    assert all(a in (-1, answer(whole, x)) for a, x in zip(answers, points, strict=True))
    # and in few digits each point of the window stays on its side
    side = columns[whole["feature"]] > whole["threshold"]
    assert (side == (columns[whole["feature"]] > float(whole["told"]))).all()


def test_a_model_that_knows_nothing_has_no_tree_and_no_points():
    cold = StreamClusterer()
    assert cold.tree() == {}
    assert cold.window_points() == {}
    for draw in (plot.tree, plot.intervals, plot.projection):
        with pytest.raises(NotReady):
            draw(cold)
    for draw in (plot.timeline, plot.noise):
        with pytest.raises(NotReady):
            draw(cold.events_since(0))


def test_window_points_are_a_copy(model):
    column = model.window_points()["temp"]
    assert 10 < np.median(column) < 70
    column[:] = 0
    assert model.window_points()["temp"].any()


# what stands in the pictures


def test_tree_shows_every_cut_and_cluster_with_its_size(model):
    found = texts(plot.tree(model))
    for cluster in model.clusters.values():
        assert any(text.split()[0] == str(cluster.id) for text in found)
        assert any(f"{cluster.size:,} events" in text for text in found)
    whole = model.tree()
    wanted = f"{plain(whole['feature'], 16)} <= {whole['told']}".replace(r"\$", "$")
    assert wanted in found
    assert "3 clusters, 600 events learned" in found


def test_tree_of_many_leaves_closes_the_finest():
    class Many:
        """A chain of 200 leaves of two clusters, of which one is in the window."""

        tick_count = 7

        def __init__(self, clusters):
            self.clusters = dict(zip((0, 1), clusters.values(), strict=False))

        def window_points(self):
            return {"x": np.zeros(7)}

        def tree(self):
            part = {"cluster": 0, "center": 0}
            for i in range(199):
                leaf = {"cluster": i % 2, "center": i % 2}
                part = {"feature": "x", "threshold": i, "told": str(i), "left": part, "right": leaf}
            return part

    known = StreamClusterer()
    known.fit_initial(centers=[[0.0], [9.0]])
    found = texts(plot.tree(Many(known.clusters)))
    assert any("136 finer leaves are closed" in text for text in found)
    assert any("137 leaves" in text for text in found)


def test_intervals_have_a_chart_per_bounded_feature_and_a_row_per_cluster(model):
    figure = plot.intervals(model)
    bounded = {f for c in model.clusters.values() for box in c.rule.boxes for f in box.intervals}
    assert len(figure.axes) == len(bounded)
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    by_weight = sorted(model.clusters.values(), key=lambda c: -c.weight)
    assert [int(row.split()[0]) for row in rows] == [c.id for c in by_weight]
    feature = figure.axes[0].get_xlabel().replace(r"\$", "$")
    (name,) = [f for f in bounded if plain(f).replace(r"\$", "$") == feature]
    ends = {
        float(x)
        for line in figure.axes[0].get_lines()
        if line.get_marker() == "|"
        for x in line.get_xdata()
    }
    told = {v for c in by_weight for b in c.rule.boxes[:3] for v in b.intervals.get(name, ())}
    assert ends == {bound for bound in told if np.isfinite(bound)}


def test_projection_draws_every_point_once_and_labels_every_cluster(model):
    figure = plot.projection(model)
    drawn = sum(len(points.get_offsets()) for points in figure.axes[0].collections)
    assert drawn == len(model.window_points()["temp"])
    found = texts(figure)
    assert {text.split()[0] for text in found} >= {str(cluster) for cluster in model.clusters}
    assert any("core: filled" in text for text in found)


def test_projection_takes_a_table_with_holes(model):
    table = {HOSTILE: [0.0, 10.0, 5e3], "temp": [20.0, np.nan, 20.0]}
    figure = plot.projection(model, table)
    assert "3 points in 3 clusters" in texts(figure)
    assert any("noise: grey x" in text for text in texts(figure))
    with pytest.raises(InvalidParameter, match="one length"):
        plot.projection(model, {"temp": [1.0], HOSTILE: [1.0, 2.0]})


def test_components_agree_with_the_covariance():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, 3)) @ np.array([[3, 1, 0], [0, 1, 1], [0, 0, 0.2]])
    places, shares = components(np.column_stack([values, np.full(200, 7.0)]))
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    strengths = np.sort(np.linalg.eigvalsh(np.cov(scaled.T, bias=True)))[::-1]
    assert np.allclose(places.var(axis=0), strengths[:2])
    assert np.allclose(shares, strengths[:2] / strengths.sum())
    assert components(np.ones((4, 1)))[0].tolist() == [[0.0, 0.0]] * 4


def test_timeline_follows_weights_through_splits_and_merges():
    told = lineage(CHANGES, {}, 0)
    assert told.lives[0].weights[-1] == (200, 30.0 * 0.75 + 10.0)
    assert told.lives[2].weights == [(100, 7.5)]
    assert (told.lives[2].parent, told.lives[2].end, told.lives[2].ended_by) == (0, 300, "died")
    assert (told.lives[1].end, told.lives[1].ended_by) == (200, "merged")
    assert [link[:1] + link[2:] for link in told.links] == [("split", 0, 2), ("merge", 1, 0)]
    figure = plot.timeline(CHANGES)
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows == ["0", "2", "1"]
    assert any(text.startswith("3 clusters, 1 alive") for text in texts(figure))


def test_timeline_knows_clusters_whose_birth_the_log_has_lost(model):
    figure = plot.timeline([], model)
    rows = [label.get_text().split()[0] for label in figure.axes[0].get_yticklabels()]
    assert sorted(map(int, rows)) == sorted(model.clusters)


def test_timeline_draws_the_longest_lives_of_many():
    born = [
        ClusterBorn(tick=i, time=0.0, number=i, cluster=i, weight=1.0, found_by="refit")
        for i in range(1, 101)
    ]
    figure = plot.timeline(born)
    assert len(figure.axes[0].get_yticks()) == 80
    assert any("20 of shorter life are not drawn" in text for text in texts(figure))


def test_noise_draws_every_refit_and_marks_drift():
    figure = plot.noise(CHANGES)
    above, middle, below = figure.axes
    assert above.get_lines()[0].get_xydata().tolist() == [[60, 0], [130, 10]]
    assert middle.get_lines()[0].get_ydata().tolist() == [2, 3]
    assert below.collections[0].get_offsets().tolist() == [[120, 0.5]]
    found = texts(figure)
    assert "2 refits, 1 of them because of drift" in found
    assert "dashed: refit because of drift" in found


def test_more_than_fifty_clusters_have_a_look_of_their_own():
    looks = {(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]) for i in range(56)}
    assert len(looks) == 56


# files


class Page(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.words = set(), []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data):
        self.words.append(data.strip())


@pytest.mark.parametrize("draw", [plot.tree, plot.intervals, plot.projection])
def test_text_of_the_stream_is_never_markup(model, draw):
    svg = render(draw(model), ".svg")
    told = " ".join(ElementTree.fromstring(svg).itertext())
    assert "R$D$ & <b>" in told
    page = Page(render(draw(model), ".html").decode())
    assert page.tags >= {"html", "svg", "title"}
    assert page.tags.isdisjoint({"script", "b", "a", "img"})
    assert any("R$D$ & <b>" in words for words in page.words)


def test_the_same_figure_is_the_same_file(model):
    assert render(plot.tree(model), ".svg") == render(plot.tree(model), ".svg")
    assert render(plot.tree(model), ".png").startswith(b"\x89PNG")


def test_a_huge_picture_has_fewer_pixels_per_inch():
    figure = empty(200.0, 300.0, "huge")
    header = render(figure, ".png")[16:24]
    width, height = struct.unpack(">II", header)
    assert 0.9 * MOST_PIXELS < width * height <= MOST_PIXELS


def test_plain_text_has_no_mathematics_and_no_control_characters():
    assert plain("a$b$\x1b\n") == r"a\$b\$" + "\N{REPLACEMENT CHARACTER}" * 2
    names = {plain("x" * 500 + str(i), 16) for i in range(20)}
    assert len(names) == 20
    assert {len(name) for name in names} == {16}


# changes read back


def test_changes_of_a_model_are_read_back_as_they_were(model, tmp_path):
    encoder, path = Encoder(), tmp_path / "changes.jsonl"
    changes = model.events_since(0)
    written = encoder.lines([encoder.change(c.tick, c) for c in changes])
    # a resumed run tells some again, and its last line is still being written
    path.write_bytes(written + written.splitlines(keepends=True)[-1] + b'{"event":9')
    assert read_changes(path) == list(changes)


def test_changes_of_two_engines_are_not_mixed(tmp_path):
    encoder, path = Encoder(), tmp_path / "changes.jsonl"
    other = ClusterBorn(tick=9, time=9.0, number=1, cluster=0, weight=3.0, found_by="refit")
    path.write_bytes(encoder.lines([encoder.change(1, c) for c in (*CHANGES, other)]))
    with pytest.raises(AdapterError, match="line 9: change 1 was another before"):
        read_changes(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no change events"),
        (b'{"event":1,"cluster":0,"region":"core"}\n', r"line 1: no change event.*no field 'kind'"),
        (b'{"kind":"Nonsense"}\n', "unknown kind 'Nonsense'"),
        (b'{"kind":[]}\n', "line 1: no change event"),
        (b'{"kind":"ClusterBorn","cluster":"x"}\n', "line 1: no change event"),
        (b"a,b\n1,2\n", "line 1: no change event"),
        (b"\xff\xfe\n", "line 1: no change event"),
    ],
)
def test_what_is_no_change_is_told_with_its_line(tmp_path, content, words):
    path = tmp_path / "in.jsonl"
    path.write_bytes(content)
    with pytest.raises(AdapterError, match=words):
        read_changes(path)


# the command


def test_a_snapshot_and_its_events_are_drawn(saved, told, tmp_path):
    for source, kind, name in (
        (saved, None, "tree.svg"),
        (saved.parent, "timeline", "lives.PNG"),
        (told, None, "lives.html"),
        (told, "noise", "noise.svg"),
    ):
        wanted = ("--kind", kind) if kind else ()
        done = run("plot", source, "-o", tmp_path / name, *wanted, command=REAL)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), done.stderr
    assert b"600 events learned" in (tmp_path / "tree.svg").read_bytes()
    assert (tmp_path / "lives.PNG").read_bytes().startswith(b"\x89PNG")
    assert b"3 clusters, 1 alive" in (tmp_path / "lives.html").read_bytes()
    assert b"1 of them because of drift" in (tmp_path / "noise.svg").read_bytes()


def test_events_of_a_run_are_drawn(tmp_path):
    draw = random.Random(1)
    events = [{"x": draw.gauss(9.0 * (i % 2), 1), "y": draw.gauss(0, 1)} for i in range(300)]
    changes = tmp_path / "changes.jsonl"
    done = run("run", "-", "--events", changes, command=REAL, input=lines(events))
    assert done.returncode == 0, done.stderr
    done = run("plot", changes, "-o", tmp_path / "out.svg", command=REAL)
    assert done.returncode == 0, done.stderr
    seen = set()
    for line in changes.read_text().splitlines():
        change = json.loads(line)
        seen |= {change["cluster"]} if "cluster" in change else set(change.get("children", ()))
    assert len(seen) >= 2
    assert f">{len(seen)} clusters, " in (tmp_path / "out.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["plot", "missing", "-o", "a.png"], 2, "does not exist"),
        (["plot", "told"], 2, "Missing option '--output'"),
        (["plot", "told", "-o", "a.pdf"], 2, "ends in .png, .svg, .html"),
        (["plot", "told", "-o", "a"], 2, "ends in .png, .svg, .html"),
        (["plot", "told", "-o", "a.png", "--kind", "tree"], 2, "needs a snapshot"),
        (["plot", "told", "-o", "no/a.png"], 1, "cannot write no/a.png: No such file"),
        (["plot", "text", "-o", "a.png"], 1, "line 1: no change event"),
        (["plot", "torn", "-o", "a.png"], 1, "torn"),
        (["plot", "empty", "-o", "a.png"], 1, "empty holds no snapshot"),
        (["plot", "cold", "-o", "a.png"], 1, "no cluster yet after 0 events"),
    ],
)
def test_mistakes_are_told(tmp_path, told, arguments, code, words):
    (tmp_path / "told").write_bytes(told.read_bytes())
    (tmp_path / "text").write_text("hello\n")
    (tmp_path / "torn").write_bytes(b"\x09\0\0\0\0\0\0\0{")
    (tmp_path / "empty").mkdir()
    if "cold" in arguments:
        StreamClusterer().save(tmp_path / "cold")
    done = run(*arguments, command=REAL, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert words in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert not (tmp_path / "a.png").exists()


def test_without_the_extra_the_command_says_which(told, tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from streamclust_adapters.cli import main; main()"
    )
    command = (sys.executable, "-c", code)
    done = run("plot", told, "-o", tmp_path / "a.png", command=command)
    assert done.returncode == 1
    assert "pip install 'streamclust[plot]'" in done.stderr.decode()
    assert run("plot", "--help", command=command).returncode == 0
