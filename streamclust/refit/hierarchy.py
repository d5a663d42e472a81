"""From a neighbour graph to a clustering, chosen without labels by its code length.

Owns the merge hierarchies, the cuts that they offer, their refinement, and the choice: the
clustering whose description in nats (points, parameters, labels) is shortest. A single cluster and
pure noise are always among the candidates, so "there is nothing to separate" is an answer like any
other. The principle is Rissanen's minimum description length (1978).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from streamclust.kernels.code import best_cut, fit_clusters, nearest_law, node_codes
from streamclust.kernels.linkage import single_linkage, ward_linkage
from streamclust.refit.graph import Graph

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Laws = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Codes, means, whiteners and offsets, as `fit_clusters` writes them."""

CODE_DIMENSIONS = 15
"""Most coordinates of the code space: a full covariance is one number per pair of them."""
RANK = 1e-12
"""A principal variance below this share of the largest one is rounding."""
FLOOR = 0.01
"""Added to every variance, as a share of the window's mean variance."""
LEAST = 3.0
"""Weight of the lightest cluster."""
NOISE_SHARE = 0.05
"""Share of noise that cuts of a hierarchy reckon with before any noise is known."""
PRICES = (0.0, 1.0, 4.0)
"""Extra prices of a cluster, in units of one diagonal shape's parameters."""
REFINED = 3
"""How many of the most promising candidates are refined."""
SWEEPS = 8
"""Most reassignments of one refinement."""
NEAR = 4
"""With how many nearest clusters a cluster may be joined."""


@dataclass(frozen=True, slots=True)
class Merges:
    """A binary merge tree: merge t joins ``left[t]`` and ``right[t]`` into node n + t."""

    left: IntArray
    right: IntArray


@dataclass(frozen=True, slots=True)
class Choice:
    """A clustering of distinct points and the length of its description.

    Attributes
    ----------
    labels : int array of shape (n,)
        0 .. K - 1, or -1.
    length : float
        Nats for the whole window.
    student : bool
        Whether clusters are told by Student's law instead of the Gaussian one.
    """

    labels: IntArray
    length: float
    student: bool

    @property
    def n_clusters(self) -> int:
        """The number of clusters."""
        return int(self.labels.max()) + 1 if self.labels.size else 0


class Code:
    """The code of a window: measures clusterings of its points.

    Parameters
    ----------
    points : float array of shape (n, p)
        Code space, see `code_space`.
    weights : float array of shape (n,)
        Positive.
    """

    def __init__(self, points: FloatArray, weights: FloatArray) -> None:
        self.points = points
        self.weights = weights
        self.total = float(weights.sum())
        mean = weights @ points / self.total
        variance = float(weights @ ((points - mean) ** 2).mean(axis=1)) / self.total
        self.floor = FLOOR * variance
        spans = points.max(axis=0) - points.min(axis=0)
        self.unit = 0.5 * (1 + 2 * points.shape[1]) * math.log1p(self.total)
        self.margin = 0.5 * (2 + points.shape[1]) * math.log1p(self.total)
        self.log_volume = float(np.log(np.maximum(spans, math.sqrt(self.floor))).sum())

    def measure(self, labels: IntArray, student: bool) -> tuple[float, Laws]:
        """The length of a clustering, and the laws that `reassign` needs."""
        count = int(labels.max()) + 1
        p = self.points.shape[1]
        laws: Laws = (
            np.empty(count),
            np.empty((count, p)),
            np.empty((count, p, p)),
            np.empty(count),
        )
        fit_clusters(self.points, self.weights, labels, self.total, self.floor, student, *laws)
        outside = float(self.weights[labels < 0].sum())
        length = float(laws[0].sum())
        if outside > 0:
            length += outside * (self.log_volume - math.log(outside / self.total))
        return length, laws

    def of_group(self, group: IntArray, student: bool) -> float:
        """The code of one cluster."""
        p = self.points.shape[1]
        codes = np.empty(1)
        fit_clusters(
            self.points[group],
            self.weights[group],
            np.zeros(len(group), np.int64),
            self.total,
            self.floor,
            student,
            codes,
            np.empty((1, p)),
            np.empty((1, p, p)),
            np.empty(1),
        )
        return float(codes[0])

    def noise_density(self, outside: float) -> float:
        """Log density of noise plus the log of its share, at least one point's."""
        return math.log(max(outside, 1.0) / self.total) - self.log_volume

    def best(self, labels: IntArray) -> Choice:
        """The clustering under the law that tells it in fewer nats."""
        gaussian, student = self.measure(labels, False)[0], self.measure(labels, True)[0]
        return Choice(labels, min(gaussian, student), student < gaussian)

    def refine(self, start: Choice) -> Choice:
        """Reassign points to the laws and refit the laws while the description gets shorter."""
        best, labels = start, start.labels
        for _ in range(SWEEPS):
            if labels.max() < 0:
                break
            length, (_, means, whiteners, offsets) = self.measure(labels, start.student)
            if length < best.length:
                best = Choice(labels, length, start.student)
            moved = np.empty_like(labels)
            noise = self.noise_density(float(self.weights[labels < 0].sum()))
            nearest_law(self.points, means, whiteners, offsets, noise, start.student, moved)
            moved = compact(moved, self.weights)
            if np.array_equal(moved, labels):
                break
            labels = moved
        return best


