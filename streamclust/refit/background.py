"""Which points of a wide window are background: no denser than uniform noise would be.

With many features the clusters are measured in few coordinates, where uniform noise is no longer
uniform: it gathers in the middle and is taken for a cluster. So it is told apart before, in all
features: uniform points are drawn into the window's box, and the distance of each to its few
nearest window points shows what background looks like. A point of the window is background where
that law tells its own distance better than the law of the other points does. Since a class may be
as thin, such points must lie evenly in the box; otherwise only what is lonelier than nearly all
background counts.
"""

from __future__ import annotations

import numpy as np

from streamclust.kernels.background import kth_least, weigh_background
from streamclust.refit.code import LEAST
from streamclust.refit.graph import Nearest, nearest_points
from streamclust.results import BoolArray, FloatArray

NEAREST = 5
"""To which neighbour the distance is taken."""
DRAWN = 200
"""Uniform points drawn."""
FIRST_SHARE = 0.05
"""Share of background before any is known."""
MOST = 0.25
"""A larger share is no background: the window itself is about uniform."""
UNEVEN = 2.0
"""A mean farther from the middle, in units of its expected squared distance, is that of a class."""
STEPS = 30
"""Rounds of expectation and maximisation."""
BLOCK = 1 << 22
"""Entries of a block of distances (32 MB)."""


def background(
    points: FloatArray, weights: FloatArray, seed: int = 0, known: Nearest | None = None
) -> BoolArray:
    """Tell which points are background.

    Parameters
    ----------
    points : float array of shape (n, d)
        Pairwise distinct.
    weights : float array of shape (n,)
        A point of the weight of a cluster is none.
    seed : int
        Draws the uniform points.
    known : Nearest, optional
        The nearest other points of each point, where they are known already.

    Returns
    -------
    bool array of shape (n,)
        All false where background cannot be told apart.
    """
    n, d = points.shape
    none = np.zeros(n, np.bool_)
    if n <= 4 * NEAREST:
        return none
    low, high = points.min(axis=0), points.max(axis=0)
    drawn = low + (high - low) * np.random.default_rng(abs(seed)).random((DRAWN, d))
    near = known or nearest_points(points, NEAREST)
    center = points.mean(axis=0)
    around = points - center
    lengths = np.einsum("ij,ij->i", around, around)
    least = 1e-12 * float(lengths.max())
    own = 0.5 * np.log(np.maximum(near.squares[:, NEAREST - 1], least))
    uniform = 0.5 * np.log(np.maximum(_squares(drawn - center, around, lengths), least))
    far, spread = float(uniform.mean()), float(uniform.std())
    middle = float(np.median(own))
    width = 1.4826 * float(np.median(np.abs(own - middle)))
    like = np.empty(n)
    if not weigh_background(own, middle, width, far, spread, FIRST_SHARE, STEPS, like):
        return none
    found: BoolArray = (like > 0.5) & (weights < LEAST)
    if found.mean() > MOST:
        return none
    if found.any() and not _even(points[found], low, high):
        found &= own > far + 2.0 * spread
    return found


def _even(points: FloatArray, low: FloatArray, high: FloatArray) -> bool:
    """Whether the mean of some points is about where that of as many uniform points would be."""
    span = np.where(high > low, high - low, 1.0)
    off = (points.mean(axis=0) - 0.5 * (low + high)) / span
    return 12.0 * len(points) * float((off[high > low] ** 2).mean()) <= UNEVEN


def _squares(drawn: FloatArray, around: FloatArray, lengths: FloatArray) -> FloatArray:
    """Squared distance of every drawn point to its k-th nearest one of the window."""
    found = np.empty(len(drawn))
    size = max(1, BLOCK // len(around))
    for begin in range(0, len(drawn), size):
        part = drawn[begin : begin + size]
        gaps = lengths - 2.0 * (part @ around.T) + np.einsum("ij,ij->i", part, part)[:, None]
        kth_least(gaps, NEAREST, found[begin : begin + size])
    return found
