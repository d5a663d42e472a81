"""The cut measure of a node: how likely a cut is where, before any clock is read.

The paper's measure grows outward from an anchor as the distance to the power p. The gap measure
re-weights it by the mistakes that the window's points would make at the best threshold of each
cell between neighbouring centers. Source: tree.md of the design (arXiv 2512.01150).
"""

from __future__ import annotations

import math

import numpy as np

from streamclust.kernels.mistakes import calmest_cells, cell_knots
from streamclust.nodes import Measure
from streamclust.results import FloatArray, KeyArray

SHARPNESS = 15.0
"""A cell's mass shrinks by ``exp(-SHARPNESS * excess mistakes / points per center)`` ..."""
LEAST_FACTOR = 1e-4
"""... but never below this share: the price bound of the paper survives up to its inverse."""
MOST_CELLS = 256
MOST_TABLES = 64
FEWEST_POINTS = 32
"""Window points that a node needs to have a measure of its own."""
BITS = 8
"""Masses may be out by a factor of ``2 ** BITS`` either way before a standing scale is renewed."""
SHARE_OF_CELLS = 512
"""Cells of a node that sees the whole window; one that sees less has its share (at least 8)."""


def plain_measure(
    centers: FloatArray, weights: FloatArray, p: float, standing: Measure | None = None
) -> Measure:
    """The paper's measure over `centers` (n, d) under `weights` (d,).

    The anchor is the lower median of the centers, feature by feature, or stays that of the
    `standing` measure where it lies between the quartiles; a scale that serves stays, too.
    Neither looks at the clocks, so the law of the cuts is that of an anchor that leaves at most
    three quarters of the centers on either side.
    """
    last = centers.shape[0] - 1
    places = np.sort(centers, axis=0)
    anchor = places[last // 2].copy()
    if standing is not None:
        known = standing.anchor.size  # features may have joined since
        low, high = places[last // 4, :known], places[last - last // 4, :known]
        near = (low <= standing.anchor) & (standing.anchor <= high)
        anchor[:known][near] = standing.anchor[near]
    spread = np.abs(centers - anchor)
    if not (spread[:, weights > 0] > 0).any():
        # The weights changed since these centers were told apart: any difference must do.
        reach = spread.max(axis=0)
        weights = np.divide(1.0, reach, out=np.zeros_like(reach), where=reach > 0)
    scale = math.ldexp(1.0, math.frexp(float((spread * weights).max()))[1])
    if standing is not None and p * abs(math.log2(standing.scale / scale)) <= BITS:
        scale = standing.scale
    none = np.full(anchor.size, -1, dtype=np.int64)
    start = np.zeros(1, dtype=np.int64)
    return Measure(anchor, weights, scale, none, start, np.empty(0), np.empty(0))


def cells_for(n_points: int, window_size: int) -> int:
    """Cells per feature of a node that sees `n_points` of the window."""
    share = max(8, SHARE_OF_CELLS * n_points // max(window_size, 1))
    return min(MOST_CELLS, n_points // 4, share)


def tabulated(
    plain: Measure,
    p: float,
    feature_keys: KeyArray,
    centers: FloatArray,
    points: FloatArray,
    own: FloatArray,
    n_cells: int,
) -> Measure:
    """Give the heaviest features tables of the gap measure.

    Parameters
    ----------
    plain : Measure
        The paper's, over the same centers.
    p : float
    feature_keys : uint64 array of shape (>= d,)
    centers : float array of shape (k, d)
    points, own : float arrays of shape (n, d)
        Points of the window, and the center of each.
    n_cells : int
        For each feature at the most.
    """
    heft = ((np.abs(centers - plain.anchor) * plain.weights / plain.scale) ** p).sum(axis=0)
    order = np.lexsort((feature_keys[: heft.size], -heft))[:MOST_TABLES]
    features = order[heft[order] > 0]
    shape = (features.size, 2, n_cells + 2)
    counts = np.empty((features.size, 2), dtype=np.int64)
    edges = np.empty((features.size, 2, n_cells + 3))
    cuts, mistakes = np.empty(shape), np.zeros(shape, dtype=np.int64)
    x, home = points[:, features].T, own[:, features].T
    calmest_cells(
        np.sort(np.minimum(x, home), axis=1),
        np.sort(np.maximum(x, home), axis=1),
        centers,
        plain.anchor,
        features,
        n_cells,
        counts,
        edges,
        cuts,
        mistakes,
    )
    used = np.arange(shape[2]) < counts[:, :, None]
    excess = (mistakes - mistakes[used].min()) / (len(points) / len(centers))
    factors = np.maximum(LEAST_FACTOR, np.exp(-SHARPNESS * np.maximum(excess, 0.0)))
    starts = np.empty(2 * features.size + 1, dtype=np.int64)
    n_knots = int((1 + 3 * counts).sum())
    knots, masses = np.empty(n_knots), np.empty(n_knots)
    cell_knots(
        plain.anchor,
        plain.weights,
        plain.scale,
        p,
        features,
        counts,
        edges,
        cuts,
        factors,
        starts,
        knots,
        masses,
    )
    table_of = plain.table_of.copy()
    table_of[features] = np.arange(features.size)
    return plain._replace(table_of=table_of, starts=starts, knots=knots, masses=masses)
