"""How simulations show their figures: rows as a table, as a CSV file, and as means over seeds."""

from __future__ import annotations

import csv
import math
from statistics import fmean

from rich import box
from rich.console import Console
from rich.table import Table

NO_PICTURE = "no picture: matplotlib is not installed (pip install 'streamclust[plot]')"


def means(rows, keys, over="seed"):
    """Rows that agree in `keys` become one; its other numbers are means, without the nans."""
    found = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return [
        dict(zip(keys, key, strict=True))
        | {
            name: _mean([row[name] for row in same])
            for name in same[0]
            if name not in (*keys, over)
        }
        for key, same in found.items()
    ]


def show(title, rows):
    """Print rows as a table."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in rows[0]:
        table.add_column(name, justify="left" if isinstance(rows[0][name], str) else "right")
    for row in rows:
        table.add_row(*map(_text, row.values()))
    Console(width=140).print(table)


def write(path, rows):
    """Write rows as CSV, in full precision."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    print(f"written to {path}")


def pyplot():
    """Return matplotlib's pyplot without a display, or None where it is not installed."""
    try:
        import matplotlib  # noqa: PLC0415  (only drawing needs it)
    except ImportError:
        print(NO_PICTURE)
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    return pyplot


def _mean(values):
    known = [v for v in values if not isinstance(v, str) and not math.isnan(v)]
    return fmean(known) if known else math.nan


def _text(value):
    if isinstance(value, str):
        return value
    if math.isnan(value):
        return "-"
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
