"""Evidence that the world changed: a change detector on the clusters' cost and outlier rate.

Blocks of events are compared with those since the last refit. A block's mean, in units of its own
standard error, goes to Page's test (Page 1954; Hinkley 1971) of river.drift, once for the distance
of events to their center in units of the cluster's scale, once for the share of outliers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from math import sqrt
from typing import TYPE_CHECKING, Any

import river

if TYPE_CHECKING:
    from river.drift import PageHinkley

BLOCK = 256
"""Events between two looks."""
SLACK = 0.5
"""Standard errors of a block's mean that are no drift."""
ALARM = 15.0
"""Summed excess in standard errors at which there is one: by chance once in about exp(15) looks."""

Look = tuple[int, int, float, float]


class Evidence:
    """Looks at blocks of events since the last refit.

    Attributes
    ----------
    alarms : int
        How often drift was found.
    """

    def __init__(self) -> None:
        self.alarms = 0
        self._looks: list[Look] = []
        self._tests: tuple[PageHinkley, PageHinkley] | None = None
        self._totals = [0.0, 0.0, 0.0, 0.0]

    def look(self, insiders: int, outliers: int, cost: float, squares: float) -> bool:
        """Take in a block; tell whether cost or outlier rate rose since the last `reset`.

        Parameters
        ----------
        insiders, outliers : int
            Events inside and outside the fences.
        cost, squares : float
            Sum over the insiders of the relative distance, and of its square.
        """
        self._looks.append((insiders, outliers, cost, squares))
        if not self._take(self._looks[-1]):
            return False
        self.alarms += 1
        return True

    def reset(self) -> None:
        """Begin anew: what comes now is what later blocks are compared with."""
        self._looks, self._tests, self._totals = [], None, [0.0, 0.0, 0.0, 0.0]

    def _take(self, look: Look) -> bool:
        totals = self._totals = [a + b for a, b in zip(self._totals, look, strict=True)]
        insiders, outliers, cost, _ = look
        n_in, n_out, total, total_squares = totals
        cost_test, outlier_test = self._tests = self._tests or _tests()
        found = False
        if insiders > 1:
            variance = max(total_squares / n_in - (total / n_in) ** 2, 0.0)
            error = sqrt(variance / insiders)
            cost_test.update(cost / insiders / error if error > 0 else 0.0)  # type: ignore[no-untyped-call]
            found = cost_test.drift_detected
        n = insiders + outliers
        # Two outliers more than seen (Agresti and Coull): a share of none has an error, too.
        share = (n_out + 2.0) / (n_in + n_out + 4.0)
        outlier_test.update(  # type: ignore[no-untyped-call]
            outliers / n / sqrt(share * (1.0 - share) / n) if n else 0.0
        )
        return bool(found or outlier_test.drift_detected)

    def to_state(self) -> dict[str, Any]:
        """Return plain numbers from which `from_state` restores all."""
        return {"alarms": self.alarms, "looks": [list(look) for look in self._looks]}

    def from_state(self, state: dict[str, Any]) -> None:
        """Take over a state; raises ValueError where it is malformed."""
        looks: Sequence[Sequence[float]] = state["looks"]
        self.reset()
        for insiders, outliers, cost, squares in looks:
            self._looks.append((int(insiders), int(outliers), float(cost), float(squares)))
            self._take(self._looks[-1])
        self.alarms = int(state["alarms"])


def _tests() -> tuple[PageHinkley, PageHinkley]:
    one, two = (
        _page_hinkley()(min_instances=2, delta=SLACK, threshold=ALARM, alpha=1.0, mode="up")
        for _ in range(2)
    )
    return one, two


@cache
def _page_hinkley() -> type[PageHinkley]:
    """Return river's class from its own file.

    `river.drift` as a whole brings data sets and, where it is there, scikit-learn: one to three
    seconds (measured) in the middle of a stream. The file needs nothing of that.
    """
    (package,) = river.__path__
    spec = spec_from_file_location("river.drift.page_hinkley", f"{package}/drift/page_hinkley.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"river in {package} has no drift/page_hinkley.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found: type[PageHinkley] = module.PageHinkley
    return found
