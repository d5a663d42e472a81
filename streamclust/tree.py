"""The dynamic explainable k-medians tree: axis-parallel cuts that change little.

Keeps the centers and the tree over them in step: every leaf answers one center, one comparison
decides each cut, and an insert, a delete or a move touches the cut of the updated center alone, but
for the rebuilds of subtrees that have seen many updates. What can be asked is in
`streamclust.routed`, what a rebuild must be worth in `streamclust.rebuilds`. Source: Makarychev,
Papanikolaou and Shan, "Dynamic Algorithm for Explainable k-medians Clustering under lp Norm",
NeurIPS 2025, arXiv 2512.01150.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from typing import Any, NamedTuple

import numpy as np

from streamclust.corrections import Corrections, learn_corrections
from streamclust.errors import InvalidParameter
from streamclust.growth import mixed_key
from streamclust.invariants import check_tree
from streamclust.nodes import answers_of, flatten
from streamclust.packing import pack_corrections, unpack_corrections
from streamclust.rebuilds import Rebuilt, is_overdue, rebuild_overdue, reconsider
from streamclust.results import FloatArray, IntArray, KeyArray
from streamclust.roster import Roster
from streamclust.routed import RoutedTree
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
        Centers of the subtrees that were rebuilt, or 0.
    """

    own: int
    foreign: int
    rebuilt: int


