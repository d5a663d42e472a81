"""From a neighbour graph to a clustering, chosen without labels by its code length.

Owns the merge hierarchies, the cuts that they offer, and the choice: of all cuts, refined and
joined, the one of shortest description. A single cluster and pure noise are always among the
candidates, so "there is nothing to separate" is an answer like any other. A description is a sum
over clusters, so the best cut of a hierarchy is an exact dynamic programme, not one of few levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamclust.kernels.code import join_clusters, node_codes
from streamclust.kernels.levels import best_cut, finest_cut
from streamclust.kernels.linkage import single_linkage, ward_linkage
from streamclust.refit.code import LEAST, Choice, Code, compact
from streamclust.refit.graph import Graph, ranked
from streamclust.results import FloatArray, IntArray

NOISE_SHARE = 0.05
"""Share of noise that cuts of a hierarchy reckon with before any noise is known."""
PRICES = (0.0, 1.0, 4.0)
"""Extra prices of a cluster, in units of one diagonal shape's parameters."""
DEAREST = 64.0
"""The dearest price of a fine cut, and the cheapest where negative, in the same units."""
HALVINGS = 16
"""How often the range of prices is halved for a fine cut."""
MEASURED = 3
"""How many cuts, the shortest under the Gaussian law, are told under Student's law too."""
FINE = 12
"""Clusters, at least, of the fine cuts that are joined upwards whatever their own length."""
FINEST = 48
"""A fine cut that jumps beyond so many clusters has no levels worth joining through."""
CROWD = 200
"""A cut with more clusters competes as it is: polishing costs the square of their number."""
NEAR = 4
"""With how many nearest clusters a cluster may be joined."""


@dataclass(frozen=True, slots=True)
class Merges:
    """A binary merge tree: merge t joins ``left[t]`` and ``right[t]`` into node n + t."""

    left: IntArray
    right: IntArray


def link_single(graph: Graph, U: FloatArray) -> Merges:
    """Single linkage of the embedded points along the edges of the graph."""
    step = U[graph.first] - U[graph.second]
    order = ranked(np.einsum("ij,ij->i", step, step), graph.lengths)
    left, right = np.empty(graph.n - 1, np.int64), np.empty(graph.n - 1, np.int64)
    used = np.empty(len(order), np.bool_)
    single_linkage(graph.first, graph.second, order, left, right, used)
    return Merges(left, right)


def link_ward(graph: Graph, points: FloatArray, weights: FloatArray) -> Merges:
    """Ward's hierarchy of the points along the edges of the graph."""
    left, right = np.empty(graph.n - 1, np.int64), np.empty(graph.n - 1, np.int64)
    start, entry, _ = graph.lists()
    ward_linkage(start, entry, points.copy(), weights.copy(), left, right)
    return Merges(left, right)


def confirm(former: IntArray, merges: Merges, code: Code) -> Choice | None:
    """An earlier clustering, polished, where nothing shorter is in sight.

    In sight are the single cluster, noise, and what the best cut of one hierarchy refines into: a
    window that changed a little costs little.

    Parameters
    ----------
    former : int array of shape (n,)
        0 .. K - 1, or -1.
    merges : Merges
    code : Code
    """
    held = polish(code.best(former), code)
    if held.n_clusters <= 1:
        return None
    whole = np.zeros(len(code.points), np.int64)
    cuts = _shortest(_cuts([_Cutter(merges, code)]), code)
    rivals = [code.refine(code.best(labels)).length for labels in (whole, *cuts[:1])]
    return held if held.length <= min(code.total * code.log_volume, *rivals) else None


def choose(hierarchies: Sequence[Merges], code: Code, former: IntArray | None = None) -> Choice:
    """The clustering of shortest description, the single cluster and pure noise included.

    Parameters
    ----------
    hierarchies : sequence of Merges
        The finest useful cut of the first and of the last one is joined upwards as well.
    code : Code
    former : int array of shape (n,), optional
        One more candidate.

    Returns
    -------
    Choice
        At least one cluster.
    """
    whole = np.zeros(len(code.points), np.int64)
    wholes = [Choice(whole, code.measure(whole, law)[0], law) for law in (False, True)]
    one = min(map(code.refine, wholes), key=lambda choice: choice.length)
    noise = code.total * code.log_volume
    cutters = [_Cutter(merges, code) for merges in hierarchies]
    measured = [code.best(labels) for labels in _shortest(_cuts(cutters), code)[:MEASURED]]
    measured.sort(key=lambda choice: choice.length)
    fine = _different([cut.finest(FINE) for cut in (*cutters[:1], *cutters[-1:])])
    starts = [choice for choice in measured if choice.n_clusters <= CROWD][:1]
    starts += [code.best(labels) for labels in fine if labels.max() < FINEST]
    if former is not None:
        starts.append(code.best(former))
    known: dict[tuple[bytes, bool], Choice] = {}
    tried = [one, *measured, *(polish(start, code, known) for start in starts)]
    best = min(tried, key=lambda choice: choice.length)
    if best.n_clusters > 1 and best.length < noise:
        return best
    return one if one.n_clusters == 1 and one.length < noise else code.best(whole)


