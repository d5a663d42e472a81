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


def bridges(points, first, second):
    """Join every part to the one of nearest mean, between the points nearest to each other's."""
    part = np.arange(len(points))

    def join(ends):
        for a, b in ends:
            part[part == part[b]] = part[a]

    join(zip(first, second, strict=True))
    found = []
    while len(names := list(dict.fromkeys(part.tolist()))) > 1:
        members = [np.flatnonzero(part == name) for name in names]
        means = np.array([points[own].mean(axis=0) for own in members])
        gaps = ((means[:, None] - means) ** 2).sum(axis=2)
        np.fill_diagonal(gaps, np.inf)
        other, fresh = gaps.argmin(axis=1), []
        for a, b in enumerate(other):
            if other[b] != a or a < b:
                i = members[a][((points[members[a]] - means[b]) ** 2).sum(axis=1).argmin()]
                j = members[b][((points[members[b]] - points[i]) ** 2).sum(axis=1).argmin()]
                fresh.append((min(i, j), max(i, j)))
        join(fresh)
        found += fresh
    return found
