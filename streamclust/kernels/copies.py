"""Residual copies: more points around the centers than the window holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.results import FloatArray, IntArray


@kernel
def mixed(a: Any, b: Any) -> Any:
    """Return 64 bits that depend on both numbers (SplitMix64 finaliser); a and b are uint64."""
    z = np.uint64(a) + (np.uint64(b) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def copy_residuals(
    points: FloatArray,
    slots: IntArray,
    centers: FloatArray,
    scales: FloatArray,
    borrow: FloatArray,
    seed: int,
    tick: int,
    copies: FloatArray,
) -> None:
    """Write copies of the points: a residual around the own center, with random signs.

    Parameters
    ----------
    points : float array of shape (n, d)
    slots : int array of shape (n,)
        Center of each point.
    centers : float array of shape (k, d)
    scales : float array of shape (k,)
        A residual is told in units of its cluster's scale; as it is where that is 0.
    borrow : float array of shape (k,)
        Probability that a copy takes the residual of any point instead of its own.
    seed, tick : int
        What the draws depend on, with the number of the copy alone.
    copies : float array of shape (m n, d), written
        Row r copies point r mod n.
    """
    n, d = points.shape
    key = mixed(np.uint64(seed), np.uint64(tick))
    for r in range(copies.shape[0]):
        i = r % n
        own = slots[i]
        bits = mixed(key, np.uint64(r))
        lender = i
        if (bits >> np.uint64(11)) / 9007199254740992.0 < borrow[own]:
            lender = np.int64(mixed(bits, np.uint64(0)) % np.uint64(n))
        theirs = slots[lender]
        ratio = scales[own] / scales[theirs] if scales[theirs] > 0.0 else scales[own]
        for j in range(d):
            if j % 64 == 0:
                bits = mixed(bits, np.uint64(1 + j))
            residual = (points[lender, j] - centers[theirs, j]) * ratio
            copies[r, j] = centers[own, j] + (residual if bits & np.uint64(1) else -residual)
            bits >>= np.uint64(1)
