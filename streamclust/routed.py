"""What can be asked of the threshold tree: answers, paths, boxes, shape and price.

Owns the parts of the tree and the routing table that is laid out of them; asking changes nothing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamclust.boxes import Intervals, Outline, all_boxes, depth_of, outline_of, path_of
from streamclust.corrections import Corrections
from streamclust.export import nested
from streamclust.kernels.routing import assignment_costs, leaf_of
from streamclust.nodes import Arrival, RoutingTable, answers_of, cuts_under, flatten
from streamclust.results import FloatArray, IntArray
from streamclust.roster import Roster
from streamclust.structure import Structure


class RoutedTree:
    """Centers, records and corrections as one thing that answers.

    Attributes
    ----------
    version : int
        Grows whenever an answer may have changed.
    """

    def __init__(self, roster: Roster, structure: Structure) -> None:
        self.version = 0
        self._roster = roster
        self._structure = structure
        self._corrections = Corrections()
        self._table: RoutingTable | None = None
        self._outline: Outline | None = None
        self._boxes: dict[int, list[Intervals]] | None = None

    @property
    def n_features(self) -> int:
        """The number of features, d."""
        return int(self._roster.weights.size)

    def route(self, x: FloatArray) -> int:
        """The center id that `x` (d,) is assigned to, or -1 without centers."""
        table = self.table()
        if not table.owner.size:
            return -1
        return int(table.owner[leaf_of(x, table.feature, table.threshold, table.child)])

    def route_many(self, points: FloatArray) -> IntArray:
        """`route` for every row of `points` (n, d)."""
        return answers_of(self.table(), np.ascontiguousarray(points, dtype=np.float64))

    def table(self) -> RoutingTable:
        """The tree as flat arrays, the same object until the tree changes."""
        if self._table is None:
            self._table = flatten(self._structure.root, self._corrections.by_leaf)
        return self._table

    def outline(self) -> Outline:
        """The boxes of all centers, the same object until the tree changes."""
        if self._outline is None:
            self._outline = outline_of(self.table(), self.ids, self.n_features)
        return self._outline

    def path(self, x: FloatArray) -> list[tuple[int, bool, float]]:
        """The comparisons that route `x`, root to leaf: (feature, ``x > threshold``, threshold)."""
        return path_of(self.table(), x)

    def boxes(self, id: int) -> list[Intervals]:
        """Where the tree answers `id`: one interval (low, high] per bounded feature and box.

        Raises
        ------
        UnknownCluster
            If no center has this id.
        """
        self._roster.position(id)
        if self._boxes is None:
            self._boxes = all_boxes(self.table(), self.n_features)
        return [dict(box) for box in self._boxes.get(id, ())]

    def center(self, id: int) -> FloatArray:
        """A copy of a center's position.

        Raises
        ------
        UnknownCluster
            If no center has this id.
        """
        return self._roster.position(id).copy()

    @property
    def ids(self) -> list[int]:
        """The living ids, ascending."""
        return sorted(self._roster.centers)

    @property
    def n_leaves(self) -> int:
        """Leaves of the tree, corrections included."""
        return int(self.table().owner.size)

    @property
    def depth(self) -> int:
        """The most comparisons that an answer can take."""
        return depth_of(self.table())

    def cost_ratio(self, points: FloatArray) -> float:
        """The price of explainability on `points` (n, d).

        Cost of the tree's answers over the cost of the nearest centers; cost is the sum of
        distances ``||w (x - c)||_p`` under the current weights. nan without centers or points; 1
        where both costs are 0.
        """
        if not self._roster.centers or not len(points):
            return math.nan
        ids = np.array(self.ids, dtype=np.int64)
        points = np.ascontiguousarray(points, dtype=np.float64)
        answers = np.searchsorted(ids, self.route_many(points))
        centers = self._roster.matrix(ids.tolist())
        nearest = np.empty(len(points), dtype=np.int64)
        answered, least = assignment_costs(
            points, centers, self._roster.weights, self._structure.drawing.p, answers, nearest
        )
        if least > 0:
            return answered / least
        return 1.0 if answered == 0 else math.inf

    def as_dict(self) -> dict[str, Any]:
        """The tree as nested dicts, for JSON: see `streamclust.export`."""
        return nested(self.table())

    @property
    def cuts(self) -> set[tuple[int, Arrival]]:
        """The cut records of all centers, each with its node's key: what recourse counts."""
        return cuts_under(self._structure.root) if self._structure.root is not None else set()

    def _changed(self) -> None:
        self.version += 1
        self._table = self._outline = self._boxes = None
