"""A live table on a terminal: the clusters with rules and sizes, noise, and what changed last."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from streamclust_adapters.live import change_text, is_routine
from streamclust_adapters.report import WIDTH, printable

if TYPE_CHECKING:
    from streamclust.events import Change
    from streamclust_adapters.live import View

CHANGES = 6
"""Changes that are shown, the newest first; those of routine are not."""

FRAME = 7
"""Lines of the page beside clusters and changes."""

LEAST_ROWS = 3
"""Clusters that are shown however low the terminal is."""


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

    def show(self, view: View) -> None:
        """Show a view."""
        height = self.console.height if self.console.is_terminal else None
        self._live.update(page(view, height), refresh=True)

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


def page(view: View, height: int | None) -> Group:
    """What is shown of a view.

    Parameters
    ----------
    view : View
    height : int or None
        Lines that there are; None where all clusters are to be shown.
    """
    told = [f"{view.events:,} events", f"{len(view.groups)} clusters"]
    if view.noise is not None:
        told.append(f"noise {view.noise:.1%}")
    if view.fidelity is not None:
        told.append(f"fidelity {view.fidelity:.1%}")
    if view.alarms:
        told.append(f"drift alarms {len(view.alarms)}")
    changes = [one for one in view.changes if not is_routine(one)][:CHANGES]
    most = None if height is None else max(height - FRAME - len(changes), LEAST_ROWS)
    parts: list[Any] = [Text("   ".join(told), style="bold"), _clusters(view, most)]
    if most is not None and len(view.groups) > most:
        parts.append(Text(f"... and {len(view.groups) - most} lighter ones", style="dim"))
    return Group(*parts, Text("last changes", style="bold"), *_lines(changes))


def change_line(change: Change) -> str:
    """A change in one line: event, kind, and what it tells."""
    return printable(f"{change.tick:>10,}  {type(change).__name__}: {change_text(change)}")


def _clusters(view: View, most: int | None) -> Table:
    table = Table(box=None, pad_edge=False, expand=True)
    for heading in ("cluster", "events", "share now"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("name", no_wrap=True, max_width=16)
    table.add_column("rule", no_wrap=True, ratio=1)
    for one in view.groups[:most]:
        rule, more = printable(one.rule[0]) if one.rule else "", len(one.rule) - 1
        table.add_row(
            str(one.id),
            "" if one.size is None else f"{one.size:,}",
            "" if one.share is None else f"{one.share:.1%}",
            Text(printable(one.name or ""), overflow="ellipsis"),
            Text(rule + (f" (or {more} more)" if more > 0 else ""), overflow="ellipsis"),
        )
    return table


def _lines(changes: Sequence[Change]) -> list[Text]:
    if not changes:
        return [Text("none yet", style="dim")]
    return [Text(change_line(one), no_wrap=True, overflow="ellipsis") for one in changes]
