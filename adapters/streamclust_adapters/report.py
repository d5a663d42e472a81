"""What a person reads: the progress line, the summary of a run, the table of clusters.

Bounds in tables have as many digits as the window needs; the exact ones are in answers, in
snapshots and in ``inspect --json``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TextIO

import msgspec

if TYPE_CHECKING:
    from rich.table import Table

    from streamclust.results import Cluster, Rule
    from streamclust_adapters.answering import Totals

SHOWN_CLUSTERS = 30
"""Rows of the table at the end of a run; ``inspect`` shows all."""

SHOWN_BOXES = 2
"""Boxes of a rule in that table."""

NO_NUMBERS = (
    "nothing was answered: --ignore A,B leaves out fields that are no numbers, --features A,B "
    "picks those that are, --time-field and --id-field set a time and a name aside"
)

WIDTH = 100
"""Columns of a table where there is no terminal to measure."""


class Described(Protocol):
    """What is read of a model."""

    @property
    def clusters(self) -> Mapping[int, Cluster]:
        """The living clusters by id."""

    @property
    def tick_count(self) -> int:
        """Events learned."""


class Progress:
    """One line that is written over, on a terminal only.

    Parameters
    ----------
    stream : TextIO
        Where the line goes.
    clock : callable
        Seconds, for the rate and for not writing more than ten times each.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._shown = stream.isatty()
        self._start = self._next = clock()
        self._written = False

    def __call__(self, totals: Totals) -> None:
        """Show where the run is, if it is time to."""
        now = self._clock()
        if not self._shown or now < self._next:
            return
        self._next = now + 0.1
        done = totals.answered + totals.refused
        rate = done / max(now - self._start, 1e-9)
        bad = f", {totals.refused:,} refused" if totals.refused else ""
        self._stream.write(f"\r{totals.last:,} events, {rate:,.0f} per second{bad}\x1b[K")
        self._stream.flush()
        self._written = True

    def end(self) -> None:
        """Clear the line."""
        if self._written:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def print_refused(totals: Totals) -> None:
    """Tell on stderr what was refused, if anything was."""
    if totals.refused:
        told = f"{totals.refused:,} refused; first refusal: {totals.first_refusal}"
        print(told, file=sys.stderr)


def print_summary(model: Described, totals: Totals, resumed_after: int | None) -> None:
    """Tell on stderr what a run did and what the model knows at its end."""
    lines = [f"{totals.answered:,} events answered, {totals.refused:,} refused"]
    if resumed_after is not None:
        lines[0] += f"; resumed after event {resumed_after:,}"
    if totals.first_refusal:
        lines.append(f"first refusal: {totals.first_refusal}")
    if totals.refused and not totals.answered:
        lines.append(NO_NUMBERS)
    told = ", ".join(f"{count:,} {kind}" for kind, count in sorted(totals.changes.items()))
    lines.append(f"change events: {told or 'none'}")
    print("\n".join(lines), file=sys.stderr)
    print_clusters(model.clusters, sys.stderr, most=SHOWN_CLUSTERS)


def print_clusters(
    clusters: Mapping[int, Cluster], stream: TextIO, *, most: int | None = None
) -> None:
    """Print the clusters and their rules, the heaviest first."""
    if not clusters:
        print("no clusters yet", file=stream)
        return
    from rich.console import Console  # noqa: PLC0415  # only who prints a table waits for it

    console = Console(file=stream, width=None if stream.isatty() else WIDTH)
    console.print(_table(clusters, most))
    if most is not None and len(clusters) > most:
        console.print(f"... and {len(clusters) - most} lighter ones")


def _table(clusters: Mapping[int, Cluster], most: int | None) -> Table:
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(
        title=f"{len(clusters)} cluster{'s' if len(clusters) != 1 else ''}",
        title_justify="left",
        show_lines=True,
    )
    for heading in ("cluster", "events", "share now", "born at", "fence"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("rule", ratio=1)
    total = sum(cluster.weight for cluster in clusters.values()) or 1.0
    by_weight = sorted(clusters.values(), key=lambda cluster: (-cluster.weight, cluster.id))
    for cluster in by_weight[:most]:
        table.add_row(
            str(cluster.id),
            f"{cluster.size:,}",
            f"{cluster.weight / total:.1%}",
            f"{cluster.born:,}",
            f"{cluster.rule.fence.limit:.3g}",
            Text(rule_text(cluster.rule, None if most is None else SHOWN_BOXES)),
        )
    return table


def rule_text(rule: Rule, most: int | None = None) -> str:
    """A rule as a reader writes it, the simplest boxes first, at most `most` of them."""
    told = [printable(line) for line in rule.lines[:most]]
    if len(rule.lines) > len(told):
        told.append(f"... {len(rule.lines) - len(told)} more, narrower")
    return "\nor ".join(told)


def printable(text: str) -> str:
    """Text from a stream without what a terminal would obey."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def model_json(model: Described, source: object) -> str:
    """Everything that ``inspect`` knows, as one JSON object; an open end of an interval is null."""
    clusters = [
        {
            "id": cluster.id,
            "weight": cluster.weight,
            "size": cluster.size,
            "born": cluster.born,
            "centers": cluster.centers,
            "rule": [dict(box.intervals) for box in cluster.rule.boxes],
            "fence": {
                "center": dict(cluster.rule.fence.center),
                "limit": cluster.rule.fence.limit,
            },
        }
        for cluster in model.clusters.values()
    ]
    told = {"learned": model.tick_count, "source": source, "clusters": clusters}
    return msgspec.json.format(msgspec.json.encode(told), indent=2).decode()
