"""Correction subtrees: more leaves than centers, where they bring the rule nearer to the distance.

A tree with one leaf per center misroutes points that lie nearer to another center. A correction
refines one leaf by a few more cuts, learned from points that are labelled by their nearest center.
The idea of more leaves than centers is ExKMC's (Frost, Moshkovitz and Rashtchian, arXiv
2006.02399); the choice of cuts is CART's, pruned by weakest links under one budget for all leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from streamclust.kernels.corrections import grow
from streamclust.nodes import Correction
from streamclust.results import FloatArray, IntArray

LEAST_SHARE = 0.002
"""A correction must fix at least this share of its leaf's points: more than chance explains, as
thousands of points teach it, and less than what a faithful tree may misroute in all."""
MOST_NODES = 255
"""Nodes that a subtree may have before pruning."""
MOST_ENTRIES = 1 << 22
"""Bound on points times features looked at in one leaf; the features of most spread are kept."""


class Corrections:
    """The correction subtrees of a tree, by leaf.

    Attributes
    ----------
    by_leaf : dict of center id -> Correction
    """

    def __init__(self, by_leaf: Mapping[int, Correction] | None = None) -> None:
        self.by_leaf = dict(by_leaf or {})
        self._named: dict[int, set[int]] = {}  # center id -> leaves whose correction names it
        for leaf, correction in self.by_leaf.items():
            for named in correction.owner.tolist():
                self._named.setdefault(named, set()).add(leaf)

    def drop(self, leaves: Iterable[int]) -> bool:
        """Drop the corrections of leaves; answers whether there was one."""
        dropped = False
        for leaf in leaves:
            correction = self.by_leaf.pop(leaf, None)
            if correction is not None:
                dropped = True
                for named in correction.owner.tolist():
                    self._named.get(named, set()).discard(leaf)
        return dropped

    def drop_naming(self, id: int) -> bool:
        """Drop every correction that names a center; answers whether there was one."""
        return self.drop(list(self._named.pop(id, ())))

    @property
    def n_leaves(self) -> int:
        """Leaves that the corrections add."""
        return sum(correction.feature.size for correction in self.by_leaf.values())


class Sprout:
    """A grown, not yet pruned subtree of one leaf.

    Parameters
    ----------
    points : float array of shape (n, d)
    rows : int array of shape (r,)
        The leaf's rows of `points`.
    labels : int array of shape (r,)
        The center nearest to each, by its place in `named`; not all are alike.
    named : int array of shape (m,)
        Ids of centers; the first one is the leaf's own.
    centers : float array of shape (m, d)
    weights : float array of shape (d,)
    """

    def __init__(
        self,
        points: FloatArray,
        rows: IntArray,
        labels: IntArray,
        named: IntArray,
        centers: FloatArray,
        weights: FloatArray,
    ) -> None:
        self.named = named
        self.size = rows.size
        spread = (np.abs(centers - centers[0]) * weights).max(axis=0)
        n_features = max(1, min(spread.size, MOST_ENTRIES // self.size))
        n_features = min(n_features, max(1, np.count_nonzero(spread)))
        features = np.sort(np.argsort(-spread, kind="stable")[:n_features])
        alike = labels == np.bincount(labels).argmax()
        others = rows[~alike]
        n = MOST_NODES
        self.feature, self.threshold = np.zeros(n, dtype=np.int64), np.zeros(n)
        self.child = np.full((n, 2), -1, dtype=np.int64)
        self.answer, self.errors = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        self.worth = np.zeros(n)
        n = grow(
            points,
            features,
            rows[alike],
            others,
            np.argsort(points[others].T[features], axis=1),  # equal ones in any order
            np.concatenate([labels[alike], labels[~alike]]),
            named.size,
            centers[0],
            0.1 * LEAST_SHARE * self.size,
            self.feature,
            self.threshold,
            self.child,
            self.answer,
            self.errors,
            self.worth,
        )
        self.worth = self.worth[:n]

    def pruned(self, price: float) -> Correction | None:
        """What is left at a price per leaf, if it fixes enough."""
        feature: list[int] = []
        threshold: list[float] = []
        child: list[list[int]] = []
        owner: list[int] = []
        errors = 0
        stays = (self.worth > price).tolist()
        if not stays[0]:
            return None
        n = len(stays)
        features, children = self.feature[:n].tolist(), self.child[:n].tolist()
        answers, wrong = self.named[self.answer[:n]].tolist(), self.errors[:n].tolist()
        left = [(0, 0, 0)]  # nodes, and where they hang; the left side is laid out first
        while left:
            node, above, side = left.pop()
            if stays[node]:
                at = len(feature)
                feature.append(features[node])
                threshold.append(float(self.threshold[node]))
                child.append([0, 0])
                left += [(children[node][1], at, 1), (children[node][0], at, 0)]
            else:
                owner.append(answers[node])
                errors += wrong[node]
                at = -len(owner)
            if node:
                child[above][side] = at
        if wrong[0] - errors < LEAST_SHARE * self.size:
            return None
        return Correction(
            np.array(feature, dtype=np.int64),
            np.array(threshold),
            np.array(child, dtype=np.int64),
            np.array(owner, dtype=np.int64),
        )


def learn_corrections(
    points: FloatArray,
    labels: IntArray,
    landed: IntArray,
    ids: IntArray,
    centers: FloatArray,
    weights: FloatArray,
    leaves_per_center: int,
) -> dict[int, Correction]:
    """Learn the correction subtrees of all leaves.

    Parameters
    ----------
    points : float array of shape (n, d)
    labels : int array of shape (n,)
        Row of the center nearest to each point.
    landed : int array of shape (n,)
        Row of the center whose leaf each point falls into without corrections.
    ids, centers : arrays of shape (k,) and (k, d)
    weights : float array of shape (d,)
    leaves_per_center : int
        All leaves together number at most this times the centers.

    Returns
    -------
    dict of leaf id -> Correction
    """
    k = ids.size
    order = np.argsort(landed.astype(np.min_scalar_type(k)), kind="stable")  # fast for few bits
    starts = np.concatenate([[0], np.cumsum(np.bincount(landed, minlength=k))]).tolist()
    wrong = np.bincount(landed[landed != labels], minlength=k)
    place = np.empty(k, dtype=np.int64)
    sprouts: dict[int, Sprout] = {}
    for leaf in np.flatnonzero(wrong).tolist():
        rows = order[starts[leaf] : starts[leaf + 1]]
        counts = np.bincount(labels[rows])
        if wrong[leaf] < LEAST_SHARE * rows.size or counts.max() == rows.size:
            continue
        others = np.flatnonzero(counts)
        named = np.concatenate([[leaf], others[others != leaf]])
        place[named] = np.arange(named.size)
        sprouts[int(ids[leaf])] = Sprout(
            points, rows, place[labels[rows]], ids[named], centers[named], weights
        )
    spare = (leaves_per_center - 1) * k
    prices = np.sort(np.concatenate([[0.0], *(s.worth for s in sprouts.values())]))[::-1]
    # Every kept inner node is one more leaf: the price is that of the first that is one too many.
    price = float(prices[spare]) if spare < prices.size else 0.0
    grown = {leaf: sprout.pruned(price) for leaf, sprout in sprouts.items()}
    return {leaf: correction for leaf, correction in grown.items() if correction is not None}
