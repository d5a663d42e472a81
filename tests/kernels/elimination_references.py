"""Plain NumPy oracles of the direct solver."""

import numpy as np


def filled(linked, place):
    """The pattern below the diagonal of the factor, by eliminating one point after the other."""
    order = np.argsort(place)
    pattern = linked[np.ix_(order, order)].copy()
    for k in range(len(pattern)):
        later = np.flatnonzero(pattern[k, k + 1 :]) + k + 1
        pattern[np.ix_(later, later)] = True
    return np.tril(pattern, -1)


def solved(linked_pulls, held, X):
    """The dense solution of (H + A) U = H X."""
    laplacian = np.diag(linked_pulls.sum(axis=1)) - linked_pulls
    return np.linalg.solve(np.diag(held) + laplacian, held[:, None] * X)
