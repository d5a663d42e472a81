"""Compiled groups of points: chained by cluster, packed for a law, and found again later."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.kernels.mixing import GOLDEN, mixed
from streamclust.results import FloatArray, IntArray, KeyArray

SLOTS, ROWS, PROBES = 4096, 1024, 8  # of a memo


class Memo(NamedTuple):
    """Laws that were fitted to groups of the points of one window, found again by their members.

    Rounds of a search differ in few clusters, and its starts soon meet.

    Attributes
    ----------
    keys : uint64 array of shape (SLOTS,)
        Hashes of groups, where there are some.
    places : int array of shape (SLOTS + 1,)
        The row of each; how many rows are used comes last.
    laws : float array of shape (ROWS + 1, d + 2, d)
        Means, skews, whiteners. The last row is for what finds no room.
    told : float array of shape (ROWS + 1, 2)
        Codes and offsets.
    """

    keys: KeyArray
    places: IntArray
    laws: FloatArray
    told: FloatArray


def empty_memo(d: int) -> Memo:
    """The memo of a window of which nothing is known, with d coordinates per point."""
    keys, places = np.zeros(SLOTS, np.uint64), np.zeros(SLOTS + 1, np.int64)
    return Memo(keys, places, np.empty((ROWS + 1, d + 2, d)), np.empty((ROWS + 1, 2)))


@kernel
def key_of(i: int, following: IntArray, student: bool) -> np.uint64:
    """The hash of a chain of points and a law; the sum of the hashes of its parts."""
    key = np.uint64(0)
    while i >= 0:
        key += mixed(np.uint64(2 * i + 1 + student) * GOLDEN)
        i = following[i]
    return key


@kernel
def recall(memo: Memo, key: np.uint64) -> tuple[int, bool]:
    """The row of a law in the memo, and whether it is there already."""
    used = memo.places[SLOTS]
    slot = np.int64(key & np.uint64(SLOTS - 1))
    for _ in range(PROBES):
        if memo.keys[slot] == key:
            return memo.places[slot], True
        if memo.keys[slot] == 0 and used < ROWS:
            memo.keys[slot], memo.places[slot] = key, used
            memo.places[SLOTS] += 1
            return used, False
        slot = (slot + 1) % SLOTS
    return ROWS, False


@kernel
def by_group(members: IntArray, k: int) -> tuple[IntArray, IntArray]:
    """Return the rows sorted by group, and where each group's begin, shape (k + 1,); -1 is none."""
    starts = np.zeros(k + 1, dtype=np.int64)
    for group in members:
        if group >= 0:
            starts[group + 1] += 1
    for group in range(k):
        starts[group + 1] += starts[group]
    rows, at = np.empty(starts[k], dtype=np.int64), starts.copy()
    for i in range(members.size):
        if members[i] >= 0:
            rows[at[members[i]]] = i
            at[members[i]] += 1
    return rows, starts


@kernel
def chains(labels: IntArray, n_clusters: int) -> tuple[IntArray, IntArray, IntArray]:
    """The first and the last point of every cluster, and the next one of every point, -1 for none.

    The points of a cluster follow one another in their own order.
    """
    head, tail = np.empty(n_clusters, np.int64), np.empty(n_clusters, np.int64)
    following = np.empty(labels.shape[0], np.int64)
    for c in range(n_clusters):
        head[c] = -1
    for i, c in enumerate(labels):
        following[i] = -1
        if c >= 0:
            if head[c] < 0:
                head[c] = i
            else:
                following[tail[c]] = i
            tail[c] = i
    return head, tail, following


@kernel
def pack(
    points: FloatArray,
    weights: FloatArray,
    i: int,
    following: IntArray,
    count: int,
    packed: FloatArray,
    room: FloatArray,
) -> int:
    """Write a chain of points, coordinate by coordinate, behind `count` others; answer how many.

    Their weights go to the last row of `room`, of shape (4, n).
    """
    while i >= 0:
        room[3, count] = weights[i]
        for j in range(points.shape[1]):
            packed[j, count] = points[i, j]
        count += 1
        i = following[i]
    return count
