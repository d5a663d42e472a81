"""Plain oracles for mistakes, landings, routing and costs."""

import numpy as np


def mistakes_at(threshold, points, own):
    """Points parted from their own center by ``x <= threshold``."""
    return int(((points <= threshold) != (own <= threshold)).sum())


def fewest_mistakes(points, own, begin, end):
    places = np.unique(np.concatenate([points, own, [begin]]))
    places = places[(places >= begin) & (places < end)]
    return min(mistakes_at(t, points, own) for t in places)


def landing(x, features, sides, thresholds):
    for j, (i, side, t) in enumerate(zip(features, sides, thresholds, strict=True)):
        if (x[i] > t) == (side == 1):
            return j
    return len(features)


def distances(points, centers, weights, p):
    gaps = np.abs(points[:, None, :] - centers[None, :, :]) * weights
    return (gaps**p).sum(axis=2) ** (1 / p)
