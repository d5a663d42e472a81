"""Compiled direct solver of (H + A) U = H X, A the Laplacian of a sparse graph.

The graph of robust continuous clustering stays the same while its weights change at every step. So
the points are put into an order of least degree once (George and Liu, "The evolution of the minimum
degree ordering algorithm", SIAM Review 31(1), 1989), which tells where the factor has entries; then
every step is one factorisation L D L' in place and one pair of triangular solves for all columns
side by side. Points that have the same neighbours when their turn comes are one *block*: dense
columns with one list of rows, so that most of the arithmetic runs along contiguous memory (Ng and
Peyton, "Block sparse Cholesky algorithms", SIAM J. Sci. Comput. 14(5), 1993).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamclust.kernels.compiled import kernel
from streamclust.results import FloatArray, IntArray

IndexArray = NDArray[np.uint64]
"""Positions as unsigned numbers: indexing with them needs no look at the sign."""


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
    start: IntArray,
    neighbours: IntArray,
    most: float,
    place: IntArray,
    blocks: IntArray,
    bounds: IntArray,
) -> IndexArray:
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
    blocks : int array of shape (n + 1,)
        Receives the first position of every block; those after the last one are n.
    bounds : int array of shape (n + 1,)
        Receives where the rows of every block begin.

    Returns
    -------
    uint64 array
        Rows below the blocks, block by block, ascending, as positions; where it was given up, one
        entry: n.
    """
    n = start.shape[0] - 1
    lists = [neighbours[start[i] : start[i + 1]].copy() for i in range(n)]
    size = np.empty(n, np.int64)
    head = np.full(n + 1, -1, np.int64)
    after, before = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for i in range(n - 1, -1, -1):
        size[i] = lists[i].shape[0]
        _enter(i, size[i], head, after, before)
    clique_of, listed = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    leader = np.empty(n, np.int64)
    place[:] = -1
    blocks[:] = n
    bounds[0] = 0
    cost, least, done, count = 0.0, 0, 0, 0
    while done < n:
        while head[least] < 0:
            least += 1
        node = head[least]
        _leave(node, least, head, after, before)
        blocks[count], leader[count] = done, node
        place[node] = done
        done += 1
        clique = lists[node]
        cost += float(clique.shape[0]) ** 2
        clique_of[node] = node
        for u in clique:
            clique_of[u] = node
        rest = 0
        for u in clique:
            _leave(u, size[u], head, after, before)
            alike = size[u] <= clique.shape[0]
            if alike:
                for v in lists[u]:
                    if place[v] < 0 and clique_of[v] != node:
                        alike = False
                        break
            if alike:
                place[u] = done
                done += 1
                cost += float(clique.shape[0] + blocks[count] - place[u]) ** 2
            else:
                clique[rest] = u
                rest += 1
        if cost > most:
            return np.full(1, n, np.uint64)
        for a in range(rest):
            u = clique[a]
            grown = np.empty(lists[u].shape[0] + rest, np.int64)
            held = 0
            for v in lists[u]:
                if place[v] < 0:
                    listed[v] = u
                    grown[held] = v
                    held += 1
            listed[u] = u
            for b in range(rest):
                v = clique[b]
                if listed[v] != u:
                    grown[held] = v
                    held += 1
            lists[u] = grown[:held].copy()
            size[u] = held
            _enter(u, held, head, after, before)
            least = min(least, held)
        count += 1
        bounds[count] = bounds[count - 1] + rest
    rows = np.empty(bounds[count], np.uint64)
    for block in range(count):
        clique = lists[leader[block]]
        begin = bounds[block]
        for t in range(bounds[block + 1] - begin):
            row, at = place[clique[t]], begin + t
            while at > begin and np.int64(rows[at - 1]) > row:
                rows[at] = rows[at - 1]
                at -= 1
            rows[at] = row
    for block in range(count + 1, n + 1):
        bounds[block] = bounds[count]
    return rows


