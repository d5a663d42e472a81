"""The reservoir of recent points, compiled: who is admitted by its key, and what keys come from."""

from __future__ import annotations

import numpy as np

from streamclust.kernels.compiled import inlined_kernel
from streamclust.kernels.mixing import GOLDEN, mixed
from streamclust.results import FloatArray, IntArray


@inlined_kernel
def uniform(seed: int, tick: int) -> float:
    """Return a number in (0, 1) that depends on seed and tick alone."""
    z = mixed(mixed(np.uint64(seed) + np.uint64(tick) * GOLDEN))
    return float((z >> np.uint64(11)) + 0.5) / 9007199254740992.0


@inlined_kernel
def admit(row: FloatArray, key: float, slots: FloatArray, heap: IntArray) -> None:
    """Keep the points of smallest key: a max-heap over slots; heap[0] is the number kept.

    Exponentially biased sampling without replacement: with keys ln(Exp(1)) - decay * time -
    ln(weight) this is the weighted reservoir of Efraimidis and Spirakis (2006) under forward decay
    (Cormode et al. 2009).
    """
    d = slots.shape[1] - 3
    size, capacity = heap[0], slots.shape[0]
    if size < capacity:
        slot = size
        heap[0] = size + 1
        at = size + 1
        while at > 1 and slots[heap[at // 2], d + 2] < key:
            heap[at] = heap[at // 2]
            at //= 2
    else:
        slot = heap[1]
        if key >= slots[slot, d + 2]:
            return
        at = 1
        while 2 * at <= size:
            child = 2 * at
            if child < size and slots[heap[child + 1], d + 2] > slots[heap[child], d + 2]:
                child += 1
            if slots[heap[child], d + 2] <= key:
                break
            heap[at] = heap[child]
            at = child
    heap[at] = slot
    for j in range(d + 2):
        slots[slot, j] = row[j]
    slots[slot, d + 2] = key
