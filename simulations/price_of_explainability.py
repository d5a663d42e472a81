"""What a readable rule costs: the dynamic tree beside IMM and a decision tree on the same centers.

    python simulations/price_of_explainability.py [--quick] [--plot FOLDER]

Prints the cost of each tree's assignment over the cost of the nearest center, both summed over
distances (not squared); one leaf per center, the window is the data set, means over seeds. Then
the paper measure's approximation ratio against k, divided by the theorem's curve.

IMM (Dasgupta, Frost, Moshkovitz and Rashtchian, ICML 2020) is written out below: at every node the
cut with the fewest mistakes. scikit-learn's DecisionTreeClassifier gets k leaves and the labels of
the nearest centers; a center may have no leaf of its own there.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.tree import DecisionTreeClassifier

from streamclust.tree import ThresholdTree


def distances(points, centers, p):
    """||x - c||_p for every point and center; in slices, to bound memory."""
    out = np.empty((len(points), len(centers)))
    for c, center in enumerate(centers):
        out[:, c] = (np.abs(points - center) ** p).sum(axis=1) ** (1 / p)
    return out


def centers_of(points, k, p, seed):
    """KMeans, then ten median steps: coordinate-wise for p = 1, Weiszfeld's otherwise."""
    centers = KMeans(k, n_init=4, random_state=seed).fit(points).cluster_centers_
    for _ in range(10):
        far = distances(points, centers, p)
        nearest = far.argmin(axis=1)
        for c in range(k):
            own = points[nearest == c]
            if not len(own):
                continue
            if p == 1:
                centers[c] = np.median(own, axis=0)
            else:
                centers[c] = np.average(
                    own, axis=0, weights=1 / np.maximum(far[nearest == c, c], 1e-9)
                )
    return centers


def imm(points, own, centers):
    """IMM's leaf of every point: rows of `centers`. `own` is the center of each point."""
    answer = np.empty(len(points), dtype=np.int64)

    def split(members, rows, kept):
        """`rows` reach the node; `kept` of them are still together with their own center."""
        if len(members) == 1:
            answer[rows] = members[0]
            return
        best = (math.inf, 0.0, 0, 0.0)
        x, c = points[rows[kept]], centers[own[rows[kept]]]
        for i in range(points.shape[1]):
            low, high = centers[members, i].min(), centers[members, i].max()
            if low == high:
                continue
            lows, highs = (
                np.sort(np.minimum(x[:, i], c[:, i])),
                np.sort(np.maximum(x[:, i], c[:, i])),
            )
            places = np.unique(np.concatenate([lows, highs, centers[members, i]]))
            places = places[(places >= low) & (places <= high)]
            mistakes = np.searchsorted(lows, places[:-1], side="right") - np.searchsorted(
                highs, places[:-1], side="right"
            )
            fewest = np.flatnonzero(mistakes == mistakes.min())
            j = fewest[np.diff(places)[fewest].argmax()]
            best = min(best, (mistakes[j], i, places[j], places[j + 1]))
        _, i, low, high = best
        cut = low + (high - low) / 2
        left_members = centers[members, i] <= cut
        left = points[rows, i] <= cut
        together = kept & (left == (centers[own[rows], i] <= cut))
        split(members[left_members], rows[left], together[left])
        split(members[~left_members], rows[~left], together[~left])

    split(np.arange(len(centers)), np.arange(len(points)), np.ones(len(points), dtype=bool))
    return answer


def decision_tree(points, own, k, seed):
    """The label of every point under scikit-learn's tree with k leaves."""
    tree = DecisionTreeClassifier(max_leaf_nodes=max(k, 2), random_state=seed)
    return tree.fit(points, own).predict(points)


def dynamic(points, own, centers, p, seed, **options):
    """The dynamic tree's leaf of every point."""
    tree = ThresholdTree(points.shape[1], p=p, seed=seed, leaves_per_center=1, **options)
    tree.set_window(points, own)
    tree.build(dict(enumerate(centers)))
    return tree.route_many(points)


