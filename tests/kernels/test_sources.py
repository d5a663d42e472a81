"""A kept kernel does not outlive the sources of the kernels that it calls."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import streamclust

INNER = """
from streamclust.kernels.compiled import kernel
STEP = {step}

@kernel
def inner(x: int) -> int:
    return x + STEP
"""
MIDDLE = """
from streamclust.kernels.inner import inner
from streamclust.kernels.compiled import kernel

@kernel
def middle(x: int) -> int:
    return 10 * inner(x)
"""
OUTER = MIDDLE.replace("middle", "outer").replace("inner", "middle")
PROGRAM = """
from streamclust.kernels.outer import outer
print(outer(1), sum(outer.stats.cache_hits.values()))
"""
pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_change_two_files_away_is_seen(tmp_path, elsewhere):
    package = tmp_path / "streamclust"
    unkept = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(streamclust.__file__).parent, package, ignore=unkept)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("NUMBA_CACHE_DIR", None)
    if elsewhere:
        environment["NUMBA_CACHE_DIR"] = str(tmp_path / "kept")
    (package / "kernels" / "middle.py").write_text(MIDDLE)
    (package / "kernels" / "outer.py").write_text(OUTER)

    def told(step: int) -> str:
        (package / "kernels" / "inner.py").write_text(INNER.format(step=step))
        command = [sys.executable, "-c", PROGRAM]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert told(1) == "200 0"
    assert told(1) == "200 1"  # kept
    assert told(2) == "300 0"
    assert (tmp_path / "kept").exists() == elsewhere