class ThresholdTree(RoutedTree):
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

    Attributes
    ----------
    counters : dict of str -> int
        Updates, cut records that these created or removed (own and foreign), rebuilds.
    looks : int
        Nodes compared with new draws since the tree was made or restored.

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
        keys = np.array([mixed_key(i) for i in range(n_features)], dtype=np.uint64)
        roster = Roster(np.ones(n_features), keys)
        super().__init__(roster, Structure(roster, Drawing(float(p), measure, draws, seed)))
        self.leaves_per_center = leaves_per_center
        self.counters = dict.fromkeys(
            ("updates", "own_cuts", "foreign_cuts", "rebuilds", "rebuilt_centers"), 0
        )
        self.looks = 0
        self._holding = False  # rebuilds wait until a batch of updates is through
        self._overdue: bool | None = False  # None: not looked since the last update

    # -- what the tree is told about features and window ------------------------------------------

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

    def follow(
        self,
        centers: Mapping[int, FloatArray],
        *,
        among: Container[int] | None = None,
        rebuild: bool = True,
    ) -> Recourse:
        """Make these the tree's centers: delete, move and insert, then rebuild what has had enough.

        Cheaper and calmer than a `build` where few centers changed, and than single updates where
        many did: a subtree is rebuilt at most once. Without `rebuild` that is left for later.

        Parameters
        ----------
        centers : mapping of id to position
        among : container of int, optional
            Ids, all others of which are known to be where they were, so that nobody looks.
        rebuild : bool, default True

        Raises
        ------
        InvalidParameter
            As in `build`; nothing was changed.
        """
        changed = self._roster.admitted_changes(centers, among)
        self._holding = True
        done = [self.delete(id) for id in self.ids if id not in centers]
        late = []
        for id, center in changed.items():
            if id not in self._roster.centers:
                late.append(id)
            elif self._roster.twin(id, center) is None:
                done.append(self.move(id, center))
            else:  # its place is still another's, who will move on
                done.append(self.delete(id))
                late.append(id)
        done += [self.insert(id, changed[id]) for id in late]
        self._holding = False
        rebuilt = self._count(rebuild_overdue(self._structure) if rebuild else Rebuilt(0, [], 0))
        return Recourse(sum(r.own for r in done), rebuilt.foreign, sum(rebuilt.replaced))

    @property
    def is_overdue(self) -> bool:
        """Whether a subtree has had enough updates to be rebuilt, which `rebuild` does."""
        if self._overdue is None:
            self._overdue = is_overdue(self._structure)
        return self._overdue

    def rebuild(self) -> None:
        """Rebuild what has had enough updates."""
        self._count(rebuild_overdue(self._structure))

    def copied(self) -> ThresholdTree:
        """A tree of the same centers and cuts, which changes apart from this one."""
        made = ThresholdTree(0, leaves_per_center=self.leaves_per_center)
        made.version, made.counters = self.version, dict(self.counters)
        made._roster = self._roster.copied()
        made._structure = self._structure.copied(made._roster)
        made._corrections = Corrections(self._corrections.by_leaf)
        made._overdue = self._overdue
        return made

    def ready(self) -> None:
        """Work out what is asked of every tree that is taken over: table, outline, what is due."""
        self.outline()
        self._overdue = self.is_overdue

    def become(self, other: ThresholdTree, since: ThresholdTree) -> None:
        """Take over another tree, which was once a copy of `since` and is not used any more.

        What other and this tree have counted since then is added up.
        """
        for name in self.counters:
            self.counters[name] += other.counters[name] - since.counters[name]
        self._roster, self._structure = other._roster, other._structure
        self._corrections, self._overdue = other._corrections, other._overdue
        self._changed()
        self._table, self._outline = other._table, other._outline

    def reconsider(self) -> None:
        """Let new draws compete with every record of the tree, under the present window.

        What is not clearly beaten stays as it is; meant for when the window has filled or changed.
        Under the paper's measure, which looks at no window, nothing happens.
        """
        if self._structure.drawing.measure == "gap":
            self._count(reconsider(self._structure))

    def correct(self, points: FloatArray, labels: IntArray) -> None:
        """Learn the correction subtrees anew.

        Parameters
        ----------
        points : float array of shape (n, d)
        labels : int array of shape (n,)
            Id of the center nearest to each point; points with ids that do not live are ignored.
        """
        if self.leaves_per_center == 1 or not self._roster.centers:
            return
        ids = np.array(self.ids, dtype=np.int64)
        known = np.minimum(np.searchsorted(ids, labels), len(ids) - 1)
        living = ids[known] == labels
        points = np.ascontiguousarray(points, dtype=np.float64)
        if not living.all():
            points, known = points[living], known[living]
        plain = flatten(self._structure.root, {})
        landed = answers_of(plain._replace(owner=np.searchsorted(ids, plain.owner)), points)
        self._corrections = Corrections(
            learn_corrections(
                points,
                known,
                landed,
                ids,
                self._roster.matrix(ids.tolist()),
                self._roster.weights,
                self.leaves_per_center,
            )
        )
        self._changed()

    @property
    def recourse(self) -> int:
        """Cut records created or removed by all updates, rebuilds included."""
        return self.counters["own_cuts"] + self.counters["foreign_cuts"]

    @property
    def rebuilds(self) -> int:
        """Subtrees rebuilt so far."""
        return self.counters["rebuilds"]

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
        self._table = self._outline = self._boxes = self._overdue = None

    # -- inner workings ---------------------------------------------------------------------------

    def _updated(self, paths: list[Path], own: int) -> Recourse:
        """Count an update on the nodes of `paths` and rebuild what has had enough."""
        for node in {id(node): node for path in paths for node, _ in path}.values():
            node.updates += 1
        self._overdue = None
        self.counters["updates"] += 1
        self.counters["own_cuts"] += own
        self._changed()
        if self._holding:
            return Recourse(own, 0, 0)
        rebuilt = self._count(rebuild_overdue(self._structure, paths))
        return Recourse(own, rebuilt.foreign, sum(rebuilt.replaced))

    def _count(self, rebuilt: Rebuilt) -> Rebuilt:
        """Keep the books of what was looked at; corrections of leaves that changed go."""
        if rebuilt.looked:
            self._overdue = None
        self.looks += rebuilt.looked
        self.counters["foreign_cuts"] += rebuilt.foreign
        self.counters["rebuilds"] += len(rebuilt.replaced)
        self.counters["rebuilt_centers"] += sum(rebuilt.replaced)
        # A correction was learned for its leaf as it was; under a new record the leaf is another.
        dropped = self._corrections.drop(self._structure.redrawn)
        self._structure.redrawn.clear()
        if rebuilt.foreign or dropped:
            self._changed()
        return rebuilt

    def _check(self) -> None:
        """Assert every invariant; see `streamclust.invariants`. O(k d log^2 k).

        Raises
        ------
        InvariantBroken
        """
        check_tree(self._roster, self._structure, self._corrections, self.table())
