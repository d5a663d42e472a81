"""Compiled code lengths of clusterings: what it costs, in nats, to tell points by their clusters.

The length of a clustering is the sum over its clusters, each under its own law. So the best cut of
a merge hierarchy is an exact dynamic programme over the codes of its nodes, and clusters are joined
where the law of their union tells them in fewer nats than two.
"""

from __future__ import annotations

import math

import numpy as np

from streamclust.kernels.assignment import number_clusters
from streamclust.kernels.compiled import kernel
from streamclust.kernels.groups import Memo, chains, key_of, pack, recall
from streamclust.kernels.laws import fit_law, gaussian
from streamclust.results import FloatArray, IntArray, KeyArray


@kernel
def node_codes(
    left: IntArray,
    right: IntArray,
    points: FloatArray,
    weights: FloatArray,
    floor: FloatArray,
    least: float,
) -> FloatArray:
    """The code of every merge of a hierarchy, as one Gaussian cluster.

    Parameters
    ----------
    left, right : int array of shape (n - 1,)
        The merges, children before parents.
    points : float array of shape (n, d)
    weights : float array of shape (n,)
    floor : float array of shape (d,)
        Added to the variance along each coordinate, in squared units of the points.
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
            code, _ = gaussian(scatter[s], together, floor, math.log(total), inverse)
            codes[node] = code - together * math.log(together / total)
    return codes


@kernel
def fit_clusters(
    points: FloatArray,
    weights: FloatArray,
    labels: IntArray,
    total: float,
    floor: FloatArray,
    student: bool,
    skewed: bool,
    keys: KeyArray,
    places: IntArray,
    laws: FloatArray,
    told: FloatArray,
    codes: FloatArray,
    means: FloatArray,
    whiteners: FloatArray,
    offsets: FloatArray,
    skews: FloatArray,
) -> float:
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
    floor : float array of shape (d,)
        Added to the variance along each coordinate, in squared units of the points.
    student : bool
        Which law.
    skewed : bool
        Whether a cluster may be skewed along the coordinates.
    keys, places, laws, told : arrays
        The `Memo` of the same points, total, floor and skewed, in its parts: to hand over a tuple
        takes as long as thirty arrays.
    codes : float array of shape (K,)
        Receives nats: points, parameters and labels of each cluster.
    means : float array of shape (K, d)
        Receives the centers of the laws.
    whiteners : float array of shape (K, d, d)
        Receives the inverse Cholesky factors of the laws' scales; of skewed ones those below.
    offsets : float array of shape (K,)
        Receives the log density at the center plus the log of the cluster's share of the weight.
    skews : float array of shape (K, d)
        Receives the scale below over that above along each coordinate, or 0 for an elliptical law.

    Returns
    -------
    float
        The weight of the points that are in no cluster.
    """
    n, d = points.shape
    n_clusters = codes.shape[0]
    memo = Memo(keys, places, laws, told)
    head, _, following = chains(labels, n_clusters)
    packed, room, square = np.empty((d, n)), np.empty((4, n)), np.empty((3, d, d))
    for c in range(n_clusters):
        row, known = recall(memo, key_of(head[c], following, student))
        if not known:
            count = pack(points, weights, head[c], following, 0, packed, room)
            fit_law(
                packed, count, total, floor, student, skewed, room, square, laws[row], told[row]
            )
        codes[c], offsets[c] = told[row, 0], told[row, 1]
        for j in range(d):
            means[c, j], skews[c, j] = laws[row, 0, j], laws[row, 1, j]
            for m in range(d):
                whiteners[c, j, m] = laws[row, 2 + j, m]
    outside = 0.0
    for i in range(n):
        if labels[i] < 0:
            outside += weights[i]
    return outside


@kernel
def _nearest_pairs(centers: FloatArray, near: int) -> IntArray:
    """The pairs of every cluster with its nearest others, each once, the lower one first."""
    k = centers.shape[0]
    width = min(near, k - 1)
    close, squares = np.empty((k, width), np.int64), np.empty(width)
    pairs = np.empty((2, k * width), np.int64)
    for a in range(k):
        found = 0
        for b in range(k):
            if b == a:
                continue
            square = 0.0
            for j in range(centers.shape[1]):
                square += (centers[a, j] - centers[b, j]) ** 2
            if found == width and square >= squares[width - 1]:
                continue
            at = min(found, width - 1)
            while at > 0 and squares[at - 1] > square:
                squares[at], close[a, at] = squares[at - 1], close[a, at - 1]
                at -= 1
            squares[at], close[a, at] = square, b
            found = min(found + 1, width)
    made = 0
    for a in range(k):
        for b in close[a]:
            told = False
            if b < a:
                for other in close[b]:
                    told |= other == a
            if not told:
                pairs[0, made], pairs[1, made] = (a, b) if a < b else (b, a)
                made += 1
    return pairs[:, :made]


