"""The compiled sweeps of the l_p median, and k-medians of Euclidean distances."""

from __future__ import annotations

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.kernels.groups import by_group
from streamclust.results import FloatArray, IntArray

TINY = 1e-280  # squares below have lost digits
NEAR = 1e-6  # relative distance below which a point pulls no harder


@kernel
def length(x: FloatArray, c: FloatArray, p: float) -> float:
    """Return ||x - c||_p, whatever its magnitude."""
    top, power = 0.0, 0.0
    if p == 2.0:
        for j in range(c.shape[0]):
            power += (x[j] - c[j]) * (x[j] - c[j])
        if TINY < power < np.inf:
            return float(np.sqrt(power))
        power = 0.0
    for j in range(c.shape[0]):
        top = max(top, abs(x[j] - c[j]))
    if top > 0.0:
        for j in range(c.shape[0]):
            power += (abs(x[j] - c[j]) / top) ** p
    return float(top * power ** (1.0 / p))


@kernel
def descend(x: FloatArray, weights: FloatArray, c: FloatArray, p: float, sweeps: int) -> None:
    """Move `c` to the minimiser of the weighted sum of ||x_i - c||_p, in place.

    Iteratively re-weighted means, for p = 2 Weiszfeld's, damped beyond p = 2 where they would
    overshoot. Shapes: x (n, d), weights (n,), c (d,).
    """
    n, d = x.shape
    norm, pull, step = np.empty(n), np.empty(d), np.empty(d)
    damp = min(1.0, 2.0 / p)
    floor = 0.0
    for sweep in range(sweeps):
        here, total = 0.0, 0.0
        for i in range(n):
            square = 0.0
            if p == 2.0:  # as in `length`, whose call takes longer than this
                for j in range(d):
                    square += (x[i, j] - c[j]) * (x[i, j] - c[j])
            norm[i] = np.sqrt(square) if TINY < square < np.inf else length(x[i], c, p)
            total += weights[i]
            if norm[i] == 0.0:
                here += weights[i]
        if 2.0 * here >= total:  # half of the weight is here: this is the minimiser
            return
        if sweep == 0:
            floor = NEAR * np.median(norm)
        pull[:] = 0.0
        step[:] = 0.0
        for i in range(n):
            far = max(norm[i], floor)
            if far == 0.0:
                continue
            w = weights[i] / far
            if p == 2.0:
                for j in range(d):
                    pull[j] += w
                    step[j] += w * (x[i, j] - c[j])
            else:
                for j in range(d):
                    u = x[i, j] - c[j]
                    along = w * max(abs(u) / far, NEAR) ** (p - 2.0)
                    pull[j] += along
                    step[j] += along * u
        for j in range(d):
            if pull[j] > 0.0:
                c[j] += damp * step[j] / pull[j]


@kernel
def lower_medians(
    points: FloatArray,
    order: IntArray,
    weights: FloatArray,
    members: IntArray,
    found: FloatArray,
) -> None:
    """Find the lower weighted median of every feature in every group: where half of it is reached.

    Parameters
    ----------
    points : float array of shape (n, d)
    order : int array of shape (d, n)
        The points sorted by each feature.
    weights : float array of shape (n,)
    members : int array of shape (n,)
        The group of each point, 0 .. k - 1 and every one used, or -1.
    found : float array of shape (k, d), written
    """
    k, d = found.shape
    total, mass = np.empty(k), np.empty(k)
    for j in range(d):
        total[:] = 0.0
        mass[:] = -1.0  # the first counts even without weight
        for i in order[j]:
            if members[i] >= 0:
                total[members[i]] += weights[i]
        for i in order[j]:
            group = members[i]
            if group >= 0 and mass[group] < 0.5 * total[group]:
                mass[group] = max(mass[group], 0.0) + weights[i]
                found[group, j] = points[i, j]


@kernel
def lp_sweeps(
    points: FloatArray,
    weights: FloatArray,
    members: IntArray,
    frame_weights: FloatArray,
    counted: IntArray,
    p: float,
    sweeps: int,
    found: FloatArray,
) -> None:
    """Let the center of every group of more than two points descend; see `descend`.

    Parameters
    ----------
    points, weights, members
        As in `lower_medians`.
    frame_weights : float array of shape (d,)
    counted : int array of shape (m,)
        The features of weight above 0, which count; there are some.
    found : float array of shape (k, d)
        Where to start; overwritten.
    """
    k = found.shape[0]
    rows, starts = by_group(members, k)
    for group in range(k):
        mine = rows[starts[group] : starts[group + 1]]
        if mine.size <= 2:
            continue
        x, c = np.empty((mine.size, counted.size)), np.empty(counted.size)
        own = np.empty(mine.size)
        for i in range(mine.size):
            own[i] = weights[mine[i]]
        for j in range(counted.size):
            unit = frame_weights[counted[j]]
            c[j] = found[group, counted[j]] * unit
            for i in range(mine.size):
                x[i, j] = points[mine[i], counted[j]] * unit
        descend(x, own, c, p, sweeps)
        for j in range(counted.size):
            found[group, counted[j]] = c[j] / frame_weights[counted[j]]


@kernel
def alternate(
    x: FloatArray,
    weights: FloatArray,
    centers: FloatArray,
    rounds: int,
    sweeps: int,
    labels: IntArray,
) -> float:
    """Move centers to the medians of their points and points to the nearest center, in turn.

    Weiszfeld's step towards the minimiser of the weighted sum of Euclidean distances, for all
    clusters at once. Ends where no point changes sides, or where a cluster would be left empty.

    Parameters
    ----------
    x : float array of shape (n, d)
    weights : float array of shape (n,)
    centers : float array of shape (k, d)
        Where to start; overwritten.
    rounds : int
        Assignments at the most.
    sweeps : int
        Steps of the centers between two assignments.
    labels : int array of shape (n,)
        0 .. k - 1, every one used; overwritten, still every one used.

    Returns
    -------
    float
        Weighted sum of the distances to the own centers.
    """
    n, d = x.shape
    k = centers.shape[0]
    step, pull = np.empty((k, d)), np.empty(k)
    fresh, count = np.empty(n, np.int64), np.empty(k, np.int64)
    for _ in range(rounds):
        floor = 0.0
        for _ in range(sweeps):
            step[:] = 0.0
            pull[:] = 0.0
            cost, mass = 0.0, 0.0
            for i in range(n):
                c = labels[i]
                square = 0.0
                for j in range(d):
                    gap = x[i, j] - centers[c, j]
                    square += gap * gap
                far = np.sqrt(square)
                cost += weights[i] * far
                mass += weights[i]
                far = max(far, floor)
                if far > 0.0:
                    pull[c] += weights[i] / far
                    for j in range(d):
                        step[c, j] += weights[i] / far * (x[i, j] - centers[c, j])
            floor = NEAR * cost / mass
            for c in range(k):
                if pull[c] > 0.0:
                    for j in range(d):
                        centers[c, j] += step[c, j] / pull[c]
        count[:] = 0
        changed = False
        for i in range(n):
            least = np.inf
            for c in range(k):
                square = 0.0
                for j in range(d):
                    gap = x[i, j] - centers[c, j]
                    square += gap * gap
                if square < least:
                    least = square
                    fresh[i] = c
            count[fresh[i]] += 1
            changed |= fresh[i] != labels[i]
        if not changed or count.min() == 0:
            break
        labels[:] = fresh
    total = 0.0
    for i in range(n):
        square = 0.0
        for j in range(d):
            gap = x[i, j] - centers[labels[i], j]
            square += gap * gap
        total += weights[i] * np.sqrt(square)
    return total
