"""A live table on a terminal: the clusters with rules and sizes, noise, and what changed last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from streamclust.events import RuleChanged
from streamclust_adapters.ports import Record
from streamclust_adapters.report import WIDTH, printable

if TYPE_CHECKING:
    from streamclust.events import Change, Changes
    from streamclust.results import Cluster

CHANGES = 6
"""Changes that are shown, the newest first; changed rules are seen in the table."""

FRAME = 7
"""Lines of the page beside clusters and changes."""

LEAST_ROWS = 3
"""Clusters that are shown however low the terminal is."""

LONGEST = 60
"""Letters of one value in a change."""


class Shown(Protocol):
    """What is read of a model."""

    @property
    def clusters(self) -> Mapping[int, Cluster]:
        """The living clusters by id."""

    def metrics(self) -> Mapping[str, float]:
        """Return live figures by name."""

    def events_since(self, n: int) -> Changes:
        """Return the changes numbered above `n`."""


class Page:
    """A page that is written over where it stands; in a pipe only the last one is written.

    Parameters
    ----------
    console : Console, optional
        Where it is shown: stdout by default.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)
        if not self.console.is_terminal:
            self.console.width = WIDTH
        self._live = Live(console=self.console, auto_refresh=False)

    def show(self, model: Shown) -> None:
        """Show a model as it is now."""
        height = self.console.height if self.console.is_terminal else None
        self._live.update(page(model, height), refresh=True)

    def wait(self, text: str) -> None:
        """Show what is waited for."""
        self._live.update(Text(printable(text)), refresh=True)

    def __enter__(self) -> Page:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()
        if not self.console.is_terminal:
            self.console.line()  # what Live leaves out in a pipe


class Unheard:
    """A sink that nobody listens to: the page is read off the model."""

    def answer(self, record: Record, label: int, region: str, rule: str | None) -> None:
        """Drop an answer."""

    def change(self, number: int, change: object) -> None:
        """Drop a change event; the model's log has it."""

    def dead_letter(self, record: Record, reason: str) -> None:
        """Drop a dead letter; it is counted."""

    def flush(self) -> None:
        """Hand out nothing."""

    def sync(self) -> None:
        """Hand out nothing."""


def page(model: Shown, height: int | None) -> Group:
    """What is shown of a model.

    Parameters
    ----------
    model : StreamClusterer
    height : int or None
        Lines that there are; None where all clusters are to be shown.
    """
    figures, clusters = model.metrics(), model.clusters
    told = [f"{figures['events']:,} events", f"{len(clusters)} clusters"]
    if clusters:
        told += [f"noise {figures['noise_share']:.1%}", f"fidelity {figures['fidelity']:.1%}"]
    lasting = [one for one in model.events_since(0) if not isinstance(one, RuleChanged)]
    changes = lasting[: -CHANGES - 1 : -1]
    most = None if height is None else max(height - FRAME - len(changes), LEAST_ROWS)
    parts: list[Any] = [Text("   ".join(told), style="bold"), _clusters(clusters, most)]
    if most is not None and len(clusters) > most:
        parts.append(Text(f"... and {len(clusters) - most} lighter ones", style="dim"))
    return Group(*parts, Text("last changes", style="bold"), *_lines(changes))


def change_text(change: Change) -> str:
    """A change in one line: event, kind, and what it tells."""
    told = []
    for field in fields(change):
        value = getattr(change, field.name)
        if field.name in {"tick", "time", "number"} or value in ("", None):
            continue
        if isinstance(value, float):
            value = f"{value:.4g}"
        elif isinstance(value, tuple):
            value = ", ".join(f"{one:.2g}" if isinstance(one, float) else str(one) for one in value)
        elif isinstance(value, Mapping):
            value = ", ".join(f"{name} {number:.4g}" for name, number in value.items())
        text = printable(str(value))
        told.append(f"{field.name} {text[:LONGEST]}{'...' if len(text) > LONGEST else ''}")
    return f"{change.tick:>10,}  {type(change).__name__}: {'; '.join(told)}"


def _clusters(clusters: Mapping[int, Cluster], most: int | None) -> Table:
    table = Table(box=None, pad_edge=False, expand=True)
    for heading in ("cluster", "events", "share now"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("name", no_wrap=True, max_width=16)
    table.add_column("rule", no_wrap=True, ratio=1)
    total = sum(cluster.weight for cluster in clusters.values()) or 1.0
    by_weight = sorted(clusters.values(), key=lambda cluster: (-cluster.weight, cluster.id))
    for cluster in by_weight[:most]:
        rule, more = printable(cluster.rule.lines[0]), len(cluster.rule.lines) - 1
        table.add_row(
            str(cluster.id),
            f"{cluster.size:,}",
            f"{cluster.weight / total:.1%}",
            Text(printable(cluster.name or ""), overflow="ellipsis"),
            Text(rule + (f" (or {more} more)" if more else ""), overflow="ellipsis"),
        )
    return table


def _lines(changes: Sequence[Change]) -> list[Text]:
    if not changes:
        return [Text("none yet", style="dim")]
    return [Text(change_text(one), no_wrap=True, overflow="ellipsis") for one in changes]
