"""Compiled linear solver of the robust fusion problem.

COMET and robust continuous clustering (Shah and Koltun, PNAS 2017, equation 8) both come down to
(H + A) U = H X with a positive diagonal H and the Laplacian A of a sparse graph. All columns are
solved side by side by conjugate gradients, warm-started from the previous U and preconditioned
with the diagonal. Four columns at a time fill a vector register, if they are spelled out.
"""

from __future__ import annotations

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.results import FloatArray, IntArray


@kernel
def _apply(
    start: IntArray,
    neighbours: IntArray,
    pulls: FloatArray,
    diagonal: FloatArray,
    V: FloatArray,
    out: FloatArray,
    along: FloatArray,
) -> None:
    """Write (H + A) V into `out`, both of shape (n, 4), and its products with V into `along`."""
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    for i in range(V.shape[0]):
        own = diagonal[i]
        v0, v1, v2, v3 = V[i, 0], V[i, 1], V[i, 2], V[i, 3]
        s0, s1, s2, s3 = own * v0, own * v1, own * v2, own * v3
        for e in range(start[i], start[i + 1]):
            pull = pulls[e]
            other = np.uint64(neighbours[e])  # no look at the sign when indexing
            s0 -= pull * V[other, 0]
            s1 -= pull * V[other, 1]
            s2 -= pull * V[other, 2]
            s3 -= pull * V[other, 3]
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = s0, s1, s2, s3
        t0 += v0 * s0
        t1 += v1 * s1
        t2 += v2 * s2
        t3 += v3 * s3
    along[0], along[1], along[2], along[3] = t0, t1, t2, t3


@kernel
def _advance(
    along: FloatArray,
    scale: FloatArray,
    P: FloatArray,
    Q: FloatArray,
    U: FloatArray,
    R: FloatArray,
    fresh: FloatArray,
) -> None:
    """Go `along` the directions P; write the new residuals and their squares, scaled."""
    a0, a1, a2, a3 = along[0], along[1], along[2], along[3]
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    for i in range(scale.shape[0]):
        U[i, 0] += a0 * P[i, 0]
        U[i, 1] += a1 * P[i, 1]
        U[i, 2] += a2 * P[i, 2]
        U[i, 3] += a3 * P[i, 3]
        r0, r1 = R[i, 0] - a0 * Q[i, 0], R[i, 1] - a1 * Q[i, 1]
        r2, r3 = R[i, 2] - a2 * Q[i, 2], R[i, 3] - a3 * Q[i, 3]
        R[i, 0], R[i, 1], R[i, 2], R[i, 3] = r0, r1, r2, r3
        t0 += scale[i] * r0 * r0
        t1 += scale[i] * r1 * r1
        t2 += scale[i] * r2 * r2
        t3 += scale[i] * r3 * r3
    fresh[0], fresh[1], fresh[2], fresh[3] = t0, t1, t2, t3


@kernel
def _solve_four(
    start: IntArray,
    neighbours: IntArray,
    pulls: FloatArray,
    held: FloatArray,
    diagonal: FloatArray,
    tolerance: float,
    max_steps: int,
    X: FloatArray,
    U: FloatArray,
    work: FloatArray,
) -> int:
    """`solve_fusion` for X and U of shape (n, 4); `work`, of shape (3, n, 4), is overwritten."""
    R, Q, P = work[0], work[1], work[2]
    rho, goal, along, fresh = np.zeros(4), np.zeros(4), np.empty(4), np.empty(4)
    scale = np.empty(X.shape[0])
    _apply(start, neighbours, pulls, diagonal, U, R, along)
    for i in range(X.shape[0]):
        scale[i] = 1.0 / diagonal[i]
        for j in range(4):
            right = held[i] * X[i, j]
            R[i, j] = right - R[i, j]
            P[i, j] = scale[i] * R[i, j]
            rho[j] += R[i, j] * P[i, j]
            goal[j] += scale[i] * right * right * tolerance * tolerance
    for steps in range(max_steps):
        going = False
        for j in range(4):
            going |= rho[j] > goal[j]
        if not going:
            return steps
        _apply(start, neighbours, pulls, diagonal, P, Q, along)
        for j in range(4):
            along[j] = rho[j] / along[j] if rho[j] > goal[j] and along[j] > 0.0 else 0.0
        _advance(along, scale, P, Q, U, R, fresh)
        for j in range(4):
            along[j] = fresh[j] / rho[j] if rho[j] > goal[j] else 0.0
            rho[j] = fresh[j]
        a0, a1, a2, a3 = along[0], along[1], along[2], along[3]
        for i in range(X.shape[0]):
            P[i, 0] = scale[i] * R[i, 0] + a0 * P[i, 0]
            P[i, 1] = scale[i] * R[i, 1] + a1 * P[i, 1]
            P[i, 2] = scale[i] * R[i, 2] + a2 * P[i, 2]
            P[i, 3] = scale[i] * R[i, 3] + a3 * P[i, 3]
    return max_steps


