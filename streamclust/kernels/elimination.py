"""Compiled direct solver of (H + A) U = H X, A the Laplacian of a sparse graph.

The graph of robust continuous clustering stays the same while its weights change at every step. So
the points are put into an order of least degree once (George and Liu, "The evolution of the minimum
degree ordering algorithm", SIAM Review 31(1), 1989), which tells where the factor has entries; then
every step is one left-looking factorisation L D L' in place and one pair of triangular solves for
all columns side by side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamclust.kernels.compiled import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
RowArray = NDArray[np.uint64]
"""Rows as unsigned numbers: indexing with them needs no look at the sign."""


@kernel
def _leave(node: int, degree: int, head: IntArray, after: IntArray, before: IntArray) -> None:
    """Take a node out of the list of its degree."""
    if before[node] >= 0:
        after[before[node]] = after[node]
    else:
        head[degree] = after[node]
    if after[node] >= 0:
        before[after[node]] = before[node]


@kernel
def _enter(node: int, degree: int, head: IntArray, after: IntArray, before: IntArray) -> None:
    """Put a node at the head of the list of its degree."""
    before[node] = -1
    after[node] = head[degree]
    if head[degree] >= 0:
        before[head[degree]] = node
    head[degree] = node


@kernel
def eliminate(
    start: IntArray, neighbours: IntArray, most: float, place: IntArray, bounds: IntArray
) -> RowArray:
    """Order the points of a graph by least degree, and find the entries of the factor.

    Parameters
    ----------
    start : int array of shape (n + 1,)
        Where the neighbours of each point begin; the graph is symmetric and without loops.
    neighbours : int array of shape (m,)
    most : float
        Given up when the squared sizes of the columns sum to more than this.
    place : int array of shape (n,)
        Receives the position of every point in the order.
    bounds : int array of shape (n + 1,)
        Receives where the entries of every column begin.

    Returns
    -------
    uint64 array of shape (entries,)
        Rows below the diagonal, column by column, ascending, as positions; where it was given up,
        one entry: n.
    """
    n = start.shape[0] - 1
    lists = [neighbours[start[i] : start[i + 1]].copy() for i in range(n)]
    size = np.empty(n, np.int64)
    head = np.full(n + 1, -1, np.int64)
    after, before = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for i in range(n - 1, -1, -1):
        size[i] = lists[i].shape[0]
        _enter(i, size[i], head, after, before)
    stamp = np.full(n, -1, np.int64)
    order = np.empty(n, np.int64)
    cost = 0.0
    least = 0
    for step in range(n):
        while head[least] < 0:
            least += 1
        node = head[least]
        _leave(node, least, head, after, before)
        order[step] = node
        clique = lists[node]
        count = clique.shape[0]
        cost += float(count) * count
        if cost > most:
            return np.full(1, n, np.uint64)
        for u in clique:
            _leave(u, size[u], head, after, before)
            stamp[u] = u
            grown = np.empty(lists[u].shape[0] + count, np.int64)
            held = 0
            for v in lists[u]:
                if v != node:
                    stamp[v] = u
                    grown[held] = v
                    held += 1
            for v in clique:
                if stamp[v] != u:
                    grown[held] = v
                    held += 1
            lists[u] = grown[:held].copy()
            size[u] = held
            _enter(u, held, head, after, before)
            least = min(least, held)
    bounds[0] = 0
    for step in range(n):
        place[order[step]] = step
        bounds[step + 1] = bounds[step] + lists[order[step]].shape[0]
    rows = np.empty(bounds[n], np.uint64)
    for step in range(n):
        rows[bounds[step] : bounds[step + 1]] = np.sort(place[lists[order[step]]])
    return rows


@kernel
def find_entries(
    first: IntArray,
    second: IntArray,
    place: IntArray,
    bounds: IntArray,
    rows: RowArray,
    out: IntArray,
) -> None:
    """Write where in `rows` every edge stands.

    Parameters
    ----------
    first, second : int array of shape (m,)
        Ends of the edges.
    place, bounds, rows
        As `eliminate` found them.
    out : int array of shape (m,)
    """
    for e in range(first.shape[0]):
        a, b = place[first[e]], place[second[e]]
        column, row = min(a, b), max(a, b)
        begin, end = bounds[column], bounds[column + 1]
        out[e] = begin + np.searchsorted(rows[begin:end], np.uint64(row))


@kernel
def _factorise(bounds: IntArray, rows: RowArray, values: FloatArray, diagonal: FloatArray) -> None:
    """Replace the entries below the diagonal by those of L, and the diagonal by D."""
    n = diagonal.shape[0]
    work = np.zeros(n)
    head, link = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    at = bounds[:n].copy()
    for j in range(n):
        for t in range(bounds[j], bounds[j + 1]):
            work[rows[t]] = values[t]
        pivot = diagonal[j]
        k = head[j]
        while k >= 0:
            following = link[k]
            here = at[k]
            factor = values[here] * diagonal[k]
            pivot -= values[here] * factor
            at[k] = here + 1
            for t in range(np.uint64(here + 1), np.uint64(bounds[k + 1])):
                work[rows[t]] -= values[t] * factor
            if here + 1 < bounds[k + 1]:
                link[k] = head[rows[here + 1]]
                head[rows[here + 1]] = k
            k = following
        diagonal[j] = pivot
        for t in range(bounds[j], bounds[j + 1]):
            values[t] = work[rows[t]] / pivot
            work[rows[t]] = 0.0
        if bounds[j] < bounds[j + 1]:
            link[j] = head[rows[bounds[j]]]
            head[rows[bounds[j]]] = j


@kernel
def solve_directly(
    first: IntArray,
    second: IntArray,
    pulls: FloatArray,
    held: FloatArray,
    X: FloatArray,
    place: IntArray,
    bounds: IntArray,
    rows: RowArray,
    entries: IntArray,
    U: FloatArray,
) -> None:
    """Write the solution of (H + A) U = H X.

    Parameters
    ----------
    first, second : int array of shape (m,)
        Ends of the edges.
    pulls : float array of shape (m,)
        Weights of the edges, not negative; A is their Laplacian.
    held : float array of shape (n,)
        The diagonal of H, positive.
    X : float array of shape (n, d)
    place, bounds, rows, entries
        As `eliminate` and `find_entries` found them.
    U : float array of shape (n, d)
    """
    n, d = X.shape
    values = np.zeros(rows.shape[0])
    diagonal = np.empty(n)
    Y = np.empty((n, d))
    for i in range(n):
        diagonal[place[i]] = held[i]
        for j in range(d):
            Y[place[i], j] = held[i] * X[i, j]
    for e in range(first.shape[0]):
        values[entries[e]] -= pulls[e]
        diagonal[place[first[e]]] += pulls[e]
        diagonal[place[second[e]]] += pulls[e]
    _factorise(bounds, rows, values, diagonal)
    for k in range(n):
        for t in range(np.uint64(bounds[k]), np.uint64(bounds[k + 1])):
            value, row = values[t], rows[t]
            for j in range(d):
                Y[row, j] -= value * Y[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(d):
            Y[k, j] /= diagonal[k]
        for t in range(np.uint64(bounds[k]), np.uint64(bounds[k + 1])):
            value, row = values[t], rows[t]
            for j in range(d):
                Y[k, j] -= value * Y[row, j]
    for i in range(n):
        for j in range(d):
            U[i, j] = Y[place[i], j]
