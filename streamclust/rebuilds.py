"""When a part of the threshold tree is drawn anew, and what that must be worth.

Under the paper's measure a node that has seen enough updates is drawn again with all below it under
the clocks that it had, so that the law is the paper's and most cuts stay where they were. Under the
gap measure a node stays until its parts are too uneven, or until a rival *pays*: it must set right
a fixed share of the window's answers that it changes. Answers go wrong by updates alone, so what
such rebuilds change per update is bounded by what one update spoils over that share, whatever the
number of centers; to become uneven takes updates in proportion to a node's size.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from streamclust.nodes import Node, Part, answers_of, flatten, ids_under, nodes_under
from streamclust.results import FloatArray, IntArray
from streamclust.structure import Path, Structure

WORTH = 0.2
"""Answers that a rival sets right, less those it spoils, per answer that it changes, at least."""
MOST_OF_PART = 0.75
"""A node that leaves more than this share of its centers in one part is drawn anew."""


def update_limit(built: int) -> float:
    """Updates that a subtree built over `built` centers bears before it is looked at.

    A plain quarter would look at a node of two or three centers at every update.
    """
    return max(8.0, built / 4)


class Rebuilt(NamedTuple):
    """What came of looking at nodes.

    Attributes
    ----------
    foreign : int
        Cut records created or removed.
    replaced : list of int
        Centers of each subtree that was replaced.
    looked : int
        Nodes that were compared with new draws.
    """

    foreign: int
    replaced: list[int]
    looked: int


def is_overdue(structure: Structure) -> bool:
    """Whether some node has had enough updates."""
    nodes = nodes_under(structure.root) if structure.root is not None else ()
    return any(node.updates > update_limit(node.built) for node in nodes)


def rebuild_overdue(structure: Structure, paths: Iterable[Path] | None = None) -> Rebuilt:
    """Look at the nodes that have had enough updates, along `paths` or everywhere."""
    passed = None if paths is None else {id(node) for path in paths for node, _ in path}
    return _look(structure, structure.root, [], passed, forced=False)


def reconsider(structure: Structure) -> Rebuilt:
    """Look at all nodes."""
    return _look(structure, structure.root, [], None, forced=True)


def _look(
    structure: Structure, part: Part | None, above: Path, passed: set[int] | None, forced: bool
) -> Rebuilt:
    if not isinstance(part, Node) or (passed is not None and id(part) not in passed):
        return Rebuilt(0, [], 0)
    looked = 0
    if forced or part.updates > update_limit(part.built):
        looked = 1
        grown = _successor(structure, part, above)
        if grown is not None:
            return Rebuilt(structure.replace(above, part, grown), [part.size], 1)
        part.updates, part.built = 0, part.size
    found = [
        _look(structure, below, [*above, (part, arrival)], passed, forced)
        for arrival, below in list(part.parts())
    ]
    return Rebuilt(
        sum(r.foreign for r in found),
        [size for r in found for size in r.replaced],
        looked + sum(r.looked for r in found),
    )


def _successor(structure: Structure, node: Node, above: Path) -> Part | None:
    """What should stand in a node's place, or None: the node."""
    ids = ids_under(node)
    if structure.drawing.measure == "paper":
        return structure.drawn(ids, above, 0, node)
    if uneven(node):
        return structure.drawn(ids, above, node.record.generation + 1)
    rival = structure.ground(ids, above).rival(node, WORTH)
    node.record = node.record.outlasting()
    if rival is None or not pays(node, rival, *structure.reaching(above)):
        return None
    return rival


def uneven(node: Node) -> bool:
    """Whether a node's largest part holds nearly all: the tree would become deep."""
    largest = max(1 if isinstance(part, int) else part.size for _, part in node.parts())
    return largest == node.size or largest > max(8, MOST_OF_PART * node.size)


def pays(node: Node, rival: Part, points: FloatArray, owners: IntArray) -> bool:
    """Whether a rival sets enough answers right for those that it changes."""
    before, after = (answers_of(flatten(part, {}), points) for part in (node, rival))
    gained = int((after == owners).sum()) - int((before == owners).sum())
    return gained > 0 and gained >= WORTH * int((before != after).sum())
