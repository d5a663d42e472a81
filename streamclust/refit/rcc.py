"""Robust continuous clustering (RCC), and its form with a learned dictionary (RCC-DR).

Shah and Koltun, "Robust continuous clustering" (PNAS 114(37), 2017). Every point x gets a
representative u; representatives of neighbours are drawn together by a Geman-McClure penalty that
is graduated from nearly quadratic to one that lets go of far pairs:

    1/2 sum_i |x_i - u_i|^2 + lambda/2 sum_pq w_pq rho(|u_p - u_q|)

Each step is one sparse linear system for all columns side by side (`streamclust.refit.fusion`).
The paper's tolerances are absolute and compare lengths with squares; here features are first
brought to mean variance one and every comparison is between like units, unless `scales` asks for
the published ones. The published extraction links every edge shorter than the shortest one in a
hundred of the data, which breaks small windows into pieces; by default the clusters are cuts of
the hierarchies of the representatives, chosen by code length (`streamclust.refit.hierarchy`), and
pieces without a valley between them are one cluster (`streamclust.refit.valley`).
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from streamclust.kernels.rcc import spread
from streamclust.refit.base import BatchEstimator, checked_window, members, real, require, whole
from streamclust.refit.code import Code, code_space
from streamclust.refit.fusion import FusionGraph, Schedule
from streamclust.refit.graph import Graph, distinct_points, neighbour_graph
from streamclust.refit.hierarchy import choose, link_single, link_ward
from streamclust.refit.partition import partition
from streamclust.refit.valley import join_without_valley
from streamclust.results import FloatArray, IntArray

ITERATIONS = 100
"""Systems solved at the most, as published."""
SHORTEST = 0.01
"""The share of edges that count as shortest."""
NEAR_DUPLICATE = 0.01
"""Published scales: edges shorter than this, per root of the features, are no shortest edges."""
ATTACHED = 8.0
"""RCC-DR: the data term's truncation starts at so many times the mean squared deviation, twice."""
KEPT = 0.9
"""RCC-DR: what remains of the dictionary when it is renewed, every tenth system."""
RIDGE = 1e-4
"""RCC-DR: ridge of the dictionary's least squares, per trace of the code's scatter."""