@kernel
def find_entries(
    first: IntArray,
    second: IntArray,
    blocks: IntArray,
    bounds: IntArray,
    rows: IndexArray,
    owner: IntArray,
    at: IntArray,
    out: IntArray,
) -> None:
    """Write where in the factor every edge stands.

    Parameters
    ----------
    first, second : int array of shape (m,)
        Ends of the edges, as positions; the first one comes first.
    blocks, bounds, rows
        As `eliminate` found them.
    owner : int array of shape (n,)
        The block of every position.
    at : int array of shape (blocks + 1,)
        Where the entries of every block begin: column by column, each with a row for every point
        of the block, then one for every row below.
    out : int array of shape (m,)
    """
    for e in range(first.shape[0]):
        column, row = first[e], second[e]
        block = owner[column]
        begin, end = blocks[block], blocks[block + 1]
        width, below = end - begin, bounds[block + 1] - bounds[block]
        if row < end:
            local = row - begin
        else:
            low, high = bounds[block], bounds[block + 1]
            while low < high:
                middle = (low + high) // 2
                if np.int64(rows[middle]) < row:
                    low = middle + 1
                else:
                    high = middle
            local = width + low - bounds[block]
        out[e] = at[block] + (column - begin) * (width + below) + local


@kernel
def _eliminate_within(values: FloatArray, start: int, width: int, tall: int) -> None:
    """Replace the columns of a block by those of L, and their diagonal by D."""
    for j in range(width):
        column = np.uint64(start + j * tall)
        for c in range(0, j - 1, 2):  # two at a time: half as many looks at the column
            one, two = start + c * tall, start + (c + 1) * tall
            by, also = values[one + j] * values[one + c], values[two + j] * values[two + c + 1]
            left, right = np.uint64(one), np.uint64(two)
            for i in range(np.uint64(j), np.uint64(tall)):
                values[column + i] -= by * values[left + i] + also * values[right + i]
        if j % 2 == 1:
            one = start + (j - 1) * tall
            by, left = values[one + j] * values[one + j - 1], np.uint64(one)
            for i in range(np.uint64(j), np.uint64(tall)):
                values[column + i] -= by * values[left + i]
        share = 1.0 / values[column + np.uint64(j)]
        for i in range(np.uint64(j + 1), np.uint64(tall)):
            values[column + i] *= share


@kernel
def _add_up(
    values: FloatArray, start: int, width: int, tall: int, row: int, sums: FloatArray
) -> None:
    """Write what the columns of a finished block take from those of one row, from that row on."""
    length = np.uint64(tall - row)
    single, by = np.uint64(start + row), 0.0
    if width % 2 == 1:
        by = values[single] * values[start]
    for t in range(length):
        sums[t] = by * values[single + t]
    for c in range(width % 2, width, 2):
        one, pivot = start + c * tall + row, start + c * (tall + 1)
        two = one + tall
        by, also = values[one] * values[pivot], values[two] * values[pivot + tall + 1]
        left, right = np.uint64(one), np.uint64(two)
        for t in range(length):
            sums[t] += by * values[left + t] + also * values[right + t]


@kernel
def _factorise(
    blocks: IntArray,
    bounds: IntArray,
    rows: IndexArray,
    owner: IntArray,
    at: IntArray,
    values: FloatArray,
) -> None:
    """Replace the entries by those of L, and the diagonal by D."""
    n, count = owner.shape[0], at.shape[0] - 1
    local, sums = np.empty(n, np.uint64), np.empty(n)
    head, link = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    here = bounds[:count].copy()
    for block in range(count):
        begin, end = blocks[block], blocks[block + 1]
        width = end - begin
        tall = width + bounds[block + 1] - bounds[block]
        for i in range(width):
            local[begin + i] = i
        for i in range(bounds[block], bounds[block + 1]):
            local[rows[i]] = width + i - bounds[block]
        child = head[block]
        while child >= 0:
            following = link[child]
            low, stop = here[child], bounds[child + 1]
            columns = blocks[child + 1] - blocks[child]
            height = columns + stop - bounds[child]
            source = at[child] + height - stop
            q = low
            while q < stop and np.int64(rows[q]) < end:
                column = np.uint64(at[block] + (np.int64(rows[q]) - begin) * tall)
                by, lead = values[source + q] * values[at[child]], np.uint64(source + q)
                if columns == 1:
                    for t in range(np.uint64(stop - q)):
                        spot = column + local[rows[np.uint64(q) + t]]
                        values[spot] -= by * values[lead + t]
                else:
                    _add_up(values, at[child], columns, height, source + q - at[child], sums)
                    for t in range(np.uint64(stop - q)):
                        values[column + local[rows[np.uint64(q) + t]]] -= sums[t]
                q += 1
            here[child] = q
            if q < stop:
                parent = owner[rows[q]]
                link[child], head[parent] = head[parent], child
            child = following
        _eliminate_within(values, at[block], width, tall)
        if bounds[block] < bounds[block + 1]:
            parent = owner[rows[bounds[block]]]
            link[block], head[parent] = head[parent], block