@kernel
def solve_fusion(
    start: IntArray,
    neighbours: IntArray,
    pulls: FloatArray,
    held: FloatArray,
    X: FloatArray,
    U: FloatArray,
    tolerance: float,
    max_steps: int,
) -> int:
    """Move U, in place, to the solution of (H + A) U = H X.

    Parameters
    ----------
    start : int array of shape (n + 1,)
        Where the neighbours of each point begin; the graph is symmetric.
    neighbours : int array of shape (m,)
    pulls : float array of shape (m,)
        Weight of the edge to each neighbour, not negative; A is their Laplacian.
    held : float array of shape (n,)
        The diagonal of H, positive.
    X : float array of shape (n, d)
    U : float array of shape (n, d)
        The start; receives the solution.
    tolerance : float
        A column is done when its residual is below this share of its right side, both measured
        in the norm of the inverse diagonal.
    max_steps : int
        At most so many conjugate gradient steps.

    Returns
    -------
    int
        The number of steps made.
    """
    n, d = X.shape
    diagonal = np.empty(n)
    for i in range(n):
        diagonal[i] = held[i]
        for e in range(start[i], start[i + 1]):
            diagonal[i] += pulls[e]
    goal, found, work = np.empty((n, 4)), np.empty((n, 4)), np.empty((3, n, 4))
    most = 0
    for first in range(0, d, 4):
        count = min(4, d - first)
        for i in range(n):
            for j in range(4):  # a column of zeros is solved
                goal[i, j] = X[i, first + j] if j < count else 0.0
                found[i, j] = U[i, first + j] if j < count else 0.0
        steps = _solve_four(
            start, neighbours, pulls, held, diagonal, tolerance, max_steps, goal, found, work
        )
        for i in range(n):
            for j in range(count):
                U[i, first + j] = found[i, j]
        most = max(most, steps)
    return most


@kernel
def _typical(moved: FloatArray, weights: FloatArray, bins: IntArray) -> float:
    """The median over bins of the weighted means of their rows."""
    count = 0
    for b in bins:
        if b >= count:
            count = b + 1
    sums, mass = np.zeros(count), np.zeros(count)
    for i, b in enumerate(bins):
        sums[b] += weights[i] * moved[i]
        mass[b] += weights[i]
    for b in range(count):
        sums[b] /= mass[b]
    return float(np.median(sums))


@kernel
def draw_together(
    start: IntArray,
    neighbours: IntArray,
    edge: IntArray,
    first: IntArray,
    second: IntArray,
    base: FloatArray,
    weights: FloatArray,
    bins: IntArray,
    strength: float,
    resist: float,
    truncation: float,
    end: float,
    tolerance: float,
    max_steps: int,
    Z: FloatArray,
    U: FloatArray,
) -> None:
    """Solve the fusion problem at one level of the truncation after another, each half of the last.

    Parameters
    ----------
    start : int array of shape (n + 1,)
        Where the neighbours of each point begin.
    neighbours, edge : int array of shape (2 m,)
        The neighbours of all points, and the edges to them.
    first, second : int array of shape (m,)
        Ends of the edges.
    base : float array of shape (m,)
        Weights of the edges.
    weights : float array of shape (n,)
        Weights of the points, positive.
    bins : int array of shape (levels, n)
        The bin of every row in the median of means, or shape (0, n): every row is one.
    strength : float
        Weight of all fusion terms over that of all data terms.
    resist : float
        Least data weight of a point.
    truncation, end : float
        The first level and the last one; positive.
    tolerance, max_steps
        As for `solve_fusion`.
    Z : float array of shape (n, p)
    U : float array of shape (n, p)
        The start; receives the representatives.
    """
    n, p = Z.shape
    pulls, along = np.empty(base.shape[0]), np.empty(edge.shape[0])
    trust, moved, held = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        trust[i] = 1.0
    level = 0
    while True:
        pulling, holding = 0.0, 0.0
        for e in range(base.shape[0]):
            square = 0.0
            for j in range(p):
                square += (U[first[e], j] - U[second[e], j]) ** 2
            pulls[e] = base[e] * (truncation / (truncation + square)) ** 2
            pulling += pulls[e]
        for i in range(n):
            held[i] = trust[i] * weights[i]
            holding += held[i]
        factor = strength * holding / (2.0 * pulling)
        for e in range(edge.shape[0]):
            along[e] = factor * pulls[edge[e]]
        solve_fusion(start, neighbours, along, held, Z, U, tolerance, max_steps)
        for i in range(n):
            square = 0.0
            for j in range(p):
                square += (Z[i, j] - U[i, j]) ** 2
            moved[i] = square
        scale = 4.0 * (_typical(moved, weights, bins[level]) if len(bins) else np.median(moved))
        if scale > 0.0:
            for i in range(n):
                trust[i] = (scale / (scale + moved[i])) ** 2 + resist
        if truncation <= end:
            return
        truncation = max(0.5 * truncation, end)
        level += 1
