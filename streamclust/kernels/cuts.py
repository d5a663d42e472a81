"""The Poisson clocks of cuts: the earliest arrival that parts a center from an anchor.

On every (feature, side) of a tree node lives a Poisson process of arrivals (time, mark) with
intensity d(time) d(mark); the measure of the node turns a mark into a threshold and a coordinate
into a mass, and an arrival cuts every center whose mass exceeds its mark (Makarychev, Papanikolaou
and Shan, arXiv 2512.01150). The clocks are computed, never stored: the arrivals of the band of
marks [16^b, 16^(b+1)) come from a counter-based generator keyed by (node, feature, side, band,
index). What a center's mass says is only where to look; whether an arrival cuts it is decided by
the comparison ``x <= threshold`` that routing uses.
"""

from __future__ import annotations

import math

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.results import FloatArray, IntArray

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
SLACK = 1e-9  # how far beyond a center's mass arrivals are still compared: rounding is far smaller
LAST_INDEX = 4096  # a band holds no more arrivals; only a band that cannot cut at all gets there
HIGHEST = 2.0**1000  # masses beyond are treated alike


@kernel
def mixed(z: np.uint64) -> np.uint64:
    """Finalize a 64-bit counter (SplitMix64: Steele, Lea and Flood, OOPSLA 2014)."""
    z = (z ^ (z >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return z ^ (z >> np.uint64(31))


@kernel
def unit(z: np.uint64) -> float:
    """A number of (0, 1) from the upper 53 bits of the hash of `z`."""
    return (float(mixed(z) >> np.uint64(11)) + 0.5) * 2.0**-53


@kernel
def power(x: float, p: float) -> float:
    """``x ** p``, exact for the two common exponents."""
    if p == 1.0:
        return x
    if p == 2.0:
        return x * x
    return math.pow(x, p)


@kernel
def root(x: float, p: float) -> float:
    """``x ** (1 / p)``, correctly rounded for the two common exponents."""
    if p == 1.0:
        return x
    if p == 2.0:
        return math.sqrt(x)
    return math.pow(x, 1.0 / p)


@kernel
def mass_of(
    x: float,
    anchor: float,
    side: int,
    unit_scale: float,
    scale: float,
    p: float,
    knots: FloatArray,
    masses: FloatArray,
) -> float:
    """No arrival with a larger mark cuts `x`.

    Parameters
    ----------
    x, anchor : float
        Coordinates of the center (on the given side of the anchor) and of the anchor.
    side : int
        1 where ``x > anchor``, 0 where ``x < anchor``.
    unit_scale, scale, p : float
        The feature's weight, the node's scale and the exponent: the paper's mass is
        ``(weight * |x - anchor| / scale) ** p``.
    knots, masses : float arrays of equal length
        The tabulated part, outward from the anchor; empty where the paper's measure holds.
    """
    outer = power(unit_scale * abs(x - anchor) / scale, p)
    last = knots.size - 1
    if last < 0:
        return float(min(outer * (1.0 + SLACK), HIGHEST))
    end = knots[last]
    if (x > end) if side == 1 else (x < end):
        beyond = outer - power(unit_scale * abs(end - anchor) / scale, p)
        return float(min((masses[last] + beyond) + SLACK * (masses[last] + outer), HIGHEST))
    low, high = 0, last  # the last knot that `x` lies beyond
    while low < high:
        middle = (low + high + 1) // 2
        if (knots[middle] < x) if side == 1 else (knots[middle] >= x):
            low = middle
        else:
            high = middle - 1
    mass = masses[low]
    if low < last:
        share = (x - knots[low]) / (knots[low + 1] - knots[low])
        mass += share * (masses[low + 1] - masses[low])
    return float(mass * (1.0 + SLACK))


@kernel
def threshold_of(
    mark: float,
    anchor: float,
    side: int,
    unit_scale: float,
    scale: float,
    p: float,
    knots: FloatArray,
    masses: FloatArray,
) -> float:
    """The threshold of an arrival: the inverse of `mass_of`, never on the anchor's wrong side.

    On the lower side the threshold is the number just below the place, so that both sides treat a
    center at that very place alike: it is not cut.
    """
    last = knots.size - 1
    if last < 0 or mark >= masses[last]:
        end = anchor
        if last >= 0:
            end = knots[last]
            mark = (mark - masses[last]) + power(unit_scale * abs(end - anchor) / scale, p)
        offset = root(mark, p) * scale / unit_scale
        if side == 1:
            return max(anchor + offset, end)
        return math.nextafter(min(anchor - offset, end), -math.inf)
    low, high = 0, last - 1  # the last knot whose mass the mark reaches
    while low < high:
        middle = (low + high + 1) // 2
        if masses[middle] <= mark:
            low = middle
        else:
            high = middle - 1
    step = knots[low + 1] - knots[low]
    if step == 0.0:
        return float(knots[low])
    place = knots[low] + (mark - masses[low]) / (masses[low + 1] - masses[low]) * step
    return place if side == 1 else math.nextafter(place, -math.inf)


@kernel
def first_of_band(
    stream: np.uint64,
    band: int,
    bound: float,
    x: float,
    anchor: float,
    side: int,
    unit_scale: float,
    scale: float,
    p: float,
    knots: FloatArray,
    masses: FloatArray,
) -> tuple[float, int, float]:
    """Time, index and threshold of the band's first arrival that cuts `x` up to `bound`.

    The time is infinite where there is none.
    """
    edge = math.ldexp(1.0, 4 * band)
    rate = 15.0 * edge
    counter = np.uint64(((band + 1024) * 2 + side) * (2 * LAST_INDEX))
    time = 0.0
    for index in range(LAST_INDEX):
        chance = unit(stream + (counter + np.uint64(2 * index)) * GOLDEN)
        if chance > (bound - time) * rate:  # -log(1 - u) >= u: too late, no logarithm needed
            break
        time -= math.log1p(-chance) / rate
        if time > bound:
            break
        place = unit(stream + (counter + np.uint64(2 * index + 1)) * GOLDEN)
        threshold = threshold_of(
            edge + place * rate, anchor, side, unit_scale, scale, p, knots, masses
        )
        if (x > threshold) if side == 1 else (x <= threshold):
            return time, index, threshold
    return np.inf, -1, 0.0


@kernel
def first_arrivals(
    keys: np.ndarray,
    feature_keys: np.ndarray,
    anchor: FloatArray,
    weights: FloatArray,
    scale: float,
    p: float,
    lowest_band: int,
    table_of: IntArray,
    starts: IntArray,
    knots: FloatArray,
    masses: FloatArray,
    centers: FloatArray,
    bound: float,
    times: FloatArray,
    places: IntArray,
    thresholds: FloatArray,
) -> None:
    """Find the earliest arrival of every center under every key.

    Parameters
    ----------
    keys : uint64 array of shape (draws,)
        Node keys; each makes its own clocks.
    feature_keys : uint64 array of shape (>= d,)
    anchor, weights : float arrays of shape (d,)
        In user's units, and per user's unit.
    scale, p : float
    lowest_band : int
        Marks below ``16 ** lowest_band`` never arrive.
    table_of : int array of shape (d,)
        Which table a feature has, or -1.
    starts : int array of shape (2 * tables + 1,)
        Where the knots of (table, side) begin.
    knots, masses : float arrays
    centers : float array of shape (n, >= d)
    bound : float
        Only arrivals before it count.
    times, thresholds : float arrays of shape (draws, n), written
        The time is infinite where nothing arrives.
    places : int array of shape (draws, n, 4), written
        Feature, side, band and index.
    """
    d = anchor.size
    reach = np.empty(d)
    for c in range(centers.shape[0]):
        heaviest = -1
        for i in range(d):
            reach[i] = 0.0
            if weights[i] > 0.0 and centers[c, i] != anchor[i]:
                side = 1 if centers[c, i] > anchor[i] else 0
                begin, end = 0, 0
                if table_of[i] >= 0:
                    begin, end = starts[2 * table_of[i] + side], starts[2 * table_of[i] + side + 1]
                reach[i] = mass_of(
                    centers[c, i],
                    anchor[i],
                    side,
                    weights[i],
                    scale,
                    p,
                    knots[begin:end],
                    masses[begin:end],
                )
                if heaviest < 0 or reach[i] > reach[heaviest]:
                    heaviest = i
        for j in range(keys.size):
            times[j, c] = np.inf
            best = bound
            best_key = np.uint64(0)  # an arrival at the bound itself does not count
            for step in range(-1, d):
                # The heaviest feature goes first: its clock bounds the search on all others.
                i = heaviest if step < 0 else step
                if i < 0 or reach[i] <= 0.0:
                    continue
                side = 1 if centers[c, i] > anchor[i] else 0
                begin, end = 0, 0
                if table_of[i] >= 0:
                    begin, end = starts[2 * table_of[i] + side], starts[2 * table_of[i] + side + 1]
                stream = mixed(mixed(keys[j] + GOLDEN) ^ feature_keys[i])
                top = (math.frexp(reach[i])[1] - 1) >> 2
                # Bands wholly below the mass bound the search for the band that holds it.
                for turn in range(top - lowest_band + 1):
                    band = top - 1 - turn
                    if turn == top - lowest_band or best * math.ldexp(1.0, 4 * band) < 2.0**-60:
                        band = top
                    time, index, threshold = first_of_band(
                        stream,
                        band,
                        best,
                        centers[c, i],
                        anchor[i],
                        side,
                        weights[i],
                        scale,
                        p,
                        knots[begin:end],
                        masses[begin:end],
                    )
                    if time < best or (time == best and feature_keys[i] < best_key):
                        best = time
                        best_key = feature_keys[i]
                        times[j, c] = time
                        thresholds[j, c] = threshold
                        places[j, c, 0] = i
                        places[j, c, 1] = side
                        places[j, c, 2] = band
                        places[j, c, 3] = index
                    if band == top:
                        break