@kernel
def _solve_down(
    blocks: IntArray, bounds: IntArray, rows: IndexArray, at: IntArray, L: FloatArray, Y: FloatArray
) -> None:
    """Replace Y by the solution of L Y = Y; two columns of a block at a time."""
    d = Y.shape[1]
    for block in range(at.shape[0] - 1):
        begin, width = blocks[block], blocks[block + 1] - blocks[block]
        below, tall = bounds[block] - width, width + bounds[block + 1] - bounds[block]
        for c in range(0, width, 2):
            k, start = np.uint64(begin + c), at[block] + c * tall
            if c + 1 == width:
                for i in range(width, tall):
                    row, value = rows[below + i], L[start + i]
                    for j in range(d):
                        Y[row, j] -= value * Y[k, j]
                continue
            after, value = np.uint64(begin + c + 1), L[start + c + 1]
            for j in range(d):
                Y[after, j] -= value * Y[k, j]
            for i in range(c + 2, tall):
                row, value, also = np.uint64(begin + i), L[start + i], L[start + tall + i]
                if i >= width:
                    row = rows[below + i]
                for j in range(d):
                    Y[row, j] -= value * Y[k, j] + also * Y[after, j]


@kernel
def _solve_up(
    blocks: IntArray, bounds: IntArray, rows: IndexArray, at: IntArray, L: FloatArray, Y: FloatArray
) -> None:
    """Replace Y by the solution of D L' Y = Y; two rows below a column at a time."""
    d = Y.shape[1]
    for block in range(at.shape[0] - 2, -1, -1):
        begin, width = blocks[block], blocks[block + 1] - blocks[block]
        below, tall = bounds[block] - width, width + bounds[block + 1] - bounds[block]
        for c in range(width - 1, -1, -1):
            k, start = np.uint64(begin + c), at[block] + c * tall
            share = 1.0 / L[start + c]
            for j in range(d):
                Y[k, j] *= share
            for i in range(c + 1, tall - 1, 2):
                row, value = np.uint64(begin + i), L[start + i]
                then, also = np.uint64(begin + i + 1), L[start + i + 1]
                if i >= width:
                    row = rows[below + i]
                if i + 1 >= width:
                    then = rows[below + i + 1]
                for j in range(d):
                    Y[k, j] -= value * Y[row, j] + also * Y[then, j]
            if (tall - c) % 2 == 0:
                row, value = np.uint64(begin + tall - 1), L[start + tall - 1]
                if tall > width:
                    row = rows[below + tall - 1]
                for j in range(d):
                    Y[k, j] -= value * Y[row, j]


@kernel
def solve_directly(
    first: IntArray,
    second: IntArray,
    pulls: FloatArray,
    held: FloatArray,
    X: FloatArray,
    blocks: IntArray,
    bounds: IntArray,
    rows: IndexArray,
    owner: IntArray,
    at: IntArray,
    pivots: IntArray,
    entries: IntArray,
    U: FloatArray,
) -> None:
    """Write the solution of (H + A) U = H X, points in the order of elimination.

    Parameters
    ----------
    first, second : int array of shape (m,)
        Ends of the edges, as positions.
    pulls : float array of shape (m,)
        Weights of the edges, not negative; A is their Laplacian.
    held : float array of shape (n,)
        The diagonal of H, positive.
    X : float array of shape (n, d)
    blocks, bounds, rows, owner, at, entries
        As `eliminate` and `find_entries` found or took them.
    pivots : int array of shape (n,)
        Where in the factor the diagonal stands.
    U : float array of shape (n, d)
    """
    n, d = X.shape
    values, diagonal = np.zeros(at[-1]), held.copy()
    for e in range(first.shape[0]):
        values[entries[e]] -= pulls[e]
        diagonal[first[e]] += pulls[e]
        diagonal[second[e]] += pulls[e]
    for i in range(n):
        values[pivots[i]] = diagonal[i]
        for j in range(d):
            U[i, j] = held[i] * X[i, j]
    _factorise(blocks, bounds, rows, owner, at, values)
    _solve_down(blocks, bounds, rows, at, values, U)
    _solve_up(blocks, bounds, rows, at, values, U)
