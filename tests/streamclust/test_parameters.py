"""The table of parameters: every default fits, every refusal says what is accepted."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from streamclust import Reservoir
from streamclust.errors import InvalidParameter
from streamclust.parameters import PARAMETERS, check_parameters


class Estimator:
    def fit(self, points):
        """Fit nothing."""


class NoWindow:
    def points(self):
        """Hold nothing."""


def test_every_default_is_accepted_and_every_row_tells_a_user_something():
    check_parameters({name: row.default for name, row in PARAMETERS.items()})
    assert all(row.help and row.accepted and name == row.name for name, row in PARAMETERS.items())


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("n_clusters", [None, 1, 10**9, np.int64(3)]),
        ("p", [1, 1.0, 7, np.float64(2.5), Fraction(3, 2)]),
        ("half_life", [None, 1e-300, 1, 1e300]),
        ("window", [50, 100_000]),
        ("refit", ["comet", "rcc", "rcc_dr", "mean_shift", "three_way", None, Estimator()]),
        ("boundary_ratio", [None, 1e-9, 0.999]),
        ("noise", [True, False, np.bool_(True)]),
        ("event_log", [0]),
        ("max_lateness", [0, 0.5]),
        ("seed", [-1, 2**70]),
        ("leaves_per_center", [1, 64]),
    ],
)
def test_values_inside_the_range_are_accepted(name, values):
    for value in values:
        check_parameters({name: value})


@pytest.mark.parametrize(
    ("name", "values", "accepted"),
    [
        ("n_clusters", [0, -1, 2.0, True, "2", math.nan], "a whole number >= 1, or None"),
        ("p", [0.999, math.inf, math.nan, "2", None, True, 10**400, Decimal(2)], "number >= 1"),
        ("half_life", [0, -1, math.inf], "a finite number > 0, or None"),
        (
            "window",
            [49, 100_001, 1000.0, None, NoWindow(), Reservoir],
            "a Reservoir or SlidingWindow",
        ),
        ("refit", ["kmeans", 1, Estimator], "'three_way', or an object with a fit method, or None"),
        ("boundary_ratio", [0, 1, 1.5], "between 0 and 1, or None"),
        ("scale", [None, "Robust", 1], "'robust', 'standard', 'none'"),
        ("noise", [0, 1, None, "true"], "True or False"),
        ("draws", [0, 257], "from 1 to 256"),
        ("event_log", [-1], ">= 0"),
    ],
)
def test_values_outside_are_refused_with_name_value_and_range(name, values, accepted):
    for value in values:
        with pytest.raises(InvalidParameter) as caught:
            check_parameters({name: value})
        assert str(caught.value).startswith(f"{name}={value!r}: ")
        assert accepted in str(caught.value)


def test_an_unknown_name_is_refused():
    with pytest.raises(InvalidParameter, match="k_clusters: no such parameter"):
        check_parameters({"k_clusters": 3})
