"""Compiled merge hierarchies over a sparse graph: single linkage and Ward's criterion.

A hierarchy of n points is n - 1 merges in order; merge t joins the nodes ``left[t]`` and
``right[t]`` into node n + t, and nodes below n are the points themselves. Ward, "Hierarchical
grouping to optimize an objective function" (1963), is restricted to pairs that the graph joins,
so that its cost follows the number of edges and not the square of the number of points.
"""

from __future__ import annotations

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.kernels.groups import chains
from streamclust.results import BoolArray, FloatArray, IntArray


@kernel
def _root(parent: IntArray, node: int) -> int:
    """The representative of `node`, with the path to it halved."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@kernel
def single_linkage(
    first: IntArray,
    second: IntArray,
    order: IntArray,
    left: IntArray,
    right: IntArray,
    used: BoolArray,
) -> int:
    """Merge along the edges, the shortest first.

    Parameters
    ----------
    first, second : int array of shape (m,)
        Ends of the edges.
    order : int array of shape (m,)
        The edges, shortest first.
    left, right : int array of shape (n - 1,)
        Receive the merges.
    used : bool array of shape (m,)
        Receives along which edges: a minimum spanning forest (Kruskal, 1956).

    Returns
    -------
    int
        The number of merges made; n - 1 iff the graph is connected.
    """
    n = left.shape[0] + 1
    parent = np.empty(n, np.int64)
    node = np.empty(n, np.int64)
    for i in range(n):
        parent[i] = node[i] = i
    made = 0
    used[:] = False
    for e in order:
        a = _root(parent, first[e])
        b = _root(parent, second[e])
        if a != b:
            left[made] = node[a]
            right[made] = node[b]
            parent[b] = a
            node[a] = n + made
            made += 1
            used[e] = True
            if made == n - 1:
                break
    return made


@kernel
def _push(keys: FloatArray, items: IntArray, size: int, key: float, item: int) -> None:
    """Put an entry into the binary heap that holds `size` entries; equal keys by smaller item."""
    at = size
    while at > 0:
        up = (at - 1) >> 1
        if keys[up] < key or (keys[up] == key and items[up] <= item):
            break
        keys[at] = keys[up]
        items[at] = items[up]
        at = up
    keys[at] = key
    items[at] = item


@kernel
def _pop(keys: FloatArray, items: IntArray, size: int) -> None:
    """Remove the top of the heap of `size` entries."""
    last = size - 1
    key = keys[last]
    item = items[last]
    at = 0
    while True:
        down = 2 * at + 1
        if down >= last:
            break
        other = down + 1
        if other < last and (
            keys[other] < keys[down] or (keys[other] == keys[down] and items[other] < items[down])
        ):
            down = other
        if key < keys[down] or (key == keys[down] and item <= items[down]):
            break
        keys[at] = keys[down]
        items[at] = items[down]
        at = down
    keys[at] = key
    items[at] = item


@kernel
def _best_partner(
    a: int,
    mean: FloatArray,
    weight: FloatArray,
    parent: IntArray,
    entry: IntArray,
    following: IntArray,
    head: IntArray,
    seen: IntArray,
    visit: int,
) -> tuple[int, float, int]:
    """The neighbour of slot `a` whose merge raises the sum of squares least, that rise, the tail.

    Entries of the chain that lead to `a` itself or to a cluster met before are unlinked.
    """
    best = -1
    low = np.inf
    before = -1
    at = head[a]
    while at >= 0:
        c = _root(parent, entry[at])
        if c == a or seen[c] == visit:
            if before < 0:
                head[a] = following[at]
            else:
                following[before] = following[at]
            at = following[at]
            continue
        seen[c] = visit
        entry[at] = c
        square = 0.0
        for j in range(mean.shape[1]):
            step = mean[a, j] - mean[c, j]
            square += step * step
        rise = square * weight[a] * weight[c] / (weight[a] + weight[c])
        if rise < low or (rise == low and c < best):
            low = rise
            best = c
        before = at
        at = following[at]
    return best, low, before


@kernel
def ward_linkage(
    start: IntArray,
    entry: IntArray,
    mean: FloatArray,
    weight: FloatArray,
    left: IntArray,
    right: IntArray,
) -> int:
    """Merge, among pairs that the graph joins, the one that raises the sum of squares least.

    Every live cluster has one valid offer in a heap; an offer made before its partner changed is
    recognised when it surfaces and replaced. Neighbours form one chain per cluster, so that a
    merge is a concatenation.

    Parameters
    ----------
    start : int array of shape (n + 1,)
        Where the neighbours of each point begin; the graph is symmetric.
    entry : int array
        Neighbours of all points, one after the other; overwritten.
    mean : float array of shape (n, d)
        The points; overwritten.
    weight : float array of shape (n,)
        Positive; overwritten.
    left, right : int array of shape (n - 1,)
        Receive the merges.

    Returns
    -------
    int
        The number of merges made; n - 1 iff the graph is connected.
    """
    n = mean.shape[0]
    parent = np.empty(n, np.int64)
    node = np.empty(n, np.int64)
    seen = np.empty(n, np.int64)
    changed = np.empty(n, np.int64)
    asked = np.empty(n, np.int64)
    partner = np.empty(n, np.int64)
    offer = np.empty(n)
    following = np.empty(entry.shape[0], np.int64)
    head = np.empty(n, np.int64)
    tail = np.empty(n, np.int64)
    keys = np.empty(n + 1)
    items = np.empty(n + 1, np.int64)
    size = n
    for i in range(n):
        parent[i] = node[i] = partner[i] = items[i] = i
        seen[i] = -1
        changed[i] = 0
        asked[i] = -1
        offer[i] = keys[i] = -1.0
        head[i] = start[i] if start[i + 1] > start[i] else -1
        for e in range(start[i], start[i + 1]):
            following[e] = e + 1 if e + 1 < start[i + 1] else -1
    made = 0
    visit = 0
    while size > 0:
        a = items[0]
        offered = keys[0]
        _pop(keys, items, size)
        size -= 1
        if parent[a] != a or offered != offer[a]:
            continue
        b = partner[a]
        if b != a and parent[b] == b and changed[b] <= asked[a]:
            left[made] = node[a]
            right[made] = node[b]
            together = weight[a] + weight[b]
            for j in range(mean.shape[1]):
                mean[a, j] = (weight[a] * mean[a, j] + weight[b] * mean[b, j]) / together
            weight[a] = together
            parent[b] = a
            node[a] = n + made
            made += 1
            changed[a] = made
            if head[a] < 0:
                head[a] = head[b]
            elif head[b] >= 0:
                following[tail[a]] = head[b]
        partner[a], offer[a], tail[a] = _best_partner(
            a, mean, weight, parent, entry, following, head, seen, visit
        )
        visit += 1
        asked[a] = made
        if partner[a] >= 0:
            _push(keys, items, size, offer[a], a)
            size += 1
    return made


@kernel
def bridge_components(points: FloatArray, first: IntArray, second: IntArray) -> IntArray:
    """Edges that connect a graph: every component to the one of nearest mean, again until one.

    Parameters
    ----------
    points : float array of shape (n, d)
    first, second : int array of shape (m,)
        Ends of the edges.

    Returns
    -------
    int array of shape (2, b)
        The lower and the higher end of every new edge: the point of one component that is nearest
        to the other's mean, and the other's point that is nearest to it.
    """
    n, d = points.shape
    parent, part, member = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        parent[i] = i
    for e in range(first.shape[0]):
        a, b = _root(parent, first[e]), _root(parent, second[e])
        parent[b] = a
    bridges = np.empty((2, n), np.int64)
    made = 0
    while True:
        count = 0
        for i in range(n):
            part[i] = -1
        for i in range(n):  # components are numbered by their first point
            root = _root(parent, i)
            if part[root] < 0:
                part[root] = count
                count += 1
        if count == 1:
            return bridges[:, :made]
        for i in range(n):
            member[i] = part[_root(parent, i)]
        head, _, following = chains(member, count)
        other, mean = np.empty(count, np.int64), np.empty((count, d))
        for c in range(count):
            _mean(points, head[c], following, mean[c])
        for a in range(count):
            least = np.inf
            for b in range(count):
                square = _square(mean[a], mean[b])
                if b != a and square < least:
                    least, other[a] = square, b
        for a in range(count):
            b = other[a]
            if other[b] == a and b < a:
                continue  # the pair is joined already
            i = _nearest(points, head[a], following, mean[b])
            j = _nearest(points, head[b], following, points[i])
            bridges[0, made], bridges[1, made] = (i, j) if i < j else (j, i)
            made += 1
            parent[_root(parent, j)] = _root(parent, i)


@kernel
def _mean(points: FloatArray, i: int, following: IntArray, mean: FloatArray) -> None:
    """Write the mean of a chain of points."""
    count = 0
    for j in range(mean.shape[0]):
        mean[j] = 0.0
    while i >= 0:
        count += 1
        for j in range(mean.shape[0]):
            mean[j] += points[i, j]
        i = following[i]
    for j in range(mean.shape[0]):
        mean[j] /= count


@kernel
def _square(one: FloatArray, other: FloatArray) -> float:
    """The squared distance of two places."""
    total = 0.0
    for j in range(one.shape[0]):
        total += (one[j] - other[j]) ** 2
    return total


@kernel
def _nearest(points: FloatArray, i: int, following: IntArray, place: FloatArray) -> int:
    """The point of a chain that is nearest to a place."""
    best, least = i, np.inf
    while i >= 0:
        square = _square(points[i], place)
        if square < least:
            best, least = i, square
        i = following[i]
    return best
