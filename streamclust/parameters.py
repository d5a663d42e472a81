"""The one table of what a user may set: name, default, accepted range, what a user sees.

Everything that speaks of parameters reads this table: the constructor's check, the options of the
``streamclust`` command and the table in the README.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from streamclust.errors import InvalidParameter

Kind = Literal["int", "float", "bool", "choice"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One row of the table.

    Attributes
    ----------
    name : str
        The keyword of the constructor.
    kind : {"int", "float", "bool", "choice"}
        What a value is. Whole numbers are accepted where floats are; a bool is never a number.
    default : object
        The value when none is given.
    help : str
        What a user sees of it, in one sentence.
    low, high : float or None
        The ends of the accepted interval; None for no bound.
    low_open, high_open : bool
        Whether an end itself is outside.
    options : tuple of str
        The accepted words of a choice.
    optional : bool
        Whether None is accepted.
    method : str or None
        An object with this method is accepted too.
    noun : str
        What such an object is called.
    """

    name: str
    kind: Kind
    default: object
    help: str
    low: float | None = None
    high: float | None = None
    low_open: bool = False
    high_open: bool = False
    options: tuple[str, ...] = ()
    optional: bool = False
    method: str | None = None
    noun: str = ""

    @property
    def accepted(self) -> str:
        """The accepted values as a reader writes them, for example ``from 50 to 100000``."""
        parts = [self._range()]
        if self.method is not None:
            parts.append(self.noun)
        if self.optional:
            parts.append("None")
        return ", or ".join(parts)

    def check(self, value: object) -> None:
        """Refuse `value` if it lies outside the accepted range.

        Raises
        ------
        InvalidParameter
            Naming the parameter, the value and the accepted range.
        """
        if value is None and self.optional:
            return
        if not self._is_object(value) and not self._fits(value):
            raise InvalidParameter(f"{self.name}={value!r}: accepted is {self.accepted}")

    def _fits(self, value: object) -> bool:
        if self.kind == "choice":
            return isinstance(value, str) and value in self.options
        if self.kind == "bool":
            return isinstance(value, bool) or type(value).__name__ == "bool"  # numpy's own bool
        if isinstance(value, bool) or type(value).__name__ == "bool":
            return False
        if self.kind == "int":
            return isinstance(value, numbers.Integral) and self._inside(int(value))
        try:
            return isinstance(value, numbers.Real) and self._inside(float(value))
        except OverflowError:  # a whole number beyond every float
            return False

    def _is_object(self, value: object) -> bool:
        if self.method is None or isinstance(value, type):
            return False
        return callable(getattr(value, self.method, None))

    def _inside(self, value: float) -> bool:
        if isinstance(value, float) and not math.isfinite(value):
            return False
        if self.low is not None and (value <= self.low if self.low_open else value < self.low):
            return False
        return self.high is None or (value < self.high if self.high_open else value <= self.high)

    def _range(self) -> str:
        if self.kind == "choice":
            return ", ".join(repr(word) for word in self.options)
        if self.kind == "bool":
            return "True or False"
        noun = "a whole number" if self.kind == "int" else "a finite number"
        if self.low is not None and self.high is not None:
            if self.low_open and self.high_open:
                return f"{noun} between {self.low:g} and {self.high:g}"
            return f"{noun} from {self.low:,g} to {self.high:,.0f}"
        if self.low is not None:
            return f"{noun} {'>' if self.low_open else '>='} {self.low:g}"
        return noun


_ROWS = (
    Parameter(
        "n_clusters",
        "int",
        None,
        "None: found from the data; k: a refit answers with the best of several clusterings into k "
        "(not mean shift)",
        low=1,
        optional=True,
    ),
    Parameter("p", "float", 2.0, "the distance: 1 is city block, 2 is Euclid", low=1),
    Parameter(
        "scale",
        "choice",
        "robust",
        "robust, standard: units do not matter; none: you scale yourself",
        options=("robust", "standard", "none"),
    ),
    Parameter(
        "half_life",
        "float",
        2000,
        "how fast the past fades, in time units; None: it does not fade",
        low=0,
        low_open=True,
        optional=True,
    ),
    Parameter(
        "time_unit",
        "choice",
        "events",
        "what half_life and max_lateness count; seconds need a time with every event",
        options=("events", "seconds"),
    ),
    Parameter(
        "window",
        "int",
        1000,
        "points kept for refits, an exponentially biased reservoir; or a Reservoir, SlidingWindow",
        low=50,
        high=100_000,
        method="described",
        noun="a Reservoir or SlidingWindow",
    ),
    Parameter(
        "refit",
        "choice",
        "comet",
        "what finds the clusters; None: only the online centers",
        options=("comet", "rcc", "rcc_dr", "mean_shift", "three_way"),
        optional=True,
        method="fit",
        noun="an object with a fit method",
    ),
    Parameter(
        "refit_mode",
        "choice",
        "inline",
        "inline: at once; background: beside the stream, applied exactly refit_lag events later",
        options=("inline", "background"),
    ),
    Parameter(
        "refit_lag",
        "int",
        1000,
        "events between a background refit and its use; fixed, so results never depend on a clock",
        low=1,
    ),
    Parameter(
        "assign",
        "choice",
        "tree",
        "tree: the rule decides; nearest: the nearest center decides and the rule explains",
        options=("tree", "nearest"),
    ),
    Parameter(
        "leaves_per_center",
        "int",
        8,
        "more: finer rules, closer to the nearest center",
        low=1,
        high=64,
    ),
    Parameter("draws", "int", 16, "how many random trees compete at a rebuild", low=1, high=256),
    Parameter(
        "measure",
        "choice",
        "gap",
        "gap: cuts prefer gaps in the data; paper: the paper's law",
        options=("gap", "paper"),
    ),
    Parameter("noise", "bool", True, "False: never answer -1 once warm"),
    Parameter(
        "boundary_ratio",
        "float",
        None,
        "how close a runner-up makes an event boundary; None: chosen from the data",
        low=0,
        high=1,
        low_open=True,
        high_open=True,
        optional=True,
    ),
    Parameter(
        "missing",
        "choice",
        "median",
        "what stands in for an absent known feature, or refuse the event",
        options=("median", "zero", "refuse"),
    ),
    Parameter("max_clusters", "int", 1000, "hard cap on living clusters", low=1),
    Parameter("max_features", "int", 10_000, "hard cap on features", low=1),
    Parameter(
        "max_lateness", "float", 0, "how far back the time of an event may go, in time units", low=0
    ),
    Parameter("event_log", "int", 10_000, "change events kept", low=0),
    Parameter("seed", "int", 0, "everything random"),
)

PARAMETERS: Mapping[str, Parameter] = MappingProxyType({row.name: row for row in _ROWS})
"""The table, in the order in which readers meet it."""


def check_parameters(values: Mapping[str, object]) -> None:
    """Check every value against the table.

    Parameters
    ----------
    values : mapping of str to object
        Parameter values by name; absent ones keep their defaults and need no check.

    Raises
    ------
    InvalidParameter
        At the first name that is not in the table or value that is not accepted.
    """
    for name, value in values.items():
        parameter = PARAMETERS.get(name)
        if parameter is None:
            raise InvalidParameter(f"{name}: no such parameter; known are {', '.join(PARAMETERS)}")
        parameter.check(value)
