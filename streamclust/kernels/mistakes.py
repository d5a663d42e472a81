"""What a cut costs on the window: counted mistakes, the gap measure made of them, landings.

A window point is *mistaken* at a cut that parts it from its own center. The gap measure
re-weights the paper's mass by how few mistakes the best threshold between two neighbouring center
coordinates makes, and lets all arrivals in between take that threshold.
"""

from __future__ import annotations

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.results import FloatArray, IntArray, KeyArray

LOOSE = 5e-7  # share of a cell's mass on each side of its threshold that stays continuous


@kernel
def calmest_cut(lows: FloatArray, highs: FloatArray, begin: float, end: float) -> tuple[float, int]:
    """The threshold of ``[begin, end)`` with the fewest mistakes, and their number.

    A point is mistaken at t iff ``low <= t < high``, where low and high are the lesser and the
    greater of the point's and its own center's coordinates. Among equals the widest gap wins, and
    its middle is the threshold.

    Parameters
    ----------
    lows, highs : sorted float arrays of equal length
    begin, end : float
        Neighbouring center coordinates, ``begin < end``.
    """
    opened = int(np.searchsorted(lows, begin, side="right"))
    closed = int(np.searchsorted(highs, begin, side="right"))
    n = lows.size
    place, fewest, widest, best = begin, -1, 0.0, begin
    while place < end:
        following = end
        if opened < n and lows[opened] < following:
            following = lows[opened]
        if closed < n and highs[closed] < following:
            following = highs[closed]
        mistakes = opened - closed
        width = following - place
        if fewest < 0 or mistakes < fewest or (mistakes == fewest and width > widest):
            fewest, widest = mistakes, width
            best = place + 0.5 * width
            if best >= following:
                best = place
        place = following
        while opened < n and lows[opened] <= place:
            opened += 1
        while closed < n and highs[closed] <= place:
            closed += 1
    return best, fewest


