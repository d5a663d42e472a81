"""The threshold tree's records as arrays and back; nothing is recomputed on the way.

A tree of k centers has up to k - 1 nodes: they are packed side by side, so that a snapshot holds a
fixed number of arrays. Nodes come parents first; a part is a center id, or ``~node``-like: see
`pack`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamclust.nodes import Arrival, Correction, Measure, Node, Part, Record, nodes_under
from streamclust.results import FloatArray


def pack(root: Part | None) -> dict[str, Any]:
    """A tree as a dict of arrays.

    ``node_*`` have one entry per node, ``cut_*`` one per cut in order of arrival, node after node;
    ``part_node`` and ``part_id`` tell what every part is (a node's number or -1, then a center id
    or -1): first the root, then per node its cuts' parts and its main part.
    """
    nodes = [] if root is None else list(nodes_under(root))
    number = {id(node): n for n, node in enumerate(nodes)}
    parts: list[Part | None] = [root]
    for node in nodes:
        parts += [*node.spine.values(), node.main]
    cuts = [arrival for node in nodes for arrival in node.spine]
    records = [node.record for node in nodes]
    measures = [record.measure for record in records]
    # Equal weights are one, whichever array holds them, so that a restored tree packs alike.
    weights = list({m.weights.tobytes(): m.weights for m in measures}.values())
    which = {w.tobytes(): n for n, w in enumerate(weights)}
    return {
        "part_node": _ints(number[id(p)] if isinstance(p, Node) else -1 for p in parts),
        "part_id": _ints(p if isinstance(p, int) else -1 for p in parts),
        "node_cuts": _ints(len(node.spine) for node in nodes),
        "node_size": _ints(node.size for node in nodes),
        "node_built": _ints(node.built for node in nodes),
        "node_updates": _ints(node.updates for node in nodes),
        "node_base": np.array([r.base for r in records], dtype=np.uint64),
        "node_key": np.array([r.key for r in records], dtype=np.uint64),
        "node_generation": _ints(r.generation for r in records),
        "node_stop": np.array([r.stop for r in records], dtype=np.float64),
        "node_scale": np.array([m.scale for m in measures], dtype=np.float64),
        "node_weights": _ints(which[m.weights.tobytes()] for m in measures),
        "cut_time": np.array([a.time for a in cuts], dtype=np.float64),
        "cut_feature_key": np.array([a.feature_key for a in cuts], dtype=np.uint64),
        "cut_place": np.array(
            [(a.side, a.band, a.turn, a.feature) for a in cuts], dtype=np.int64
        ).reshape(-1, 4),
        "cut_threshold": np.array([a.threshold for a in cuts], dtype=np.float64),
        **_rows("weights", weights),
        **_rows("anchor", [m.anchor for m in measures]),
        **_rows("table_of", [m.table_of for m in measures]),
        **_rows("starts", [m.starts for m in measures]),
        **_rows("knots", [m.knots for m in measures]),
        **_rows("masses", [m.masses for m in measures]),
    }


def unpack(state: Mapping[str, Any]) -> Part | None:
    """The tree that `pack` told of."""
    weights = _split(state, "weights")
    measures = [
        Measure(anchor, weights[w], scale, table_of, starts, knots, masses)
        for anchor, w, scale, table_of, starts, knots, masses in zip(
            _split(state, "anchor"),
            state["node_weights"].tolist(),
            state["node_scale"].tolist(),
            _split(state, "table_of"),
            _split(state, "starts"),
            _split(state, "knots"),
            _split(state, "masses"),
            strict=True,
        )
    ]
    nodes = []
    for n, measure in enumerate(measures):
        record = Record(
            int(state["node_base"][n]),
            int(state["node_key"][n]),
            int(state["node_generation"][n]),
            measure,
            float(state["node_stop"][n]),
        )
        node = Node(record, int(state["node_size"][n]))
        node.built, node.updates = int(state["node_built"][n]), int(state["node_updates"][n])
        nodes.append(node)
    parts: list[Part | None] = [
        nodes[n] if n >= 0 else (id if id >= 0 else None)
        for n, id in zip(state["part_node"].tolist(), state["part_id"].tolist(), strict=True)
    ]
    cuts = [
        Arrival(time, key, side, band, index, feature, threshold)
        for time, key, (side, band, index, feature), threshold in zip(
            state["cut_time"].tolist(),
            state["cut_feature_key"].tolist(),
            state["cut_place"].tolist(),
            state["cut_threshold"].tolist(),
            strict=True,
        )
    ]
    cut, part = 0, 1
    for node, n_cuts in zip(nodes, state["node_cuts"].tolist(), strict=True):
        for j in range(n_cuts):
            below = parts[part + j]
            if below is None:
                raise ValueError("a cut of the tree leads nowhere")
            node.spine[cuts[cut + j]] = below
        node.main = parts[part + n_cuts]
        cut, part = cut + n_cuts, part + n_cuts + 1
    return parts[0]


def pack_corrections(corrections: Mapping[int, Correction]) -> dict[str, Any]:
    """The correction subtrees as a dict of arrays."""
    all_of = list(corrections.values())
    return {
        "leaf": _ints(corrections),
        **_rows("feature", [c.feature for c in all_of]),
        **_rows("threshold", [c.threshold for c in all_of]),
        **_rows("child", [c.child.ravel() for c in all_of]),
        **_rows("owner", [c.owner for c in all_of]),
    }


def unpack_corrections(state: Mapping[str, Any]) -> dict[int, Correction]:
    """The correction subtrees that `pack_corrections` told of."""
    columns = (_split(state, name) for name in ("feature", "threshold", "child", "owner"))
    return {
        leaf: Correction(feature, threshold, child.reshape(-1, 2), owner)
        for leaf, feature, threshold, child, owner in zip(
            state["leaf"].tolist(), *columns, strict=True
        )
    }


def _ints(values: Any) -> Any:
    return np.array(list(values), dtype=np.int64)


def _rows(name: str, arrays: list[Any]) -> dict[str, Any]:
    """Arrays of differing lengths as one, with the lengths."""
    return {
        name: np.concatenate(arrays) if arrays else np.empty(0),
        f"{name}_lengths": _ints(a.size for a in arrays),
    }


def _split(state: Mapping[str, Any], name: str) -> list[FloatArray]:
    ends = np.cumsum(state[f"{name}_lengths"])
    return [np.ascontiguousarray(a) for a in np.split(state[name], ends[:-1])] if ends.size else []
