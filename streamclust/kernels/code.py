"""Compiled code lengths: what it costs, in nats, to tell the points of a cluster.

A cluster pays for its points under the cheapest of three Gaussian shapes (full, diagonal,
spherical), for the parameters of that shape (half the log of the total weight each; Schwarz,
"Estimating the dimension of a model", 1978) and for the labels of its points. Because the sum over
clusters is the length of a clustering, the best cut of a merge hierarchy is an exact dynamic
programme over its nodes.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from streamclust.kernels.compiled import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LOG_TAU = math.log(2.0 * math.pi)
DEGREES = 4.0
STEPS = 4
FULL, DIAGONAL, SPHERICAL = 0, 1, 2


@kernel
def _whitener(
    scatter: FloatArray, weight: float, floor: float, shape: int, inverse: FloatArray
) -> float:
    """Write the inverse Cholesky factor of a shape's covariance; answer its log determinant.

    Every variance gets `floor`; the full covariance is drawn towards a sphere by (d + 2) / 2
    imagined points.
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
            variance = (mean if shape == SPHERICAL else scatter[i, i] / weight) + floor
            inverse[i, i] = 1.0 / math.sqrt(variance)
            log_det += math.log(variance)
        return log_det
    prior = 0.5 * (d + 2)
    for i in range(d):
        for j in range(i + 1):
            total = scatter[i, j] / (weight + prior)
            if i == j:
                total += prior * mean / (weight + prior) + floor
            for m in range(j):
                total -= inverse[i, m] * inverse[j, m]
            if i == j:
                inverse[i, i] = math.sqrt(max(total, 1e-12 * (mean + floor)))
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
    return 2.0 + 2.0 * d if shape == DIAGONAL else 3.0 + d


@kernel
def _gaussian(
    scatter: FloatArray, weight: float, floor: float, log_total: float, inverse: FloatArray
) -> tuple[float, int]:
    """The shortest code of a cluster's points and parameters, and the shape that gives it."""
    d = scatter.shape[0]
    best = np.inf
    chosen = FULL
    trace = 0.0
    for i in range(d):
        trace += scatter[i, i]
    mean = trace / (weight * d)
    prior = 0.5 * (d + 2)
    for shape in range(3):
        log_det = _whitener(scatter, weight, floor, shape, inverse)
        spread = 0.0
        for i in range(d):
            if shape == FULL:
                for j in range(i + 1):
                    spread += inverse[i, j] * inverse[i, j]
            else:
                spread += scatter[i, i] * inverse[i, i] * inverse[i, i]
        if shape == FULL:
            spread = (weight + prior) * d - ((weight + prior) * floor + prior * mean) * spread
        code = 0.5 * (weight * (d * LOG_TAU + log_det) + spread)
        code += 0.5 * _parameters(d, shape) * log_total
        if code < best:
            best = code
            chosen = shape
    return best, chosen


