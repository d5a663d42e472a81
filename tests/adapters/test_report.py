"""What a person reads."""

import io
import math
from typing import ClassVar

from streamclust.results import Box, Cluster, Fence, Rule
from streamclust_adapters.answering import Totals
from streamclust_adapters.report import (
    NO_NUMBERS,
    Progress,
    print_clusters,
    print_summary,
    rule_text,
)

INF = math.inf
BOXES = (
    Box({"temp": (100.0, INF)}),
    Box({"load": (0.1, 0.25), "temp": (-INF, 60.125)}),
    Box({"load": (0.1, 0.2), "temp": (1.0, 2.0)}),
)


def cluster(number, weight, boxes=BOXES):
    fence = Fence(number, {"load": 0.2, "temp": 50.0}, 3.25)
    return Cluster(
        number,
        weight,
        int(weight),
        (number,),
        1,
        1.0,
        Rule(number, boxes, fence, tuple(map(str, boxes))),
    )


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_rule_is_read_simplest_box_first():
    rule = cluster(0, 1.0).rule
    assert rule_text(rule) == (
        "temp > 100.0\n"
        "or 0.1 < load <= 0.25 and temp <= 60.125\n"
        "or 0.1 < load <= 0.2 and 1.0 < temp <= 2.0"
    )
    assert rule_text(rule, 1) == "temp > 100.0\nor ... 2 more, narrower"
    assert rule_text(Rule(0, (Box({}),), rule.fence, ("always",))) == "always"


def test_the_table_has_the_heaviest_clusters_first_and_counts_the_rest():
    out = io.StringIO()
    print_clusters({i: cluster(i, 10.0 * (i + 1)) for i in range(5)}, out, most=2)
    text = out.getvalue()
    assert text.index("│       4 │") < text.index("│       3 │")
    assert "│       2 │" not in text
    assert "... and 3 lighter ones" in text
    assert "5 clusters" in text
    assert "33.3%" in text


def test_no_cluster_is_told():
    out = io.StringIO()
    print_clusters({}, out)
    assert out.getvalue() == "no clusters yet\n"


def test_who_gets_no_answer_is_told_what_to_do(capsys):
    class Nothing:
        clusters: ClassVar[dict] = {}
        tick_count = 0

    for answered in (0, 1):
        print_summary(Nothing(), Totals(answered=answered, refused=3, first_refusal="why"), None)
        told = capsys.readouterr().err
        assert "first refusal: why" in told
        assert (NO_NUMBERS in told) == (not answered)


def test_progress_is_one_line_on_a_terminal_at_most_ten_times_a_second():
    now = [0.0]
    out = Terminal()
    progress = Progress(out, lambda: now[0])
    for now[0] in (0.0, 0.05, 0.09, 1.0):
        progress(Totals(answered=500, refused=500, last=1000))
    progress.end()
    assert out.getvalue().count("\r") == 3
    assert "\r1,000 events, 1,000 per second, 500 refused\x1b[K" in out.getvalue()


def test_progress_is_silent_in_a_pipe():
    out = io.StringIO()
    progress = Progress(out)
    progress(Totals(answered=1, last=1))
    progress.end()
    assert out.getvalue() == ""
