"""COMET: clusters of a noisy window, their number included, by robust convex fusion.

The idea is that of "Robust convex clustering with median of means" (the COMET paper): every point
gets a representative u that stays near its point x and is pulled towards the representatives of
its neighbours, by a penalty that lets go of far ones. The published solver is a normalised
gradient descent on a one-sided graph whose data term does not act; this one minimises

    sum_i h_i |x_i - u_i|^2 + strength * sum_pq w_pq l_pq |u_p - u_q|^2

as a sequence of sparse linear systems on a symmetric graph (Shah and Koltun, "Robust continuous
clustering", PNAS 2017): l (the truncation, graduated downwards) and h (the data weights) are both
Geman-McClure weights. Both terms weigh alike whatever the number of points, features or units.
The clusters are cuts of merge hierarchies, chosen by code length (`streamclust.refit.hierarchy`);
pieces without a valley between them are one cluster (`streamclust.refit.valley`).

Noise here is a point that no cluster describes better than a uniform background; the paper calls a
tiny component noise. With more than 8 features it is told apart before, in all of them
(`streamclust.refit.background`), as the few coordinates of the code space cannot show it.
"""

from __future__ import annotations

import math
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from streamclust.errors import InvalidParameter, InvalidPoint
from streamclust.refit.adam import cluster_by_descent
from streamclust.refit.background import background
from streamclust.refit.base import BatchEstimator, checked_window, members, require
from streamclust.refit.code import PLAIN_DIMENSIONS, Code, code_space, compact
from streamclust.refit.fusion import FusionGraph
from streamclust.refit.graph import (
    Distinct,
    Graph,
    distinct_points,
    nearest_points,
    neighbour_count,
    neighbour_graph,
)
from streamclust.refit.hierarchy import choose, confirm, link_single, link_ward
from streamclust.refit.partition import partition
from streamclust.refit.valley import join_without_valley
from streamclust.results import BoolArray, FloatArray, IntArray

ROWS_PER_STEP = 70.0
"""A step of the descent is the length of the standardised data over this: 0.5 for Newthyroid."""
RESIST = 1e-3
"""Data weight that no point falls below, so that the systems stay positive definite."""


