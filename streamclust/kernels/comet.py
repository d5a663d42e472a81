"""Compiled linear solver of the robust fusion problem.

COMET and robust continuous clustering (Shah and Koltun, PNAS 2017, equation 8) both come down to
(H + A) U = H X with a positive diagonal H and the Laplacian A of a sparse graph. All columns are
solved side by side by conjugate gradients, warm-started from the previous U and preconditioned
with the diagonal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamclust.kernels.compiled import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@kernel
def _apply(
    start: IntArray,
    neighbours: IntArray,
    pulls: FloatArray,
    held: FloatArray,
    V: FloatArray,
    out: FloatArray,
) -> None:
    """Write (H + A) V into `out`."""
    n, d = V.shape
    for i in range(n):
        own = held[i]
        for e in range(start[i], start[i + 1]):
            own += pulls[e]
        for j in range(d):
            out[i, j] = own * V[i, j]
        for e in range(start[i], start[i + 1]):
            pull = pulls[e]
            other = neighbours[e]
            for j in range(d):
                out[i, j] -= pull * V[other, j]


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
    scale = np.empty(n)
    R = np.empty((n, d))
    Q = np.empty((n, d))
    P = np.empty((n, d))
    rho = np.zeros(d)
    goal = np.zeros(d)
    fresh = np.empty(d)
    along = np.empty(d)
    _apply(start, neighbours, pulls, held, U, R)
    for i in range(n):
        own = held[i]
        for e in range(start[i], start[i + 1]):
            own += pulls[e]
        scale[i] = 1.0 / own
        for j in range(d):
            right = held[i] * X[i, j]
            R[i, j] = right - R[i, j]
            P[i, j] = scale[i] * R[i, j]
            rho[j] += R[i, j] * P[i, j]
            goal[j] += scale[i] * right * right * tolerance * tolerance
    for steps in range(max_steps):
        going = False
        for j in range(d):
            going |= rho[j] > goal[j]
            along[j] = 0.0
            fresh[j] = 0.0
        if not going:
            return steps
        _apply(start, neighbours, pulls, held, P, Q)
        for i in range(n):
            for j in range(d):
                along[j] += P[i, j] * Q[i, j]
        for j in range(d):
            along[j] = rho[j] / along[j] if rho[j] > goal[j] and along[j] > 0.0 else 0.0
        for i in range(n):
            for j in range(d):
                U[i, j] += along[j] * P[i, j]
                R[i, j] -= along[j] * Q[i, j]
                fresh[j] += scale[i] * R[i, j] * R[i, j]
        for j in range(d):
            along[j] = fresh[j] / rho[j] if rho[j] > goal[j] else 0.0
            rho[j] = fresh[j]
        for i in range(n):
            for j in range(d):
                P[i, j] = scale[i] * R[i, j] + along[j] * P[i, j]
    return max_steps
