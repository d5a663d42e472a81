"""What a refit takes with it at once: the window and the centers as they are, copied and no more.

Everything that can be worked out from it later is: which points the present centers hold, and what
weights the window suggests. So it may be done in a thread, and taking a glance costs the stream no
more than the copies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from streamclust.nearness import owners
from streamclust.results import NOISE, FloatArray, IntArray
from streamclust.scaling import proposed
from streamclust.survey import Sample, Survey, make_survey


@dataclass(frozen=True, slots=True)
class Glance:
    """The window and the centers at a moment.

    Attributes
    ----------
    tick, reason, full
        As in `survey.Sample`.
    points : array of shape (n, n_features)
    times, masses : arrays of shape (n,)
    ids, clusters : int arrays of shape (k,)
        Of the centers.
    centers : array of shape (k, n_features)
    fences : array of shape (k,)
    weights : array of shape (n_features,)
        The scaling weights that hold.
    scale : str
        The kind of scaling.
    frozen : bool
        Whether the weights stay where they did not drift.
    """

    tick: int
    reason: str
    full: bool
    points: FloatArray
    times: FloatArray
    masses: FloatArray
    ids: IntArray
    clusters: IntArray
    centers: FloatArray
    fences: FloatArray
    weights: FloatArray
    scale: str
    frozen: bool

    def to_state(self) -> dict[str, Any]:
        """Return plain numbers, strings and arrays from which `glance_of` restores it."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def sample(self, p: float) -> Sample:
        """Return the window as a refit sees it."""
        ids = np.append(self.clusters, NOISE)  # row -1 is the last entry
        return Sample(
            tick=self.tick,
            reason=self.reason,
            points=self.points,
            times=self.times,
            masses=self.masses,
            weights=proposed(self.scale, self.points, self.weights if self.frozen else None),
            owners=ids[owners(self.points, self.centers, self.fences, self.weights, p)],
            centers=dict(zip(self.ids.tolist(), self.centers, strict=True)),
            full=self.full,
        )


def glance_of(state: Mapping[str, Any]) -> Glance:
    """Return the glance that `Glance.to_state` told; ValueError where its parts do not fit."""
    names = ("points", "times", "masses", "centers", "fences", "weights")
    arrays: dict[str, Any] = {name: np.array(state[name], dtype=np.float64) for name in names}
    ids: dict[str, Any] = {
        name: np.array(state[name], dtype=np.int64) for name in ("ids", "clusters")
    }
    n, d = arrays["points"].shape
    k = len(ids["ids"])
    shapes = {"times": (n,), "masses": (n,), "centers": (k, d), "fences": (k,), "weights": (d,)}
    if ids["clusters"].shape != (k,) or any(arrays[a].shape != s for a, s in shapes.items()):
        raise ValueError("the parts of a refit on its way do not fit each other")
    return Glance(
        tick=int(state["tick"]),
        reason=str(state["reason"]),
        full=bool(state["full"]),
        scale=str(state["scale"]),
        frozen=bool(state["frozen"]),
        **ids,
        **arrays,
    )


def surveyed(
    estimator: Any, glance: Glance, p: float, max_clusters: int, told: bool
) -> tuple[Sample, Survey]:
    """Let an estimator find clusters in what was seen; `told` is whether it knows how many."""
    sample = glance.sample(p)
    return sample, make_survey(estimator, sample, p, max_clusters, told)
