"""The compiled sweeps of the l_p median."""

from __future__ import annotations

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.results import FloatArray

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
            norm[i] = length(x[i], c, p)
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
            for j in range(d):
                u = x[i, j] - c[j]
                w = weights[i] / far if far > 0.0 else 0.0
                if p != 2.0:
                    w *= max(abs(u) / far, NEAR) ** (p - 2.0) if far > 0.0 else 0.0
                pull[j] += w
                step[j] += w * u
        for j in range(d):
            if pull[j] > 0.0:
                c[j] += damp * step[j] / pull[j]
