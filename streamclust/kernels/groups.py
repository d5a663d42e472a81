"""Compiled groups of points: chained by cluster, packed for a law, and found again later."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamclust.kernels.compiled import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
KeyArray = NDArray[np.uint64]

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
    """The hash of a chain of points and a law; the sum of the hashes of its parts (SplitMix64)."""
    key = np.uint64(0)
    while i >= 0:
        z = np.uint64(2 * i + 1 + student) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        key += z ^ (z >> np.uint64(31))
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
