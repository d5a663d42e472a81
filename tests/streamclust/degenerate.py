"""Windows at the edge of what an estimator may be given, by what is odd about them."""

import numpy as np

WINDOWS = {
    "one point": np.ones((1, 3)),
    "two points": np.array([[0.0, 1.0], [2.0, 3.0]]),
    "two equal points": np.zeros((2, 2)),
    "three points": np.array([[0.0], [1.0], [5.0]]),
    "all identical": np.full((50, 4), 2.5),
    "one feature": np.random.default_rng(0).normal(size=(80, 1)),
    "two values": np.repeat([[0.0], [1.0]], 30, axis=0),
    "ternary": np.random.default_rng(0).integers(-1, 2, (200, 5)).astype(float),
    "wide ternary": np.random.default_rng(0).integers(-1, 2, (100, 30)).astype(float),
    "one-hot": np.eye(40)[np.random.default_rng(0).integers(0, 40, 200)],
    "equidistant": np.eye(30),
    "constant columns": np.c_[np.random.default_rng(0).normal(size=(60, 2)), np.ones((60, 3))],
    "very wide": np.random.default_rng(0).normal(size=(60, 2000)),
    "grid": np.stack(np.meshgrid(np.arange(9.0), np.arange(9.0)), axis=-1).reshape(-1, 2),
    "huge": np.random.default_rng(0).normal(size=(50, 2)) * 1e150,
    "tiny": np.random.default_rng(0).normal(size=(50, 2)) * 1e-150,
    "far outlier": np.r_[np.random.default_rng(0).normal(size=(60, 3)), [[1e6, 0.0, 0.0]]],
    "far away": np.random.default_rng(0).normal(size=(60, 3)) + 1e9,
    "line": np.linspace(0.0, 1.0, 100)[:, None] * np.ones((1, 3)),
}
