"""Walking the flat routing table, and the cost of an assignment."""

from __future__ import annotations

import numpy as np

from streamclust.kernels.compiled import inlined_kernel, kernel
from streamclust.results import FloatArray, IntArray


@kernel
def leaf_of(x: FloatArray, feature: IntArray, threshold: FloatArray, child: IntArray) -> int:
    """The leaf that `x` falls into: ``x[feature] <= threshold`` goes left, all else right.

    Parameters
    ----------
    x : float array of shape (d,)
    feature, threshold : arrays of shape (m,)
    child : int array of shape (m, 2)
        An inner node, or ``~leaf``. Without inner nodes the leaf is 0.
    """
    node = 0 if feature.size > 0 else -1
    while node >= 0:
        node = child[node, 0] if x[feature[node]] <= threshold[node] else child[node, 1]
    return ~node


@kernel
def leaves_of(
    points: FloatArray,
    feature: IntArray,
    threshold: FloatArray,
    child: IntArray,
    out: IntArray,
) -> None:
    """`leaf_of` for every row of `points`, written to `out`."""
    for r in range(points.shape[0]):
        out[r] = leaf_of(points[r], feature, threshold, child)


@kernel
def assignment_costs(
    points: FloatArray,
    centers: FloatArray,
    weights: FloatArray,
    p: float,
    answers: IntArray,
    nearest: IntArray,
) -> tuple[float, float]:
    """Sum of distances to the answered and to the nearest center, ``||w (x - c)||_p``.

    Parameters
    ----------
    points : float array of shape (n, d)
    centers : float array of shape (k, d)
    weights : float array of shape (d,)
    p : float
    answers : int array of shape (n,)
        Row of `centers` that each point is assigned to.
    nearest : int array of shape (n,), written
    """
    answered, least = 0.0, 0.0
    for r in range(points.shape[0]):
        best = np.inf
        for c in range(centers.shape[0]):
            total = 0.0
            for i in range(weights.size):
                gap = weights[i] * abs(points[r, i] - centers[c, i])
                if p == 1.0:
                    total += gap
                elif p == 2.0:
                    total += gap * gap
                else:
                    total += gap**p
            if total < best:
                best = total
                nearest[r] = c
            if c == answers[r]:
                answered += total ** (1.0 / p)
        least += best ** (1.0 / p)
    return answered, least


@inlined_kernel
def route(row: FloatArray, origin: FloatArray, table: FloatArray) -> int:
    """Return the slot of the center whose leaf holds a row, not measured from the origin yet.

    A node is ``[feature, threshold, left, right]``; what is at most the threshold from the origin
    goes left, and a negative child ~slot is a leaf. There is at least one node.
    """
    at = 0
    while at >= 0:
        feature = int(table[at, 0])
        left = row[feature] - origin[feature] <= table[at, 1]
        at = int(table[at, 2] if left else table[at, 3])
    return ~at


@inlined_kernel
def route_ahead(
    rows: FloatArray, origin: FloatArray, table: FloatArray, leaves: FloatArray
) -> None:
    """Tell into `leaves` what `route` returns for as many of the first rows, as ~slot.

    They go down level by level, so that none waits for what another compares.
    """
    n = min(rows.shape[0], leaves.shape[0])
    leaves[:n] = 0.0
    walking = 1
    while walking > 0:
        walking = 0
        for i in range(n):
            at = int(leaves[i])
            if at >= 0:
                feature = int(table[at, 0])
                left = rows[i, feature] - origin[feature] <= table[at, 1]
                leaves[i] = table[at, 3 - int(left)]
                walking += leaves[i] >= 0.0