def standardised(load):
    points = load(return_X_y=True)[0]
    spread = points.std(axis=0)
    return (points - points.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def blobs(d, std):
    return datasets.make_blobs(5000, d, centers=50, random_state=1, cluster_std=std)[0]


ROWS = [
    ("iris k=3", lambda: standardised(datasets.load_iris), 3, 2.0),
    ("wine k=3", lambda: standardised(datasets.load_wine), 3, 1.0),
    ("breast_cancer k=2", lambda: standardised(datasets.load_breast_cancer), 2, 1.0),
    ("digits k=10", lambda: standardised(datasets.load_digits), 10, 1.0),
    ("digits k=10", lambda: standardised(datasets.load_digits), 10, 2.0),
    ("blobs k=50 d=8", lambda: blobs(8, 1.0), 50, 1.0),
    ("blobs k=50 d=8", lambda: blobs(8, 1.0), 50, 2.0),
    ("blobs k=50 d=32", lambda: blobs(32, 2.0), 50, 1.0),
    ("blobs k=50 d=32", lambda: blobs(32, 2.0), 50, 2.0),
]

METHODS = ("paper", "gap", "IMM", "decision tree")


def price_row(points, k, p, seeds):
    """Cost ratios of every method, one row per seed."""
    rows = []
    for seed in seeds:
        centers = centers_of(points, k, p, seed)
        far = distances(points, centers, p)
        own = far.argmin(axis=1)
        answers = [
            dynamic(points, own, centers, p, seed, measure="paper"),
            dynamic(points, own, centers, p, seed),
            imm(points, own, centers),
            decision_tree(points, own, k, seed),
        ]
        least = far.min(axis=1).sum()
        rows.append([far[np.arange(len(points)), a].sum() / least for a in answers])
    return np.array(rows)


def price_table(n_seeds):
    print(f"cost of the answer / cost of the nearest center, mean of {n_seeds} seeds")
    print(f"{'data':20} {'p':>4} " + " ".join(f"{m:>14}" for m in METHODS))
    means = []
    for name, load, k, p in ROWS:
        ratios = price_row(load(), k, p, range(n_seeds))
        means.append(ratios.mean(axis=0))
        told = " ".join(
            f"{m:8.3f}+-{s:.3f}" for m, s in zip(means[-1], ratios.std(axis=0), strict=True)
        )
        print(f"{name:20} {p:4.1f} {told}", flush=True)
    print(f"{'mean':25} " + " ".join(f"{m:14.3f}" for m in np.mean(means, axis=0)))


def theorem(k, p):
    """The growth of the paper's bound: p (log k)^(1 + 1/p - 1/p^2) log log k."""
    return p * math.log(k) ** (1 + 1 / p - 1 / p**2) * math.log(math.log(k))


def approximation(p, k, seed, d=8, per_center=5):
    """Cost ratio of the paper's measure, one draw, on clusters around random centers."""
    rng = np.random.default_rng([seed, k])
    centers = rng.normal(size=(k, d))
    radius = 0.1 * k ** (-1 / d)
    points = centers.repeat(per_center, axis=0) + radius * rng.normal(size=(k * per_center, d))
    tree = ThresholdTree(d, p=p, measure="paper", seed=seed)
    tree.build(dict(enumerate(centers)))
    return tree.cost_ratio(points)


def slope(ks, values):
    """Least-squares slope of log(value) against log(k), with its 95 % half-width."""
    x, y = np.log(ks), np.log(values)
    x = x - x.mean()
    b = (x * (y - y.mean())).sum() / (x**2).sum()
    rest = y - y.mean() - b * x
    return b, 1.96 * math.sqrt((rest**2).sum() / (len(x) - 2) / (x**2).sum())


def approximation_table(ks, n_seeds):
    print(f"\npaper measure, one draw: cost ratio (and ratio / theorem's curve), {n_seeds} seeds")
    print(f"{'p':>4} " + " ".join(f"{f'k={k}':>16}" for k in ks) + "   slope of the quotient")
    curves = {}
    for p in (1.0, 1.5, 2.0, 3.0):
        ratios = np.array([[approximation(p, k, s) for s in range(n_seeds)] for k in ks])
        curves[p] = ratios
        bound = np.array([theorem(k, p) for k in ks])
        quotient = ratios / bound[:, None]
        b, half = slope(np.repeat(ks, n_seeds), quotient.ravel())
        told = " ".join(
            f"{r:8.3f} ({q:.3f})" for r, q in zip(ratios.mean(1), quotient.mean(1), strict=True)
        )
        print(f"{p:4.1f} {told}   {b:+.3f} +- {half:.3f}", flush=True)
    return curves


def plot(folder, ks, curves):
    """Draw ratio against k with the theorem's curve through the first point."""
    import matplotlib.pyplot as plt  # noqa: PLC0415  (only drawing needs it)

    figure, axes = plt.subplots(figsize=(7, 4.5))
    for p, ratios in curves.items():
        line = axes.errorbar(ks, ratios.mean(1), ratios.std(1), capsize=3, label=f"p = {p}")
        bound = np.array([theorem(k, p) for k in ks])
        scaled = bound * ratios.mean(1)[0] / bound[0]
        axes.plot(ks, scaled, ":", color=line[0].get_color())
    axes.set(xscale="log", xlabel="centers k", ylabel="cost / nearest-center cost")
    axes.set_title("Paper measure, one draw; dotted: growth of the theorem's bound")
    axes.legend()
    figure.tight_layout()
    figure.savefig(folder / "approximation.png", dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer seeds and smaller k")
    parser.add_argument("--plot", type=Path, help="folder for the pictures (needs matplotlib)")
    options = parser.parse_args()
    start = time.process_time()
    price_table(2 if options.quick else 8)
    ks = [16, 64, 256] if options.quick else [16, 32, 64, 128, 256, 512, 1024]
    curves = approximation_table(ks, 3 if options.quick else 12)
    if options.plot:
        options.plot.mkdir(parents=True, exist_ok=True)
        plot(options.plot, ks, curves)
    print(f"\n{time.process_time() - start:.0f} s of CPU", file=sys.stderr)


if __name__ == "__main__":
    main()
