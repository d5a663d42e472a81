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
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamclust.kernels.compiled import kernel
from streamclust.results import FloatArray, IntArray

KeyArray: TypeAlias = NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
SLACK = 1e-9  # how far beyond a center's mass arrivals are still compared: rounding is far smaller
LAST_INDEX = 4096  # a band holds no more arrivals; only a band that cannot cut at all gets there
HIGHEST = 2.0**1000  # masses beyond are treated alike
EARLIEST = 2.0**-71  # no exponential number drawn here is smaller


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
def first_counter(band: int, side: int) -> np.uint64:
    """Where the counters of a band begin; an arrival takes two, for its gap and its mark."""
    return np.uint64(((band + 1024) * 2 + side) * (2 * LAST_INDEX))


@kernel
def bits_of_group(stream: np.uint64, band: int, side: int) -> np.uint64:
    """The leading bits of the first gaps of four bands: one hash tells that most are too late."""
    counter = np.uint64(2**32 + ((band >> 2) + 256) * 2 + side)
    return mixed(stream + counter * GOLDEN)


@kernel
def first_bits(group: np.uint64, band: int) -> int:
    """The leading 16 bits of the number in (0, 1) behind a band's first gap."""
    return int((group >> np.uint64(16 * (band & 3))) & np.uint64(65535))


@kernel
def mass_of(
    x: float,
    anchor: float,
    side: int,
    weight: float,
    scale: float,
    p: float,
    knots: FloatArray,
    masses: FloatArray,
    begin: int,
    end: int,
) -> float:
    """No arrival with a larger mark cuts `x`.

    Parameters
    ----------
    x, anchor : float
        Coordinates of the center (on the given side of the anchor) and of the anchor.
    side : int
        1 where ``x > anchor``, 0 where ``x < anchor``.
    weight, scale, p : float
        The paper's mass is ``(weight * |x - anchor| / scale) ** p``.
    knots, masses : float arrays
        ``begin:end`` is the tabulated part, outward from the anchor; empty where the paper's
        measure holds.
    """
    outer = power(weight * abs(x - anchor) / scale, p)
    last = end - 1
    if last < begin:
        return float(min(outer * (1.0 + SLACK), HIGHEST))
    edge = knots[last]
    if (x > edge) if side == 1 else (x < edge):
        beyond = outer - power(weight * abs(edge - anchor) / scale, p)
        return float(min((masses[last] + beyond) + SLACK * (masses[last] + outer), HIGHEST))
    low, high = begin, last  # the last knot that `x` lies beyond
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
    weight: float,
    scale: float,
    p: float,
    knots: FloatArray,
    masses: FloatArray,
    begin: int,
    end: int,
) -> float:
    """The threshold of an arrival: the inverse of `mass_of`, never on the anchor's wrong side.

    On the lower side the threshold is the number just below the place, so that both sides treat a
    center at that very place alike: it is not cut. Parameters as in `mass_of`.
    """
    last = end - 1
    if last < begin or mark >= masses[last]:
        edge = anchor
        if last >= begin:
            edge = knots[last]
            mark = (mark - masses[last]) + power(weight * abs(edge - anchor) / scale, p)
        offset = root(mark, p) * scale / weight
        if side == 1:
            return max(anchor + offset, edge)
        return math.nextafter(min(anchor - offset, edge), -math.inf)
    low, high = begin, last - 1  # the last knot whose mass the mark reaches
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
    head: int,
    bound: float,
    x: float,
    anchor: float,
    side: int,
    weight: float,
    scale: float,
    p: float,
    knots: FloatArray,
    masses: FloatArray,
    begin: int,
    end: int,
) -> tuple[float, int, float]:
    """Time, index and threshold of the band's first arrival that cuts `x` up to `bound`.

    `head` is the band's `first_bits`. The time is infinite where there is none.
    """
    edge = math.ldexp(1.0, 4 * band)
    rate = 15.0 * edge
    counter = first_counter(band, side)
    time = 0.0
    for index in range(LAST_INDEX):
        chance = unit(stream + counter * GOLDEN)
        if index == 0:
            chance = (head + chance) / 65536.0
        if chance > (bound - time) * rate:  # -log(1 - u) >= u: too late, no logarithm needed
            break
        time -= math.log1p(-chance) / rate
        if time > bound:
            break
        place = unit(stream + (counter + np.uint64(1)) * GOLDEN)
        threshold = threshold_of(
            edge + place * rate, anchor, side, weight, scale, p, knots, masses, begin, end
        )
        if (x > threshold) if side == 1 else (x <= threshold):
            return time, index, threshold
        counter += np.uint64(2)
    return math.inf, -1, 0.0


