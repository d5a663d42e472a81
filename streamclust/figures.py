"""Live figures of a model: what can be told without labels, from what its components hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamclust.kernels import stream
from streamclust.scaling import Scaling
from streamclust.tracker import CenterTracker
from streamclust.tree import ThresholdTree
from streamclust.windows import Window


def fidelity(tracker: CenterTracker) -> float:
    """Return the share of recent events within a fence on which rule and distance agreed."""
    known = tracker.counts[stream.INSIDERS]
    return float(tracker.gauges[stream.FIDELITY]) if known else np.nan


def price(tracker: CenterTracker) -> float:
    """Return the mean distance to the rule's center over that to the nearest, recently."""
    cost, nearest = tracker.gauges[[stream.RULE_COST, stream.INSIDE_COST]].tolist()
    if not tracker.counts[stream.INSIDERS]:
        return np.nan
    return float(cost / nearest) if nearest > 0 else 1.0


def weights_of(tracker: CenterTracker) -> dict[int, float]:
    """Return the faded weight of each living cluster by id."""
    stats = tracker.living_stats
    gone = tracker.now - stats[:, stream.LAST]
    faded = stats[:, stream.WEIGHT] * np.exp(-tracker.gauges[stream.DECAY] * gone)
    told = dict.fromkeys(tracker.clusters, 0.0)
    for cluster, weight in zip(tracker.clusters, faded.tolist(), strict=True):
        told[cluster] += weight
    return told


def figures(
    scaling: Scaling, window: Window, tracker: CenterTracker, tree: ThresholdTree
) -> dict[str, float | int]:
    """Return all of them by name; those of the window are nan before there is one."""
    counts, gauges = tracker.counts, tracker.gauges
    points = np.nan_to_num(window.points())
    slots = tracker.owners(points, scaling.weights)
    inside, owners = points[slots >= 0], slots[slots >= 0]
    clusters = dict(zip(tracker.ids, tracker.clusters, strict=True))
    told = [clusters[center] for center in tree.route_many(inside).tolist()]
    agree = np.array(told) == np.array(tracker.clusters)[owners] if told else np.zeros(0)
    return {
        "events": tracker.tick,
        "time": tracker.now,
        "features": points.shape[1],
        "clusters": len(set(tracker.clusters)),
        "centers": tracker.k,
        "noise_share": float(gauges[stream.NOISE_SHARE]),
        "cost": float(gauges[stream.COST]),
        "outliers": int(counts[stream.OUTLIERS]),
        "micro_centers": int(counts[stream.N_MICRO]),
        "window_points": len(window),
        "next_refit": int(counts[stream.NEXT_REFIT]),
        "leaves": tree.n_leaves,
        "depth": tree.depth,
        "rebuilds": tree.rebuilds,
        "recourse": tree.recourse,
        "fidelity": fidelity(tracker),
        "price": price(tracker),
        "window_fidelity": float(agree.mean()) if len(agree) else np.nan,
        "window_price": tree.cost_ratio(inside) if len(agree) else np.nan,
    }


def bytes_in(state: Any) -> int:
    """Return the bytes of all arrays in a nested state."""
    if isinstance(state, np.ndarray):
        return state.nbytes
    if isinstance(state, dict):
        return sum(map(bytes_in, state.values()))
    return sum(map(bytes_in, state)) if isinstance(state, list | tuple) else 0