class RCC(BatchEstimator):
    """Robust continuous clustering.

    Parameters
    ----------
    n_clusters : int, optional
        The exact number of clusters, where the data have so many distinct points; needs the
        extraction by code. None lets the extraction choose.
    n_neighbors : int, default 10
        Neighbours per point; at most n - 1 count.
    metric : {"euclidean", "cosine"}
        How neighbours are measured; "cosine" is the published one and depends on the origin.
    fusion_strength : float, default 10.0
        Multiplies the published balance of the two terms (lambda).
    extraction : {"code", "edges"}
        "code": the cut of shortest description, with noise. "edges": the published one, components
        of short edges, without noise; single points are clusters.
    scales : {"free", "published"}
        "free": the unit and the offset of the features do not matter. "published": the formulas of
        the paper's code, which expect features of order one.
    tolerance : float, default 1e-3
        Change of the objective at which the truncation goes on to its next level: relative, or
        with published scales absolute (there: 0.1).

    Attributes
    ----------
    labels_ : int array of shape (n,)
        `0 .. n_clusters_ - 1`, or -1 for noise. Clusters are numbered by their lexicographically
        first point.
    n_clusters_ : int
    representatives_ : float array of shape (n, p)
        Where the points were drawn to, in the coordinates of the fit.
    n_iter_ : int
        Linear systems solved.
    n_features_in_ : int
    """

    def __init__(
        self,
        *,
        n_clusters: int | None = None,
        n_neighbors: int = 10,
        metric: Literal["euclidean", "cosine"] = "euclidean",
        fusion_strength: float = 10.0,
        extraction: Literal["code", "edges"] = "code",
        scales: Literal["free", "published"] = "free",
        tolerance: float = 1e-3,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.fusion_strength = fusion_strength
        self.extraction = extraction
        self.scales = scales
        self.tolerance = tolerance

    def fit(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster a window; see `BatchEstimator.fit`."""
        self._check_parameters()
        rows, weights = checked_window(X, sample_weight)
        heavy = np.flatnonzero(weights > 0.0)
        window = distinct_points(rows[heavy], weights[heavy])
        unit = float(np.abs(window.points).max()) or 1.0
        points, mass = window.points / unit, window.weights
        prepared = self._prepare(points, mass, unit)
        if len(points) == 1 or prepared is None:
            labels, U, self.n_iter_ = np.zeros(len(points), np.int64), 0.0 * points, 0
        else:
            graph = neighbour_graph(self._direction(points), min(self.n_neighbors, len(points) - 1))
            edges = FusionGraph(graph, mass, columns=prepared.shape[1])
            order, place = edges.order, edges.place
            fused, self.n_iter_ = self._fuse(prepared[order], mass[order], edges)
            U = fused[place]
            labels = self._extract(graph, edges, prepared, U, mass)
        member = members(rows, heavy, window.points, window.member)
        self.labels_, self.representatives_ = labels[member], U[member]
        self.n_clusters_ = int(labels.max()) + 1
        self.n_features_in_ = rows.shape[1]
        return self

    def _direction(self, points: FloatArray) -> FloatArray:
        """The coordinates in which neighbours are sought."""
        if self.metric == "euclidean":
            return points
        length = np.sqrt((points**2).sum(axis=1, keepdims=True))
        return points / np.where(length > 0.0, length, 1.0)

    def _prepare(self, points: FloatArray, mass: FloatArray, unit: float) -> FloatArray | None:
        """The coordinates that are fused, or None where the points do not differ in them."""
        centred = points - mass @ points / mass.sum()
        variance = float(mass @ (centred**2).mean(axis=1)) / float(mass.sum())
        if variance == 0.0:
            return None
        if self.scales == "published":
            return points * unit
        n, d = centred.shape
        if d > n:  # distances, and so the whole fit, depend on at most n coordinates
            values, basis = np.linalg.eigh(centred @ centred.T)
            centred = (basis * np.sqrt(np.maximum(values, 0.0)))[:, ::-1]
        return np.ascontiguousarray(centred / np.sqrt(variance))

    def _fuse(self, X: FloatArray, mass: FloatArray, edges: FusionGraph) -> tuple[FloatArray, int]:
        """The representatives, and the number of systems; all rows are positions."""
        schedule = self._schedule(X, edges)
        U, ratio = X.copy(), self.fusion_strength * _norm(X * np.sqrt(mass)[:, None])
        pulls = edges.base
        balance = ratio / edges.norm(pulls)
        for step in range(1, ITERATIONS + 1):
            fusion, pulls = edges.penalty(U, schedule.truncation)
            away = spread(X, U, mass)
            edges.solve(balance * pulls, mass, X, U)
            moved = schedule.advance(0.5 * away + 0.5 * balance * fusion)
            if schedule.ended:
                return U, step
            if moved:
                balance = ratio / edges.norm(pulls)
        return U, ITERATIONS

    def _schedule(self, X: FloatArray, edges: FusionGraph) -> Schedule:
        """The levels of the truncation for these points."""
        square = edges.squares(X)
        top = 3.0 * float(square.max())
        if self.scales == "free":
            return Schedule(top, 0.25 * float(np.median(square)), self.tolerance, relative=True)
        shortest = _shortest(np.sqrt(square), X.shape[1], published=True)
        return Schedule(top, float(shortest[:250].mean()), self.tolerance, relative=False)

    def _extract(
        self, graph: Graph, edges: FusionGraph, X: FloatArray, U: FloatArray, mass: FloatArray
    ) -> IntArray:
        """The clusters of the representatives."""
        if self.extraction == "edges":
            lengths = np.sqrt(edges.squares(self._start(X)[edges.order]))
            limit = _shortest(lengths, X.shape[1], self.scales == "published").mean()
            near = np.sqrt(edges.squares(U[edges.order])) < limit
            links = (np.ones(int(near.sum())), (edges.first[near], edges.second[near]))
            found = connected_components(coo_array(links, shape=(graph.n, graph.n)))[1]
            return np.asarray(found[edges.place], dtype=np.int64)
        space = code_space(X, mass)
        Z = space.points
        code = Code(Z, mass, space.grain)
        hierarchies = [link_single(graph, U), link_ward(graph, U, mass)]
        if self.n_clusters is not None:
            hierarchies.append(link_ward(graph, Z, mass))
            return partition(min(self.n_clusters, graph.n), X, hierarchies, code).labels
        return join_without_valley(choose(hierarchies, code), code, graph)

    def _start(self, X: FloatArray) -> FloatArray:
        """Where the representatives started."""
        return X

    def _check_parameters(self) -> None:
        """Refuse what `fit` could not use."""
        k, edges = self.n_clusters, self.extraction == "edges"
        require("extraction", self.extraction, edges or self.extraction == "code", "code, edges")
        require("n_clusters", k, k is None or (whole(k, 1) and not edges), _COUNT)
        require("n_neighbors", self.n_neighbors, whole(self.n_neighbors, 1), "an integer >= 1")
        require("metric", self.metric, self.metric in ("euclidean", "cosine"), "euclidean, cosine")
        require("scales", self.scales, self.scales in ("free", "published"), "free, published")
        for name in ("fusion_strength", "tolerance"):
            require(name, getattr(self, name), real(getattr(self, name)), "positive and finite")


_COUNT = "None, or an integer >= 1 with extraction='code'"


class RCCDR(RCC):
    """Robust continuous clustering in the codes of a dictionary that is learned along with it.

    The dictionary starts from the principal directions and every point has a sparse code in it;
    representatives are drawn from the codes, whose attachment is robust too.

    Parameters
    ----------
    n_clusters, n_neighbors, metric, fusion_strength, extraction, scales, tolerance
        As in `RCC`; the published tolerance is 0.01 here.
    n_components : int, default 100
        Words of the dictionary (d in the paper); at most as many as directions with variance.
    sparsity : float, default 0.2
        Weight of the absolute values of a code (gamma in the paper).

    Attributes
    ----------
    labels_, n_clusters_, representatives_, n_iter_, n_features_in_
        As in `RCC`.
    """

    def __init__(
        self,
        *,
        n_clusters: int | None = None,
        n_neighbors: int = 10,
        metric: Literal["euclidean", "cosine"] = "euclidean",
        fusion_strength: float = 10.0,
        extraction: Literal["code", "edges"] = "code",
        scales: Literal["free", "published"] = "free",
        tolerance: float = 1e-3,
        n_components: int = 100,
        sparsity: float = 0.2,
    ) -> None:
        super().__init__(
            n_clusters=n_clusters,
            n_neighbors=n_neighbors,
            metric=metric,
            fusion_strength=fusion_strength,
            extraction=extraction,
            scales=scales,
            tolerance=tolerance,
        )
        self.n_components = n_components
        self.sparsity = sparsity

    def _fuse(self, X: FloatArray, mass: FloatArray, edges: FusionGraph) -> tuple[FloatArray, int]:
        """The representatives of the codes, and the number of systems; all rows are positions."""
        D = self._words(X)
        Z = X @ D
        U, former = Z.copy(), Z.copy()
        schedule = self._schedule(Z, edges)
        deviation = 2.0 * float(mass @ ((Z - mass @ Z / mass.sum()) ** 2).sum(axis=1) / mass.sum())
        reach = ATTACHED * deviation
        reach = max(2000.0, reach) if self.scales == "published" else reach
        ridge = RIDGE * float(mass @ (Z**2).sum(axis=1))
        trust, balance = np.ones(len(X)), 0.0
        for step in range(1, ITERATIONS + 1):
            fusion, pulls = edges.penalty(U, schedule.truncation)
            gaps = np.einsum("ij,ij->i", Z - U, Z - U)
            trust = (reach / (reach + gaps)) ** 2
            if balance == 0.0:
                balance = self._balance(Z, trust, mass, edges, pulls)
            speed = Z + (step - 1.0) / (step + 2.0) * (Z - former)
            gram = D.T @ D
            pace = 1.0 / (_norm(D) ** 2 + float(trust.max()))
            slope = speed @ gram - X @ D + trust[:, None] * (speed - U)
            former, Z = Z, _shrunk(speed - pace * slope, pace * self.sparsity)
            edges.solve(balance * pulls, mass * trust, Z, U)
            if step % 10 == 0:
                scatter = (Z.T * mass) @ Z + ridge * np.eye(Z.shape[1])
                D = KEPT * D + (1.0 - KEPT) * np.linalg.solve(scatter, (Z.T * mass) @ X).T
            residual = np.einsum("ij,ij->i", X - Z @ D.T, X - Z @ D.T)
            attached = trust * gaps + reach * (np.sqrt(trust) - 1.0) ** 2
            told = 0.5 * (residual + attached) + self.sparsity * np.abs(Z).sum(axis=1)
            moved = schedule.advance(float(mass @ told) + 0.5 * balance * fusion)
            if schedule.ended:
                return U, step
            if moved:
                reach = 0.5 * reach if reach >= deviation else 0.5 * deviation
                balance = self._balance(Z, trust, mass, edges, pulls)
        return U, ITERATIONS

    def _balance(
        self,
        Z: FloatArray,
        trust: FloatArray,
        mass: FloatArray,
        edges: FusionGraph,
        pulls: FloatArray,
    ) -> float:
        """The weight of the fusion term, lambda."""
        held = trust * np.sqrt(mass)
        return (
            self.fusion_strength
            * _norm(held[:, None] * Z)
            / (float(trust.max()) + edges.norm(pulls))
        )

    def _words(self, X: FloatArray) -> FloatArray:
        """The first dictionary, shape (d, p): principal directions, most variance first."""
        centred = X - X.mean(axis=0)
        values, basis = np.linalg.eigh(centred.T @ centred)
        kept = min(self.n_components, max(1, int((values > 1e-12 * values[-1]).sum())))
        return np.ascontiguousarray(basis[:, ::-1][:, :kept])

    def _start(self, X: FloatArray) -> FloatArray:
        return X @ self._words(X)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require("n_components", self.n_components, whole(self.n_components, 1), "an integer >= 1")
        least = self.sparsity == 0.0 or real(self.sparsity)
        require("sparsity", self.sparsity, least, "finite and >= 0")


def _norm(X: FloatArray) -> float:
    """The spectral norm, by the smaller Gram matrix."""
    gram = X.T @ X if X.shape[1] <= X.shape[0] else X @ X.T
    return float(np.sqrt(max(np.linalg.eigvalsh(gram)[-1], 0.0)))


def _shrunk(values: FloatArray, by: float) -> FloatArray:
    """Soft thresholding."""
    found: FloatArray = np.sign(values) * np.maximum(np.abs(values) - by, 0.0)
    return found


def _shortest(lengths: FloatArray, d: int, published: bool) -> FloatArray:
    """The shortest edges, shortest first; published scales leave near-duplicates out."""
    if published and (lengths >= NEAR_DUPLICATE * np.sqrt(d)).any():
        lengths = lengths[lengths >= NEAR_DUPLICATE * np.sqrt(d)]
    return np.sort(lengths)[: max(1, int(np.ceil(SHORTEST * len(lengths))))]
