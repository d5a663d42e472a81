"""The distance of two points, compiled: a clipped, weighted l_p metric, of one pair or of tables.

Every form of it gives the same bits: what is near by one is near by all.
"""

from __future__ import annotations

import numpy as np

from streamclust.kernels.compiled import entry_kernel, inlined_kernel, kernel
from streamclust.results import FloatArray, IntArray

CLIP = 10.0  # a single wild feature must not decide a distance alone


@inlined_kernel
def euclid(a: FloatArray, b: FloatArray, weights: FloatArray, limit: float) -> float:
    """Return `distance` with p = 2 where it is at most `limit`; else that or, once sure, inf.

    A sum that has passed the limit only grows; the margin keeps roundings from deciding. Small, so
    that loops over centers take it in: a call would cost several times its arithmetic.
    """
    total, enough = 0.0, limit * limit * (1.0 + 1e-12) + 1e-300
    for j in range(weights.shape[0]):
        z = min(abs(a[j] - b[j]) * weights[j], CLIP)
        total += z * z
        if total > enough:
            return np.inf
    return float(np.sqrt(total))


@kernel
def distance(a: FloatArray, b: FloatArray, weights: FloatArray, p: float) -> float:
    """Return the clipped, weighted l_p distance of two vectors of the length of `weights`."""
    d = weights.shape[0]
    total = 0.0
    if p == 2.0:
        return euclid(a, b, weights, np.inf)
    if p == 1.0:
        for j in range(d):
            total += min(abs(a[j] - b[j]) * weights[j], CLIP)
        return total
    top = 0.0
    for j in range(d):
        top = max(top, min(abs(a[j] - b[j]) * weights[j], CLIP))
    if top == 0.0:
        return 0.0
    for j in range(d):
        total += (min(abs(a[j] - b[j]) * weights[j], CLIP) / top) ** p
    return float(top * total ** (1.0 / p))


@entry_kernel
def distances(a: FloatArray, b: FloatArray, weights: FloatArray, p: float) -> FloatArray:
    """Return the `distance` of every row of a to that of b; both have shape (n, d)."""
    found = np.empty(a.shape[0])
    for i in range(a.shape[0]):
        found[i] = distance(a[i], b[i], weights, p)
    return found


@inlined_kernel
def squares_across(
    point: FloatArray, across: FloatArray, weights: FloatArray, found: FloatArray
) -> None:
    """Tell into `found` the squares of what `distances_across` tells for p = 2.

    Four features at a time, so that sums are fetched and put back less often.
    """
    n, d = found.shape[0], weights.shape[0]
    found[:] = 0.0
    whole = d - d % 4
    for j in range(0, whole, 4):
        x0, x1, x2, x3 = point[j], point[j + 1], point[j + 2], point[j + 3]
        w0, w1, w2, w3 = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        for m in range(n):
            z0 = min(abs(x0 - across[j, m]) * w0, CLIP)
            z1 = min(abs(x1 - across[j + 1, m]) * w1, CLIP)
            z2 = min(abs(x2 - across[j + 2, m]) * w2, CLIP)
            z3 = min(abs(x3 - across[j + 3, m]) * w3, CLIP)
            found[m] = found[m] + z0 * z0 + z1 * z1 + z2 * z2 + z3 * z3
    for j in range(whole, d):
        value, weight = point[j], weights[j]
        for m in range(n):
            z = min(abs(value - across[j, m]) * weight, CLIP)
            found[m] += z * z


@kernel
def distances_across(
    point: FloatArray, across: FloatArray, weights: FloatArray, p: float, found: FloatArray
) -> None:
    """Tell into `found` the `distance` of a point to each of the first columns of `across`.

    For p = 2 the sums of all grow side by side, each in its own order, so that they fill vector
    registers.
    """
    n, d = found.shape[0], weights.shape[0]
    if p == 2.0:
        squares_across(point, across, weights, found)
        for m in range(n):
            found[m] = np.sqrt(found[m])
        return
    place = np.empty(d)
    for m in range(n):
        for j in range(d):
            place[j] = across[j, m]
        found[m] = distance(point, place, weights, p)


@kernel
def distance_table(
    points: FloatArray, centers: FloatArray, weights: FloatArray, p: float
) -> FloatArray:
    """Return the distances of points (n, d) to centers (k, d), shape (n, k).

    Equal to `distance` to the bit.
    """
    table, across = np.empty((points.shape[0], centers.shape[0])), centers.T.copy()
    for i in range(points.shape[0]):
        distances_across(points[i], across, weights, p, table[i])
    return table


@kernel
def nearest_slots(
    points: FloatArray,
    hints: IntArray,
    centers: FloatArray,
    apart: FloatArray,
    order: IntArray,
    weights: FloatArray,
    p: float,
) -> IntArray:
    """Return the slot of the nearest center of every point; `hints` guess them.

    `apart` holds the distances between centers, shape (k, k), and `order` sorts its rows. By the
    triangle inequality, which the clipped distance keeps, only centers within twice the distance
    to the guess can be nearer: they are looked at in order of distance from the guess.
    """
    k, d = centers.shape[0], weights.shape[0]
    found = np.empty(points.shape[0], dtype=np.int64)
    for i in range(points.shape[0]):
        guess = hints[i]
        if p == 2.0:
            slot, best = guess, euclid(points[i], centers[guess], weights, np.inf)
        else:
            slot, best = guess, distance(points[i], centers[guess], weights, p)
        reach = 2.0 * best * (1.0 + d * 1e-15)
        for turn in range(k):
            c = order[guess, turn]
            if apart[guess, c] > reach:
                break
            if p == 2.0:
                dist = euclid(points[i], centers[c], weights, best)
            else:
                dist = distance(points[i], centers[c], weights, p)
            if dist < best or (dist == best and c < slot):
                slot, best = c, dist
        found[i] = slot
    return found


@kernel
def stand(
    points: FloatArray,
    centers: FloatArray,
    fences: FloatArray,
    scales: FloatArray,
    groups: IntArray,
    weights: FloatArray,
    p: float,
    holders: IntArray,
    nearest: FloatArray,
) -> None:
    """Tell how points stand to centers.

    Parameters
    ----------
    points, centers : float arrays of shape (n, d) and (k, d)
    fences, scales : float arrays of shape (k,)
    groups : int array of shape (k,)
        Each center's group, numbered from 0.
    holders : int array of shape (n,), written
        The nearest center whose fence holds, or -1.
    nearest : float array of shape (n, 2), written
        Distances to the nearest and the second nearest group, each to its nearest center, in units
        of the centers' scales; 0 over 0 is 0. Infinite where there is no such group.
    """
    k = centers.shape[0]
    across, row = centers.T.copy(), np.empty(k)
    relative = np.empty(k)
    for i in range(points.shape[0]):
        distances_across(points[i], across, weights, p, row)
        best = np.inf
        holders[i] = -1
        for c in range(k):
            relative[c] = np.inf
            if row[c] <= fences[c] and row[c] < best:
                best = row[c]
                holders[i] = c
        for c in range(k):
            near = 0.0 if row[c] == 0.0 else row[c] / scales[c]
            relative[groups[c]] = min(relative[groups[c]], near)
        first, second = np.inf, np.inf
        for g in range(k):
            if relative[g] < first:
                first, second = relative[g], first
            elif relative[g] < second:
                second = relative[g]
        nearest[i, 0], nearest[i, 1] = first, second
