"""Compiling every kernel ahead of the first event: for container images and patient starts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np

from streamclust.clusterer import StreamClusterer
from streamclust.kernels import compiled, stream
from streamclust.summary import summarise

EVENTS = 1600
"""Events of the rehearsal: a full window, drift, a birth, a death and several refits."""


def warm_up() -> str | None:
    """Use everything that compiles a kernel once; return the folder of the cache, or None."""
    rng = np.random.default_rng(0)
    places = 4.0 * rng.normal(size=(8, 3))
    group = rng.integers(0, 7, EVENTS) + (np.arange(EVENTS) > EVENTS // 2)
    X = places[group] + rng.normal(size=(EVENTS, 3)) + np.linspace(0, 4, EVENTS)[:, None]
    for options in ({}, {"assign": "nearest", "refit": None}):
        model = StreamClusterer(**options)  # type: ignore[arg-type]
        model.learn_many(X[:800])
        for row in X[800:].tolist():
            x = dict(zip(("f0", "f1", "f2"), row, strict=True))
            model.predict_one(x)
            model.learn_one(x)
        model._engine.router.tree.reconsider()  # a rebuild against what stands
        model.predict_many(X.astype(np.float32))
        model.transform_one(x)
        model.explain_one(x)
        model.assign_one(x)
        model.metrics()
        part = summarise(X, model.freeze())
        model.apply(part.merge(part))
        model.tick(10 * EVENTS)
    return compiled.cache_folder(stream.observe_at)


def compiling(tell: Callable[[], object]) -> AbstractContextManager[None]:
    """Call `tell` once if a kernel has to be compiled within a ``with`` block."""
    return compiled.compiling(tell)