@kernel
def node_codes(
    left: IntArray,
    right: IntArray,
    points: FloatArray,
    weights: FloatArray,
    floor: float,
    least: float,
) -> FloatArray:
    """The code of every merge of a hierarchy, as one Gaussian cluster.

    Parameters
    ----------
    left, right : int array of shape (n - 1,)
        The merges, children before parents.
    points : float array of shape (n, d)
    weights : float array of shape (n,)
    floor : float
        Added to every variance, in squared units of the points.
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


@kernel
def best_cut(
    left: IntArray,
    right: IntArray,
    codes: FloatArray,
    noise: FloatArray,
    penalty: float,
    labels: IntArray,
) -> float:
    """The cut of a hierarchy with the shortest sum of codes; exact dynamic programme.

    Parameters
    ----------
    left, right : int array of shape (n - 1,)
        The merges, children before parents; the last one is the root.
    codes : float array of shape (2 n - 1,)
        Code of each node as a cluster, nats.
    noise : float array of shape (n,)
        Code of each point as noise, nats.
    penalty : float
        Added for every cluster, nats.
    labels : int array of shape (n,)
        Receives 0, 1, ... and -1 for noise.

    Returns
    -------
    float
        The length of the cut, penalties included.
    """
    n = noise.shape[0]
    best = np.empty(2 * n - 1)
    whole = np.empty(2 * n - 1, np.bool_)
    for i in range(n):
        best[i] = noise[i]
    for t in range(n - 1):
        parts = best[left[t]] + best[right[t]]
        one = codes[n + t] + penalty
        whole[n + t] = one <= parts
        best[n + t] = one if one <= parts else parts
    label = np.empty(2 * n - 1, np.int64)
    label[2 * n - 2] = -1
    found = 0
    for t in range(n - 2, -1, -1):
        node = n + t
        if label[node] < 0 and whole[node]:
            label[node] = found
            found += 1
        label[left[t]] = label[node]
        label[right[t]] = label[node]
    for i in range(n):
        labels[i] = label[i]
    total: float = best[2 * n - 2]
    return total


@kernel
def _moments(
    points: FloatArray,
    weights: FloatArray,
    own: IntArray,
    pull: FloatArray,
    mean: FloatArray,
    scatter: FloatArray,
) -> float:
    """Write the pulled mean and scatter (lower triangle) of some points; answer their weight."""
    d = points.shape[1]
    weight = 0.0
    pulled = 0.0
    for j in range(d):
        mean[j] = 0.0
        for m in range(d):
            scatter[j, m] = 0.0
    for i in own:
        w = weights[i] * pull[i]
        weight += weights[i]
        pulled += w
        for j in range(d):
            mean[j] += w * points[i, j]
    for j in range(d):
        mean[j] /= pulled
    for i in own:
        w = weights[i] * pull[i]
        for j in range(d):
            u = w * (points[i, j] - mean[j])
            for m in range(j + 1):
                scatter[j, m] += u * (points[i, m] - mean[m])
    return weight


@kernel
def _square(points: FloatArray, at: int, mean: FloatArray, whitener: FloatArray) -> float:
    """The squared Mahalanobis distance of one of the points."""
    total = 0.0
    for i in range(mean.shape[0]):
        part = 0.0
        for j in range(i + 1):
            part += whitener[i, j] * (points[at, j] - mean[j])
        total += part * part
    return total


@kernel
def fit_clusters(
    points: FloatArray,
    weights: FloatArray,
    labels: IntArray,
    total: float,
    floor: float,
    student: bool,
    codes: FloatArray,
    means: FloatArray,
    whiteners: FloatArray,
    offsets: FloatArray,
) -> None:
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
    floor : float
        Added to every variance, in squared units of the points.
    student : bool
        Which law.
    codes : float array of shape (K,)
        Receives nats: points, parameters and labels of each cluster.
    means : float array of shape (K, d)
        Receives the centers of the laws.
    whiteners : float array of shape (K, d, d)
        Receives the inverse Cholesky factors of the laws' scales.
    offsets : float array of shape (K,)
        Receives the log density at the center plus the log of the cluster's share of the weight.
    """
    n, d = points.shape
    n_clusters = codes.shape[0]
    begin = np.zeros(n_clusters + 2, np.int64)
    for i in range(n):
        begin[labels[i] + 2] += 1
    for c in range(n_clusters):
        begin[c + 2] += begin[c + 1]
    members = np.empty(n, np.int64)
    for i in range(n):
        members[begin[labels[i] + 1]] = i
        begin[labels[i] + 1] += 1
    log_total = math.log(total)
    scatter = np.empty((d, d))
    trial = np.empty((d, d))
    pull = np.ones(n)
    constant = -0.5 * d * LOG_TAU
    if student:
        constant = math.lgamma(0.5 * (DEGREES + d)) - math.lgamma(0.5 * DEGREES)
        constant -= 0.5 * d * math.log(DEGREES * math.pi)
    for c in range(n_clusters):
        own = members[begin[c] : begin[c + 1]]
        weight = _moments(points, weights, own, pull, means[c], scatter)
        if student:
            for _ in range(STEPS):
                _whitener(scatter, weight, floor, FULL, trial)
                for i in own:
                    square = _square(points, i, means[c], trial)
                    pull[i] = (DEGREES + d) / (DEGREES + square)
                _moments(points, weights, own, pull, means[c], scatter)
            shape = FULL
            codes[c] = np.inf
            for option in range(3):
                code = weight * (0.5 * _whitener(scatter, weight, floor, option, trial) - constant)
                for i in own:
                    square = _square(points, i, means[c], trial)
                    code += weights[i] * 0.5 * (DEGREES + d) * math.log1p(square / DEGREES)
                code += 0.5 * _parameters(d, option) * log_total
                if code < codes[c]:
                    codes[c] = code
                    shape = option
        else:
            codes[c], shape = _gaussian(scatter, weight, floor, log_total, trial)
        share = math.log(weight / total)
        codes[c] -= weight * share
        offsets[c] = constant + share
        offsets[c] -= 0.5 * _whitener(scatter, weight, floor, shape, whiteners[c])


@kernel
def nearest_law(
    points: FloatArray,
    means: FloatArray,
    whiteners: FloatArray,
    offsets: FloatArray,
    noise: float,
    student: bool,
    labels: IntArray,
) -> None:
    """Give every point to the cluster that tells it in the shortest code, or to noise.

    Parameters
    ----------
    points : float array of shape (n, d)
    means, whiteners, offsets : float arrays of shape (K, d), (K, d, d), (K,)
        As `fit_clusters` writes them.
    noise : float
        Log density of noise plus the log of its share; -inf allows no noise.
    student : bool
        Which law.
    labels : int array of shape (n,)
        Receives 0 .. K - 1, or -1.
    """
    half = 0.5 * (DEGREES + points.shape[1])
    top = noise
    for c in range(means.shape[0]):
        top = max(top, offsets[c])
    height = offsets.copy()
    ground = noise
    if student:  # densities to the power 1 / half, in units of the highest: no logarithm per pair
        ground = math.exp((noise - top) / half)
        for c in range(means.shape[0]):
            height[c] = math.exp((offsets[c] - top) / half)
    for i in range(points.shape[0]):
        best = ground
        labels[i] = -1
        for c in range(means.shape[0]):
            square = _square(points, i, means[c], whiteners[c])
            fall = 1.0 + square / DEGREES
            value = height[c] / fall if student else height[c] - 0.5 * square
            if value > best:
                best = value
                labels[i] = c
