"""Compiled laws of a cluster: fitted to its points, and what it costs, in nats, to tell them so.

A cluster pays for its points under the cheapest of three Gaussian shapes (full, diagonal,
spherical), or of three Student shapes, for the parameters of that shape (half the log of the total
weight each; Schwarz, "Estimating the dimension of a model", 1978) and for the labels of its points.
A fourth shape is skewed: every coordinate by itself has a mode, and a scale on each side of it.
"""

from __future__ import annotations

import math

import numpy as np

from streamclust.kernels.compiled import kernel, regrouping_kernel
from streamclust.results import FloatArray

LOG_TAU = math.log(2.0 * math.pi)
DEGREES = 4.0
STEPS = 4
FULL, DIAGONAL, SPHERICAL, SKEWED = 0, 1, 2, 3
TURNS = 8
PROMISING = 0.25  # of what a skewed law costs: the test is of the second order only


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
def gaussian(
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
def squares(
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
            squares(packed, mean, trial, FULL, part, far)
            for at in range(count):
                pulled[at] = mass[at] * (DEGREES + d) / (DEGREES + far[at])
            _moments(packed, pulled, part, mean, scatter)
        shape = FULL
        code = np.inf
        for option in range(3):
            told = weight * (0.5 * _whitener(scatter, weight, floor, option, trial) - constant)
            squares(packed, mean, trial, option, part, far)
            tail = 0.0
            for at in range(count):
                tail += mass[at] * math.log(1.0 + far[at] / DEGREES)
            told += 0.5 * (DEGREES + d) * tail + 0.5 * _parameters(d, option) * log_total
            if told < code:
                code = told
                shape = option
    else:
        code, shape = gaussian(scatter, weight, floor, log_total, trial)
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
def depths(
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
    depths(packed, mode, whitener, skew, student, part)
    nats = 0.5 * _parameters(d, SKEWED) * log_total - weight * peak
    for at in range(count):
        nats += 0.5 * mass[at] * part[at]
    return nats, peak


@kernel
def fit_law(
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