@kernel
def earliest(
    key: np.uint64,
    feature_keys: KeyArray,
    anchor: FloatArray,
    weights: FloatArray,
    scale: float,
    p: float,
    lowest_band: int,
    knots: FloatArray,
    masses: FloatArray,
    x: FloatArray,
    reach: FloatArray,
    tops: IntArray,
    rates: FloatArray,
    begins: IntArray,
    ends: IntArray,
    heaviest: int,
    bound: float,
    place: IntArray,
) -> tuple[float, float]:
    """Time and threshold of the earliest arrival before `bound` that cuts one center.

    `reach` holds the center's masses, `tops` the bands that hold these, `rates` those of the bands
    below, `begins` and `ends` the tables; the rest as in `first_arrivals`. The time is infinite,
    and `place` not written, where there is none.
    """
    best, cut, found = bound, 0.0, False
    winner = np.uint64(0)  # an arrival at the bound itself does not count
    for step in range(-1, anchor.size):
        # The heaviest feature goes first: its clock bounds the search on all others.
        i = heaviest if step < 0 else step
        if reach[i] <= 0.0:
            continue
        side = 1 if x[i] > anchor[i] else 0
        stream = mixed(mixed(key + GOLDEN) ^ feature_keys[i])
        top = int(tops[i])
        # Bands wholly below the mass bound the search in the band that holds it.
        band = top - 1
        rate = rates[i]
        bits, group = np.uint64(0), LAST_INDEX
        while top >= lowest_band:
            if band < lowest_band or best * rate < EARLIEST:
                band = top
                rate = math.inf
            if band >> 2 != group:
                group = band >> 2
                bits = bits_of_group(stream, band, side)
            head = first_bits(bits, band)
            if head <= 65536.0 * rate * best:
                time, index, threshold = first_of_band(
                    stream,
                    band,
                    head,
                    best,
                    x[i],
                    anchor[i],
                    side,
                    weights[i],
                    scale,
                    p,
                    knots,
                    masses,
                    begins[i],
                    ends[i],
                )
                if time < best or (time == best and feature_keys[i] < winner):
                    best, cut, found, winner = time, threshold, True, feature_keys[i]
                    place[0], place[1], place[2], place[3] = i, side, band, index
            if band == top:
                break
            band -= 1
            rate *= 0.0625
    return best if found else math.inf, cut


@kernel
def first_arrivals(
    keys: KeyArray,
    feature_keys: KeyArray,
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
    reach, rates, tops = np.empty(d), np.empty(d), np.empty(d, dtype=np.int64)
    begins, ends = np.empty(d, dtype=np.int64), np.empty(d, dtype=np.int64)
    for c in range(centers.shape[0]):
        heaviest = 0
        for i in range(d):
            reach[i], begins[i], ends[i] = 0.0, 0, 0
            if weights[i] > 0.0 and centers[c, i] != anchor[i]:
                side = 1 if centers[c, i] > anchor[i] else 0
                if table_of[i] >= 0:
                    table = 2 * table_of[i] + side
                    begins[i], ends[i] = starts[table], starts[table + 1]
                reach[i] = mass_of(
                    centers[c, i],
                    anchor[i],
                    side,
                    weights[i],
                    scale,
                    p,
                    knots,
                    masses,
                    begins[i],
                    ends[i],
                )
                tops[i] = (math.frexp(reach[i])[1] - 1) >> 2
                rates[i] = 15.0 * math.ldexp(1.0, int(4 * tops[i] - 4))
                if reach[i] > reach[heaviest]:
                    heaviest = i
        for j in range(keys.size):
            times[j, c], thresholds[j, c] = earliest(
                keys[j],
                feature_keys,
                anchor,
                weights,
                scale,
                p,
                lowest_band,
                knots,
                masses,
                centers[c],
                reach,
                tops,
                rates,
                begins,
                ends,
                heaviest,
                bound,
                places[j, c],
            )