def code_space(X: FloatArray, weights: FloatArray) -> FloatArray:
    """The coordinates in which clusterings are measured.

    All features when there are at most 8; otherwise the principal coordinates of above-average
    variance, at least 2 and at most 15 and an eighth of the total weight.

    Parameters
    ----------
    X : float array of shape (n, d)
    weights : float array of shape (n,)
    """
    n, d = X.shape
    total = float(weights.sum())
    centred = X - weights @ X / total
    if d <= 8:
        return np.ascontiguousarray(centred)
    scaled = centred * np.sqrt(weights)[:, None]
    if d <= n:
        values, basis = np.linalg.eigh(scaled.T @ scaled)
    else:
        values, left = np.linalg.eigh(scaled @ scaled.T)
        basis = scaled.T @ (left / np.sqrt(np.maximum(values, RANK * values[-1])))
    rank = int((values > RANK * values[-1]).sum())
    wanted = int((values > values.mean()).sum())
    most = max(2, min(CODE_DIMENSIONS, int(total / 8)))
    kept = min(rank, most, max(2, wanted))
    return np.ascontiguousarray(centred @ basis[:, ::-1][:, :kept])


def link_single(graph: Graph, U: FloatArray) -> Merges:
    """Single linkage of the embedded points along the edges of the graph."""
    step = U[graph.first] - U[graph.second]
    order = np.lexsort((graph.lengths, np.einsum("ij,ij->i", step, step)))
    left, right = np.empty(graph.n - 1, np.int64), np.empty(graph.n - 1, np.int64)
    single_linkage(graph.first[order], graph.second[order], graph.n, left, right)
    return Merges(left, right)


def link_ward(graph: Graph, points: FloatArray, weights: FloatArray) -> Merges:
    """Ward's hierarchy of the points along the edges of the graph."""
    links = graph.adjacency(np.ones(len(graph.first)))
    left, right = np.empty(graph.n - 1, np.int64), np.empty(graph.n - 1, np.int64)
    start, neighbours = links.indptr.astype(np.int64), links.indices.astype(np.int64)
    ward_linkage(start, neighbours, points.copy(), weights.copy(), left, right)
    return Merges(left, right)


def compact(labels: IntArray, weights: FloatArray, least: float = LEAST) -> IntArray:
    """Number the clusters 0 .. K - 1 by their first point; too light ones become noise."""
    inside = labels >= 0
    if not inside.any():
        return labels
    mass = np.bincount(labels[inside], weights=weights[inside])
    labels = np.where(inside & (mass[labels] >= least), labels, -1)
    present, first = np.unique(labels, return_index=True)
    first, present = first[present >= 0], present[present >= 0]
    names = np.full(len(mass), -1, np.int64)
    names[present[np.argsort(first)]] = np.arange(len(present))
    return np.where(labels >= 0, names[labels], -1)


def offers(merges: Merges, code: Code) -> list[IntArray]:
    """The cut of shortest description, and those when every cluster costs more."""
    cut = _Cutter(merges, code)
    found: list[IntArray] = []
    for price in PRICES:
        labels = cut.at(price * code.unit)
        if not any(np.array_equal(labels, other) for other in found):
            found.append(labels)
    return found


def choose(candidates: list[IntArray], code: Code) -> Choice:
    """The clustering of shortest description, the single cluster and pure noise included.

    Parameters
    ----------
    candidates : list of int arrays of shape (n,)
        Labels 0 .. K - 1, or -1.
    code : Code
    """
    whole = np.zeros(len(code.points), np.int64)
    one = code.refine(code.best(whole))
    measured = [code.best(labels) for labels in candidates if labels.max() >= 0]
    measured.sort(key=lambda choice: choice.length)
    tried = [one, *measured, *(code.refine(choice) for choice in measured[:REFINED])]
    best = min(tried, key=lambda choice: choice.length)
    if best.n_clusters > 1:
        best = join(best, code)
    noise = code.total * code.log_volume
    if best.n_clusters > 1 and best.length < noise:
        return best
    return one if one.n_clusters == 1 and one.length < noise else code.best(whole)


