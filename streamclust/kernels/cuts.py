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
from typing import NamedTuple

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.kernels.mixing import GOLDEN, mixed
from streamclust.results import FloatArray, IntArray, KeyArray

SLACK = 1e-9  # how far beyond a center's mass arrivals are still compared: rounding is far smaller
LAST_INDEX = 4096  # a band holds no more arrivals; only a band that cannot cut at all gets there
HIGHEST = 2.0**1000  # masses beyond are treated alike
EARLIEST = 2.0**-71  # no exponential number drawn here is smaller


class Law(NamedTuple):
    """All that the clocks of a node depend on, but for its key.

    Attributes
    ----------
    anchor, weights : float arrays of shape (d,)
        In user's units, and per user's unit. The paper's mass of a coordinate x is
        ``(weight * |x - anchor| / scale) ** p``.
    scale, p : float
    lowest_band : int
        Marks below ``16 ** lowest_band`` never arrive.
    table_of : int array of shape (d,)
        Which table a feature has, or -1: the paper's measure.
    starts : int array of shape (2 * tables + 1,)
        Where the knots of (table, side) begin.
    knots, masses : float arrays
        Coordinates outward from the anchor, and the cumulative mass there.
    feature_keys : uint64 array of shape (>= d,)
    """

    anchor: FloatArray
    weights: FloatArray
    scale: float
    p: float
    lowest_band: int
    table_of: IntArray
    starts: IntArray
    knots: FloatArray
    masses: FloatArray
    feature_keys: KeyArray


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
def table_span(law: Law, i: int, side: int) -> tuple[int, int]:
    """Where the knots of a feature's side begin and end; both 0 without a table."""
    if law.table_of[i] < 0:
        return 0, 0
    at = 2 * law.table_of[i] + side
    return int(law.starts[at]), int(law.starts[at + 1])


@kernel
def paper_mass(law: Law, i: int, x: float) -> float:
    """The paper's mass of coordinate `x` of feature `i`."""
    return power(law.weights[i] * abs(x - law.anchor[i]) / law.scale, law.p)


@kernel
def rate_beyond(law: Law, i: int) -> float:
    """What a tabulated feature's paper's mass counts for beyond the tables: as within, on average.

    At its full rate the thin rim outside all centers would outweigh everything within, and nearly
    every center that comes later would be cut off there at once, by a cut of its own.
    """
    inner, outer = 0.0, 0.0
    for side in range(2):
        last = table_span(law, i, side)[1] - 1
        inner += law.masses[last]
        outer += paper_mass(law, i, law.knots[last])
    return inner / outer if inner > 0.0 and outer > 0.0 else 1.0


@kernel
def mass_of(law: Law, i: int, side: int, x: float) -> float:
    """No arrival of feature `i` with a larger mark cuts `x`.

    `side` is 1 where x lies above the anchor, 0 where below.
    """
    outer = paper_mass(law, i, x)
    begin, end = table_span(law, i, side)
    last = end - 1
    if last < begin:
        return float(min(outer * (1.0 + SLACK), HIGHEST))
    edge = law.knots[last]
    if (x > edge) if side == 1 else (x < edge):
        rate = rate_beyond(law, i)
        beyond = rate * (outer - paper_mass(law, i, edge))
        inner = law.masses[last]
        return float(min((inner + beyond) + SLACK * (inner + rate * outer), HIGHEST))
    low, high = begin, last  # the last knot that `x` lies beyond
    while low < high:
        middle = (low + high + 1) // 2
        if (law.knots[middle] < x) if side == 1 else (law.knots[middle] >= x):
            low = middle
        else:
            high = middle - 1
    mass = law.masses[low]
    if low < last:
        share = (x - law.knots[low]) / (law.knots[low + 1] - law.knots[low])
        mass += share * (law.masses[low + 1] - law.masses[low])
    return float(mass * (1.0 + SLACK))


@kernel
def threshold_of(law: Law, i: int, side: int, mark: float) -> float:
    """The threshold of an arrival: the inverse of `mass_of`, never on the anchor's wrong side.

    On the lower side the threshold is the number just below the place, so that both sides treat a
    center at that very place alike: it is not cut.
    """
    begin, end = table_span(law, i, side)
    last = end - 1
    if last < begin or mark >= law.masses[last]:
        edge = law.anchor[i]
        if last >= begin:
            edge = law.knots[last]
            mark = (mark - law.masses[last]) / rate_beyond(law, i) + paper_mass(law, i, edge)
        offset = root(mark, law.p) * law.scale / law.weights[i]
        if side == 1:
            return float(max(law.anchor[i] + offset, edge))
        return math.nextafter(min(law.anchor[i] - offset, edge), -math.inf)
    low, high = begin, last - 1  # the last knot whose mass the mark reaches
    while low < high:
        middle = (low + high + 1) // 2
        if law.masses[middle] <= mark:
            low = middle
        else:
            high = middle - 1
    step = law.knots[low + 1] - law.knots[low]
    if step == 0.0:
        return float(law.knots[low])
    share = (mark - law.masses[low]) / (law.masses[low + 1] - law.masses[low])
    place = law.knots[low] + share * step
    return float(place) if side == 1 else math.nextafter(place, -math.inf)