@kernel
def side_cells(n_gaps: int, n_all: int, n_cells: int) -> int:
    """How many of `n_cells` go to a side of the anchor that has `n_gaps` of `n_all` gaps."""
    if n_gaps == 0:
        return 0
    return min(n_gaps, max(1, (n_gaps * n_cells + n_all - 1) // n_all))


@kernel
def calmest_cells(
    lows: FloatArray,
    highs: FloatArray,
    centers: FloatArray,
    anchor: FloatArray,
    features: IntArray,
    n_cells: int,
    counts: IntArray,
    edges: FloatArray,
    cuts: FloatArray,
    mistakes: IntArray,
) -> None:
    """The cells of every tabulated feature and side, outward from the anchor.

    Parameters
    ----------
    lows, highs : float arrays of shape (m, n)
        For each tabulated feature the lesser and the greater of every point's and its own center's
        coordinates, each sorted.
    centers : float array of shape (k, >= d)
    anchor : float array of shape (d,)
        Coordinate-wise lower median of the centers.
    features : int array of shape (m,)
    n_cells : int
    counts : int array of shape (m, 2), written
        Cells of each side.
    edges : float array of shape (m, 2, n_cells + 3), written
    cuts, mistakes : arrays of shape (m, 2, n_cells + 2), written
    """
    for t in range(features.size):
        i = features[t]
        places = np.unique(centers[:, i])
        middle = np.searchsorted(places, anchor[i])
        for side in range(2):
            gaps = places.size - 1 - middle if side == 1 else middle
            cells = side_cells(gaps, places.size - 1, n_cells)
            counts[t, side] = cells
            edges[t, side, 0] = anchor[i]
            for j in range(cells):
                step = ((j + 1) * gaps) // cells
                outer = places[middle + step] if side == 1 else places[middle - step]
                inner = edges[t, side, j]
                edges[t, side, j + 1] = outer
                cut, fewest = calmest_cut(lows[t], highs[t], min(inner, outer), max(inner, outer))
                cuts[t, side, j] = cut
                mistakes[t, side, j] = fewest


@kernel
def cell_knots(
    anchor: FloatArray,
    weights: FloatArray,
    scale: float,
    p: float,
    features: IntArray,
    counts: IntArray,
    edges: FloatArray,
    cuts: FloatArray,
    factors: FloatArray,
    starts: IntArray,
    knots: FloatArray,
    masses: FloatArray,
) -> None:
    """Turn cells into the knots of the measure.

    Parameters
    ----------
    anchor, weights, scale, p
        As in `streamclust.kernels.cuts.first_arrivals`.
    features, counts, edges, cuts
        As `calmest_cells` wrote them.
    factors : float array shaped as `cuts`
        What each cell's mass is multiplied by.
    starts : int array of shape (2 m + 1,), written
    knots, masses : float arrays of size sum(1 + 3 * counts), written
    """
    at = 0
    for t in range(features.size):
        i = features[t]
        for side in range(2):
            starts[2 * t + side] = at
            knots[at], masses[at] = anchor[i], 0.0
            inner_mass = 0.0
            for j in range(counts[t, side]):
                outer = edges[t, side, j + 1]
                outer_mass = (weights[i] * abs(outer - anchor[i]) / scale) ** p
                total = (outer_mass - inner_mass) * factors[t, side, j]
                inner_mass = outer_mass
                knots[at + 1] = knots[at + 2] = cuts[t, side, j]
                knots[at + 3] = outer
                masses[at + 1] = masses[at] + LOOSE * total
                masses[at + 2] = masses[at] + (1.0 - LOOSE) * total
                masses[at + 3] = masses[at] + total
                at += 3
            at += 1
    starts[2 * features.size] = at


@kernel
def landing_of(
    x: FloatArray, features: IntArray, sides: IntArray, thresholds: FloatArray, n_cuts: int
) -> int:
    """Which of a spine's first `n_cuts` cuts parts `x` from the anchor first, or `n_cuts`."""
    for j in range(n_cuts):
        if (x[features[j]] > thresholds[j]) == (sides[j] == 1):
            return j
    return n_cuts


@kernel
def landings(
    points: FloatArray,
    features: IntArray,
    sides: IntArray,
    thresholds: FloatArray,
    out: IntArray,
) -> None:
    """Which of a spine's cuts, in order of arrival, first parts each point from the anchor.

    Parameters
    ----------
    points : float array of shape (n, >= d)
    features, sides, thresholds : arrays of shape (m,)
    out : int array of shape (n,), written
        Index of the cut, or m for the main part.
    """
    for r in range(points.shape[0]):
        out[r] = landing_of(points[r], features, sides, thresholds, features.size)


@kernel
def arrival_order(times: FloatArray, places: IntArray, feature_keys: KeyArray) -> IntArray:
    """Centers by earliest arrival: time, then feature key, side, band and index.

    Equal times of different arrivals are next to impossible, but the order of the features must
    not decide even then.
    """
    order = np.argsort(times, kind="mergesort")
    for start in range(1, order.size):
        j = start
        while j > 0 and times[order[j]] == times[order[j - 1]] < np.inf:
            a, b = places[order[j - 1]], places[order[j]]
            later = feature_keys[a[0]] > feature_keys[b[0]]
            if feature_keys[a[0]] == feature_keys[b[0]]:
                later = (a[1] * 2**20 + a[2]) * 2**20 + a[3] > (b[1] * 2**20 + b[2]) * 2**20 + b[3]
            if not later:
                break
            order[j - 1], order[j] = order[j], order[j - 1]
            j -= 1
    return order


@kernel
def best_draw(
    times: FloatArray,
    places: IntArray,
    thresholds: FloatArray,
    feature_keys: KeyArray,
    points: FloatArray,
    owners: IntArray,
    heads: IntArray,
    part_of: IntArray,
    landing: IntArray,
) -> tuple[int, int, int]:
    """The draw whose spine parts the fewest points from their own centers; ties go to the first.

    A spine ends with the arrival that leaves at most half of the centers in the main part.

    Parameters
    ----------
    times, places, thresholds
        As `streamclust.kernels.cuts.first_arrivals` wrote them for (draws, k).
    feature_keys : uint64 array of shape (d,)
    points : float array of shape (n, d)
    owners : int array of shape (n,)
        The center that each point belongs to.
    heads : int array of shape (k,), written
        For each cut of the best spine a center that it cuts.
    part_of : int array of shape (k,), written
        Each center's cut, by position, or the number of cuts.
    landing : int array of shape (n,), written
        Each point's, likewise.

    Returns
    -------
    draw, n_cuts, mistakes : int
    """
    k, n = times.shape[1], points.shape[0]
    best, best_cuts, fewest = -1, 0, 0
    own_heads, own_parts = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
    own_landing = np.empty(n, dtype=np.int64)
    features, sides = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
    cuts = np.empty(k)
    for j in range(times.shape[0]):
        order = arrival_order(times[j], places[j], feature_keys)
        stop = times[j, order[k - k // 2 - 1]]
        n_cuts = 0
        for at in range(k):
            c = order[at]
            if times[j, c] > stop or times[j, c] == np.inf:
                own_parts[c] = -1
                continue
            if at == 0 or not np.array_equal(places[j, c], places[j, order[at - 1]]):
                own_heads[n_cuts] = c
                features[n_cuts], sides[n_cuts] = places[j, c, 0], places[j, c, 1]
                cuts[n_cuts] = thresholds[j, c]
                n_cuts += 1
            own_parts[c] = n_cuts - 1
        for c in range(k):
            if own_parts[c] < 0:
                own_parts[c] = n_cuts
        mistakes = 0
        for r in range(n):
            own_landing[r] = landing_of(points[r], features, sides, cuts, n_cuts)
            mistakes += own_landing[r] != own_parts[owners[r]]
            if best >= 0 and mistakes >= fewest:
                break
        if best < 0 or mistakes < fewest:
            best, best_cuts, fewest = j, n_cuts, mistakes
            heads[:], part_of[:], landing[:] = own_heads, own_parts, own_landing
    return best, best_cuts, fewest
