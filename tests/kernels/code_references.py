"""Plain NumPy oracles of the code length kernels."""

import numpy as np
from scipy.special import gammaln

DEGREES = 4.0


def covariances(scatter, weight, floor):
    """The three shapes and their numbers of parameters."""
    d = len(scatter)
    mean = np.trace(scatter) / (weight * d)
    prior = (d + 2) / 2
    full = (scatter + prior * mean * np.eye(d)) / (weight + prior) + np.diag(floor)
    diagonal = np.diag(np.diag(scatter) / weight + floor)
    return [
        (full, 2 + d + d * (d + 1) / 2),
        (diagonal, 2 + 2 * d),
        (mean * np.eye(d) + np.diag(floor), 3 + d),
    ]


def log_density(points, mean, covariance, student):
    d = len(mean)
    step = points - mean
    square = np.einsum("ij,ij->i", step, np.linalg.solve(covariance, step.T).T)
    log_det = np.linalg.slogdet(covariance)[1]
    if student:
        constant = gammaln((DEGREES + d) / 2) - gammaln(DEGREES / 2)
        constant -= d / 2 * np.log(DEGREES * np.pi)
        return constant - log_det / 2 - (DEGREES + d) / 2 * np.log1p(square / DEGREES)
    return -0.5 * (d * np.log(2 * np.pi) + log_det + square)


def skewed_log_density(points, mode, low, high, student):
    """The log density of a law with a mode and two scales along every coordinate."""
    step = points - mode
    far = (step / np.where(step < 0.0, low, high)) ** 2
    if student:
        each = gammaln((DEGREES + 1) / 2) - gammaln(DEGREES / 2) - np.log(DEGREES * np.pi) / 2
        each = each - (DEGREES + 1) / 2 * np.log1p(far / DEGREES)
    else:
        each = -0.5 * (np.log(2 * np.pi) + far)
    return (each - np.log((low + high) / 2)).sum(axis=1)


def skewed_law(points, weights, total, floor, student):
    """The code of one skewed cluster, with its mode and scales."""
    weight, d = weights.sum(), points.shape[1]
    mode, low, high = np.empty(d), np.empty(d), np.empty(d)
    for j, x in enumerate(points.T):
        at = np.average(x, weights=weights)
        below = above = np.average((x - at) ** 2, weights=weights) + floor[j]
        for _ in range(8):
            gap = x - at
            square = np.where(gap < 0.0, below, above)
            pull = weights * ((DEGREES + 1) / (DEGREES + gap**2 / square) if student else 1.0)
            root = [
                np.cbrt((pull * gap**2)[side].sum() / weight) for side in (gap < 0.0, gap >= 0.0)
            ]
            below, above = (r**2 * sum(root) + floor[j] for r in root)
            square = np.where(gap < 0.0, below, above)
            at += 2.0 * (pull * gap / square).sum() / (pull / square).sum()
        mode[j], low[j], high[j] = at, np.sqrt(below), np.sqrt(above)
    code = -(weights * skewed_log_density(points, mode, low, high, student)).sum()
    code += (2 + 3 * d) / 2 * np.log(total)
    return code - weight * np.log(weight / total), mode, low, high


def law(points, weights, total, floor, student):
    """The best code of one elliptical cluster, with its mean and covariance."""
    pull = np.ones(len(points))
    for step in range(5 if student else 1):
        mean = np.average(points, axis=0, weights=weights * pull)
        scatter = ((weights * pull)[:, None] * (points - mean)).T @ (points - mean)
        if student and step < 4:
            full = covariances(scatter, weights.sum(), floor)[0][0]
            square = np.einsum(
                "ij,ij->i", points - mean, np.linalg.solve(full, (points - mean).T).T
            )
            pull = (DEGREES + points.shape[1]) / (DEGREES + square)
    options = []
    for covariance, parameters in covariances(scatter, weights.sum(), floor):
        code = -(weights * log_density(points, mean, covariance, student)).sum()
        code += parameters / 2 * np.log(total)
        options.append((code, covariance))
    code, covariance = min(options, key=lambda option: option[0])
    return code - weights.sum() * np.log(weights.sum() / total), mean, covariance


def naive_join(points, weights, labels, near, k, floor, student):
    """Merge the best of the near pairs again and again, measuring every pair anew."""
    labels = labels.copy()
    total = weights.sum()

    def told(c):
        own = labels == c
        return law(points[own], weights[own], total, floor, student)[0]

    def both(a, b):
        own = (labels == a) | (labels == b)
        return law(points[own], weights[own], total, floor, student)[0]

    names = range(labels.max() + 1)
    means = np.array([points[labels == c].mean(axis=0) for c in names])
    gaps = np.sqrt(((means[:, None] - means[None]) ** 2).sum(axis=2))
    np.fill_diagonal(gaps, np.inf)
    pairs = {
        tuple(sorted((a, int(b)))) for a in names for b in np.argsort(gaps[a])[:near] if a != b
    }
    grown = 0.0
    while len(set(labels[labels >= 0])) > (k or 1) and pairs:
        rises = {(a, b): both(a, b) - told(a) - told(b) for a, b in pairs}
        a, b = min(pairs, key=lambda pair: (rises[pair], pair))
        if k is None and rises[a, b] >= 0.0:
            break
        grown += rises[a, b]
        labels[labels == b] = a
        pairs = {tuple(sorted((a if i == b else i, a if j == b else j))) for i, j in pairs}
        pairs = {(i, j) for i, j in pairs if i != j}
    return labels, grown