@kernel
def first_of_band(
    law: Law, i: int, side: int, stream: np.uint64, band: int, head: int, x: float, bound: float
) -> tuple[float, int, float]:
    """Time, index and threshold of a band's first arrival that cuts `x` up to `bound`.

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
        mark = edge + unit(stream + (counter + np.uint64(1)) * GOLDEN) * rate
        threshold = threshold_of(law, i, side, mark)
        if (x > threshold) if side == 1 else (x <= threshold):
            return time, index, threshold
        counter += np.uint64(2)
    return math.inf, -1, 0.0


@kernel
def earliest(
    law: Law,
    key: np.uint64,
    x: FloatArray,
    reach: FloatArray,
    tops: IntArray,
    rates: FloatArray,
    heaviest: int,
    bound: float,
    place: IntArray,
) -> tuple[float, float]:
    """Time and threshold of the earliest arrival before `bound` that cuts one center.

    `reach` holds the center's masses, `tops` the bands that hold these and `rates` the rates of the
    bands below. The time is infinite, and `place` (feature, side, band, index) not written, where
    there is no arrival.
    """
    best, cut, found = bound, 0.0, False
    winner = np.uint64(0)  # an arrival at the bound itself does not count
    for step in range(-1, law.anchor.size):
        # The heaviest feature goes first: its clock bounds the search on all others.
        i = heaviest if step < 0 else step
        top = int(tops[i])
        if reach[i] <= 0.0 or top < law.lowest_band:
            continue
        side = 1 if x[i] > law.anchor[i] else 0
        stream = mixed(mixed(key + GOLDEN) ^ law.feature_keys[i])
        # Bands wholly below the mass bound the search in the band that holds it.
        band, rate = top - 1, rates[i]
        bits, group = np.uint64(0), LAST_INDEX
        while True:
            if band < law.lowest_band or best * rate < EARLIEST:
                band, rate = top, math.inf
            if band >> 2 != group:
                group = band >> 2
                bits = bits_of_group(stream, band, side)
            head = first_bits(bits, band)
            if head <= 65536.0 * rate * best:
                time, index, threshold = first_of_band(law, i, side, stream, band, head, x[i], best)
                if time < best or (time == best and law.feature_keys[i] < winner):
                    best, cut, found, winner = time, threshold, True, law.feature_keys[i]
                    place[0], place[1], place[2], place[3] = i, side, band, index
            if band == top:
                break
            band -= 1
            rate *= 0.0625
    return best if found else math.inf, cut


@kernel
def first_arrivals(
    law: Law,
    keys: KeyArray,
    centers: FloatArray,
    bound: float,
    times: FloatArray,
    places: IntArray,
    thresholds: FloatArray,
) -> None:
    """Find the earliest arrival of every center under every key.

    Parameters
    ----------
    law : Law
    keys : uint64 array of shape (draws,)
        Node keys; each makes its own clocks.
    centers : float array of shape (n, >= d)
    bound : float
        Only arrivals before it count.
    times, thresholds : float arrays of shape (draws, n), written
        The time is infinite where nothing arrives.
    places : int array of shape (draws, n, 4), written
        Feature, side, band and index.
    """
    d = law.anchor.size
    reach, rates, tops = np.empty(d), np.empty(d), np.empty(d, dtype=np.int64)
    for c in range(centers.shape[0]):
        heaviest = 0
        for i in range(d):
            reach[i], tops[i] = 0.0, 0
            x = centers[c, i]
            if law.weights[i] > 0.0 and x != law.anchor[i]:
                reach[i] = mass_of(law, i, 1 if x > law.anchor[i] else 0, x)
                top = (math.frexp(reach[i])[1] - 1) >> 2
                tops[i], rates[i] = top, 15.0 * math.ldexp(1.0, 4 * top - 4)
                if reach[i] > reach[heaviest]:
                    heaviest = i
        for j in range(keys.size):
            times[j, c], thresholds[j, c] = earliest(
                law, keys[j], centers[c], reach, tops, rates, heaviest, bound, places[j, c]
            )
