"""Compiled cuts of a merge hierarchy: the partition of its nodes that is told in fewest nats.

A hierarchy is as `streamclust.kernels.linkage` writes it. Every node has a code as a cluster and
every point one as noise; their sum over a cut is its length, so the best cut is an exact dynamic
programme over the nodes.
"""

from __future__ import annotations

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.results import FloatArray, IntArray


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
        Receives 0, 1, ... by the first point of each cluster, and -1 for noise.

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
    name = np.empty(found, np.int64)
    for c in range(found):
        name[c] = -1
    found = 0
    for i in range(n):
        c = label[i]
        if c >= 0 and name[c] < 0:
            name[c] = found
            found += 1
        labels[i] = name[c] if c >= 0 else -1
    total: float = best[2 * n - 2]
    return total


@kernel
def finest_cut(
    left: IntArray,
    right: IntArray,
    codes: FloatArray,
    noise: FloatArray,
    wanted: int,
    reach: float,
    rounds: int,
    labels: IntArray,
) -> None:
    """The best cut at the highest price per cluster that leaves enough of them.

    Parameters
    ----------
    left, right, codes, noise, labels
        As for `best_cut`.
    wanted : int
        How many clusters; where none of the cuts has so many, the one of lowest price is taken.
    reach : float
        Prices are looked for between minus so many nats and as many, by halving.
    rounds : int
        How often.
    """
    low, high = -reach, reach
    best_cut(left, right, codes, noise, low, labels)
    n = labels.shape[0]
    fresh = np.empty(n, np.int64)
    for _ in range(rounds):
        middle = 0.5 * (low + high)
        best_cut(left, right, codes, noise, middle, fresh)
        found = 0
        for i in range(n):
            if fresh[i] >= found:
                found = fresh[i] + 1
        if found >= wanted:
            low = middle
            for i in range(n):
                labels[i] = fresh[i]
        else:
            high = middle
