"""What all pictures have in common: figure, colours, text that is never markup, and file.

Clusters are told apart by a label always, by colour and marker where there is room for more. The
colours are those of Okabe and Ito (2008), "Color universal design", without yellow and black.
"""

from __future__ import annotations

import html
import io
import math
import warnings
from typing import TYPE_CHECKING

from streamclust.errors import MissingExtra
from streamclust.results import Cluster

try:
    from matplotlib import rc_context
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtra("plot") from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#7F3C8D")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GREY = "#8C8C8C"
INK = "#222222"

SUFFIXES = (".png", ".svg", ".html")
"""What a picture may be written as."""

SMALL, TEXT, TITLE = 7.0, 8.0, 10.0
"""Sizes of letters, in points."""

DPI = 120
"""Pixels per inch of a PNG ..."""

MOST_PIXELS = 60_000_000
"""... which are fewer where it would have more pixels than these."""

LONGEST = 30
"""Letters of a name that are shown."""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ margin: 1em; font-family: sans-serif }}
svg {{ max-width: 100%; height: auto }}
</style>
</head>
<body>
{picture}
</body>
</html>
"""


def empty(width: float, height: float, title: str) -> Figure:
    """An empty figure of a size in inches, with a title at its upper left."""
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=TITLE, color=INK)
    return figure


def bare(axes: Axes) -> Axes:
    """Axes without the lines that hold no data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=SMALL, colors=INK)
    return axes


def colour_of(cluster: int) -> str:
    """The colour of a cluster, the same in every picture."""
    return COLOURS[cluster % len(COLOURS)]


def marker_of(cluster: int) -> str:
    """The marker of a cluster; with the colour it tells as many apart as both have pairs."""
    return MARKERS[cluster % len(MARKERS)]


def plain(text: object, longest: int = LONGEST) -> str:
    """Text from a stream as it can be drawn: no markup, no control characters, not too long.

    What is too long loses its middle: names that begin alike differ at their end.
    """
    told = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))
    if len(told) > longest:
        tail = longest // 2
        told = f"{told[: longest - tail - 1]}\N{HORIZONTAL ELLIPSIS}{told[-tail:]}"
    return told.replace("$", r"\$")


def named(cluster: Cluster) -> str:
    """A cluster as it is labelled: its id, and its name where it has one."""
    return str(cluster.id) if cluster.name is None else f"{cluster.id} {plain(cluster.name, 20)}"


def plural(count: int, word: str) -> str:
    """A count and what it counts."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def render(figure: Figure, suffix: str) -> bytes:
    """The bytes of a figure as a file of this suffix; the same figure gives the same bytes.

    Parameters
    ----------
    figure : Figure
    suffix : str
        One of `SUFFIXES`. HTML is a page of its own around the SVG, that runs and loads nothing.
    """
    form = "png" if suffix == ".png" else "svg"
    out = io.BytesIO()
    width, height = figure.get_size_inches().tolist()
    dpi = min(DPI, math.sqrt(MOST_PIXELS / (width * height)))
    own = rc_context({"svg.fonttype": "none", "svg.hashsalt": "streamclust"})
    with own, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(
            out, format=form, dpi=dpi, metadata=None if form == "png" else {"Date": None}
        )
    if suffix != ".html":
        return out.getvalue()
    svg = out.getvalue().decode()
    title = html.escape(figure.get_suptitle().replace(r"\$", "$"))
    return PAGE.format(title=title, picture=svg[svg.index("<svg") :]).encode()
