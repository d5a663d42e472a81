"""A view as the page gets it: sections of plain JSON, so that only what has changed is sent.

Texts of the stream go out as they are, bounded in length; the page shows them as text only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from streamclust_adapters.live import View, change_text, is_routine
from streamclust_adapters.lives import Life, lanes

MOST_LANES = 60
"""Lives of the timeline: the longest."""

LANE_POINTS = 40
"""Weights of one life."""

BOXES = 3
"""Boxes of a rule."""

LONGEST = 400
"""Letters of a rule, a name or an id."""


def sections(view: View) -> dict[str, bytes]:
    """Every section of a view by name, as JSON; a number that is not known is null."""
    return {name: msgspec.json.encode(value) for name, value in _plain(view)}


def message(text: str, state: str) -> bytes:
    """The section that says how the stream stands: waiting, live or ended."""
    return msgspec.json.encode({"state": state, "text": _short(text)})


def _plain(view: View) -> Iterable[tuple[str, Any]]:
    yield (
        "now",
        {
            "events": view.events,
            "clusters": len(view.groups),
            "noise": view.noise,
            "fidelity": view.fidelity,
            "alarms": len(view.alarms),
            "refused": view.refused,
            "first_refusal": _short(view.first_refusal),
        },
    )
    yield (
        "clusters",
        [
            {
                "id": one.id,
                "name": _short(one.name or ""),
                "pinned": one.pinned,
                "size": one.size,
                "share": one.share,
                "born": one.born,
                "rule": [_short(line) for line in one.rule[:BOXES]],
                "more": max(len(one.rule) - BOXES, 0),
            }
            for one in view.groups
        ],
    )
    yield "timeline", _timeline(view)
    yield "noise", {"course": view.course, "alarms": view.alarms}
    yield (
        "changes",
        [
            {
                "tick": one.tick,
                "kind": type(one).__name__,
                "text": _short(change_text(one)),
                "routine": is_routine(one),
            }
            for one in view.changes
        ],
    )
    yield (
        "answers",
        [
            {
                "event": one.event,
                "key": "" if one.key is None else _short(str(one.key)),
                "cluster": one.cluster,
                "region": _short(one.region),
                "rule": None if one.rule is None else _short(one.rule),
            }
            for one in view.answers
        ],
    )
    yield "figures", {_short(name): _number(value) for name, value in view.figures.items()}


def _timeline(view: View) -> dict[str, Any]:
    told = view.lineage
    drawn = lanes(told, MOST_LANES)
    shown = {life.cluster for life in drawn}
    return {
        "last": told.last,
        "hidden": len(told.lives) - len(drawn),
        "lives": [
            {
                "id": life.cluster,
                "start": life.start,
                "end": None if life.end < 0 else life.end,
                "ended_by": life.ended_by,
                "born": life.born and life.parent is None,
                "weights": _thin(life),
            }
            for life in drawn
        ],
        "links": [
            link._asdict() for link in told.links if link.source in shown and link.target in shown
        ],
    }


def _thin(life: Life) -> list[tuple[int, float]]:
    """Not more weights of a life than can be seen, the last one among them."""
    step = max(1, math.ceil(len(life.weights) / LANE_POINTS))
    return life.weights[::-step][::-1]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _number(value: float) -> float | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value
