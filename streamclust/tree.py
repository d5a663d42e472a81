"""The dynamic explainable k-medians tree: axis-parallel cuts that change little.

Owns the centers and the tree over them, and keeps both in step: every leaf answers one center, one
comparison decides each cut, and an insert, a delete or a move touches the cut of the updated center
alone until a subtree has seen so many updates that it is rebuilt. Source: Makarychev, Papanikolaou
and Shan, "Dynamic Algorithm for Explainable k-medians Clustering under lp Norm", NeurIPS 2025,
arXiv 2512.01150.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from streamclust.boxes import Intervals, all_boxes, depth_of, path_of
from streamclust.corrections import Corrections, learn_corrections
from streamclust.errors import InvalidParameter
from streamclust.export import nested
from streamclust.growth import mixed_key
from streamclust.invariants import check_tree
from streamclust.kernels.cuts import KeyArray
from streamclust.kernels.routing import assignment_costs, leaf_of, leaves_of
from streamclust.nodes import Arrival, Node, RoutingTable, cuts_under, flatten
from streamclust.packing import pack_corrections, unpack_corrections
from streamclust.results import FloatArray, IntArray
from streamclust.roster import Roster
from streamclust.structure import Drawing, Path, Structure


class Recourse(NamedTuple):
    """What one update changed.

    Attributes
    ----------
    own : int
        Cut records created or removed for the updated center.
    foreign : int
        Cut records of other centers created or removed: 0 unless a subtree was rebuilt.
    rebuilt : int
        Centers of the subtree that was rebuilt, or 0.
    """

    own: int
    foreign: int
    rebuilt: int


class ThresholdTree:
    """A threshold tree over centers with stable ids.

    Parameters
    ----------
    n_features : int
    p : float, default 2.0
        Exponent of the distance, finite and at least 1.
    measure : {"gap", "paper"}, default "gap"
        Whether cuts prefer gaps in the window, or follow the paper's law.
    draws : int, default 16
        Random spines that compete at each node of a rebuild (one under "paper").
    leaves_per_center : int, default 8
        Bound on the leaves, corrections included, per center; 1: exactly one leaf each.
    seed : int, default 0

    Notes
    -----
    Insert, delete and move cost O(d log^3 k) amortised; memory is O(k d) plus the bounded tables of
    the gap measure.
    """

    def __init__(
        self,
        n_features: int,
        *,
        p: float = 2.0,
        measure: str = "gap",
        draws: int = 16,
        leaves_per_center: int = 8,
        seed: int = 0,
    ) -> None:
        if not (math.isfinite(p) and p >= 1):
            raise InvalidParameter(f"p must be finite and at least 1, got {p!r}")
        if measure not in ("gap", "paper"):
            raise InvalidParameter(f"measure must be 'gap' or 'paper', got {measure!r}")
        if draws < 1 or leaves_per_center < 1 or n_features < 0:
            raise InvalidParameter(
                "draws and leaves_per_center must be at least 1 and n_features at least 0, got "
                f"{draws!r}, {leaves_per_center!r}, {n_features!r}"
            )
        self.leaves_per_center = leaves_per_center
        self.version = 0
        self.counters = dict.fromkeys(
            ("updates", "own_cuts", "foreign_cuts", "rebuilds", "rebuilt_centers"), 0
        )
        keys = np.array([mixed_key(i) for i in range(n_features)], dtype=np.uint64)
        self._roster = Roster(np.ones(n_features), keys)
        self._structure = Structure(self._roster, Drawing(float(p), measure, draws, seed))
        self._corrections = Corrections()
        self._table: RoutingTable | None = None
        self._boxes: dict[int, list[Intervals]] | None = None
        self._holding = False  # rebuilds wait until a batch of updates is through

    # -- what the tree is told about features and window ------------------------------------------

    @property
    def n_features(self) -> int:
        """The number of features, d."""
        return int(self._roster.weights.size)

    def set_features(self, weights: FloatArray, keys: KeyArray) -> None:
        """Replace the weights, and let new features join with value 0.

        Parameters
        ----------
        weights : float array of shape (d,)
            At least 0; d may grow but not shrink. Nodes made later use them; 0 hides a feature.
        keys : uint64 array of shape (d,)
            A stable hash of each feature's name, so that the order of features does not matter.

        Raises
        ------
        InvalidParameter
        """
        grown = self._roster.set_features(weights, keys)
        if grown:
            self._structure.points = np.pad(self._structure.points, ((0, 0), (0, grown)))

    def set_window(self, points: FloatArray, owners: IntArray) -> None:
        """Give the recent points that (re)builds look at.

        Parameters
        ----------
        points : float array of shape (n, d)
        owners : int array of shape (n,)
            The center id that each point belongs to, or -1.
        """
        owned = np.asarray(owners) >= 0
        self._structure.points = np.ascontiguousarray(points, dtype=np.float64)[owned]
        self._structure.owners = np.array(owners, dtype=np.int64)[owned]

    # -- updates ----------------------------------------------------------------------------------

    def build(self, centers: Mapping[int, FloatArray]) -> None:
        """Draw the whole tree anew.

        Raises
        ------
        InvalidParameter
            If two centers agree on every feature of positive weight; nothing was changed.
        """
        admitted = self._roster.admitted_all(centers)
        self._roster.clear()
        for id, center in admitted.items():
            self._roster.store(id, center)
        self._structure.build()
        self._corrections = Corrections()
        self._structure.redrawn.clear()
        self._changed()

    def insert(self, id: int, center: FloatArray) -> Recourse:
        """Add a center.

        Raises
        ------
        InvalidParameter
            If the id lives, or another center agrees with it on every feature of positive weight;
            nothing was changed.
        """
        if id in self._roster.centers:
            raise InvalidParameter(f"center {id} is already in the tree")
        self._roster.store(id, self._roster.admitted(id, center))
        path = self._structure.insert(id)
        return self._updated([path], own=min(len(self._roster.centers) - 1, 1))

    def delete(self, id: int) -> Recourse:
        """Remove a center.

        Raises
        ------
        UnknownCluster
            If no center has this id.
        """
        path = self._structure.delete(id)
        self._roster.forget(id)
        self._corrections.drop_naming(id)
        return self._updated([path], own=min(len(self._roster.centers), 1))

    def move(self, id: int, center: FloatArray) -> Recourse:
        """Give a center a new position: one update, or none if no cut changes.

        Corrections that name it stay until they are learned anew: they are as near as before.

        Raises
        ------
        UnknownCluster, InvalidParameter
            As in `delete` and `insert`.
        """
        self._roster.position(id)
        paths = self._structure.move(id, self._roster.admitted(id, center))
        return self._updated(paths, own=2) if paths else Recourse(0, 0, 0)

    def follow(self, centers: Mapping[int, FloatArray], *, rebuild: bool = True) -> Recourse:
        """Make these the tree's centers: delete, move and insert, then rebuild what has had enough.

        Cheaper and calmer than a `build` where few centers changed, and than single updates where
        many did: a subtree is rebuilt at most once. Without `rebuild` that is left for later.

        Raises
        ------
        InvalidParameter
            As in `build`; nothing was changed.
        """
        changed = self._roster.admitted_changes(centers)
        self._holding = True
        done = [self.delete(id) for id in self.ids if id not in centers]
        late = []
        for id, center in changed.items():
            if id not in self._roster.centers:
                late.append(id)
            elif not np.array_equal(center, self._roster.centers[id]):
                if self._roster.twin(id, center) is None:
                    done.append(self.move(id, center))
                else:  # its place is still another's, who will move on
                    done.append(self.delete(id))
                    late.append(id)
        done += [self.insert(id, changed[id]) for id in late]
        self._holding = False
        foreign, rebuilt = self._rebuilt(None) if rebuild else (0, 0)
        return Recourse(sum(r.own for r in done), foreign, rebuilt)

    @property
    def is_overdue(self) -> bool:
        """Whether a subtree has had enough updates to be rebuilt, which `rebuild` does."""
        return self._structure.is_overdue

    def rebuild(self) -> None:
        """Rebuild what has had enough updates."""
        self._rebuilt(None)

    def copied(self) -> ThresholdTree:
        """A tree of the same centers and cuts, which changes apart from this one."""
        made = ThresholdTree(0, leaves_per_center=self.leaves_per_center)
        made.version, made.counters = self.version, dict(self.counters)
        made._roster = self._roster.copied()
        made._structure = self._structure.copied(made._roster)
        made._corrections = Corrections(self._corrections.by_leaf)
        return made

    def become(self, other: ThresholdTree, since: ThresholdTree) -> None:
        """Take over another tree, which was once a copy of `since` and is not used any more.

        What other and this tree have counted since then is added up.
        """
        for name in self.counters:
            self.counters[name] += other.counters[name] - since.counters[name]
        self._roster, self._structure = other._roster, other._structure
        self._corrections = other._corrections
        self._changed()

    def reconsider(self) -> None:
        """Let new draws compete with every record of the tree, under the present window.

        What is not clearly beaten stays as it is; meant for when the window has filled or changed.
        Under the paper's measure, which looks at no window, nothing happens.
        """
        root = self._structure.root
        if isinstance(root, Node) and self._structure.drawing.measure == "gap":
            self._count(self._structure.rebuild([], root), [root])

    def correct(self, points: FloatArray, labels: IntArray) -> None:
        """Learn the correction subtrees anew.

        Parameters
        ----------
        points : float array of shape (n, d)
        labels : int array of shape (n,)
            Id of the center nearest to each point; points with ids that do not live are ignored.
        """
        if self.leaves_per_center == 1:
            return
        living = np.isin(labels, np.array(self.ids, dtype=np.int64))
        points = np.ascontiguousarray(points, dtype=np.float64)[living]
        plain = flatten(self._structure.root, {})
        self._corrections = Corrections(
            learn_corrections(
                points,
                np.array(labels, dtype=np.int64)[living],
                _routed(plain, points),
                self._roster.centers,
                self._roster.weights,
                self.leaves_per_center,
            )
        )
        self._changed()

    # -- answers ----------------------------------------------------------------------------------

    def route(self, x: FloatArray) -> int:
        """The center id that `x` (d,) is assigned to, or -1 without centers."""
        table = self.table()
        if not table.owner.size:
            return -1
        return int(table.owner[leaf_of(x, table.feature, table.threshold, table.child)])

    def route_many(self, points: FloatArray) -> IntArray:
        """`route` for every row of `points` (n, d)."""
        return _routed(self.table(), np.ascontiguousarray(points, dtype=np.float64))

    def table(self) -> RoutingTable:
        """The tree as flat arrays, the same object until the tree changes."""
        if self._table is None:
            self._table = flatten(self._structure.root, self._corrections.by_leaf)
        return self._table

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

    @property
    def recourse(self) -> int:
        """Cut records created or removed by all updates, rebuilds included."""
        return self.counters["own_cuts"] + self.counters["foreign_cuts"]

    @property
    def rebuilds(self) -> int:
        """Subtrees rebuilt so far."""
        return self.counters["rebuilds"]

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

    # -- state ------------------------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """Everything that the tree needs to go on, as numbers, strings, lists and arrays."""
        return {
            **self._structure.to_state(),
            **self._roster.to_state(),
            "leaves_per_center": self.leaves_per_center,
            "version": self.version,
            "counters": dict(self.counters),
            "corrections": pack_corrections(self._corrections.by_leaf),
        }

    def from_state(self, state: Mapping[str, Any]) -> None:
        """Become the tree that `to_state` told of; it goes on bit for bit the same."""
        self.leaves_per_center = int(state["leaves_per_center"])
        self.version = int(state["version"])
        self.counters = {name: int(n) for name, n in state["counters"].items()}
        self._roster = Roster.from_state(state)
        self._structure = Structure.from_state(self._roster, state)
        self._corrections = Corrections(unpack_corrections(state["corrections"]))
        self._table = self._boxes = None

    # -- inner workings ---------------------------------------------------------------------------

    def _updated(self, paths: list[Path], own: int) -> Recourse:
        """Count an update on the nodes of `paths` and rebuild what has had enough."""
        for node in {id(node): node for path in paths for node, _ in path}.values():
            node.updates += 1
        self.counters["updates"] += 1
        self.counters["own_cuts"] += own
        self._changed()
        if self._holding:
            return Recourse(own, 0, 0)
        return Recourse(own, *self._rebuilt(paths))

    def _rebuilt(self, paths: list[Path] | None) -> tuple[int, int]:
        """Rebuild what is overdue along `paths`, or anywhere; foreign cuts and centers."""
        foreign, replaced = self._structure.rebuild_overdue(paths)
        self._count(foreign, replaced)
        return foreign, sum(node.size for node in replaced)

    def _count(self, foreign: int, replaced: list[Node]) -> None:
        self.counters["foreign_cuts"] += foreign
        self.counters["rebuilds"] += len(replaced)
        self.counters["rebuilt_centers"] += sum(node.size for node in replaced)
        # A correction was learned for its leaf as it was; under a new record the leaf is another.
        dropped = self._corrections.drop(self._structure.redrawn)
        self._structure.redrawn.clear()
        if foreign or dropped:
            self._changed()

    def _changed(self) -> None:
        self.version += 1
        self._table = self._boxes = None

    def _check(self) -> None:
        """Assert every invariant; see `streamclust.invariants`. O(k d log^2 k).

        Raises
        ------
        InvariantBroken
        """
        check_tree(self._roster, self._structure, self._corrections, self.table())


def _routed(table: RoutingTable, points: FloatArray) -> IntArray:
    """The center id of every row of `points`."""
    out = np.full(points.shape[0], -1, dtype=np.int64)
    if table.owner.size:
        leaves_of(points, table.feature, table.threshold, table.child, out)
        out = table.owner[out]
    return out
