"""A small clusterer with the verbs of the real one, and the command around it.

It puts an event to the nearest center within a radius or bears a new one, so every answer depends
on all events before it: a lost, doubled or swapped event shows. Run as a script it is the
``streamclust`` command, without waiting for compilers.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import sys
from pathlib import Path

from streamclust.errors import InvalidPoint, NotReady, SnapshotError
from streamclust.parameters import PARAMETERS, check_parameters
from streamclust.results import Assignment, Box, Cluster, Fence, Region, Rule

RADIUS = 3.0


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterBorn:
    number: int
    tick: int
    time: float
    cluster: int


class StreamClusterer:
    def __init__(self, **parameters):
        check_parameters(parameters)
        defaults = {name: parameter.default for name, parameter in PARAMETERS.items()}
        vars(self).update(defaults | parameters)
        self._given = parameters
        self.source = None
        self.tick_count = 0
        self._time = -math.inf
        self._centers = []
        self._sizes = []
        self._changes = []
        self._subscribers = []

    def _check(self, x):
        if not x:
            raise InvalidPoint("an event without features")
        for name, value in x.items():
            if isinstance(value, str) or value is None or not abs(value) <= 1e150:
                raise InvalidPoint(f"feature {name!r}: {value!r}; a finite number is accepted")

    def _nearest(self, x):
        distances = [
            math.sqrt(sum((center.get(name, 0.0) - v) ** 2 for name, v in x.items()))
            for center in self._centers
        ]
        label = min(range(len(distances)), key=distances.__getitem__, default=-1)
        return (label, distances[label]) if label >= 0 else (-1, math.inf)

    def assign_one(self, x):
        self._check(x)
        label, distance = self._nearest(x)
        if not self._centers:
            return Assignment(-1, Region.COLD)
        if distance > RADIUS:
            return Assignment(-1, Region.NOISE, distance=distance)
        return Assignment(label, Region.CORE, distance=distance)

    def predict_one(self, x):
        return self.assign_one(x).label

    def explain_one(self, x):
        if not self._centers:
            raise NotReady("no cluster yet")
        return f"distance {self._nearest(x)[1]:.4g}"

    def learn_one(self, x, *, t=None, w=1.0):
        self._check(x)
        if t is not None and t < self._time:
            raise InvalidPoint(f"time {t} is before {self._time}")
        self._time = self._time if t is None else t
        self.tick_count += 1
        label, distance = self._nearest(x)
        if distance > RADIUS:
            self._centers.append({name: float(value) for name, value in x.items()})
            self._sizes.append(1)
            number = len(self._changes) + 1
            change = ClusterBorn(number, self.tick_count, self._time, len(self._centers) - 1)
            self._changes.append(change)
            for kind, callback in self._subscribers:
                if isinstance(change, kind):
                    callback(change)
            return
        self._sizes[label] += 1
        for name, value in x.items():
            old = self._centers[label].get(name, 0.0)
            self._centers[label][name] = old + (value - old) / self._sizes[label]

    def events_since(self, n):
        return self._changes[n:]

    def on(self, event_type, callback):
        entry = (event_type, callback)
        self._subscribers.append(entry)
        return lambda: self._subscribers.remove(entry)

    def _get_params(self):
        return {name: getattr(self, name) for name in PARAMETERS}

    @property
    def clusters(self):
        return {i: self._cluster(i) for i in range(len(self._centers))}

    def _cluster(self, i):
        fence = Fence(i, self._centers[i], RADIUS)
        name, value = next(iter(self._centers[i].items()))
        box = Box({name: (-math.inf, value + RADIUS)})
        rule = Rule(i, (box,), fence, (str(box),))
        return Cluster(i, float(self._sizes[i]), self._sizes[i], (i,), 1, 1.0, rule)

    def metrics(self):
        return {"clusters": len(self._centers)}

    def save(self, path, source=None):
        state = {
            "given": self._given,
            "tick": self.tick_count,
            "time": self._time,
            "centers": self._centers,
            "sizes": self._sizes,
            "changes": [dataclasses.astuple(change) for change in self._changes],
            "source": source,
        }
        body = json.dumps(state)
        temporary = Path(f"{path}.tmp")
        temporary.write_text(hashlib.sha256(body.encode()).hexdigest() + body)
        os.replace(temporary, path)

    @classmethod
    def load(cls, path):
        text = Path(path).read_text()
        digest, body = text[:64], text[64:]
        if hashlib.sha256(body.encode()).hexdigest() != digest:
            raise SnapshotError(f"{Path(path).name} is torn")
        state = json.loads(body)
        model = cls(**state["given"])
        model.tick_count, model._time = state["tick"], state["time"]
        model._centers, model._sizes = state["centers"], state["sizes"]
        model._changes = [ClusterBorn(*fields) for fields in state["changes"]]
        model.source = state["source"]
        return model


if __name__ == "__main__":
    from streamclust_adapters.cli import main

    sys.modules["streamclust.clusterer"] = sys.modules["__main__"]
    main(prog_name="streamclust")
