"""A window in exactly k parts: what a refit answers where the number of clusters is given.

The code length chooses the number of clusters well, but not the best clustering of a given number:
it may spend a cluster on a few odd points, which Gaussian laws of full covariance tell shortest.
Here the laws of all candidates are as simple as k-medians takes them to be, one scale per
coordinate, with the noise trimmed: the classification likelihood of Celeux and Govaert, "A
classification EM algorithm for clustering and two stochastic versions" (1992). Candidates are the
k-medians of several starts, Ward's hierarchies of the points and of the representatives cut at k,
and the description of shortest code that has k clusters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from streamclust.kernels.medians import alternate
from streamclust.refit.code import Choice, Code, without_rank
from streamclust.refit.hierarchy import Merges, choose_exactly, flat_cut
from streamclust.results import BoolArray, FloatArray, IntArray

STARTS = 4
"""Random starts of k-medians, besides those from hierarchies."""
ROUNDS = 30
"""Most assignments of one start."""
SWEEPS = 3
"""Steps towards the medians between two assignments."""
TRIMS = 3
"""How often the laws are fitted to what the last ones did not call noise."""


def partition(
    k: int,
    points: FloatArray,
    hierarchies: Sequence[Merges],
    code: Code,
    seed: int = 0,
) -> Choice:
    """The best of several clusterings into exactly `k` clusters.

    Parameters
    ----------
    k : int
        1 <= k <= n.
    points : float array of shape (n, d)
        Pairwise distinct, all features.
    hierarchies : sequence of Merges
        The last two are cut at k: those of the representatives and of the points.
    code : Code
        Of the same points; says what noise costs.
    seed : int
        Draws the random starts.

    Returns
    -------
    Choice
        `k` clusters; its length is that under laws of one scale per coordinate.
    """
    cuts = [flat_cut(merges, k) for merges in hierarchies[-2:]]
    rivals = [choose_exactly(k, hierarchies, code).labels, *cuts]
    rivals.append(medians(k, points, code.weights, cuts, seed))
    told = [_trimmed(labels, code) for labels in rivals]
    return min(told, key=lambda choice: choice.length)


def medians(
    k: int, points: FloatArray, weights: FloatArray, starts: Sequence[IntArray], seed: int = 0
) -> IntArray:
    """The k-medians clustering of least cost, from given starts and from random ones.

    Parameters
    ----------
    k : int
    points : float array of shape (n, d)
        At least `k` are distinct.
    weights : float array of shape (n,)
    starts : sequence of int arrays of shape (n,)
        Labels 0 .. k - 1, every one used.
    seed : int

    Returns
    -------
    int array of shape (n,)
        0 .. k - 1, every one used.
    """
    X = without_rank(points - weights @ points / weights.sum())
    rng = np.random.default_rng(abs(seed))
    drawn = (_spread(k, X, weights, rng) for _ in range(STARTS))
    best, least = starts[0], np.inf
    for start in (*starts, *drawn):
        labels = start.copy()
        centers = _means(labels, weights, X)
        cost = alternate(X, weights, centers, ROUNDS, SWEEPS, labels)
        if cost < least:
            best, least = labels, cost
    return best


def _spread(k: int, X: FloatArray, weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """Points about `k` of them, drawn far from each other.

    Arthur and Vassilvitskii, "k-means++: the advantages of careful seeding" (2007).
    """
    labels = np.zeros(len(X), np.int64)
    gaps = np.full(len(X), np.inf)
    for c in range(k):
        mass = np.cumsum(weights if c == 0 else weights * gaps)
        at = int(np.searchsorted(mass, rng.random() * mass[-1], side="right"))
        at = min(at, len(X) - 1) if gaps[min(at, len(X) - 1)] > 0.0 else int(gaps.argmax())
        fresh = ((X - X[at]) ** 2).sum(axis=1)
        labels[fresh < gaps] = c
        gaps = np.minimum(gaps, fresh)
    return labels


def _means(labels: IntArray, weights: FloatArray, X: FloatArray) -> FloatArray:
    """The weighted mean of every cluster, shape (k, d)."""
    rows = _rows(labels, weights)
    found: FloatArray = (rows @ X) / rows.sum(axis=1)[:, None]
    return found


def _rows(labels: IntArray, weights: FloatArray) -> csr_array:
    """Weights by cluster and point, shape (k, n)."""
    n = len(labels)
    return csr_array((weights, (labels, np.arange(n))), shape=(int(labels.max()) + 1, n))


def _trimmed(labels: IntArray, code: Code) -> Choice:
    """A clustering with the noise that its own simple laws see; the shortest state of several."""
    noisy = np.isfinite(code.log_volume)
    kept = labels >= 0 if noisy else np.ones(len(labels), np.bool_)
    whole = _filled(labels, code.points)
    best = Choice(labels, np.inf, False)
    for _ in range(TRIMS if noisy else 1):
        kept = _peopled(whole, kept)
        length, density = _length(whole, kept, code)
        if length < best.length:
            best = Choice(np.where(kept, whole, -1), length, False)
        kept = density >= code.noise_density(float(code.weights[~kept].sum()))
    return best


def _filled(labels: IntArray, points: FloatArray) -> IntArray:
    """The labels, where noise belongs to the cluster of the nearest other point."""
    outside = labels < 0
    if not outside.any():
        return labels
    near = cKDTree(points[~outside]).query(points[outside])[1]
    whole = labels.copy()
    whole[outside] = labels[~outside][near]
    return whole


def _peopled(labels: IntArray, kept: BoolArray) -> BoolArray:
    """What is kept; and all of a cluster of which nothing would be."""
    left = np.bincount(labels[kept], minlength=int(labels.max()) + 1)
    found: BoolArray = kept | (left[labels] == 0)
    return found


def _length(labels: IntArray, kept: BoolArray, code: Code) -> tuple[float, FloatArray]:
    """Nats of a clustering of which some points are noise, and every point's log density.

    A cluster has a share, a mean and a variance per coordinate; all candidates have as many
    parameters, so that these cost nothing.
    """
    rows = _rows(labels, np.where(kept, code.weights, 0.0))
    mass = rows.sum(axis=1)
    mean = (rows @ code.points) / mass[:, None]
    square = (code.points - mean[labels]) ** 2
    found = (rows @ square) / mass[:, None]
    variance = found + code.floor
    peak = np.log(mass / code.total) - 0.5 * np.log(2.0 * np.pi * variance).sum(axis=1)
    density = peak[labels] - 0.5 * (square / variance[labels]).sum(axis=1)
    inside = float((rows @ density).sum())
    return code.noise(float(code.weights[~kept].sum())) - inside, density
