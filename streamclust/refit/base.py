"""What every batch estimator of this folder shares: parameters, and the checks of a window.

The conventions are scikit-learn's: the constructor stores its keywords untouched, `fit` checks
them. An estimator clusters the distinct points of a window in lexicographic order, so that the
order of the rows carries nothing and a weight is a repetition.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from streamclust.errors import InvalidParameter, InvalidPoint
from streamclust.results import FloatArray, IntArray


class BatchEstimator:
    """A clusterer of a whole window; subclasses write `fit`, which sets `labels_`."""

    labels_: IntArray
    n_clusters_: int
    n_features_in_: int

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, as given."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters; an unknown name is an `InvalidParameter`."""
        for name, value in parameters.items():
            if name not in self._names():
                raise InvalidParameter(
                    f"{type(self).__name__} has no parameter {name!r}: {self._names()}"
                )
            setattr(self, name, value)
        return self

    def fit(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster a window.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Finite, n >= 1. The order of the rows does not matter.
        sample_weight : array-like of shape (n,), optional
            Not negative; a weight of 2 is a repeated row. A row of weight 0 has no influence and
            gets the label of the nearest row that has.

        Raises
        ------
        InvalidParameter, InvalidPoint
        """
        raise NotImplementedError

    def fit_predict(
        self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None
    ) -> IntArray:
        """`fit`, then `labels_`."""
        return self.fit(X, sample_weight).labels_

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({told})"

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]


def checked_window(X: ArrayLike, sample_weight: ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    """The window as float64 arrays, or an `InvalidPoint`.

    Returns
    -------
    points : float array of shape (n, d)
    weights : float array of shape (n,)
        Not negative, one of them positive.
    """
    if hasattr(X, "toarray"):
        raise InvalidPoint("X is sparse; accepted: a dense table, for example X.toarray()")
    given = np.asarray(X)
    if given.dtype.kind == "c":
        raise InvalidPoint("Complex data not supported: X has complex entries; accepted: reals")
    points = np.ascontiguousarray(given, dtype=np.float64)
    if points.ndim != 2:
        raise InvalidPoint(
            f"X has shape {points.shape}; accepted: (n, d). Reshape your data: X.reshape(-1, 1) "
            "has one feature"
        )
    for axis, what in enumerate(("sample", "feature")):
        if points.shape[axis] == 0:
            raise InvalidPoint(
                f"X has 0 {what}(s) (shape={points.shape}) while a minimum of 1 is required."
            )
    if not np.isfinite(points).all():
        raise InvalidPoint("X has NaN or infinity in it; accepted: finite numbers")
    if sample_weight is None:
        return points, np.ones(len(points))
    weights = np.ascontiguousarray(sample_weight, dtype=np.float64)
    if weights.shape != (len(points),) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise InvalidPoint(
            f"sample_weight of shape {weights.shape}; accepted: {len(points)} finite numbers >= 0"
        )
    if not weights.any():
        raise InvalidPoint("sample_weight is zero everywhere; one point must have weight")
    return points, weights


def members(points: FloatArray, heavy: IntArray, kept: FloatArray, member: IntArray) -> IntArray:
    """For every row of a window the distinct point whose answer it shares.

    Parameters
    ----------
    points : float array of shape (n, d)
        The rows.
    heavy : int array of shape (h,)
        The rows that have weight.
    kept : float array of shape (m, d)
        Distinct points.
    member : int array of shape (h,)
        Which distinct point each heavy row is.
    """
    found = np.empty(len(points), dtype=np.int64)
    found[heavy] = member
    is_light = np.ones(len(points), np.bool_)
    is_light[heavy] = False
    for i in np.flatnonzero(is_light):
        found[i] = np.argmin(((kept - points[i]) ** 2).sum(axis=1))
    return found


def require(told: str, value: object, holds: bool, accepted: str) -> None:
    """Refuse a parameter that does not hold."""
    if not holds:
        raise InvalidParameter(f"{told} is {value!r}; accepted: {accepted}")


def whole(value: object, least: int) -> bool:
    """Whether `value` is a whole number of at least `least`, and no bool."""
    return (
        isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= least
    )


def real(value: object) -> bool:
    """Whether `value` is a positive finite number, and no bool."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return 0.0 < float(value) < np.inf