def choose_exactly(k: int, hierarchies: Sequence[Merges], code: Code) -> Choice:
    """The clustering into exactly `k` clusters of shortest description.

    Parameters
    ----------
    k : int
        1 <= k <= n.
    hierarchies : sequence of Merges
        The last one is also cut at k, in case that the others offer too few clusters.
    code : Code
    """
    tried = [code.best(flat_cut(hierarchies[-1], k))]
    for merges in hierarchies:
        labels = _Cutter(merges, code).finest(k)
        if labels.max() + 1 >= k:
            start = join(code.best(labels), code, k)
            tried += [start, code.refine(start)]
    exact = [choice for choice in tried if choice.n_clusters == k]
    return min(exact, key=lambda choice: choice.length)


def polish(
    choice: Choice, code: Code, known: dict[tuple[bytes, bool], Choice] | None = None
) -> Choice:
    """Refine and join in turn, then give clusters up to noise, while that shortens the description.

    Parameters
    ----------
    choice : Choice
    code : Code
    known : dict, optional
        What joining made of refined clusterings; filled, so that starts which lead to the same
        clustering pay for it once.
    """
    known = {} if known is None else known
    best = choice
    while True:
        refined = code.refine(choice)
        key = (refined.labels.tobytes(), refined.student)
        if key not in known:
            known[key] = join(refined, code)
        choice = known[key]
        best = min(best, refined, choice, key=lambda choice: choice.length)
        if choice.n_clusters in (1, refined.n_clusters):
            choice = give_up(best, code)
            if choice is best:
                return best
            best = choice


def give_up(choice: Choice, code: Code) -> Choice:
    """Let clusters become noise one by one, the last one excepted, while that is shorter.

    Reassignment moves single points, for which a cluster of a few background points stays likelier.
    """
    if choice.n_clusters <= 1 or not code.plain:
        return choice
    own = code.measure(choice.labels, choice.student)[1].codes
    mass = np.bincount(choice.labels + 1, code.weights, minlength=choice.n_clusters + 1)
    outside, told = float(mass[0]), own.tolist()
    kept = dict(enumerate(mass[1:].tolist()))
    length = choice.length
    while len(kept) > 1:
        c = min(kept, key=lambda c: code.noise(outside + kept[c]) - told[c])
        rise = code.noise(outside + kept[c]) - told[c] - code.noise(outside)
        if not rise < 0.0:  # infinite where nothing may be noise
            break
        length, outside = length + rise, outside + kept.pop(c)
    if length == choice.length:
        return choice
    gone = [c for c in range(choice.n_clusters) if c not in kept]
    labels = np.where(np.isin(choice.labels, gone), -1, choice.labels)
    return Choice(compact(labels, code.weights, 0.0), length, choice.student)


def join(choice: Choice, code: Code, k: int | None = None) -> Choice:
    """Merge clusters pair by pair: while that shortens the description, or down to `k`."""
    if choice.n_clusters <= 1:
        return choice
    own = code.measure(choice.labels, choice.student)[1].codes.copy()
    labels = np.empty_like(choice.labels)
    length = join_clusters(
        code.points,
        code.weights,
        choice.labels,
        code.total,
        code.floor,
        choice.student,
        code.plain,
        *code.memo,
        NEAR,
        k or 0,
        choice.length,
        own,
        labels,
    )
    return Choice(labels, length, choice.student)


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
        return labels

    def finest(self, k: int) -> IntArray:
        """The dearest cut with at least `k` clusters, or the cheapest if none has so many."""
        labels = np.empty(len(self.noise), np.int64)
        ends = self.merges.left, self.merges.right
        reach = DEAREST * self.code.unit
        finest_cut(*ends, self.codes, self.noise, k, reach, HALVINGS, labels)
        return labels


def _cuts(cutters: Sequence[_Cutter]) -> list[IntArray]:
    """The cuts at all prices, each once."""
    return _different([cut.at(price * cut.code.unit) for cut in cutters for price in PRICES])


def _shortest(cuts: Sequence[IntArray], code: Code) -> list[IntArray]:
    """The cuts by their length under the Gaussian law."""
    return sorted(cuts, key=lambda labels: code.measure(labels, False)[0])


def _different(candidates: Sequence[IntArray]) -> list[IntArray]:
    """The candidates that have a cluster, each once."""
    unlike: dict[bytes, IntArray] = {}
    for labels in candidates:
        if labels.max() >= 0:
            unlike.setdefault(labels.tobytes(), labels)
    return list(unlike.values())


def flat_cut(merges: Merges, k: int) -> IntArray:
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
