"""Plain twins of the compiled metric, and pairs of points to measure."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

VALUES = st.floats(-1e150, 1e150)
P = st.sampled_from([1.0, 1.5, 2.0, 3.0, 8.0, 20.0])


@st.composite
def vectors(draw, n=2):
    d = draw(st.integers(1, 9))
    many = [draw(arrays(float, d, elements=VALUES)) for _ in range(n)]
    weights = draw(arrays(float, d, elements=st.floats(0, 1e3)))
    return (*many, weights)


def distance(a, b, weights, p):
    z = np.minimum(np.abs(np.asarray(a) - b) * weights, 10.0)
    top = z.max(initial=0.0)
    return 0.0 if top == 0 else float(top * ((z / top) ** p).sum() ** (1.0 / p))


def standing(points, centers, fences, scales, groups, weights, p):
    """Holder, and relative distances to the two nearest groups, of every point."""
    holders, nearest = [], []
    for point in points:
        far = np.array([distance(point, c, weights, p) for c in centers])
        holds = far <= fences
        holders.append(int(np.where(holds, far, np.inf).argmin()) if holds.any() else -1)
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.where(far == 0, 0.0, far / scales)
        told = [relative[groups == g].min() for g in np.unique(groups)]
        nearest.append(sorted([*told, np.inf, np.inf])[:2])
    return np.array(holders), np.array(nearest)
