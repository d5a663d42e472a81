"""Compiled pieces of the search for background: the k-th least of rows, and a mixture of two laws.

See `streamclust.refit.background`; the mixture is fitted by expectation and maximisation (Dempster,
Laird, Rubin, "Maximum likelihood from incomplete data via the EM algorithm", 1977).
"""

from __future__ import annotations

import math

import numpy as np

from streamclust.kernels.compiled import kernel
from streamclust.results import FloatArray


@kernel
def kth_least(values: FloatArray, k: int, out: FloatArray) -> None:
    """Write the k-th least value of every row.

    Parameters
    ----------
    values : float array of shape (m, n)
    k : int
        1 <= k <= n; small, as k values are kept sorted.
    out : float array of shape (m,)
    """
    least = np.empty(k)
    for row in range(values.shape[0]):
        least[:] = np.inf
        for value in values[row]:
            if value < least[k - 1]:
                at = k - 1
                while at > 0 and least[at - 1] > value:
                    least[at] = least[at - 1]
                    at -= 1
                least[at] = value
        out[row] = least[k - 1]


@kernel
def weigh_background(
    own: FloatArray,
    middle: float,
    width: float,
    far: float,
    spread: float,
    share: float,
    steps: int,
    like: FloatArray,
) -> bool:
    """Tell how likely points are background, by how lonely they are.

    Beyond the typical distance of background a point is all the more background, and below that of
    the others all the less.

    Parameters
    ----------
    own : float array of shape (n,)
        Log distance of each point to its neighbours.
    middle, width : float
        Where the law of the points that are none begins.
    far, spread : float
        The law of background, which stays.
    share : float
        The share of background to begin with.
    steps : int
        Rounds.
    like : float array of shape (n,)
        Receives the probabilities.

    Returns
    -------
    bool
        Whether the two laws stayed apart, background being the farther one.
    """
    n = own.shape[0]
    for _ in range(steps):
        if min(width, spread) <= 0.0 or far <= middle:
            return False
        base = math.log(share / (1.0 - share) * width / spread)
        total, rest, mean, square = 0.0, 0.0, 0.0, 0.0
        for i in range(n):
            near, lonely = min((own[i] - far) / spread, 0.0), max((own[i] - middle) / width, 0.0)
            odds = base - 0.5 * near * near + 0.5 * lonely * lonely
            like[i] = 1.0 / (1.0 + math.exp(-min(max(odds, -500.0), 500.0)))
            total += like[i]
            rest += 1.0 - like[i]
            mean += (1.0 - like[i]) * own[i]
        share = min(max(total / n, 1.0 / n), 0.5)
        middle = mean / rest
        for i in range(n):
            square += (1.0 - like[i]) * (own[i] - middle) ** 2
        width = math.sqrt(square / rest)
    return True
