"""k-medians in NumPy, step by step as the kernel takes them."""

import numpy as np

from streamclust.kernels.medians import NEAR


def naive_alternate(x, weights, centers, rounds, sweeps, labels):
    centers, labels = centers.copy(), labels.copy()
    for _ in range(rounds):
        floor = 0.0
        for _ in range(sweeps):
            gaps = x - centers[labels]
            far = np.linalg.norm(gaps, axis=1)
            cost = weights @ far / weights.sum()
            pull = np.zeros(len(x))
            moving = np.maximum(far, floor) > 0.0
            pull[moving] = weights[moving] / np.maximum(far, floor)[moving]
            floor = NEAR * cost
            for c in range(len(centers)):
                own = labels == c
                if pull[own].sum() > 0.0:
                    centers[c] += pull[own] @ gaps[own] / pull[own].sum()
        fresh = np.linalg.norm(x[:, None] - centers, axis=2).argmin(axis=1)
        if np.array_equal(fresh, labels) or len(set(fresh.tolist())) < len(centers):
            break
        labels = fresh
    return labels, centers, float(weights @ np.linalg.norm(x - centers[labels], axis=1))
