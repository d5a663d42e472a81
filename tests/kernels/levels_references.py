"""Plain oracles of the cuts of a hierarchy."""

import numpy as np


def random_tree(n, rng):
    live = list(range(n))
    left, right = [], []
    for t in range(n - 1):
        a = live.pop(int(rng.integers(len(live))))
        b = live.pop(int(rng.integers(len(live))))
        left.append(a)
        right.append(b)
        live.append(n + t)
    return np.array(left, np.int64), np.array(right, np.int64)


def members_of(left, right, n):
    members = [[i] for i in range(n)]
    for a, b in zip(left, right, strict=True):
        members.append(members[a] + members[b])
    return members


def best_cut_length(left, right, codes, noise, penalty):
    """The shortest cut by trying every one of them."""
    n = len(noise)

    def lengths(node):
        if node < n:
            return [noise[node]]
        t = node - n
        whole = [codes[node] + penalty]
        return whole + [a + b for a in lengths(left[t]) for b in lengths(right[t])]

    return min(lengths(2 * n - 2))