@kernel
def _merge_pairs(pairs: IntArray, rises: FloatArray, a: int, b: int, met: IntArray) -> int:
    """Redirect the pairs of cluster b to a, each pair once; answer how many are left.

    Those of a are to be measured anew: their rises become nan. `met`, one entry per cluster, is
    overwritten.
    """
    left = 0
    for c in range(met.shape[0]):
        met[c] = -1
    for e in range(rises.shape[0]):
        one, other = pairs[0, e], pairs[1, e]
        rise = rises[e]
        if one in (a, b) or other in (a, b):
            third = other if one in (a, b) else one
            if third in (a, b) or met[third] >= 0:
                continue
            met[third] = e
            one, other, rise = (a, third, np.nan) if a < third else (third, a, np.nan)
        pairs[0, left], pairs[1, left], rises[left] = one, other, rise
        left += 1
    return left


@kernel
def join_clusters(
    points: FloatArray,
    weights: FloatArray,
    labels: IntArray,
    total: float,
    floor: FloatArray,
    student: bool,
    skewed: bool,
    keys: KeyArray,
    places: IntArray,
    laws: FloatArray,
    told: FloatArray,
    near: int,
    wanted: int,
    length: float,
    own: FloatArray,
    joined: IntArray,
) -> float:
    """Merge clusters pair by pair, the pair first whose union lengthens the description least.

    Parameters
    ----------
    points, weights, labels, total, floor, student, skewed, keys, places, laws, told
        As for `fit_clusters`.
    near : int
        With how many nearest clusters a cluster may be joined.
    wanted : int
        Clusters to merge down to; 0: merge while that shortens the description.
    length : float
        Length of the description.
    own : float array of shape (K,)
        The codes of the clusters; overwritten.
    joined : int array of shape (n,)
        Receives 0 .. K' - 1, or -1.

    Returns
    -------
    float
        The length of the description after that.
    """
    n, d = points.shape
    k = own.shape[0]
    memo = Memo(keys, places, laws, told)
    head, tail, following = chains(labels, k)
    packed, room, square = np.empty((d, n)), np.empty((4, n)), np.empty((3, d, d))
    centers, marks = np.zeros((k, d)), np.empty(k, np.uint64)
    for c in range(k):
        marks[c] = key_of(head[c], following, student)
        count = pack(points, weights, head[c], following, 0, packed, room)
        for j in range(d):
            for at in range(count):
                centers[c, j] += packed[j, at]
            centers[c, j] /= count
    pairs = _nearest_pairs(centers, near)
    rises = np.empty(pairs.shape[1])
    for e in range(rises.shape[0]):
        rises[e] = np.nan
    met = np.empty(k, np.int64)
    alive, left = k, pairs.shape[1]
    while alive > max(wanted, 1) and left > 0:
        best = 0
        for e in range(left):
            a, b = pairs[0, e], pairs[1, e]
            if math.isnan(rises[e]):
                row, known = recall(memo, marks[a] + marks[b])
                if not known:
                    law, sums = laws[row], told[row]
                    count = pack(points, weights, head[a], following, 0, packed, room)
                    count = pack(points, weights, head[b], following, count, packed, room)
                    fit_law(packed, count, total, floor, student, skewed, room, square, law, sums)
                rises[e] = told[row, 0] - (own[a] + own[b])
            if rises[e] < rises[best] or (
                rises[e] == rises[best]
                and (a < pairs[0, best] or (a == pairs[0, best] and b < pairs[1, best]))
            ):
                best = e
        if wanted == 0 and rises[best] >= 0.0:
            break
        a, b = pairs[0, best], pairs[1, best]
        length += rises[best]
        own[a] += own[b] + rises[best]
        marks[a] += marks[b]
        following[tail[a]], tail[a], head[b] = head[b], tail[b], -1
        alive -= 1
        left = _merge_pairs(pairs, rises[:left], a, b, met)
    for i in range(n):
        joined[i] = -1
    for c in range(k):
        i = head[c]
        while i >= 0:
            joined[i] = c
            i = following[i]
    number_clusters(joined, weights, 0.0, joined)
    return length
