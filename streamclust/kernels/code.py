"""Compiled code lengths: what it costs, in nats, to tell the points of a cluster.

A cluster pays for its points under the cheapest of three Gaussian shapes (full, diagonal,
spherical), for the parameters of that shape (half the log of the total weight each; Schwarz,
"Estimating the dimension of a model", 1978) and for the labels of its points. A fourth shape is
skewed: every coordinate by itself has a mode, and a scale on each side of it. Because the sum over
clusters is the length of a clustering, the best cut of a merge hierarchy is an exact dynamic
programme over its nodes.

The file is long because a kernel calls kernels of its own file only: whatever fits a law, joins
clusters by their laws or gives points to laws is here.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamclust.kernels.compiled import kernel, regrouping_kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
KeyArray = NDArray[np.uint64]

LOG_TAU = math.log(2.0 * math.pi)
DEGREES = 4.0
STEPS = 4
FULL, DIAGONAL, SPHERICAL, SKEWED = 0, 1, 2, 3
TURNS = 8
TILE = 256
SLOTS, ROWS, PROBES = 4096, 1024, 8  # of a memo
PROMISING = 0.25  # of what a skewed law costs: the test is of the second order only


class Memo(NamedTuple):
    """Laws that were fitted to groups of the points of one window, found again by their members.

    Rounds of a search differ in few clusters, and its starts soon meet.

    Attributes
    ----------
    keys : uint64 array of shape (SLOTS,)
        Hashes of groups, where there are some.
    places : int array of shape (SLOTS + 1,)
        The row of each; how many rows are used comes last.
    laws : float array of shape (ROWS + 1, d + 2, d)
        Means, skews, whiteners. The last row is for what finds no room.
    told : float array of shape (ROWS + 1, 2)
        Codes and offsets.
    """

    keys: KeyArray
    places: IntArray
    laws: FloatArray
    told: FloatArray


def empty_memo(d: int) -> Memo:
    """The memo of a window of which nothing is known, with d coordinates per point."""
    keys, places = np.zeros(SLOTS, np.uint64), np.zeros(SLOTS + 1, np.int64)
    return Memo(keys, places, np.empty((ROWS + 1, d + 2, d)), np.empty((ROWS + 1, 2)))


@kernel
def _key(i: int, following: IntArray, student: bool) -> np.uint64:
    """The hash of a chain of points and a law; the sum of the hashes of its parts (SplitMix64)."""
    key = np.uint64(0)
    while i >= 0:
        z = np.uint64(2 * i + 1 + student) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        key += z ^ (z >> np.uint64(31))
        i = following[i]
    return key


@kernel
def _recall(memo: Memo, key: np.uint64) -> tuple[int, bool]:
    """The row of a law in the memo, and whether it is there already."""
    used = memo.places[SLOTS]
    slot = np.int64(key & np.uint64(SLOTS - 1))
    for _ in range(PROBES):
        if memo.keys[slot] == key:
            return memo.places[slot], True
        if memo.keys[slot] == 0 and used < ROWS:
            memo.keys[slot], memo.places[slot] = key, used
            memo.places[SLOTS] += 1
            return used, False
        slot = (slot + 1) % SLOTS
    return ROWS, False


@kernel
def _whitener(
    scatter: FloatArray, weight: float, floor: FloatArray, shape: int, inverse: FloatArray
) -> float:
    """Write the inverse Cholesky factor of a shape's covariance; answer its log determinant.

    The variance along each coordinate gets its `floor`; the full covariance is drawn towards a
    sphere by (d + 2) / 2 imagined points.
    """
    d = scatter.shape[0]
    trace = 0.0
    for i in range(d):
        trace += scatter[i, i]
        for j in range(d):
            inverse[i, j] = 0.0
    mean = trace / (weight * d)
    log_det = 0.0
    if shape != FULL:
        for i in range(d):
            variance = (mean if shape == SPHERICAL else scatter[i, i] / weight) + floor[i]
            inverse[i, i] = 1.0 / math.sqrt(variance)
            log_det += math.log(variance)
        return log_det
    prior = 0.5 * (d + 2)
    for i in range(d):
        for j in range(i + 1):
            total = scatter[i, j] / (weight + prior)
            if i == j:
                total += prior * mean / (weight + prior) + floor[i]
            for m in range(j):
                total -= inverse[i, m] * inverse[j, m]
            if i == j:
                inverse[i, i] = math.sqrt(max(total, 1e-12 * (mean + floor[i])))
                log_det += 2.0 * math.log(inverse[i, i])
            else:
                inverse[i, j] = total / inverse[j, j]
    for j in range(d):
        inverse[j, j] = 1.0 / inverse[j, j]
        for i in range(j + 1, d):
            total = 0.0
            for m in range(j, i):
                total -= inverse[i, m] * inverse[m, j]
            inverse[i, j] = total / inverse[i, i]
    return log_det


@kernel
def _parameters(d: int, shape: int) -> float:
    """How many numbers a cluster has: its shape, its share of the labels, its place in the cut.

    The last one pays for the freedom of picking the best among as many groups as there are points.
    """
    if shape == FULL:
        return 2.0 + d + 0.5 * d * (d + 1)
    if shape == SKEWED:
        return 2.0 + 3.0 * d
    return 2.0 + 2.0 * d if shape == DIAGONAL else 3.0 + d


@kernel
def _gaussian(
    scatter: FloatArray, weight: float, floor: FloatArray, log_total: float, inverse: FloatArray
) -> tuple[float, int]:
    """The shortest code of a cluster's points and parameters, and the shape that gives it.

    A full covariance is not fitted where its parameters alone cost too much: its determinant is at
    least that of the sphere towards which it is drawn.
    """
    d = scatter.shape[0]
    best = np.inf
    chosen = DIAGONAL
    trace = 0.0
    for i in range(d):
        trace += scatter[i, i]
    mean = trace / (weight * d)
    for shape in (DIAGONAL, SPHERICAL):
        log_det = _whitener(scatter, weight, floor, shape, inverse)
        spread = 0.0
        for i in range(d):
            spread += scatter[i, i] * inverse[i, i] * inverse[i, i]
        code = 0.5 * (weight * (d * LOG_TAU + log_det) + spread)
        code += 0.5 * _parameters(d, shape) * log_total
        if code < best:
            best = code
            chosen = shape
    prior = 0.5 * (d + 2)
    price = 0.5 * _parameters(d, FULL) * log_total
    if 0.5 * weight * d * (LOG_TAU + np.log(prior * mean / (weight + prior))) + price > best:
        return best, chosen
    log_det = _whitener(scatter, weight, floor, FULL, inverse)
    spread = 0.0
    for i in range(d):
        for j in range(i + 1):
            drawn = (weight + prior) * floor[j] + prior * mean
            spread += drawn * inverse[i, j] * inverse[i, j]
    spread = (weight + prior) * d - spread
    code = 0.5 * (weight * (d * LOG_TAU + log_det) + spread) + price
    return (code, FULL) if code <= best else (best, chosen)


@kernel
def node_codes(
    left: IntArray,
    right: IntArray,
    points: FloatArray,
    weights: FloatArray,
    floor: FloatArray,
    least: float,
) -> FloatArray:
    """The code of every merge of a hierarchy, as one Gaussian cluster.

    Parameters
    ----------
    left, right : int array of shape (n - 1,)
        The merges, children before parents.
    points : float array of shape (n, d)
    weights : float array of shape (n,)
    floor : float array of shape (d,)
        Added to the variance along each coordinate, in squared units of the points.
    least : float
        A lighter node is no cluster: its code is infinite.

    Returns
    -------
    float array of shape (2 n - 1,)
        Nats; infinite for the points themselves.
    """
    n, d = points.shape
    codes = np.empty(2 * n - 1)
    weight = np.empty(2 * n - 1)
    slot = np.empty(2 * n - 1, np.int64)
    total = 0.0
    for i in range(2 * n - 1):
        codes[i] = np.inf
        slot[i] = -1
        if i < n:
            weight[i] = weights[i]
            total += weights[i]
    free = np.empty(n, np.int64)
    n_free = 0
    top = 0
    mean = np.empty((n // 2 + 1, d))
    scatter = np.empty((n // 2 + 1, d, d))
    inverse = np.empty((d, d))
    step = np.empty(d)
    for t in range(left.shape[0]):
        a, b = left[t], right[t]
        if slot[a] < 0 and slot[b] >= 0:
            a, b = b, a
        s = slot[a]
        if s < 0:
            if n_free > 0:
                n_free -= 1
                s = free[n_free]
            else:
                s = top
                top += 1
            for i in range(d):
                mean[s, i] = points[a, i]
                for j in range(d):
                    scatter[s, i, j] = 0.0
        other = slot[b]
        together = weight[a] + weight[b]
        share = weight[b] / together
        for i in range(d):
            step[i] = (mean[other, i] if other >= 0 else points[b, i]) - mean[s, i]
        for i in range(d):
            for j in range(i + 1):
                scatter[s, i, j] += weight[a] * share * step[i] * step[j]
                if other >= 0:
                    scatter[s, i, j] += scatter[other, i, j]
            mean[s, i] += share * step[i]
        if other >= 0:
            free[n_free] = other
            n_free += 1
        node = n + t
        slot[node] = s
        weight[node] = together
        if together >= least:
            code, _ = _gaussian(scatter[s], together, floor, math.log(total), inverse)
            codes[node] = code - together * math.log(together / total)
    return codes


@regrouping_kernel
def _moments(
    packed: FloatArray, pulled: FloatArray, work: FloatArray, mean: FloatArray, scatter: FloatArray
) -> None:
    """Write the weighted mean and scatter (lower triangle) of packed points."""
    d = packed.shape[0]
    count = pulled.shape[0]
    total = 0.0
    for at in range(count):
        total += pulled[at]
    for j in range(d):
        along = packed[j, :count]
        moment = 0.0
        for at in range(count):
            moment += pulled[at] * along[at]
        center = moment / total
        mean[j] = center
        for at in range(count):
            work[at] = pulled[at] * (along[at] - center)
        for m in range(j + 1):
            across = packed[m, :count]
            other = mean[m]
            product = 0.0
            for at in range(count):
                product += work[at] * (across[at] - other)
            scatter[j, m] = product


@kernel
def _squares(
    packed: FloatArray,
    mean: FloatArray,
    whitener: FloatArray,
    shape: int,
    part: FloatArray,
    out: FloatArray,
) -> None:
    """Write the squared Mahalanobis distances of as many packed points as `out` has room for."""
    count = out.shape[0]
    for at in range(count):
        out[at] = 0.0
    for i in range(mean.shape[0]):
        first = 0 if shape == FULL else i
        shift = 0.0
        for j in range(first, i + 1):
            shift -= whitener[i, j] * mean[j]
        for at in range(count):
            part[at] = shift
        for j in range(first, i + 1):
            factor = whitener[i, j]
            along = packed[j, :count]
            for at in range(count):
                part[at] += factor * along[at]
        for at in range(count):
            out[at] += part[at] * part[at]


@kernel
def _elliptical(
    packed: FloatArray,
    mass: FloatArray,
    weight: float,
    log_total: float,
    floor: FloatArray,
    student: bool,
    room: FloatArray,
    square: FloatArray,
    mean: FloatArray,
    whitener: FloatArray,
) -> tuple[float, float]:
    """Fit an elliptical law; answer nats of points and parameters, and log density at the center.

    `room`, of shape (3, n) or more, and `square`, of shape (2, d, d), are overwritten.
    """
    d = packed.shape[0]
    count = mass.shape[0]
    pulled, part, far = room[0, :count], room[1, :count], room[2, :count]
    scatter, trial = square[0], square[1]
    _moments(packed, mass, part, mean, scatter)
    constant = -0.5 * d * LOG_TAU
    if student:
        constant = math.lgamma(0.5 * (DEGREES + d)) - math.lgamma(0.5 * DEGREES)
        constant -= 0.5 * d * math.log(DEGREES * math.pi)
        for _ in range(STEPS):
            _whitener(scatter, weight, floor, FULL, trial)
            _squares(packed, mean, trial, FULL, part, far)
            for at in range(count):
                pulled[at] = mass[at] * (DEGREES + d) / (DEGREES + far[at])
            _moments(packed, pulled, part, mean, scatter)
        shape = FULL
        code = np.inf
        for option in range(3):
            told = weight * (0.5 * _whitener(scatter, weight, floor, option, trial) - constant)
            _squares(packed, mean, trial, option, part, far)
            tail = 0.0
            for at in range(count):
                tail += mass[at] * math.log(1.0 + far[at] / DEGREES)
            told += 0.5 * (DEGREES + d) * tail + 0.5 * _parameters(d, option) * log_total
            if told < code:
                code = told
                shape = option
    else:
        code, shape = _gaussian(scatter, weight, floor, log_total, trial)
    return code, constant - 0.5 * _whitener(scatter, weight, floor, shape, whitener)


@regrouping_kernel
def _mode_and_scales(
    along: FloatArray, mass: FloatArray, weight: float, floor: float, student: bool
) -> tuple[float, float, float]:
    """Fit a law of one coordinate: its mode, its scale below and its scale above.

    Given the mode the scales are in closed form (John, "The three-parameter two-piece normal
    family", 1982); the mode is moved to the mean, every point in units of its own side. As the
    scales then follow and halve what is left to go, it is moved twice as far.
    """
    count = along.shape[0]
    mode = 0.0
    for at in range(count):
        mode += mass[at] * along[at]
    mode /= weight
    variance = floor
    for at in range(count):
        variance += mass[at] * (along[at] - mode) ** 2 / weight
    low = high = math.sqrt(variance)
    inner = outer = 1.0 / variance
    for _ in range(TURNS):
        below, above, mass_below, mass_above, pull_below, pull_above = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for at in range(count):
            gap = along[at] - mode
            square = gap * gap
            over = mass[at]
            if student:
                far = square * (inner if gap < 0.0 else outer)
                over *= (DEGREES + 1.0) / (DEGREES + far)
            under = over if gap < 0.0 else 0.0
            over -= under
            mass_below += under
            mass_above += over
            pull_below += under * gap
            pull_above += over * gap
            below += under * square
            above += over * square
        below, above = (below / weight) ** (1.0 / 3.0), (above / weight) ** (1.0 / 3.0)
        low = math.sqrt(below * below * (below + above) + floor)
        high = math.sqrt(above * above * (below + above) + floor)
        inner, outer = 1.0 / (low * low), 1.0 / (high * high)
        pull = pull_below * inner + pull_above * outer
        mode += 2.0 * pull / (mass_below * inner + mass_above * outer)
    return mode, low, high


@regrouping_kernel
def _lopsidedness(packed: FloatArray, pulled: FloatArray) -> float:
    """Nats that a law which is skewed along the coordinates may gain, to the second order.

    The score test for the third moment (Jarque, Bera, "A test for normality of observations and
    regression residuals", 1987): two passes instead of the dozens that such a law takes,
    and it seldom pays.
    """
    count = pulled.shape[0]
    weight = 0.0
    for at in range(count):
        weight += pulled[at]
    gain = 0.0
    for j in range(packed.shape[0]):
        along = packed[j, :count]
        mean, second, third = 0.0, 0.0, 0.0
        for at in range(count):
            mean += pulled[at] * along[at]
        mean /= weight
        for at in range(count):
            gap = along[at] - mean
            square = pulled[at] * gap * gap
            second += square
            third += square * gap
        if second > 0.0:
            gain += third * third * weight * weight / (12.0 * second * second * second)
    return gain


@kernel
def _depths(
    packed: FloatArray,
    mode: FloatArray,
    whitener: FloatArray,
    skew: FloatArray,
    student: bool,
    out: FloatArray,
) -> None:
    """Write twice the nats by which a skewed law is less dense at a point than at its mode."""
    count = out.shape[0]
    for at in range(count):
        out[at] = 1.0 if student else 0.0
    for j in range(mode.shape[0]):
        along = packed[j, :count]
        center, under = mode[j], whitener[j, j]
        over = under * skew[j]
        for at in range(count):
            gap = along[at] - center
            far = gap * (under if gap < 0.0 else over)
            if student:
                out[at] *= 1.0 + far * far / DEGREES
            else:
                out[at] += far * far
    if student:
        for at in range(count):
            out[at] = (DEGREES + 1.0) * math.log(out[at])


@kernel
def _skewed(
    packed: FloatArray,
    mass: FloatArray,
    weight: float,
    log_total: float,
    floor: FloatArray,
    student: bool,
    part: FloatArray,
    mode: FloatArray,
    whitener: FloatArray,
    skew: FloatArray,
) -> tuple[float, float]:
    """Fit a law that is skewed along every coordinate; answer the same as `_elliptical`."""
    d = packed.shape[0]
    count = mass.shape[0]
    peak = -0.5 * d * LOG_TAU
    if student:
        peak = math.lgamma(0.5 * (DEGREES + 1.0)) - math.lgamma(0.5 * DEGREES)
        peak = d * (peak - 0.5 * math.log(DEGREES * math.pi))
    for j in range(d):
        mode[j], low, high = _mode_and_scales(packed[j, :count], mass, weight, floor[j], student)
        for m in range(d):
            whitener[j, m] = 0.0
        whitener[j, j] = 1.0 / low
        skew[j] = low / high
        peak -= math.log(0.5 * (low + high))
    _depths(packed, mode, whitener, skew, student, part)
    nats = 0.5 * _parameters(d, SKEWED) * log_total - weight * peak
    for at in range(count):
        nats += 0.5 * mass[at] * part[at]
    return nats, peak


@kernel
def _chains(labels: IntArray, n_clusters: int) -> tuple[IntArray, IntArray, IntArray]:
    """The first and the last point of every cluster, and the next one of every point, -1 for none.

    The points of a cluster follow one another in their own order.
    """
    head, tail = np.empty(n_clusters, np.int64), np.empty(n_clusters, np.int64)
    following = np.empty(labels.shape[0], np.int64)
    for c in range(n_clusters):
        head[c] = -1
    for i, c in enumerate(labels):
        following[i] = -1
        if c >= 0:
            if head[c] < 0:
                head[c] = i
            else:
                following[tail[c]] = i
            tail[c] = i
    return head, tail, following


@kernel
def _pack(
    points: FloatArray,
    weights: FloatArray,
    i: int,
    following: IntArray,
    count: int,
    packed: FloatArray,
    room: FloatArray,
) -> int:
    """Write a chain of points, coordinate by coordinate, behind `count` others; answer how many.

    Their weights go to the last row of `room`, of shape (4, n).
    """
    while i >= 0:
        room[3, count] = weights[i]
        for j in range(points.shape[1]):
            packed[j, count] = points[i, j]
        count += 1
        i = following[i]
    return count


@kernel
def _law(
    packed: FloatArray,
    count: int,
    total: float,
    floor: FloatArray,
    student: bool,
    skewed: bool,
    room: FloatArray,
    square: FloatArray,
    law: FloatArray,
    told: FloatArray,
) -> None:
    """Fit the law of one cluster of packed points; write it, its code and its offset.

    `room` has the weights of the points in its last row; the rest of it and `square`, of shape
    (3, d, d), are overwritten.
    """
    d = packed.shape[0]
    mean, skew, whitener = law[0], law[1], law[2:]
    mass = room[3, :count]
    log_total = math.log(total)
    weight = 0.0
    for at in range(count):
        weight += mass[at]
    code, peak = _elliptical(
        packed, mass, weight, log_total, floor, student, room, square, mean, whitener
    )
    for j in range(d):
        skew[j] = 0.0
    pulled = room[0, :count] if student else mass
    price = 0.5 * log_total * (_parameters(d, SKEWED) - _parameters(d, DIAGONAL))
    if skewed and _lopsidedness(packed, pulled) > PROMISING * price:
        part, mode, trial, slope = room[1, :count], square[0, 0], square[1], square[2, 0]
        nats, top = _skewed(
            packed, mass, weight, log_total, floor, student, part, mode, trial, slope
        )
        if nats < code:
            code, peak = nats, top
            for j in range(d):
                mean[j], skew[j] = mode[j], slope[j]
                for m in range(d):
                    whitener[j, m] = trial[j, m]
    share = math.log(weight / total)
    told[0], told[1] = code - weight * share, peak + share


@kernel
def fit_clusters(
    points: FloatArray,
    weights: FloatArray,
    labels: IntArray,
    total: float,
    floor: FloatArray,
    student: bool,
    skewed: bool,
    keys: KeyArray,
    places: IntArray,
    laws: FloatArray,
    told: FloatArray,
    codes: FloatArray,
    means: FloatArray,
    whiteners: FloatArray,
    offsets: FloatArray,
    skews: FloatArray,
) -> float:
    """Fit one law to every cluster and write its code and what is needed to tell its density.

    The law is Gaussian, or Student's with 4 degrees of freedom, fitted by reweighting (Lange,
    Little, Taylor, "Robust statistical modeling using the t distribution", 1989, section 3).

    Parameters
    ----------
    points : float array of shape (n, d)
    weights : float array of shape (n,)
    labels : int array of shape (n,)
        0 .. K - 1, or -1; every cluster has a point.
    total : float
        Weight of the whole window, of which these points may be a part.
    floor : float array of shape (d,)
        Added to the variance along each coordinate, in squared units of the points.
    student : bool
        Which law.
    skewed : bool
        Whether a cluster may be skewed along the coordinates.
    keys, places, laws, told : arrays
        The `Memo` of the same points, total, floor and skewed, in its parts: to hand over a tuple
        takes as long as thirty arrays.
    codes : float array of shape (K,)
        Receives nats: points, parameters and labels of each cluster.
    means : float array of shape (K, d)
        Receives the centers of the laws.
    whiteners : float array of shape (K, d, d)
        Receives the inverse Cholesky factors of the laws' scales; of skewed ones those below.
    offsets : float array of shape (K,)
        Receives the log density at the center plus the log of the cluster's share of the weight.
    skews : float array of shape (K, d)
        Receives the scale below over that above along each coordinate, or 0 for an elliptical law.

    Returns
    -------
    float
        The weight of the points that are in no cluster.
    """
    n, d = points.shape
    n_clusters = codes.shape[0]
    memo = Memo(keys, places, laws, told)
    head, _, following = _chains(labels, n_clusters)
    packed, room, square = np.empty((d, n)), np.empty((4, n)), np.empty((3, d, d))
    for c in range(n_clusters):
        row, known = _recall(memo, _key(head[c], following, student))
        if not known:
            count = _pack(points, weights, head[c], following, 0, packed, room)
            _law(packed, count, total, floor, student, skewed, room, square, laws[row], told[row])
        codes[c], offsets[c] = told[row, 0], told[row, 1]
        for j in range(d):
            means[c, j], skews[c, j] = laws[row, 0, j], laws[row, 1, j]
            for m in range(d):
                whiteners[c, j, m] = laws[row, 2 + j, m]
    outside = 0.0
    for i in range(n):
        if labels[i] < 0:
            outside += weights[i]
    return outside


@kernel
def _nearest_pairs(centers: FloatArray, near: int) -> IntArray:
    """The pairs of every cluster with its nearest others, each once, the lower one first."""
    k = centers.shape[0]
    width = min(near, k - 1)
    close, squares = np.empty((k, width), np.int64), np.empty(width)
    pairs = np.empty((2, k * width), np.int64)
    for a in range(k):
        found = 0
        for b in range(k):
            if b == a:
                continue
            square = 0.0
            for j in range(centers.shape[1]):
                square += (centers[a, j] - centers[b, j]) ** 2
            if found == width and square >= squares[width - 1]:
                continue
            at = min(found, width - 1)
            while at > 0 and squares[at - 1] > square:
                squares[at], close[a, at] = squares[at - 1], close[a, at - 1]
                at -= 1
            squares[at], close[a, at] = square, b
            found = min(found + 1, width)
    made = 0
    for a in range(k):
        for b in close[a]:
            told = False
            if b < a:
                for other in close[b]:
                    told |= other == a
            if not told:
                pairs[0, made], pairs[1, made] = (a, b) if a < b else (b, a)
                made += 1
    return pairs[:, :made]


@kernel
def _merge_pairs(pairs: IntArray, rises: FloatArray, a: int, b: int, met: IntArray) -> int:
    """Redirect the pairs of cluster b to a, each pair once; answer how many are left.

    Those of a are to be measured anew: their rises become nan. `met`, one entry per cluster, is
    overwritten.
    """
    left = 0
    for c in range(met.shape[0]):
        met[c] = -1
    for e in range(rises.shape[0]):
        one, other = pairs[0, e], pairs[1, e]
        rise = rises[e]
        if one in (a, b) or other in (a, b):
            third = other if one in (a, b) else one
            if third in (a, b) or met[third] >= 0:
                continue
            met[third] = e
            one, other, rise = (a, third, np.nan) if a < third else (third, a, np.nan)
        pairs[0, left], pairs[1, left], rises[left] = one, other, rise
        left += 1
    return left


@kernel
def join_clusters(
    points: FloatArray,
    weights: FloatArray,
    labels: IntArray,
    total: float,
    floor: FloatArray,
    student: bool,
    skewed: bool,
    keys: KeyArray,
    places: IntArray,
    laws: FloatArray,
    told: FloatArray,
    near: int,
    wanted: int,
    length: float,
    own: FloatArray,
    joined: IntArray,
) -> float:
    """Merge clusters pair by pair, the pair first whose union lengthens the description least.

    Parameters
    ----------
    points, weights, labels, total, floor, student, skewed, keys, places, laws, told
        As for `fit_clusters`.
    near : int
        With how many nearest clusters a cluster may be joined.
    wanted : int
        Clusters to merge down to; 0: merge while that shortens the description.
    length : float
        Length of the description.
    own : float array of shape (K,)
        The codes of the clusters; overwritten.
    joined : int array of shape (n,)
        Receives 0 .. K' - 1, or -1.

    Returns
    -------
    float
        The length of the description after that.
    """
    n, d = points.shape
    k = own.shape[0]
    memo = Memo(keys, places, laws, told)
    head, tail, following = _chains(labels, k)
    packed, room, square = np.empty((d, n)), np.empty((4, n)), np.empty((3, d, d))
    centers, marks = np.zeros((k, d)), np.empty(k, np.uint64)
    for c in range(k):
        marks[c] = _key(head[c], following, student)
        count = _pack(points, weights, head[c], following, 0, packed, room)
        for j in range(d):
            for at in range(count):
                centers[c, j] += packed[j, at]
            centers[c, j] /= count
    pairs = _nearest_pairs(centers, near)
    rises = np.empty(pairs.shape[1])
    for e in range(rises.shape[0]):
        rises[e] = np.nan
    met = np.empty(k, np.int64)
    alive, left = k, pairs.shape[1]
    while alive > max(wanted, 1) and left > 0:
        best = 0
        for e in range(left):
            a, b = pairs[0, e], pairs[1, e]
            if math.isnan(rises[e]):
                row, known = _recall(memo, marks[a] + marks[b])
                if not known:
                    law, sums = laws[row], told[row]
                    count = _pack(points, weights, head[a], following, 0, packed, room)
                    count = _pack(points, weights, head[b], following, count, packed, room)
                    _law(packed, count, total, floor, student, skewed, room, square, law, sums)
                rises[e] = told[row, 0] - (own[a] + own[b])
            if rises[e] < rises[best] or (
                rises[e] == rises[best]
                and (a < pairs[0, best] or (a == pairs[0, best] and b < pairs[1, best]))
            ):
                best = e
        if wanted == 0 and rises[best] >= 0.0:
            break
        a, b = pairs[0, best], pairs[1, best]
        length += rises[best]
        own[a] += own[b] + rises[best]
        marks[a] += marks[b]
        following[tail[a]], tail[a], head[b] = head[b], tail[b], -1
        alive -= 1
        left = _merge_pairs(pairs, rises[:left], a, b, met)
    for i in range(n):
        joined[i] = -1
    for c in range(k):
        i = head[c]
        while i >= 0:
            joined[i] = c
            i = following[i]
    number_clusters(joined, weights, 0.0, joined)
    return length


@kernel
def nearest_law(
    points: FloatArray,
    means: FloatArray,
    whiteners: FloatArray,
    offsets: FloatArray,
    skews: FloatArray,
    noise: float,
    student: bool,
    labels: IntArray,
) -> None:
    """Give every point to the cluster that tells it in the shortest code, or to noise.

    Parameters
    ----------
    points : float array of shape (n, d)
    means, whiteners, offsets, skews : float arrays of shape (K, d), (K, d, d), (K,), (K, d)
        As `fit_clusters` writes them.
    noise : float
        Log density of noise plus the log of its share; -inf allows no noise.
    student : bool
        Which law.
    labels : int array of shape (n,)
        Receives 0 .. K - 1, or -1.
    """
    n, d = points.shape
    packed = np.empty((d, TILE))
    room = np.empty((3, TILE))
    for begin in range(0, n, TILE):
        count = min(TILE, n - begin)
        best, part, far = room[0, :count], room[1, :count], room[2, :count]
        given = labels[begin : begin + count]
        for at in range(count):
            best[at] = noise
            given[at] = -1
            for j in range(d):
                packed[j, at] = points[begin + at, j]
        for c in range(means.shape[0]):
            if skews[c, 0] > 0.0:
                _depths(packed, means[c], whiteners[c], skews[c], student, far)
            else:
                _squares(packed, means[c], whiteners[c], FULL, part, far)
                if student:
                    for at in range(count):
                        far[at] = (DEGREES + d) * math.log(1.0 + far[at] / DEGREES)
            for at in range(count):
                value = offsets[c] - 0.5 * far[at]
                if value > best[at]:
                    best[at] = value
                    given[at] = c


@kernel
def reassign(
    points: FloatArray,
    weights: FloatArray,
    means: FloatArray,
    whiteners: FloatArray,
    offsets: FloatArray,
    skews: FloatArray,
    noise: float,
    student: bool,
    least: float,
    labels: IntArray,
) -> None:
    """`nearest_law`, then `number_clusters`: see there; `labels` receives the outcome."""
    nearest_law(points, means, whiteners, offsets, skews, noise, student, labels)
    number_clusters(labels, weights, least, labels)


@kernel
def number_clusters(labels: IntArray, weights: FloatArray, least: float, out: IntArray) -> int:
    """Number clusters by their first point; those of too little weight become noise.

    Parameters
    ----------
    labels : int array of shape (n,)
        Not negative, or -1.
    weights : float array of shape (n,)
    least : float
        A lighter cluster is none.
    out : int array of shape (n,)
        Receives 0 .. K - 1, or -1; may be `labels` itself.

    Returns
    -------
    int
        K.
    """
    top = 0
    for label in labels:
        top = max(top, label + 1)
    mass = np.zeros(top)
    name = np.full(top, -1, np.int64)
    for i in range(labels.shape[0]):
        if labels[i] >= 0:
            mass[labels[i]] += weights[i]
    found = 0
    for i, label in enumerate(labels):
        out[i] = -1
        if label >= 0 and mass[label] >= least:
            if name[label] < 0:
                name[label] = found
                found += 1
            out[i] = name[label]
    return found
