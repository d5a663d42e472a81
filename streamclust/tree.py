"""The dynamic explainable k-medians tree: axis-parallel cuts that change little.

Owns the centers and the tree over them, and keeps both in step: every leaf answers one center, one
comparison decides each cut, and an insert, a delete or a move touches the cut of the updated center
alone until a subtree has seen so many updates that it is rebuilt. Source: Makarychev, Papanikolaou
and Shan, "Dynamic Algorithm for Explainable k-medians Clustering under lp Norm", NeurIPS 2025,
arXiv 2512.01150.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from streamclust.boxes import boxes_of, depth_of, path_of
from streamclust.corrections import learn_corrections
from streamclust.errors import InvalidParameter, InvariantBroken, UnknownCluster
from streamclust.export import nested
from streamclust.growth import Ground, draw, key_below, mixed_key
from streamclust.kernels.cuts import KeyArray
from streamclust.kernels.routing import assignment_costs, leaf_of, leaves_of
from streamclust.nodes import (
    Arrival,
    Correction,
    Node,
    Part,
    RoutingTable,
    cuts_under,
    flatten,
    ids_under,
    nodes_under,
)
from streamclust.packing import pack, pack_corrections, unpack, unpack_corrections
from streamclust.results import FloatArray, IntArray

LARGEST = 1e150
"""Coordinates beyond it are refused: powers of distances would overflow."""


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


Path = list[tuple[Node, Arrival | None]]


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
    leaves_per_center : int, default 4
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
        leaves_per_center: int = 4,
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
        self.p = float(p)
        self.measure = measure
        self.draws = draws
        self.leaves_per_center = leaves_per_center
        self.seed = seed
        self.version = 0
        self.counters = dict.fromkeys(
            ("updates", "own_cuts", "foreign_cuts", "rebuilds", "rebuilt_centers"), 0
        )
        self._weights: FloatArray = np.ones(n_features)
        self._keys: KeyArray = np.array([mixed_key(i) for i in range(n_features)], dtype=np.uint64)
        self._centers: dict[int, FloatArray] = {}
        self._signatures: dict[bytes, int] = {}
        self._points: FloatArray = np.empty((0, n_features))
        self._owners: IntArray = np.empty(0, dtype=np.int64)
        self._root: Part | None = None
        self._corrections: dict[int, Correction] = {}
        self._named: dict[int, set[int]] = {}  # center id -> leaves whose correction names it
        self._table: RoutingTable | None = None
        self._holding = False  # rebuilds wait until a batch of updates is through

    # -- what the tree is told about features and window ------------------------------------------

    @property
    def n_features(self) -> int:
        """The number of features, d."""
        return int(self._weights.size)

    def set_features(self, weights: FloatArray, keys: KeyArray) -> None:
        """Replace the weights, and let new features join.

        Parameters
        ----------
        weights : float array of shape (d,)
            At least 0; d may grow but not shrink. Nodes made later use them; 0 hides a feature.
        keys : uint64 array of shape (d,)
            A stable hash of each feature's name, so that the order of features does not matter.
        """
        weights = np.array(weights, dtype=np.float64)
        if weights.size < self.n_features or keys.shape != weights.shape:
            raise InvalidParameter(
                f"the number of features may not shrink from {self.n_features} to {weights.size}"
            )
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise InvalidParameter("feature weights must be finite and at least 0")
        grown = weights.size - self.n_features
        if grown:
            self._centers = {id: np.pad(c, (0, grown)) for id, c in self._centers.items()}
            self._points = np.pad(self._points, ((0, 0), (0, grown)))
        self._weights = weights
        self._keys = np.array(keys, dtype=np.uint64)
        self._signatures = {self._signature(c): id for id, c in self._centers.items()}

    def set_window(self, points: FloatArray, owners: IntArray) -> None:
        """Give the recent points that (re)builds look at.

        Parameters
        ----------
        points : float array of shape (n, d)
        owners : int array of shape (n,)
            The center id that each point belongs to, or -1.
        """
        owned = np.asarray(owners) >= 0
        self._points = np.ascontiguousarray(points, dtype=np.float64)[owned]
        self._owners = np.array(owners, dtype=np.int64)[owned]

    # -- updates ----------------------------------------------------------------------------------

    def build(self, centers: Mapping[int, FloatArray]) -> None:
        """Draw the whole tree anew.

        Raises
        ------
        InvalidParameter
            If two centers agree on every feature of positive weight; nothing was changed.
        """
        checked = {int(id): self._checked(center) for id, center in centers.items()}
        signatures = self._require_distinct(checked)
        self._centers, self._signatures = checked, signatures
        self._root = self._regrown(list(checked), [], None) if checked else None
        self._corrections.clear()
        self._named.clear()
        self._changed()

    def insert(self, id: int, center: FloatArray) -> Recourse:
        """Add a center.

        Raises
        ------
        InvalidParameter
            If the id lives, or another center agrees with it on every feature of positive weight;
            nothing was changed.
        """
        if id in self._centers:
            raise InvalidParameter(f"center {id} is already in the tree")
        center = self._admitted(id, center)
        self._store(id, center)
        before = len(self._centers) - 1
        path: Path = []
        self._root = id if self._root is None else self._added(self._root, id, path)
        return self._updated([path], own=min(before, 1))

    def delete(self, id: int) -> Recourse:
        """Remove a center.

        Raises
        ------
        UnknownCluster
            If no center has this id.
        """
        path = self._path_to(id)
        self._removed(path)
        self._forget(id)
        return self._updated([_alive(path)], own=min(len(path), 1))

    def move(self, id: int, center: FloatArray) -> Recourse:
        """Give a center a new position: one update, or none if no cut changes.

        Raises
        ------
        UnknownCluster, InvalidParameter
            As in `delete` and `insert`.
        """
        path = self._path_to(id)
        center = self._admitted(id, center)
        depth = 0
        while depth < len(path) and self._place(path[depth][0], center) == path[depth][1]:
            depth += 1
        if depth == len(path):
            self._forget(id)
            self._store(id, center)
            return Recourse(0, 0, 0)
        above, below = path[:depth], path[depth:]
        self._removed(below, within=True)
        self._forget(id)
        self._store(id, center)
        node = below[0][0]
        node.size -= 1
        new_path: Path = []
        self._added(node, id, new_path)
        return self._updated([[*above, *new_path], [*above, *_alive(below)]], own=2)

    def follow(self, centers: Mapping[int, FloatArray]) -> Recourse:
        """Make these the tree's centers: delete, move and insert, then rebuild what has had enough.

        Cheaper and calmer than a `build` where few centers changed, and than single updates where
        many did: a subtree is rebuilt at most once.

        Raises
        ------
        InvalidParameter
            As in `build`; nothing was changed.
        """
        wanted = {int(id): self._checked(center) for id, center in centers.items()}
        self._require_distinct(wanted)
        self._holding = True
        done = [self.delete(id) for id in self.ids if id not in wanted]
        late = []
        for id, center in wanted.items():
            if id not in self._centers:
                late.append(id)
            elif not np.array_equal(center, self._centers[id]):
                if self._signatures.get(self._signature(center), id) == id:
                    done.append(self.move(id, center))
                else:  # its place is still another's, who will move on
                    done.append(self.delete(id))
                    late.append(id)
        done += [self.insert(id, wanted[id]) for id in late]
        self._holding = False
        foreign, rebuilt = self._rebuild_overdue(self._root, [])
        return Recourse(sum(r.own for r in done), foreign, rebuilt)

    def reconsider(self) -> None:
        """Let new draws compete with every record of the tree, under the present window.

        What is not clearly beaten stays as it is; meant for when the window has filled or changed.
        Under the paper's measure, which looks at no window, nothing happens.
        """
        root = self._root
        if isinstance(root, Node) and self.measure == "gap" and self._rebuild([], root):
            self._changed()

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
        living = np.isin(labels, np.array(list(self._centers), dtype=np.int64))
        points = np.ascontiguousarray(points, dtype=np.float64)[living]
        labels = np.array(labels, dtype=np.int64)[living]
        self._drop_corrections(list(self._corrections))
        learned = learn_corrections(
            points,
            labels,
            self.route_many(points),
            self._centers,
            self._weights,
            self.leaves_per_center,
        )
        self._corrections = learned
        self._index_corrections()
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
        table = self.table()
        out = np.full(points.shape[0], -1, dtype=np.int64)
        if table.owner.size:
            points = np.ascontiguousarray(points, dtype=np.float64)
            leaves_of(points, table.feature, table.threshold, table.child, out)
            out = table.owner[out]
        return out

    def table(self) -> RoutingTable:
        """The tree as flat arrays, the same object until the tree changes."""
        if self._table is None:
            self._table = flatten(self._root, self._corrections)
        return self._table

    def path(self, x: FloatArray) -> list[tuple[int, bool, float]]:
        """The comparisons that route `x`, root to leaf: (feature, ``x > threshold``, threshold)."""
        return path_of(self.table(), x)

    def boxes(self, id: int) -> list[dict[int, tuple[float, float]]]:
        """Where the tree answers `id`: one interval (low, high] per bounded feature and box.

        Raises
        ------
        UnknownCluster
            If no center has this id.
        """
        self.center(id)
        return boxes_of(self.table(), id)

    def center(self, id: int) -> FloatArray:
        """A copy of a center's position.

        Raises
        ------
        UnknownCluster
            If no center has this id.
        """
        if id not in self._centers:
            raise UnknownCluster(f"no center has the id {id}")
        return self._centers[id].copy()

    @property
    def ids(self) -> list[int]:
        """The living ids, ascending."""
        return sorted(self._centers)

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
        if not self._centers or not len(points):
            return math.nan
        ids = np.array(self.ids, dtype=np.int64)
        points = np.ascontiguousarray(points, dtype=np.float64)
        answers = np.searchsorted(ids, self.route_many(points))
        centers = np.array([self._centers[id] for id in ids.tolist()])
        nearest = np.empty(len(points), dtype=np.int64)
        answered, least = assignment_costs(points, centers, self._weights, self.p, answers, nearest)
        if least > 0:
            return answered / least
        return 1.0 if answered == 0 else math.inf

    def as_dict(self) -> dict[str, Any]:
        """The tree as nested dicts, for JSON: see `streamclust.export`."""
        return nested(self.table())

    def to_state(self) -> dict[str, Any]:
        """Everything that the tree needs to go on, as numbers, strings, lists and arrays."""
        ids = list(self._centers)
        return {
            "p": self.p,
            "measure": self.measure,
            "draws": self.draws,
            "leaves_per_center": self.leaves_per_center,
            "seed": self.seed,
            "version": self.version,
            "counters": dict(self.counters),
            "weights": self._weights.copy(),
            "keys": self._keys.copy(),
            "ids": np.array(ids, dtype=np.int64),
            "centers": np.array([self._centers[id] for id in ids]).reshape(
                len(ids), self.n_features
            ),
            "points": self._points.copy(),
            "owners": self._owners.copy(),
            "tree": pack(self._root),
            "corrections": pack_corrections(self._corrections),
        }

    def from_state(self, state: Mapping[str, Any]) -> None:
        """Become the tree that `to_state` told of; it goes on bit for bit the same."""
        self.p, self.measure = float(state["p"]), str(state["measure"])
        self.draws, self.leaves_per_center = int(state["draws"]), int(state["leaves_per_center"])
        self.seed, self.version = int(state["seed"]), int(state["version"])
        self.counters = {name: int(n) for name, n in state["counters"].items()}
        self._weights = np.array(state["weights"], dtype=np.float64)
        self._keys = np.array(state["keys"], dtype=np.uint64)
        self._centers, self._signatures = {}, {}
        for id, center in zip(state["ids"].tolist(), state["centers"], strict=True):
            self._store(id, np.array(center, dtype=np.float64))
        self._points = np.array(state["points"], dtype=np.float64)
        self._owners = np.array(state["owners"], dtype=np.int64)
        self._root = unpack(state["tree"])
        self._corrections = unpack_corrections(state["corrections"])
        self._index_corrections()
        self._table = None

    # -- inner workings ---------------------------------------------------------------------------

    def _checked(self, center: FloatArray) -> FloatArray:
        """A private copy of a center, or the reason why it cannot be one."""
        center = np.array(center, dtype=np.float64) + 0.0  # -0.0 becomes 0.0
        if center.shape != (self.n_features,):
            raise InvalidParameter(f"a center has shape ({self.n_features},), got {center.shape}")
        if not (np.abs(center) <= LARGEST).all():
            raise InvalidParameter(f"coordinates of a center must lie within +-{LARGEST}")
        return center

    def _signature(self, center: FloatArray) -> bytes:
        return hashlib.blake2b(center[self._weights > 0].tobytes(), digest_size=16).digest()

    def _require_distinct(self, centers: Mapping[int, FloatArray]) -> dict[bytes, int]:
        """The signatures of centers that are all told apart."""
        signatures: dict[bytes, int] = {}
        for id, center in centers.items():
            twin = signatures.setdefault(self._signature(center), id)
            if twin != id:
                raise InvalidParameter(_equal_centers(id, twin))
        return signatures

    def _admitted(self, id: int, center: FloatArray) -> FloatArray:
        center = self._checked(center)
        twin = self._signatures.get(self._signature(center), id)
        if twin != id:
            raise InvalidParameter(_equal_centers(id, twin))
        return center

    def _store(self, id: int, center: FloatArray) -> None:
        self._centers[id] = center
        self._signatures[self._signature(center)] = id

    def _forget(self, id: int) -> None:
        signature = self._signature(self._centers.pop(id))
        if self._signatures.get(signature) == id:
            del self._signatures[signature]
        self._drop_corrections([id, *self._named.pop(id, ())])

    def _index_corrections(self) -> None:
        self._named = {}
        for leaf, correction in self._corrections.items():
            for named in correction.owner.tolist():
                self._named.setdefault(named, set()).add(leaf)

    def _drop_corrections(self, leaves: Iterable[int]) -> None:
        for leaf in leaves:
            correction = self._corrections.pop(leaf, None)
            if correction is not None:
                for named in correction.owner.tolist():
                    self._named.get(named, set()).discard(leaf)
                self._changed()

    def _changed(self) -> None:
        self.version += 1
        self._table = None

    def _place(self, node: Node, center: FloatArray) -> Arrival | None:
        """The earliest arrival of a center at a node; None: it stays in the main part.

        Stored cuts are compared as they are; only arrivals before them are computed.
        """
        standing = node.first_cut(center)
        bound = node.record.stop if standing is None else standing.time
        found = draw(
            node.record.measure,
            self.p,
            self._keys,
            [node.record.key],
            center[None, :],
            np.nextafter(bound, math.inf) if standing is None else bound,
        ).arrival(self._keys, 0, 0)
        return standing if found is None else found

    def _added(self, part: Part, id: int, path: Path) -> Part:
        """Put a center into a part and note the nodes that it passed."""
        if isinstance(part, int):
            return self._regrown([part, id], path, None)
        arrival = self._place(part, self._centers[id])
        path.append((part, arrival))
        part.size += 1
        below = part.part_at(arrival)
        grown = id if below is None else self._added(below, id, path)
        _put(part, arrival, grown)
        return part

    def _path_to(self, id: int) -> Path:
        """The nodes above a center's leaf with the cuts that lead to it."""
        if id not in self._centers:
            raise UnknownCluster(f"no center has the id {id}")
        path: Path = []
        part = self._root
        while isinstance(part, Node):
            arrival = part.first_cut(self._centers[id])
            path.append((part, arrival))
            part = part.part_at(arrival)
        return path

    def _removed(self, path: Path, within: bool = False) -> None:
        """Take the leaf at the end of `path` out; `within` keeps the first node's size."""
        if not path:
            self._root = None
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
                    self._root = rest
                break

    def _updated(self, paths: list[Path], own: int) -> Recourse:
        """Count an update on the nodes of `paths`; rebuild the topmost that has had enough.

        The paths share their beginning, down to where they part.
        """
        for node in {id(node): node for path in paths for node, _ in path}.values():
            node.updates += 1
        self.counters["updates"] += 1
        self.counters["own_cuts"] += own
        self._changed()
        foreign, done = 0, []
        for path in () if self._holding else paths:
            if any(node in done for node, _ in path):
                continue
            for depth, (node, _) in enumerate(path):
                if node.updates > update_limit(node.built):
                    foreign += self._rebuild(path[:depth], node)
                    done.append(node)
                    break
        rebuilt = sum(node.size for node in done)
        return Recourse(own, foreign, rebuilt)

    def _rebuild_overdue(self, part: Part | None, above: Path) -> tuple[int, int]:
        """Rebuild the topmost nodes that have had enough; foreign cut records and centers."""
        if not isinstance(part, Node):
            return 0, 0
        if part.updates > update_limit(part.built):
            foreign = self._rebuild(above, part)
            self._changed()
            return foreign, part.size
        below = [
            self._rebuild_overdue(under, [*above, (part, arrival)])
            for arrival, under in list(part.parts())
        ]
        return sum(f for f, _ in below), sum(n for _, n in below)

    def _rebuild(self, above: Path, node: Node) -> int:
        before = cuts_under(node)
        grown = self._regrown(ids_under(node), above, node)
        if above:
            _put(*above[-1], grown)
        else:
            self._root = grown
        foreign = len(before ^ cuts_under(grown))
        self.counters["rebuilds"] += 1
        self.counters["rebuilt_centers"] += node.size
        self.counters["foreign_cuts"] += foreign
        return foreign

    def _regrown(self, ids: list[int], above: Path, incumbent: Part | None) -> Part:
        """Draw the part of `ids` that hangs below `above`."""
        members = np.sort(np.array(ids, dtype=np.int64))
        row = np.minimum(np.searchsorted(members, self._owners), members.size - 1)
        here = members[row] == self._owners
        points, row = self._points[here], row[here]
        for node, arrival in above:
            points, row = _passing(node, arrival, points, row)
        ground = Ground(
            self.p,
            self.measure == "gap",
            self.draws,
            self._weights,
            self._keys,
            members,
            np.array([self._centers[id] for id in members.tolist()]),
            points,
            row,
            self._owners.size,
        )
        base = key_below(above[-1][0].record, above[-1][1]) if above else mixed_key(self.seed, 0)
        standing = set() if incumbent is None else {n.record.key for n in nodes_under(incumbent)}
        part = ground.grow(base, 0, incumbent)
        for node in nodes_under(part):
            if node.record.key not in standing:
                self._drop_corrections(ids_under(node))
        return part

    # -- checks -----------------------------------------------------------------------------------

    def _check(self) -> None:
        """Assert every invariant. O(k d log^2 k).

        Raises
        ------
        InvariantBroken
        """
        held = [] if self._root is None else ids_under(self._root)
        _require(sorted(held) == self.ids, "the leaves are not the centers")
        self._check_nodes(self._root)
        table = self.table()
        extra = sum(c.feature.size for c in self._corrections.values())
        _require(table.owner.size == len(held) + extra, "leaves are not centers plus corrections")
        _require(table.feature.size == max(table.owner.size - 1, 0), "not a binary tree")
        _require(np.isfinite(table.threshold).all(), "a threshold is not finite")
        reached = np.sort(table.child.ravel())
        expected = np.arange(-table.owner.size, table.feature.size)
        _require(
            not table.feature.size or np.array_equal(reached, expected[expected != 0]),
            "a node or leaf is not reached exactly once",
        )
        for id, center in self._centers.items():
            _require(self.route(center) == id, f"center {id} is routed to {self.route(center)}")
        for leaf, correction in self._corrections.items():
            for named in correction.owner.tolist():
                _require(leaf in self._named[named], "a correction is not indexed by what it names")
        spare = (self.leaves_per_center - 1) * len(held)
        _require(extra <= spare or not self._corrections, "corrections exceed their budget")

    def _check_nodes(self, root: Part | None) -> None:
        for node in nodes_under(root) if root is not None else ():
            record, below = node.record, {a: ids_under(part) for a, part in node.parts()}
            held = [id for ids in below.values() for id in ids]
            _require(node.size == len(held) >= 2, "a node miscounts its centers")
            _require(node.updates <= update_limit(node.built), "a rebuild is overdue")
            for arrival in node.spine:
                _require(arrival.time <= record.stop, "a cut arrived after the stop")
            for arrival, part in node.parts():
                if isinstance(part, Node):
                    _require(
                        part.record.base == key_below(record, arrival), "a part has a foreign key"
                    )
            # The tree is a pure function of its records and centers: the same as built at once.
            centers = np.array([self._centers[id] for id in held])
            bound = np.nextafter(record.stop, math.inf)
            fresh = draw(record.measure, self.p, self._keys, [record.key], centers, bound)
            for j, (arrival, id) in enumerate((a, id) for a, ids in below.items() for id in ids):
                _require(
                    fresh.arrival(self._keys, 0, j) == arrival,
                    f"center {id} is not where its earliest arrival puts it",
                )


