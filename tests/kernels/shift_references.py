"""Plain NumPy oracles of the mean-shift kernels."""

import numpy as np


def ball(points, weights, center, bandwidth):
    """Which points lie in a ball, and their weight."""
    inside = ((points - center) ** 2).sum(axis=1) <= bandwidth**2
    return inside, float(weights[inside].sum())


def trajectory(points, weights, start, bandwidth, tolerance, max_steps):
    """End, weight of the last ball, and the points seen on the way."""
    center, mass = start.copy(), 0.0
    seen = np.zeros(len(points), dtype=bool)
    for _ in range(max_steps + 1):
        inside, held = ball(points, weights, center, bandwidth)
        if held <= 0.0:
            break
        mass = held
        seen |= inside
        mean = np.average(points[inside], axis=0, weights=weights[inside])
        step = np.sqrt(((mean - center) ** 2).sum())
        center = mean
        if step <= tolerance:
            break
    return center, mass, seen


def merged(ends, order, bandwidth):
    """The ends that stand, and the nearest standing one of every end."""
    kept = []
    for s in order:
        if all(((ends[s] - ends[m]) ** 2).sum() > bandwidth**2 for m in kept):
            kept.append(int(s))
    far = ((ends[:, None] - ends[kept][None]) ** 2).sum(axis=2)
    return kept, far.argmin(axis=1)
