"""Compiling ahead, compiling without a cache, and not compiling at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from streamclust.kernels import compiled

ROOT = Path(__file__).parents[2]
VARIED = """
import importlib, pkgutil, random
import numpy as np
from streamclust import StreamClusterer, kernels, warmup
from streamclust.frozen import Frozen
from streamclust.summary import Summary, summarise

def signatures():
    modules = [
        importlib.import_module(f"streamclust.kernels.{info.name}")
        for info in pkgutil.iter_modules(kernels.__path__)
    ]
    return {
        (m.__name__, name): len(f.signatures)
        for m in modules
        for name, f in vars(m).items()
        if hasattr(f, "signatures")
    }

assert warmup.warm_up()
ahead = signatures()
assert sum(ahead.values()) > 20
draw = random.Random(0)
for options in ({}, {"p": 1.0}, {"assign": "nearest"}, {"refit": None}, {"half_life": None}):
    model = StreamClusterer(**options)
    for i in range(2500):
        group = draw.randrange(3) + (i > 1250)
        x = {"a": 5.0 * (group % 2) + draw.gauss(i / 800, 1), "b": 5.0 * (group // 2)}
        x["b"] += draw.gauss(0, 1)
        if i > 1600:
            x["c"] = draw.random()
        if i % 97 == 0:
            del x["b"]
        model.predict_one(x), model.learn_one(x)
    model.metrics(), model.score_one(x), model.assign_one(x), model.explain_one(x)
    for cluster in model.clusters:
        model.why_not_one(x, cluster)
    model.learn_many(np.ones((5, 3), dtype=np.float32)), model.predict_many(np.ones((5, 3)))
    frozen = Frozen.from_bytes(model.freeze().to_bytes())
    parts = [Summary.from_bytes(summarise(np.eye(3) + i, frozen).to_bytes()) for i in range(2)]
    model.apply(parts[0].merge(parts[1])), frozen.predict_many(np.eye(3))
    model.tick(1e6)
late = [name for name, n in signatures().items() if n > ahead[name]]
assert not late, late
"""
INTERPRETED = """
import hashlib, sys
import numpy as np
from streamclust import StreamClusterer
rng = np.random.default_rng(0)
X = rng.normal(size=(130, 2)) + 9 * rng.integers(0, 2, (130, 1))
model = StreamClusterer()
model.learn_many(X)
answers = model.predict_many(X)
print(len(model.clusters), hashlib.sha256(answers.tobytes()).hexdigest())
"""


def run(program: str, **more: str) -> str:
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", program]
    environment = {**os.environ, "PYTHONPATH": paths, **more}
    done = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)
    assert not done.returncode, done.stderr
    return done.stdout


def test_after_a_warm_up_nothing_is_left_to_compile():
    run(VARIED)


def test_interpreted_kernels_answer_as_compiled_ones():
    assert run(INTERPRETED, NUMBA_DISABLE_JIT="1") == run(INTERPRETED)


def test_without_a_folder_for_the_cache_kernels_are_compiled_all_the_same(monkeypatch):
    def njit(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(**options)

    monkeypatch.setattr(compiled, "njit", njit)
    half = compiled.kernel(lambda x: x / 2.0)
    assert half(3.0) == 1.5
    assert compiled.cache_folder(half) is None


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_compiling_is_told_once_and_only_when_it_happens():
    told = []
    twice = numba.njit(lambda x: 2.0 * x)
    with compiled.compiling(lambda: told.append(1)):
        assert twice(3.0) == 6.0
        assert twice(3) == 6.0
    assert told == [1]
    with compiled.compiling(lambda: told.append(2)):
        assert twice(np.float64(3.0)) == 6.0
    assert told == [1]
