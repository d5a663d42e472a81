"""The centers of the threshold tree: positions by stable id, and what tells them apart.

Owns the features' weights and keys too, for two centers are told apart by the features of positive
weight alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping
from typing import Any, Self

import numpy as np

from streamclust.errors import InvalidParameter, UnknownCluster
from streamclust.results import FloatArray, KeyArray

LARGEST = 1e150
"""Coordinates beyond it are refused: powers of distances would overflow."""


class Roster:
    """Centers by id, distinct on the features of positive weight.

    Attributes
    ----------
    weights : float array of shape (d,)
    keys : uint64 array of shape (d,)
    centers : dict of id -> float array of shape (d,)
        Never written in place.
    """

    def __init__(self, weights: FloatArray, keys: KeyArray) -> None:
        self.weights = np.array(weights, dtype=np.float64)
        self.keys = np.array(keys, dtype=np.uint64)
        self.centers: dict[int, FloatArray] = {}
        self._signatures: dict[bytes, int] = {}

    def to_state(self) -> dict[str, Any]:
        """Return arrays from which `from_state` restores all."""
        ids = list(self.centers)
        return {
            "weights": self.weights.copy(),
            "keys": self.keys.copy(),
            "ids": np.array(ids, dtype=np.int64),
            "centers": self.matrix(ids),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The roster that `to_state` told of."""
        made = cls(state["weights"], state["keys"])
        for id, center in zip(state["ids"].tolist(), state["centers"], strict=True):
            made.store(id, np.array(center, dtype=np.float64))
        return made

    def copied(self) -> Self:
        """A roster with the same centers, which changes apart from this one."""
        made = type(self)(self.weights, self.keys)
        made.centers, made._signatures = dict(self.centers), dict(self._signatures)
        return made

    def set_features(self, weights: FloatArray, keys: KeyArray) -> int:
        """Replace weights and keys; answers how many features joined, with value 0 everywhere."""
        if np.array_equal(weights, self.weights) and np.array_equal(keys, self.keys):
            return 0
        weights = np.array(weights, dtype=np.float64)
        grown = weights.size - self.weights.size
        if grown < 0 or keys.shape != weights.shape:
            raise InvalidParameter(
                f"the number of features may not shrink from {self.weights.size} to {weights.size}"
            )
        if not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise InvalidParameter("feature weights must be finite and at least 0")
        self.weights, self.keys = weights, np.array(keys, dtype=np.uint64)
        if grown:
            self.centers = {id: np.pad(c, (0, grown)) for id, c in self.centers.items()}
        self._signatures = {self._signature(c): id for id, c in self.centers.items()}
        return grown

    def position(self, id: int) -> FloatArray:
        """A center's position.

        Raises
        ------
        UnknownCluster
            If no center has this id.
        """
        if id not in self.centers:
            raise UnknownCluster(f"no center has the id {id}")
        return self.centers[id]

    def matrix(self, ids: Iterable[int]) -> FloatArray:
        """Positions as rows, in the order of `ids`."""
        found = [self.centers[id] for id in ids]
        return np.array(found).reshape(len(found), self.weights.size)

    def checked(self, center: FloatArray) -> FloatArray:
        """A private copy of a position, or InvalidParameter with the reason it cannot be one."""
        center = np.array(center, dtype=np.float64) + 0.0  # -0.0 becomes 0.0
        if center.shape != self.weights.shape:
            raise InvalidParameter(f"a center has shape {self.weights.shape}, got {center.shape}")
        if not (np.abs(center) <= LARGEST).all():
            raise InvalidParameter(f"coordinates of a center must lie within +-{LARGEST}")
        return center

    def twin(self, id: int, center: FloatArray) -> int | None:
        """Another center that agrees with this position wherever the weight is positive."""
        twin = self._signatures.get(self._signature(center), id)
        return None if twin == id else twin

    def admitted(self, id: int, center: FloatArray) -> FloatArray:
        """`checked`, and refused where it has a `twin`."""
        center = self.checked(center)
        twin = self.twin(id, center)
        if twin is not None:
            raise InvalidParameter(_equal(id, twin))
        return center

    def admitted_all(self, centers: Mapping[int, FloatArray]) -> dict[int, FloatArray]:
        """A set of positions, each `checked`, no two alike."""
        checked = {int(id): self.checked(center) for id, center in centers.items()}
        seen: dict[bytes, int] = {}
        for id, center in checked.items():
            twin = seen.setdefault(self._signature(center), id)
            if twin != id:
                raise InvalidParameter(_equal(id, twin))
        return checked

    def admitted_changes(
        self, centers: Mapping[int, FloatArray], among: Container[int] | None = None
    ) -> dict[int, FloatArray]:
        """`admitted_all`, but only those that are new or have another position here.

        `among` are ids, all others of which are known to be where they are.
        """
        if len(self._signatures) < len(self.centers):
            centers, among = self.admitted_all(centers), None
        changed = {
            id: self.checked(center)
            for id, center in centers.items()
            if (among is None or id in among)
            and not (id in self.centers and np.array_equal(center, self.centers[id]))
        }
        seen: dict[bytes, int] = {}
        for id, center in changed.items():
            signature = self._signature(center)
            calm = self._signatures.get(signature, id)
            if calm in changed or calm not in centers:
                calm = id
            twin = seen.setdefault(signature, calm)
            if twin != id:
                raise InvalidParameter(_equal(id, twin))
        return changed

    def store(self, id: int, center: FloatArray) -> None:
        """Give `id` a position that was admitted."""
        if id in self.centers:
            self.forget(id)
        self.centers[id] = center
        self._signatures[self._signature(center)] = id

    def forget(self, id: int) -> None:
        """Remove a center."""
        signature = self._signature(self.centers.pop(id))
        if self._signatures.get(signature) == id:
            del self._signatures[signature]

    def clear(self) -> None:
        """Remove all centers."""
        self.centers, self._signatures = {}, {}

    def _signature(self, center: FloatArray) -> bytes:
        return hashlib.blake2b(center[self.weights > 0].tobytes(), digest_size=16).digest()


def _equal(id: int, other: int) -> str:
    return f"centers {id} and {other} agree on every feature of positive weight; merge them"
