"""The engine inside Spark Structured Streaming: `StreamClusterQuery` learns, `label` answers.

What runs on the executors lies in this package, too, and needs neither: they are imported when they
are asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamclust_adapters.spark.labelling import label
    from streamclust_adapters.spark.query import StreamClusterQuery

__all__ = ["StreamClusterQuery", "label"]

_HOMES = {
    "StreamClusterQuery": "streamclust_adapters.spark.query",
    "label": "streamclust_adapters.spark.labelling",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
