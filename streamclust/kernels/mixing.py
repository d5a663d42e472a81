"""Mixing of counters, compiled: the hash behind all numbers that depend on a key alone."""

from __future__ import annotations

import numpy as np

from streamclust.kernels.compiled import inlined_kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)


@inlined_kernel
def mixed(z: np.uint64) -> np.uint64:
    """Finalize a 64-bit counter (SplitMix64: Steele, Lea and Flood, OOPSLA 2014)."""
    z = (z ^ (z >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return z ^ (z >> np.uint64(31))