class COMET(BatchEstimator):
    """Robust convex clustering with an unknown number of clusters.

    Parameters
    ----------
    n_clusters : int, optional
        The exact number of clusters, where the data have so many distinct points. None lets the
        code length choose.
    fusion_strength : float, default 10.0
        Weight of the fusion term over that of the data term (gamma in the paper).
    batch_size : int, default 1
        Rows per bin of the median of means that tells how far a representative typically stands
        from its point; what stands much farther loses weight. Bins are drawn anew for every linear
        system. 1 is the median over rows, and draws nothing.
    seed : int, default 0
        Draws the bins, and what background is compared with.
    solver : {"systems", "adam", "published"}
        "systems": as above. "adam": the paper's descent and its noise rule, on a symmetric graph
        and with steps in proportion to the data; `n_clusters`, `fusion_strength` and `batch_size`
        do not act, and a weight only says whether a row counts. "published": the authors' code
        path, for whose figures the rows must be standardised; their order matters.

    Attributes
    ----------
    labels_ : int array of shape (n,)
        Cluster of each point, `0 .. n_clusters_ - 1`, or -1 for noise. Clusters are numbered by
        their lexicographically first point, or as in the incumbent where that is kept.
    n_clusters_ : int
        The number of clusters.
    code_length_ : float
        Length of the chosen description, nats; of its pieces, where a cluster is told by several;
        nan for the other solvers.
    kept_incumbent_ : bool
        Whether the answer is the clustering that was passed in.
    n_features_in_ : int
        The number of features seen by `fit`.
    """

    def __init__(
        self,
        *,
        n_clusters: int | None = None,
        fusion_strength: float = 10.0,
        batch_size: int = 1,
        seed: int = 0,
        solver: Literal["systems", "adam", "published"] = "systems",
    ) -> None:
        self.solver = solver
        self.n_clusters = n_clusters
        self.fusion_strength = fusion_strength
        self.batch_size = batch_size
        self.seed = seed

    def fit(
        self,
        X: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        incumbent: ArrayLike | None = None,
    ) -> Self:
        """Cluster a window.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Finite, n >= 1. Features should be on comparable scales; their common unit and their
            offset do not matter, nor does the order of the rows.
        sample_weight : array-like of shape (n,), optional
            Not negative; a weight of 2 is a repeated row. A row of weight 0 has no influence and
            gets the label of the nearest row that has.
        incumbent : array-like of int of shape (n,), optional
            An earlier clustering of the same rows, -1 for none. It competes, and stays unless
            another one is shorter by more than the price of one spherical cluster.

        Raises
        ------
        InvalidParameter, InvalidPoint
        """
        return self._fit(X, sample_weight, incumbent, None)

    def partial_fit(
        self, X: ArrayLike, y: None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Cluster a window that shares rows with the last one; the first call is a `fit`.

        The clusters of the shared rows start the search, and end it where nothing shorter is in
        sight. The graph and the representatives are made anew: the search is what costs.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The whole window as it is now, in the units and features of the last one.
        y : None
            Not used.
        sample_weight : array-like of shape (n,), optional

        Raises
        ------
        InvalidParameter, InvalidPoint
        """
        return self._fit(X, sample_weight, None, getattr(self, "_told", None))

    def _fit(
        self,
        X: ArrayLike,
        sample_weight: ArrayLike | None,
        incumbent: ArrayLike | None,
        told: tuple[FloatArray, IntArray] | None,
    ) -> Self:
        """Cluster a window, given earlier distinct points and their clusters."""
        self._check_parameters()
        points, weights = checked_window(X, sample_weight)
        heavy = np.flatnonzero(weights > 0.0)
        former = None if incumbent is None else _checked_labels(incumbent, len(points))
        window = distinct_points(points[heavy], weights[heavy])
        member = members(points, heavy, window.points, window.member)
        if self.solver != "systems":
            chosen, length, kept = self._descend(points[heavy], window), math.nan, False
        else:
            start = None
            if former is not None and former[heavy].max() >= 0:
                start = _former(former[heavy], window.member)
            carried = np.full(len(window.points), -1)
            if told is not None:
                carried = _carried(window.points, *told)
            chosen, length, kept = self._cluster(window.points, window.weights, start, carried)
        self._told = window.points, chosen
        labels = chosen[member]
        self.labels_ = labels
        self.n_clusters_ = int(chosen.max()) + 1
        self.code_length_ = length
        self.kept_incumbent_ = kept
        self.n_features_in_ = points.shape[1]
        return self

    def fit_predict(
        self,
        X: ArrayLike,
        y: None = None,
        sample_weight: ArrayLike | None = None,
        *,
        incumbent: ArrayLike | None = None,
    ) -> IntArray:
        """`fit`, then `labels_`."""
        return self.fit(X, sample_weight, incumbent=incumbent).labels_

    def _descend(self, rows: FloatArray, window: Distinct) -> IntArray:
        """The labels that the published descent gives to the distinct points."""
        if len(window.points) == 1:
            return np.zeros(1, np.int64)
        generator = np.random.default_rng(abs(self.seed))
        if self.solver == "published":
            labels = np.empty(len(window.points), np.int64)
            labels[window.member] = cluster_by_descent(rows, generator)
            return labels
        spread = window.points.std(axis=0)
        points = (window.points - window.points.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        pace = math.sqrt(points.size) / ROWS_PER_STEP
        return cluster_by_descent(points, generator, step_length=pace, graph="union")

    def _among(
        self,
        dense: BoolArray,
        points: FloatArray,
        weights: FloatArray,
        former: IntArray | None,
        carried: IntArray,
    ) -> tuple[IntArray, float, bool]:
        """`_cluster` where some points are background."""
        known = None
        if former is not None and former[dense].max() >= 0:
            known = compact(former[dense], weights[dense])  # some may be background altogether
        told, length, kept = self._cluster(
            points[dense], weights[dense], known, carried[dense], dense=True
        )
        if kept and former is not None:
            return former, length, True
        labels = np.full(len(points), -1, np.int64)
        labels[dense] = told
        return labels, length, False

    def _cluster(
        self,
        points: FloatArray,
        weights: FloatArray,
        former: IntArray | None,
        carried: IntArray,
        dense: bool = False,
    ) -> tuple[IntArray, float, bool]:
        """The labels of distinct points, their description, whether they are the former ones."""
        n = len(points)
        if n == 1:
            return np.zeros(1, np.int64), 0.0, False
        wide, k = points.shape[1] > PLAIN_DIMENSIONS, neighbour_count(n)
        nearest = nearest_points(points, k)
        if wide and not dense:
            apart = background(points, weights, self.seed, nearest)
            if apart.any():
                return self._among(~apart, points, weights, former, carried)
        space = code_space(points, weights)
        Z = space.points
        code = Code(Z, weights, space.grain, noisy=not wide, plain=not wide)
        graph = neighbour_graph(points, k, nearest)
        plain = link_ward(graph, Z, weights)
        carried = compact(carried, weights)
        start = former if former is not None else carried if carried.max() >= 0 else None
        pieces = None
        if start is not None and self.n_clusters is None:
            pieces = confirm(start, plain, code)
        if pieces is None:
            U = embed(Z, weights, graph, self.fusion_strength, self.batch_size, self.seed)
            hierarchies = [link_single(graph, U), link_ward(graph, U, weights), plain]
            if self.n_clusters is not None:
                k = min(self.n_clusters, n)
                exact = partition(k, points, hierarchies, code, self.seed)
                return exact.labels, exact.length, False
            pieces = choose(hierarchies, code, start)
        labels = join_without_valley(pieces, code, graph)
        if former is not None:
            held = code.best(former).length - code.best(labels).length
            if held <= code.margin:
                return former, pieces.length, True
        return labels, pieces.length, False

    def _check_parameters(self) -> None:
        """Refuse what `fit` could not use."""
        told = "systems, adam, published"
        require("solver", self.solver, self.solver in told.split(", "), told)
        k = self.n_clusters
        if k is not None and (isinstance(k, bool) or int(k) != k or k < 1):
            raise InvalidParameter(f"n_clusters is {k!r}; accepted: None or an integer >= 1")
        if not 0.0 < self.fusion_strength < np.inf:
            raise InvalidParameter(
                f"fusion_strength is {self.fusion_strength!r}; accepted: positive and finite"
            )
        b = self.batch_size
        if isinstance(b, bool) or int(b) != b or b < 1:
            raise InvalidParameter(f"batch_size is {b!r}; accepted: an integer >= 1")


def embed(
    Z: FloatArray,
    weights: FloatArray,
    graph: Graph,
    strength: float,
    batch_size: int = 1,
    seed: int = 0,
) -> FloatArray:
    """The representatives: points of one cluster drawn together, others left where they are.

    Parameters
    ----------
    Z : float array of shape (n, p)
        Centred.
    weights : float array of shape (n,)
        Positive.
    graph : Graph
    strength : float
        Weight of all fusion terms over that of all data terms.
    batch_size : int
        Rows per bin of the median of means.
    seed : int
        Draws the bins.

    Returns
    -------
    float array of shape (n, p)
    """
    edges = FusionGraph(graph, weights)
    U = Z.copy()
    square = edges.squares(U)
    top = float(square.max())
    if top == 0.0:
        return U
    truncation = 3.0 * top
    last = 0.25 * max(float(np.median(square)), 1e-12 * top)
    bins = _bins(graph.n, batch_size, truncation, last, seed)
    edges.draw_together(Z, U, weights, bins, strength, RESIST, truncation, last)
    return U


def _bins(n: int, batch_size: int, truncation: float, last: float, seed: int) -> IntArray:
    """The bin of every row at each level of the truncation; none at all where a bin is a row."""
    if batch_size == 1:
        return np.empty((0, n), np.int64)
    levels = 2 + max(0, math.ceil(math.log2(truncation / last)))  # one to spare for rounding
    rng, count = np.random.default_rng(abs(seed)), max(1, n // batch_size)
    return np.array([rng.permutation(n) % count for _ in range(levels)])


def _checked_labels(incumbent: ArrayLike, n: int) -> IntArray:
    """The incumbent's labels as an int64 array, numbered 0 .. K - 1 in their own order."""
    labels = np.asarray(incumbent)
    if labels.shape != (n,) or labels.dtype.kind not in "iu" or labels.min() < -1:
        raise InvalidParameter(
            f"incumbent of shape {labels.shape} and type {labels.dtype}; accepted: {n} integers "
            ">= -1"
        )
    values, renamed = np.unique(labels, return_inverse=True)
    return renamed.astype(np.int64) - int(values[0] == -1)


def _former(labels: IntArray, member: IntArray) -> IntArray:
    """The incumbent's label of each distinct point: that of its first row that has one."""
    former = np.full(int(member.max()) + 1, -1, np.int64)
    known = np.flatnonzero(labels >= 0)[::-1]  # of equal places the last one written stays
    former[member[known]] = labels[known]
    values, renamed = np.unique(former, return_inverse=True)
    return renamed.astype(np.int64) - int(values[0] == -1)


def _carried(points: FloatArray, earlier: FloatArray, labels: IntArray) -> IntArray:
    """The earlier label of each distinct point, or -1."""
    if points.shape[1] != earlier.shape[1]:
        raise InvalidPoint(
            f"X has {points.shape[1]} features, but COMET is expecting {earlier.shape[1]} features "
            "as input"
        )
    both = distinct_points(np.concatenate((points, earlier)), np.ones(len(points) + len(labels)))
    told = np.full(len(both.points), -1)
    told[both.member[len(points) :]] = labels
    return told[both.member[: len(points)]]
