"""Residual copies: more points around the centers than the window holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.kernels.groups import by_group
from streamclust.kernels.mixing import GOLDEN, mixed
from streamclust.results import FloatArray, IntArray

LENDERS = 3
"""Residuals that one copy is mixed from."""


@kernel
def keyed(a: Any, b: Any) -> Any:
    """Return 64 bits that depend on both numbers; a and b are uint64."""
    return mixed(np.uint64(a) + (np.uint64(b) + np.uint64(1)) * GOLDEN)


@kernel
def direction(key: Any, out: FloatArray) -> None:
    """Draw a unit vector of three numbers, uniform on the sphere, into `out`."""
    turn, square = np.uint64(0), 2.0
    while not 0.0 < square <= 1.0:  # the ball inside the cube: no logarithm, no sine
        bits = keyed(key, turn)
        square = 0.0
        for j in range(LENDERS):
            out[j] = (bits & np.uint64(0x1FFFFF)) / 1048576.0 - 1.0
            square += out[j] * out[j]
            bits >>= np.uint64(21)
        turn += np.uint64(1)
    for j in range(LENDERS):
        out[j] /= np.sqrt(square)


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
    """Write copies of the points: three residuals of one cluster, mixed, around its center.

    Mixed by a random unit vector, residuals keep their covariance (of independent residuals the
    law, if it is a Gaussian), so copies may be many more than the points.

    Parameters
    ----------
    points : float array of shape (n, d)
    slots : int array of shape (n,)
        Center of each point.
    centers : float array of shape (k, d)
    scales : float array of shape (k,)
        A residual is told in units of its cluster's scale; as it is where that is 0.
    borrow : float array of shape (k,)
        Probability that a residual is that of any point instead of one of the own cluster.
    seed, tick : int
        What the draws depend on, with the number of the copy alone.
    copies : float array of shape (m, d), written
        Row r lies around the center of point r mod n, whose residual is the first of the three.
    """
    n, d = points.shape
    key = keyed(np.uint64(seed), np.uint64(tick))
    rows, starts = by_group(slots, centers.shape[0])
    share = np.empty(LENDERS)
    for r in range(copies.shape[0]):
        own = slots[r % n]
        first, size = starts[own], starts[own + 1] - starts[own]
        bits = keyed(key, np.uint64(r))
        direction(bits, share)
        for j in range(d):
            copies[r, j] = centers[own, j]
        for turn in range(LENDERS):
            bits = keyed(bits, np.uint64(turn))
            lender = r % n if turn == 0 else rows[first + np.int64(bits % np.uint64(size))]
            if (bits >> np.uint64(11)) / 9007199254740992.0 < borrow[own]:
                lender = np.int64(keyed(bits, np.uint64(LENDERS)) % np.uint64(n))
            theirs = slots[lender]
            unit = scales[own] / scales[theirs] if scales[theirs] > 0.0 else scales[own]
            part = share[turn] * unit
            for j in range(d):
                copies[r, j] += part * (points[lender, j] - centers[theirs, j])