def choose_exactly(k: int, hierarchies: list[Merges], code: Code) -> Choice:
    """The clustering into exactly `k` clusters of shortest description.

    Parameters
    ----------
    k : int
        1 <= k <= n.
    hierarchies : list of Merges
        The last one is cut at k where the others offer too few clusters.
    code : Code
    """
    tried: list[Choice] = []
    for merges in hierarchies:
        labels = _finest(_Cutter(merges, code), k, code.unit)
        if labels.max() + 1 >= k:
            start = join(code.best(labels), code, k)
            tried += [start, code.refine(start)]
    tried.append(code.best(_flat(hierarchies[-1], k)))
    exact = [choice for choice in tried if choice.n_clusters == k]
    return min(exact, key=lambda choice: choice.length)


def join(choice: Choice, code: Code, k: int | None = None) -> Choice:
    """Merge clusters pair by pair: while that shortens the description, or down to `k`."""
    groups = [np.flatnonzero(choice.labels == c) for c in range(choice.n_clusters)]
    own = {c: code.of_group(group, choice.student) for c, group in enumerate(groups)}
    centers = np.array([code.points[group].mean(axis=0) for group in groups])
    pairs = dict.fromkeys(_near_pairs(centers), math.nan)
    length = choice.length
    while len(own) > (k or 1) and pairs:
        for (a, b), rise in pairs.items():
            if math.isnan(rise):
                both = np.concatenate((groups[a], groups[b]))
                pairs[a, b] = code.of_group(both, choice.student) - own[a] - own[b]
        (a, b), rise = min(pairs.items(), key=lambda item: (item[1], item[0]))
        if k is None and rise >= 0.0:
            break
        length += rise
        groups[a] = np.concatenate((groups[a], groups[b]))
        own[a] += own.pop(b) + rise
        renamed: dict[tuple[int, int], float] = {}
        for (i, j), value in pairs.items():
            x, y = (a if i == b else i), (a if j == b else j)
            if x != y:
                renamed[min(x, y), max(x, y)] = math.nan if a in (x, y) else value
        pairs = renamed
    labels = np.full(len(choice.labels), -1, np.int64)
    for c in own:
        labels[groups[c]] = c
    return Choice(compact(labels, code.weights, 0.0), length, choice.student)


class _Cutter:
    """Cuts one hierarchy at any price per cluster."""

    def __init__(self, merges: Merges, code: Code) -> None:
        self.merges = merges
        self.code = code
        self.codes = node_codes(
            merges.left, merges.right, code.points, code.weights, code.floor, LEAST
        )
        self.noise = -code.noise_density(NOISE_SHARE * code.total) * code.weights

    def at(self, price: float) -> IntArray:
        """The best labels when every cluster costs `price` nats more."""
        labels = np.empty(len(self.noise), np.int64)
        best_cut(self.merges.left, self.merges.right, self.codes, self.noise, price, labels)
        return compact(labels, self.code.weights)


def _finest(cut: _Cutter, k: int, unit: float) -> IntArray:
    """The dearest cut with at least `k` clusters, or the cheapest if none has so many."""
    low, high = -64.0 * unit, 64.0 * unit
    found = cut.at(low)
    for _ in range(16):
        middle = 0.5 * (low + high)
        labels = cut.at(middle)
        if labels.max() + 1 >= k:
            low, found = middle, labels
        else:
            high = middle
    return found


def _flat(merges: Merges, k: int) -> IntArray:
    """Exactly `k` clusters: all merges but the last k - 1."""
    n = len(merges.left) + 1
    label = np.full(2 * n - 1, -1, np.int64)
    made = 0
    for t in range(n - 2, -1, -1):
        node = n + t
        for child in (int(merges.left[t]), int(merges.right[t])):
            if t >= n - k:
                if child < n or child - n < n - k:
                    label[child] = made
                    made += 1
            else:
                label[child] = label[node]
    if k == 1:
        label[:] = 0
    return compact(label[:n], np.ones(n), 0.0)


def _near_pairs(centers: FloatArray) -> list[tuple[int, int]]:
    """Every cluster with its nearest others, each pair once."""
    width = min(len(centers), NEAR + 1)
    _, order = cKDTree(centers).query(centers, k=width)
    order = np.reshape(order, (len(centers), width))
    pairs = {(min(a, int(b)), max(a, int(b))) for a, row in enumerate(order) for b in row if a != b}
    return sorted(pairs)
