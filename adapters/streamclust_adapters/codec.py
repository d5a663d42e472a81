"""The layouts of lines by name."""

from __future__ import annotations

from collections.abc import Sequence

from streamclust_adapters.csv_lines import CsvLines
from streamclust_adapters.decoding import Fields, LineDecoder
from streamclust_adapters.json_lines import JsonLines


def decoder(form: str, fields: Fields, columns: Sequence[str] | None = None) -> LineDecoder:
    """The decoder of a format: ``"jsonl"`` or ``"csv"``.

    `columns` are those that an earlier part of the same table had named.
    """
    return CsvLines(fields, columns) if form == "csv" else JsonLines(fields)