def _require(held: Any, broken: str) -> None:
    if not held:
        raise InvariantBroken(broken)


def update_limit(built: int) -> float:
    """Updates that a subtree built over `built` centers bears before it is rebuilt.

    A plain quarter would redraw a node of two or three centers at every update.
    """
    return max(8.0, built / 4)


def _put(node: Node, arrival: Arrival | None, part: Part | None) -> None:
    if arrival is None:
        node.main = part
    elif part is None:
        del node.spine[arrival]
    else:
        node.spine[arrival] = part


def _alive(path: Path) -> Path:
    """The nodes of a path that still hold two centers."""
    return [(node, arrival) for node, arrival in path if node.size > 1]


def _passing(
    node: Node, arrival: Arrival | None, points: FloatArray, row: IntArray
) -> tuple[FloatArray, IntArray]:
    """The points that reach the part of a node."""
    stay = np.ones(row.size, dtype=np.bool_)
    for cut, _ in node.cuts()[0]:
        parted = (points[:, cut.feature] > cut.threshold) == (cut.side == 1)
        stay &= parted if cut == arrival else ~parted
        if cut == arrival:
            break
    return points[stay], row[stay]


def _equal_centers(id: int, other: int) -> str:
    return f"centers {id} and {other} agree on every feature of positive weight; merge them"
