"""COMET as published: normalised gradient descent with median-of-means bins.

Follows "Robust convex clustering with median of means" (arXiv 2511.14784) in the form in which its
authors ran it, so that their figures can be checked. Three things differ from the paper's text and
are kept on purpose: the graph is one-sided (an edge i < j needs j among the neighbours of i, so the
order of the rows matters), the bin that acts is a random one of the dearer half, and the second
moment of Adam is one number. A symmetric graph, which ignores the order, is the other choice. The
default solver of COMET is another one; see `streamclust.refit.comet`.

A small component is called noise here, as in the paper.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from streamclust.results import FloatArray, IntArray

BLOCK = 1 << 22
"""Entries of the distance block held at a time (32 MB)."""
FIRST, SECOND, TINY = 0.9, 0.999, 1e-8
"""Adam's decay of the two moments, and what keeps the root away from zero."""


def cluster_by_descent(
    points: FloatArray,
    generator: np.random.Generator,
    *,
    n_neighbors: int = 45,
    fusion_strength: float = 50_000.0,
    truncation: float = 100.0,
    locality: float = 0.01,
    bin_size: int = 20,
    n_binned: int | None = None,
    n_steps: int = 100,
    step_length: float = 0.5,
    link: float = 0.02,
    least: float = 0.5,
    graph: Literal["one_sided", "union", "mutual"] = "one_sided",
) -> IntArray:
    """Cluster points with the published solver; the defaults are the authors' for Newthyroid.

    Parameters
    ----------
    points : float array of shape (n, d)
        Standardised features, n >= 2.
    generator : numpy.random.Generator
        Draws one permutation per step.
    n_neighbors : int
        Neighbours per point; at most n - 1 count.
    fusion_strength, truncation, locality : float
        gamma, mu and phi of the paper: weight of the fusion term, squared length beyond which an
        edge lets go, and decay of edge weights with distance.
    bin_size : int
        Points per bin of the median of means.
    n_binned : int, optional
        Only so many points, the first ones, are ever put into bins; None: all.
    n_steps : int
        Steps of the descent.
    step_length : float
        No step moves all points together by much more than this (Frobenius norm).
    link : float
        Two points are linked when their squared distance, after the descent, is at most this share
        of the mean squared distance of all pairs.
    least : float
        A component of at most this share of the mean component size is noise.
    graph : {"one_sided", "union", "mutual"}
        Which neighbours are edges.

    Returns
    -------
    int array of shape (n,)
        0 .. K - 1 in order of first point, or -1.
    """
    first, second, lengths = _edges(points, min(n_neighbors, len(points) - 1), graph)
    U = descend(
        points,
        (first, second, fusion_strength * np.exp(-locality * lengths)),
        generator,
        truncation=truncation,
        bin_size=bin_size,
        n_binned=len(points) if n_binned is None else n_binned,
        n_steps=n_steps,
        step_length=step_length,
    )
    return _components(U, link, least)


def descend(
    points: FloatArray,
    edges: tuple[IntArray, IntArray, FloatArray],
    generator: np.random.Generator,
    *,
    truncation: float,
    bin_size: int,
    n_binned: int,
    n_steps: int,
    step_length: float,
) -> FloatArray:
    """Move representatives down the published objective, from the points on.

    Parameters
    ----------
    points : float array of shape (n, d)
    edges : tuple of arrays of shape (m,)
        Two ends and weight of every edge.
    generator, truncation, bin_size, n_binned, n_steps, step_length
        As in `cluster_by_descent`.

    Returns
    -------
    float array of shape (n, d)
    """
    first, second, weights = edges
    n, m = len(points), len(first)
    n_bins = max(1, n_binned // bin_size)
    size = n_binned // n_bins
    ends = np.stack((first, second), axis=1).ravel()
    signs = np.tile((1.0, -1.0), m)
    incidence = csr_array((signs, ends, np.arange(0, 2 * m + 1, 2)), shape=(m, n))
    back = csr_array(incidence.T)
    U, moment, square = points.copy(), np.zeros_like(points), 0.0
    for step in range(1, n_steps + 1):
        gaps = U[first] - U[second]
        held = np.where(np.einsum("ij,ij->i", gaps, gaps) < truncation, weights, 0.0)
        gradient: FloatArray = back @ (held[:, None] * gaps)
        bins = generator.permutation(n_bins * size).reshape(n_bins, size)
        away = U - points
        cost = np.einsum("ij,ij->i", away, away)[bins].sum(axis=1)
        chosen = bins[int(np.argmax(cost >= np.median(cost)))]
        gradient[chosen] += away[chosen] / size
        moment = FIRST * moment + (1.0 - FIRST) * gradient
        square = SECOND * square + (1.0 - SECOND) * float((gradient**2).sum())
        root = np.sqrt(square / (1.0 - SECOND**step) + TINY)
        U = U - step_length * moment / (1.0 - FIRST**step) / root
    return U


def _edges(
    points: FloatArray, k: int, graph: Literal["one_sided", "union", "mutual"]
) -> tuple[IntArray, IntArray, FloatArray]:
    """The ends and lengths of the edges, ``first < second``."""
    n = len(points)
    near = np.asarray(cKDTree(points).query(points, k=k + 1)[1]).reshape(n, k + 1)
    source = np.repeat(np.arange(n), k + 1)
    target = near.ravel()
    source, target = source[source != target], target[source != target]
    if graph == "one_sided":
        forward = source < target
        first, second = source[forward], target[forward]
    else:
        key = np.minimum(source, target) * n + np.maximum(source, target)
        both, count = np.unique(key, return_counts=True)
        both = both[count == 2] if graph == "mutual" else both
        first, second = both // n, both % n
    lengths = np.sqrt(((points[first] - points[second]) ** 2).sum(axis=1))
    return first.astype(np.int64), second.astype(np.int64), lengths


def _components(U: FloatArray, link: float, least: float) -> IntArray:
    """Components of the points linked pairwise; the small ones are noise."""
    n = len(U)
    limit = link * 2.0 * float(((U - U.mean(axis=0)) ** 2).sum()) / n
    labels = np.full(n, -1, dtype=np.int64)
    count = 0
    for seed in range(n):
        if labels[seed] >= 0:
            continue
        labels[seed] = count
        frontier = np.array([seed])
        free = np.flatnonzero(labels < 0)
        while frontier.size and free.size:
            part = frontier[: max(1, BLOCK // (free.size * U.shape[1]))]
            frontier = frontier[len(part) :]
            gaps = ((U[part, None, :] - U[None, free, :]) ** 2).sum(axis=2)
            reached = free[(gaps <= limit).any(axis=0)]
            labels[reached] = count
            frontier = np.concatenate((frontier, reached))
            free = free[labels[free] < 0]
        count += 1
    sizes = np.bincount(labels)
    kept = sizes > least * n / count
    names = np.where(kept, np.cumsum(kept) - 1, -1)
    return names[labels].astype(np.int64)
