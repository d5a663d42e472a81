"""Renewing the threshold tree: what is overdue is drawn anew, corrections are learned anew.

It depends on a tree and on a `Lesson` alone, a moment of the tracker and the recent points, so it
may be done to a copy of the tree in a thread while the stream goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from streamclust.kernels.copies import copy_residuals
from streamclust.nearness import nearest, owners
from streamclust.results import FloatArray, IntArray
from streamclust.tree import ThresholdTree

COPIES = 16
"""Residual copies of each recent point, beside it, that corrections are learned from."""
ROWS = 1 << 16
"""Points and copies at the most ..."""
ENTRIES = 1 << 22
"""... and their entries: with many features there are fewer copies."""
BORROW = 30.0
"""Recent points at which a cluster's copies use as many residuals of other clusters as its own."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a tree is renewed from.

    Attributes
    ----------
    tick : int
    reconsider : bool
        Whether new draws compete with every record of the tree; else only what is overdue is drawn.
    ids : int array of shape (k,)
        The centers.
    placed : array of shape (k, d)
        Where the tree is to know them.
    centers : array of shape (k, d)
        Where they are.
    scales, fences : arrays of shape (k,)
    weights : array of shape (d,)
        Scaling weights.
    points : array of shape (n, d)
        Recent points, measured from the origin; nan where a coordinate was never seen.
    p : float
    seed : int
    """

    tick: int
    reconsider: bool
    ids: IntArray
    placed: FloatArray
    centers: FloatArray
    scales: FloatArray
    fences: FloatArray
    weights: FloatArray
    points: FloatArray
    p: float
    seed: int

    def kept(self) -> Lesson:
        """Return the lesson with arrays of its own, which nobody writes."""
        own: dict[str, Any] = {}
        for name, value in self.to_state().items():
            if isinstance(value, np.ndarray):
                own[name] = value.copy()
        return replace(self, **own)

    def to_state(self) -> dict[str, Any]:
        """Return plain numbers and arrays from which `lesson_of` restores it."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def lesson_of(state: Mapping[str, Any]) -> Lesson:
    """Return the lesson that `Lesson.to_state` told; ValueError where its parts do not fit."""
    names = ("placed", "centers", "scales", "fences", "weights", "points")
    arrays = {name: np.array(state[name], dtype=np.float64) for name in names}
    ids = np.array(state["ids"], dtype=np.int64)
    k, d = len(ids), len(arrays["weights"])
    shapes: dict[str, tuple[int, ...]] = {"placed": (k, d), "centers": (k, d)}
    shapes |= {"scales": (k,), "fences": (k,), "weights": (d,)}
    shapes["points"] = (len(arrays["points"]), d)
    if any(arrays[name].shape != shape for name, shape in shapes.items()):
        raise ValueError("the parts of a tree's renewal do not fit each other")
    return Lesson(
        tick=int(state["tick"]),
        reconsider=bool(state["reconsider"]),
        ids=ids,
        p=float(state["p"]),
        seed=int(state["seed"]),
        **arrays,
    )


def renew(tree: ThresholdTree, lesson: Lesson) -> None:
    """Draw anew what is overdue, or let all be reconsidered, and learn corrections anew."""
    tree.follow(dict(zip(lesson.ids.tolist(), lesson.placed, strict=True)), rebuild=False)
    if lesson.reconsider:
        tree.reconsider()
    else:
        tree.rebuild()
    taught = rows_of(lesson)
    if taught is not None:
        tree.correct(*taught)


def renewed(tree: ThresholdTree, lesson: Lesson) -> ThresholdTree:
    """Return a copy of a tree, renewed; the tree itself stays as it is."""
    made = tree.copied()
    renew(made, lesson)
    made.ready()  # so that who takes it over need not
    return made


def rows_of(lesson: Lesson) -> tuple[FloatArray, IntArray] | None:
    """Return recent points and residual copies, and the id of the center nearest to each.

    Rows, not leaves, limit what corrections can learn, and labels are free: residuals of a
    cluster's points, mixed so that their covariance stays, make more points around its center. A
    cluster of few recent points borrows residuals of others, in units of its own scale: shapes of
    twenty points say too little about where its border runs. None where there is nothing to learn.
    """
    weights, centers = lesson.weights, lesson.centers
    # A coordinate that was never seen belongs to a feature that does not count yet.
    points = np.nan_to_num(lesson.points)
    slots = owners(points, centers, lesson.fences, weights, lesson.p)
    points, slots = points[slots >= 0], slots[slots >= 0]
    k = len(centers)
    if k < 2 or not len(points):
        return None
    n, d = points.shape
    n_rows = max(n, min((1 + COPIES) * n, ROWS, ENTRIES // d))
    sizes = np.bincount(slots, minlength=k)
    every = np.empty((n_rows, d))
    every[:n] = points
    copy_residuals(
        points,
        slots,
        centers,
        lesson.scales,
        np.asarray(BORROW / (sizes + BORROW), dtype=np.float64),
        lesson.seed,
        lesson.tick,
        every[n:],
    )
    hints = np.resize(slots, n_rows)
    return every, lesson.ids[nearest(every, hints, centers, weights, lesson.p)]
