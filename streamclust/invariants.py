"""What always holds of the threshold tree, asserted from its parts (tree.md of the design, 5)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamclust.corrections import Corrections
from streamclust.errors import InvariantBroken
from streamclust.growth import draw, key_below
from streamclust.kernels.routing import leaf_of
from streamclust.nodes import Node, RoutingTable, ids_under, nodes_under
from streamclust.rebuilds import update_limit
from streamclust.roster import Roster
from streamclust.structure import Structure


def check_tree(
    roster: Roster, structure: Structure, corrections: Corrections, table: RoutingTable
) -> None:
    """Assert every invariant of a tree. O(k d log^2 k).

    Raises
    ------
    InvariantBroken
    """
    root = structure.root
    held = [] if root is None else ids_under(root)
    _require(sorted(held) == sorted(roster.centers), "the leaves are not the centers")
    for node in nodes_under(root) if root is not None else ():
        _check_node(roster, structure.drawing.p, node)
    extra = corrections.n_leaves
    _require(table.owner.size == len(held) + extra, "leaves are not centers plus corrections")
    _require(table.feature.size == max(table.owner.size - 1, 0), "not a binary tree")
    _require(np.isfinite(table.threshold).all(), "a threshold is not finite")
    reached = np.sort(table.child.ravel())
    expected = np.arange(-table.owner.size, table.feature.size)
    _require(
        not table.feature.size or np.array_equal(reached, expected[expected != 0]),
        "a node or leaf is not reached exactly once",
    )
    for id, center in roster.centers.items():
        answer = int(table.owner[leaf_of(center, table.feature, table.threshold, table.child)])
        _require(answer == id, f"center {id} is routed to {answer}")
    for leaf, correction in corrections.by_leaf.items():
        named = set(correction.owner.tolist())
        _require(leaf in named and named <= set(held), "a correction names a dead center")


def _check_node(roster: Roster, p: float, node: Node) -> None:
    record, below = node.record, {a: ids_under(part) for a, part in node.parts()}
    held = [id for ids in below.values() for id in ids]
    _require(node.size == len(held) >= 2, "a node miscounts its centers")
    _require(node.updates <= update_limit(node.built), "a rebuild is overdue")
    for arrival, part in node.parts():
        _require(arrival is None or arrival.time <= record.stop, "a cut came after the stop")
        if isinstance(part, Node):
            expected = key_below(record, arrival)
            _require(part.record.base == expected, "a part has a foreign key")
    # The tree is a pure function of its records and centers: the same as built at once.
    keys, bound = roster.keys, float(np.nextafter(record.stop, math.inf))
    fresh = draw(record.measure, p, keys, [record.key], roster.matrix(held), bound)
    for j, (arrival, id) in enumerate((a, id) for a, ids in below.items() for id in ids):
        _require(
            fresh.arrival(keys, 0, j) == arrival,
            f"center {id} is not where its earliest arrival puts it",
        )


def _require(held: Any, broken: str) -> None:
    if not held:
        raise InvariantBroken(broken)
