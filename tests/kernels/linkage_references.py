"""Plain NumPy oracles of the linkage kernels."""

import numpy as np


def heights(left, right, height_of, n):
    """Members of every node, and the height of every merge."""
    members = [[i] for i in range(n)]
    found = []
    for a, b in zip(left, right, strict=True):
        found.append(height_of(members[a], members[b]))
        members.append(members[a] + members[b])
    return members, np.array(found)


def ward_rise(points, weights, a, b):
    """The rise of the weighted sum of squares when two groups of rows are joined."""

    def squares(rows):
        mean = np.average(points[rows], axis=0, weights=weights[rows])
        return float((weights[rows, None] * (points[rows] - mean) ** 2).sum())

    return squares(a + b) - squares(a) - squares(b)


def greedy_ward(linked, points, weights):
    """Heights of the greedy merges among linked pairs, by trying all pairs every time."""
    groups = [[i] for i in range(len(points))]
    found = []
    while len(groups) > 1:
        best = None
        for x in range(len(groups)):
            for y in range(x + 1, len(groups)):
                if linked[np.ix_(groups[x], groups[y])].any():
                    rise = ward_rise(points, weights, groups[x], groups[y])
                    if best is None or rise < best[0]:
                        best = (rise, x, y)
        if best is None:
            break
        rise, x, y = best
        found.append(rise)
        groups[x] = groups[x] + groups.pop(y)
    return np.array(found)
