"""The threshold tree's records, kept in step with its centers.

Every center's cut is a function of a frozen record and that center alone, so an insert, a delete or
a move touches one cut; a subtree that has seen enough updates is drawn anew (arXiv 2512.01150,
sections on the dynamic algorithm).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Self

import numpy as np

from streamclust.growth import Ground, draw, key_below, mixed_key
from streamclust.nodes import Arrival, Node, Part, copied, cuts_under, ids_under, nodes_under
from streamclust.packing import pack, unpack
from streamclust.results import FloatArray, IntArray
from streamclust.roster import Roster

Path = list[tuple[Node, Arrival | None]]
"""Nodes from the root down, each with the cut that leads on; None: the main part."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """How subtrees are drawn; see `streamclust.tree.ThresholdTree`."""

    p: float
    measure: str
    draws: int
    seed: int


class Structure:
    """The tree of records over the centers of a roster.

    Attributes
    ----------
    root : Part or None
    points, owners : arrays of shape (n, d) and (n,)
        The window, and the center id that each point belongs to.
    redrawn : list of int
        Ids whose leaves hang below records drawn since the list was last emptied.
    """

    def __init__(self, roster: Roster, drawing: Drawing) -> None:
        self.roster = roster
        self.drawing = drawing
        self.root: Part | None = None
        self.points: FloatArray = np.empty((0, roster.weights.size))
        self.owners: IntArray = np.empty(0, dtype=np.int64)
        self.redrawn: list[int] = []

    def to_state(self) -> dict[str, Any]:
        """Return plain numbers, strings and arrays from which `from_state` restores all."""
        return {
            "p": self.drawing.p,
            "measure": self.drawing.measure,
            "draws": self.drawing.draws,
            "seed": self.drawing.seed,
            "points": self.points.copy(),
            "owners": self.owners.copy(),
            "tree": pack(self.root),
        }

    @classmethod
    def from_state(cls, roster: Roster, state: Mapping[str, Any]) -> Self:
        """The structure over `roster` that `to_state` told of."""
        drawing = Drawing(
            float(state["p"]), str(state["measure"]), int(state["draws"]), int(state["seed"])
        )
        made = cls(roster, drawing)
        made.points = np.array(state["points"], dtype=np.float64)
        made.owners = np.array(state["owners"], dtype=np.int64)
        made.root = unpack(state["tree"])
        return made

    def copied(self, roster: Roster) -> Structure:
        """The same records over a copy of the roster, which change apart from these."""
        made = Structure(roster, self.drawing)
        made.root = None if self.root is None else copied(self.root)
        made.points, made.owners = self.points, self.owners  # replaced, never written
        return made

    def build(self) -> None:
        """Draw the whole tree anew."""
        ids = list(self.roster.centers)
        self.root = self.drawn(ids, []) if ids else None

    def insert(self, id: int) -> Path:
        """Place a center that the roster holds; answers the nodes that it passed."""
        path: Path = []
        self.root = id if self.root is None else self._added(self.root, id, path)
        return path

    def delete(self, id: int) -> Path:
        """Take a center out; answers the nodes above it that are left."""
        path = self.path_to(id)
        self._removed(path)
        return _alive(path)

    def move(self, id: int, center: FloatArray) -> list[Path]:
        """Give a center a new position, in the roster too.

        Answers the paths of nodes that saw an update, old and new; none if no cut changes.
        """
        path = self.path_to(id)
        depth = 0
        while depth < len(path) and self._place(path[depth][0], center) == path[depth][1]:
            depth += 1
        above, below = path[:depth], path[depth:]
        if below:
            self._removed(below, within=True)
        self.roster.store(id, center)
        if not below:
            return []
        node = below[0][0]
        node.size -= 1
        passed: Path = []
        self._added(node, id, passed)
        return [[*above, *passed], [*above, *_alive(below)]]

    def path_to(self, id: int) -> Path:
        """The nodes above a center's leaf with the cuts that lead to it.

        Raises
        ------
        UnknownCluster
            If no center has this id.
        """
        center = self.roster.position(id)
        path: Path = []
        part = self.root
        while isinstance(part, Node):
            arrival = part.first_cut(center)
            path.append((part, arrival))
            part = part.part_at(arrival)
        return path

    def drawn(
        self, ids: list[int], above: Path, generation: int = 0, standing: Part | None = None
    ) -> Part:
        """The part of `ids` that hangs below `above`, drawn anew; see `Ground.grow`."""
        base = mixed_key(self.drawing.seed, 0)
        if above:
            base = key_below(above[-1][0].record, above[-1][1])
        return self.ground(ids, above).grow(base, generation, standing)

    def ground(self, ids: list[int], above: Path) -> Ground:
        """What a drawing of the part of `ids` that hangs below `above` may look at."""
        members = np.sort(np.array(ids, dtype=np.int64))
        row = np.minimum(np.searchsorted(members, self.owners), members.size - 1)
        here = members[row] == self.owners
        points = self.points[here]
        reaching = _reaching(above, points)
        return Ground(
            self.drawing.p,
            self.drawing.measure == "gap",
            self.drawing.draws,
            self.roster.weights,
            self.roster.keys,
            members,
            self.roster.matrix(members.tolist()),
            points[reaching],
            row[here][reaching],
            self.owners.size,
        )

    def reaching(self, above: Path) -> tuple[FloatArray, IntArray]:
        """The window points that the cuts of `above` lead on, and their owners."""
        reaching = _reaching(above, self.points)
        return self.points[reaching], self.owners[reaching]

    def replace(self, above: Path, node: Node, grown: Part) -> int:
        """Put another part in a node's place; answers the cut records created or removed."""
        if above:
            _put(*above[-1], grown)
        else:
            self.root = grown
        standing = {_form(old) for old in nodes_under(node)}
        for new in nodes_under(grown):
            if _form(new) not in standing:
                self.redrawn += ids_under(new)
        return len(cuts_under(node) ^ cuts_under(grown))

    def _place(self, node: Node, center: FloatArray) -> Arrival | None:
        """The earliest arrival of a center at a node; None: it stays in the main part.

        Stored cuts are compared as they are; only arrivals before them are computed.
        """
        standing = node.first_cut(center)
        stop = np.nextafter(node.record.stop, math.inf)  # the stop itself still counts
        found = draw(
            node.record.measure,
            self.drawing.p,
            self.roster.keys,
            [node.record.key],
            center[None, :],
            stop if standing is None else standing.time,
        ).arrival(self.roster.keys, 0, 0)
        return standing if found is None else found

    def _added(self, part: Part, id: int, path: Path) -> Part:
        """Put a center into a part and note the nodes that it passed."""
        if isinstance(part, int):
            self.redrawn += [part, id]
            return self.drawn([part, id], path)
        arrival = self._place(part, self.roster.centers[id])
        path.append((part, arrival))
        part.size += 1
        below = part.part_at(arrival)
        _put(part, arrival, id if below is None else self._added(below, id, path))
        return part

    def _removed(self, path: Path, within: bool = False) -> None:
        """Take the leaf at the end of `path` out; `within` keeps the first node's size."""
        if not path:
            self.root = None
            return
        _put(*path[-1], None)
        for node, _ in path[1:] if within else path:
            node.size -= 1
        for depth, (node, _) in enumerate(path):
            if node.size == 1 and not (within and depth == 0):
                rest = ids_under(node)[0]
                if depth:
                    _put(*path[depth - 1], rest)
                else:
                    self.root = rest
                break


def _form(node: Node) -> tuple[int, tuple[Arrival, ...]]:
    """What a node's routing is made of."""
    return node.record.key, tuple(arrival for arrival, _ in node.cuts()[0])


def _put(node: Node, arrival: Arrival | None, part: Part | None) -> None:
    if arrival is None:
        node.main = part
    elif part is None:
        del node.spine[arrival]
    elif arrival in node.spine:
        node.spine[arrival] = part
    else:  # spines are short
        node.spine = dict(sorted([*node.spine.items(), (arrival, part)], key=itemgetter(0)))


def _alive(path: Path) -> Path:
    """The nodes of a path that still hold two centers."""
    return [(node, arrival) for node, arrival in path if node.size > 1]


def _reaching(above: Path, points: FloatArray) -> IntArray:
    """Rows of the points that the cuts of `above` lead on."""
    rows = np.arange(points.shape[0])
    for node, arrival in above:
        for cut, _ in node.cuts()[0]:
            parted = (points[rows, cut.feature] > cut.threshold) == (cut.side == 1)
            rows = rows[parted if cut == arrival else ~parted]
            if cut == arrival:
                break
    return rows
