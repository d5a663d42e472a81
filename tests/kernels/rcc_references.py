"""Plain NumPy oracles of the kernels of robust continuous clustering."""

import numpy as np


def squares(first, second, U):
    return ((U[first] - U[second]) ** 2).sum(axis=1)


def geman_mcclure(square, base, truncation):
    """The pulls at the best line process, and the penalty there."""
    process = (truncation / (truncation + square)) ** 2
    penalty = process * square + truncation * (np.sqrt(process) - 1.0) ** 2
    return base * process, float(base @ penalty)


def laplacian(first, second, pulls, n):
    dense = np.zeros((n, n))
    for a, b, pull in zip(first, second, pulls, strict=True):
        e = np.zeros(n)
        e[a], e[b] = 1.0, -1.0
        dense += pull * np.outer(e, e)
    return dense
