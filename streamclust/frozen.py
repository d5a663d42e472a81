"""A model at one moment, small and without its window: what it takes to answer and to summarise.

It is what a cluster of machines hands to every worker: features, scaling, centers with their
figures, and the compiled tree. Its answers are those of the model to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, Self

import numpy as np

from streamclust import snapshot
from streamclust.batch import Batch, read_batch
from streamclust.desk import Desk, address_of
from streamclust.errors import SnapshotError
from streamclust.features import FeatureSpace
from streamclust.kernels import metric, stream
from streamclust.mergeable import floats
from streamclust.regions import relative_distances
from streamclust.results import NOISE, FeatureName, FloatArray, IntArray, Region

BLOCK = 4096
"""Rows whose distances to all centers are held at a time."""
MISSING = ("median", "zero", "refuse")
MALFORMED = (KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError)
"""What a state raises whose parts are of other kinds than they should be."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What a frozen model says of many events.

    Attributes
    ----------
    labels : int array of shape (n,)
        Cluster ids; -1 for noise and refused rows, and while the model is cold.
    regions : array of shape (n,) of str
        As `streamclust.results.Region`; "refused" for a refused row.
    distances : array of shape (n,)
        To the nearest center of the own cluster, or for noise of any, in units of its scale; nan
        while the model is cold and for a refused row.
    refused : mapping of row number to the reason
    """

    labels: IntArray
    regions: Any
    distances: FloatArray
    refused: Mapping[int, str]


class Frozen:
    """See the module; made by `StreamClusterer.freeze`.

    Attributes
    ----------
    names, columns : tuple
        Features in the order of rows, and as they were first seen.
    rules : mapping of cluster id to its rule as text; empty unless asked for
    mark : str
        A hash of everything but the rules: which state of the model this is.
    """

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._state = dict(state)
        features = state["features"]
        self.features = FeatureSpace(
            missing=features["missing"], max_features=int(features["max_features"])
        )
        self.features.from_state(features)
        d = self.features.n_features
        self.frame = floats(state["frame"], (2, d), "frame")
        self.centers = floats(state["centers"], (len(state["centers"]), d), "centers")
        k = len(self.centers)
        self.stats = floats(state["stats"], (k, stream.N_STATS), "stats")
        self.table = floats(state["table"], (len(state["table"]), 4), "table")
        self.counts = np.array(state["counts"], dtype=np.int64)
        self.gauges = floats(state["gauges"], (stream.N_GAUGES,), "gauges", finite=False)
        self.capacity, self.ratio = int(state["capacity"]), float(state["ratio"])
        self.rules = {int(c): str(text) for c, text in state["rules"]}
        self._check(features["missing"], k, d)
        content = snapshot.encode({**self._state, "rules": []})
        self.mark = blake2b(content, digest_size=16).hexdigest()

    @property
    def names(self) -> tuple[FeatureName, ...]:
        """Features in the order of rows."""
        return self.features.names

    @property
    def k(self) -> int:
        """The number of centers."""
        return len(self.centers)

    @property
    def assigns(self) -> bool:
        """Whether events are inside or outside of something: there are centers, or births."""
        return self.k > 0 or bool(self.gauges[stream.REACH] > 0.0)

    @property
    def by_events(self) -> bool:
        """Whether the clock counts events."""
        return bool(self.gauges[stream.BY_EVENTS])

    def read(
        self, X: Any, *, ids: Any = None, t: Any = None, w: Any = None, absent: Any = None
    ) -> Batch:
        """Return a batch as rows of this model, what the model would refuse among the refused."""
        batch = read_batch(X, self.names, self.features.columns, ids=ids, t=t, w=w, absent=absent)
        d, refused = len(self.names), batch.refused
        gaps = np.isnan(batch.values)
        if self.features.missing == "refuse":
            for i in np.flatnonzero(gaps[:, :d].any(axis=1)).tolist():
                name = self.names[int(gaps[i].argmax())]
                refused.setdefault(i, f"feature {name!r} is absent and missing='refuse'")
        most = self.features.max_features
        for i in np.flatnonzero((~gaps[:, d:]).sum(axis=1) + d > most).tolist():
            refused.setdefault(i, f"new features beyond max_features={most}")
        late = float(self.gauges[stream.STAMP] - self.gauges[stream.LATENESS])
        for i in np.flatnonzero(np.isinf(batch.times) | (batch.times < late)).tolist():
            refused.setdefault(
                i, f"got t={float(batch.times[i])!r}; finite ones from {late!r} on are accepted"
            )
        if not self.by_events:
            for i in np.flatnonzero(np.isnan(batch.times)).tolist():
                refused.setdefault(i, "got no t; time_unit='seconds' needs the time of every event")
        known = batch.values[:, :d]
        np.copyto(known, self.features.stand_ins, where=gaps[:, :d])
        known[list(refused)] = self.frame[0]  # measured like any other; never used
        return batch

    def slots(self, known: FloatArray, *, leaves: bool = False) -> IntArray:
        """Return the slot that answers every row, -1 for noise; with `leaves` that of its leaf.

        Parameters
        ----------
        known : array of shape (n, n_features)
            In the user's units.
        """
        found = np.full(len(known), -1, dtype=np.int64)
        if self.k:
            rows = np.column_stack([known, np.zeros(len(known)), np.ones(len(known))])
            rows = np.ascontiguousarray(rows)
            desk = self._leaf_desk if leaves else self._desk
            stream.assign_rows_at(desk.address, address_of(rows), address_of(found), len(rows))
        return found

    def distances(self, points: FloatArray) -> FloatArray:
        """Return the distances of points, measured from the origin, to all centers: (n, k)."""
        p = float(self.gauges[stream.P])
        return metric.distance_table(points, self.centers, self.frame[1], p)

    def answer_many(self, X: Any, *, t: Any = None, w: Any = None, absent: Any = None) -> Answers:
        """Return label, region and distance of every event, as the model would.

        The arguments are those of `streamclust.summary.summarise`; times and weights change no
        answer, but may have an event refused.
        """
        batch = self.read(X, t=t, w=w, absent=absent)
        n, d = len(batch), len(self.names)
        labels = np.full(n, NOISE, dtype=np.int64)
        regions = np.full(n, Region.COLD.value, dtype=object)
        far = np.full(n, np.nan)
        clusters = self.stats[:, stream.CLUSTER].astype(np.int64)
        for start in range(0, n if self.k else 0, BLOCK):
            block = slice(start, start + BLOCK)
            known = np.ascontiguousarray(batch.values[block, :d])
            slots = self.slots(known)
            relative = relative_distances(
                self.distances(known - self.frame[0]), self.stats[:, stream.SCALE]
            )
            labels[block] = mine = np.where(slots < 0, NOISE, clusters[slots])
            own = (clusters == mine[:, None]) | (mine < 0)[:, None]
            far[block] = near = np.where(own, relative, np.inf).min(axis=1)
            rivals = (relative * self.ratio <= near[:, None]) & ~own
            told = np.where(rivals.any(axis=1), Region.BOUNDARY.value, Region.CORE.value)
            regions[block] = np.where(slots < 0, Region.NOISE.value, told)
        refused = list(batch.refused)
        labels[refused], regions[refused], far[refused] = NOISE, "refused", np.nan
        return Answers(labels, regions, far, batch.refused)

    def predict_many(self, X: Any) -> IntArray:
        """Return the cluster id of every row, as `StreamClusterer.predict_many`; refused: -1."""
        return self.answer_many(X).labels

    @cached_property
    def _desk(self) -> Desk:
        return self._laid(self.gauges)

    @cached_property
    def _leaf_desk(self) -> Desk:
        gauges = self.gauges.copy()
        gauges[stream.BY_TREE], gauges[stream.FENCED] = 1.0, 0.0
        return self._laid(gauges)

    def _laid(self, gauges: FloatArray) -> Desk:
        """Return a desk without what only learning needs."""
        d = len(self.names)
        none, heap = np.zeros((1, d + 3)), np.zeros(2, dtype=np.int64)
        micro, recent = np.zeros((d + 1, 1)), np.zeros((1, d))
        state = self.centers, self.centers, self.stats
        aside = micro, none, heap, recent, self.table, np.zeros((stream.N_SCRATCH, stream.AHEAD))
        return Desk(self.frame, *state, *aside, self.counts, gauges)

    def _check(self, missing: str, k: int, d: int) -> None:
        """Raise ValueError where a kernel could reach beyond an array."""
        table, below = self.table, self.table[:, 2:]
        nodes = np.arange(len(table))[:, None]
        inner = below >= 0
        fits = (
            missing in MISSING
            and self.counts.shape == (stream.N_COUNTS,)
            and self.counts[stream.N_CENTERS] == k
            and len(table) > 0
            and np.array_equal(below, np.round(below))
            and np.all(below[inner] < len(table))
            and np.all((below > nodes) | ~inner)  # parents come first, so a path ends
            and (k == 0 or np.all(below >= -k))
            and (d == 0 or (np.all(table[:, 0] >= 0) and np.all(table[:, 0] < d)))
            and 1 <= self.capacity <= 100_000
        )
        if not fits:
            raise ValueError("the parts of a frozen model do not fit each other")

    def to_bytes(self) -> bytes:
        """Return it as bytes, from which `from_bytes` restores it; no code is in them."""
        return snapshot.encode(self._state)

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Return the frozen model in `content`; SnapshotError where it holds none."""
        try:
            return cls(snapshot.decode(content))
        except MALFORMED as error:
            if isinstance(error, SnapshotError):
                raise
            raise SnapshotError(f"no frozen model: {error}") from error

    def __getstate__(self) -> dict[str, Any]:
        return {"content": self.to_bytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(snapshot.decode(state["content"]))  # type: ignore[misc]
