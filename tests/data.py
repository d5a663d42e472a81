"""Reference data sets that stay outside the repository."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(os.environ.get("STREAMCLUST_DATA", Path(__file__).parents[2] / "shared" / "data"))


def reference_set(name, *, shuffled=True):
    """Points and labels of a reference set; the test is skipped where the folder is absent."""
    path = FOLDER / f"{name}.csv.gz"
    if not path.is_file():
        pytest.skip(f"needs {path.name}: set STREAMCLUST_DATA to the folder of reference sets")
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    if shuffled:
        table = table[np.random.default_rng(0).permutation(len(table))]
    return table[:, :-1], table[:, -1].astype(np.int64)
