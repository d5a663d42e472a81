"""Online clustering whose every answer is a readable rule.

The face of the library. The model is imported when it is first asked for: the command's help and
whoever needs only a table or an error class do not wait for compilers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamclust.clusterer import StreamClusterer
    from streamclust.windows import Reservoir, SlidingWindow

__all__ = ["Reservoir", "SlidingWindow", "StreamClusterer"]

_HOMES = {
    "Reservoir": "streamclust.windows",
    "SlidingWindow": "streamclust.windows",
    "StreamClusterer": "streamclust.clusterer",
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
