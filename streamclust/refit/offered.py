"""What the parameter `refit` offers: the one table from a word to an estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from streamclust.errors import InvalidParameter
from streamclust.refit.comet import COMET
from streamclust.refit.mean_shift import MeanShift
from streamclust.refit.rcc import RCC, RCCDR
from streamclust.refit.three_way import ThreeWayMeanShift

OFFERED: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "comet": COMET,
        "rcc": RCC,
        "rcc_dr": RCCDR,
        "mean_shift": MeanShift,
        "three_way": ThreeWayMeanShift,
    }
)
"""Estimators by word. Those whose constructor names `n_clusters` or `seed` are told them."""


def build(refit: Any, n_clusters: int | None, seed: int) -> Any:
    """The estimator that a value of `refit` means: a word's, the object itself, or None.

    Raises
    ------
    InvalidParameter
        If `n_clusters` is given and the word's estimator finds the number itself.
    """
    if not isinstance(refit, str):
        return refit
    kind = OFFERED[refit]
    told = {"n_clusters": n_clusters, "seed": seed}
    known = kind().get_params()
    if n_clusters is not None and "n_clusters" not in known:
        raise InvalidParameter(
            f"n_clusters={n_clusters!r}: refit={refit!r} finds the number itself; accepted is None"
        )
    return kind(**{name: value for name, value in told.items() if name in known})
