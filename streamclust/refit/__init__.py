"""Batch estimators over a window, usable alone: `fit`, `labels_`, `n_clusters_`.

Each is imported when it is first asked for, since importing them brings the compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamclust.refit.comet import COMET
    from streamclust.refit.mean_shift import MeanShift
    from streamclust.refit.rcc import RCC, RCCDR
    from streamclust.refit.three_way import ThreeWayMeanShift

__all__ = ["COMET", "RCC", "RCCDR", "MeanShift", "ThreeWayMeanShift"]

_HOMES = {
    "COMET": "comet",
    "RCC": "rcc",
    "RCCDR": "rcc",
    "MeanShift": "mean_shift",
    "ThreeWayMeanShift": "three_way",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
