"""The engine beside river's and scikit-learn's clusterers: same streams, same run, same scores.

    python simulations/compare_peers.py [--quick] [--seeds N] [--output FOLDER] [--data FILE ...]

The engine runs on its defaults, in raw units, and is not told k, but for the row *k told*. Peers
get rows that were standardised online before, k where they ask for it, and the best of a small grid
by the truth of the first events: an upper bound for them. Slow ones see the first events only
(column *events*). scikit-learn's learn in blocks of 32 rows. Scores are prequential, on the last
half of the events seen; the adjusted Rand index leaves noise out. *us* is the mean time of one
prediction and one lesson, refits and all, which weigh most on short streams; *us p50* the median.
Compare times within a run.

`--data` adds CSV files (also gzipped) with a header and the label in the last column; like all
finite sets they are shuffled with the seed.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
import warnings
from pathlib import Path

import numpy as np
from river import cluster, datasets
from sklearn import datasets as bundled
from sklearn.cluster import Birch, MiniBatchKMeans
from threadpoolctl import threadpool_limits

from simulations.streams import blobs, drift10, mappings, standardised
from simulations.tables import means, pyplot, show, write
from streamclust import StreamClusterer
from streamclust.evaluate import prequential

TUNED_ON = 1000  # events; fewer for those that need more than TUNING seconds
TUNING = 0.5
BLOCK = 32
QUICK = ("10 groups, 5% uniform noise", "drift10", "wine", "iris")
SETS = ("digits", "breast_cancer", "wine", "iris")


class Blocks:
    """A scikit-learn clusterer that learns BLOCK rows at a time and answers -1 before the first."""

    def __init__(self, estimator, least):
        self.estimator, self.least, self.rows, self.ready = estimator, least, [], False

    def learn_one(self, x):
        """Keep the row; learn when a block is full."""
        self.rows.append([*x.values()])
        if len(self.rows) >= (BLOCK if self.ready else max(BLOCK, self.least)):
            self.estimator.partial_fit(np.array(self.rows))
            self.rows, self.ready = [], True

    def predict_one(self, x):
        """Ask for one row."""
        return self.estimator.predict([[*x.values()]])[0] if self.ready else -1


class Rivers:
    """A river clusterer; one that cannot answer yet answers -1."""

    def __init__(self, model):
        self.model, self.learn_one = model, model.learn_one

    def predict_one(self, x):
        """Ask, before anything is known too."""
        try:
            return self.model.predict_one(x)
        except (ValueError, KeyError, AttributeError, IndexError):
            return -1


def radii(d):
    """Radii for the density methods, in units of the standard deviation."""
    return [r * math.sqrt(d) for r in (0.25, 0.5, 0.8, 1.2)]


PEERS = {  # name: (how to make one, grid of parameters for k clusters, d features and n events)
    "river KMeans": (
        lambda k, **p: Rivers(cluster.KMeans(n_clusters=k, seed=1, **p)),
        lambda k, d, n: {"halflife": [0.05, 0.2, 0.5]},
    ),
    "river STREAMKMeans": (
        lambda k, **p: Rivers(cluster.STREAMKMeans(n_clusters=k, seed=1, **p)),
        lambda k, d, n: {"chunk_size": [50, 200], "halflife": [0.1, 0.5]},
    ),
    "river CluStream": (
        lambda k, **p: Rivers(cluster.CluStream(n_macro_clusters=k, time_gap=100, seed=1, **p)),
        lambda k, d, n: {"max_micro_clusters": [max(100, 3 * k)], "halflife": [0.1, 0.4]},
    ),
    "river DBSTREAM": (
        lambda k, **p: Rivers(
            cluster.DBSTREAM(
                fading_factor=0.001,
                cleanup_interval=100,
                intersection_factor=0.3,
                minimum_weight=3,
                **p,
            )
        ),
        lambda k, d, n: {"clustering_threshold": radii(d)},
    ),
    "river DenStream": (
        lambda k, **p: Rivers(cluster.DenStream(decaying_factor=0.01, beta=0.5, **p)),
        lambda k, d, n: {
            "epsilon": radii(d),
            "mu": [2.5, 5],
            "n_samples_init": [min(200, n // 5)],
        },
    ),
    "sklearn MiniBatchKMeans": (
        lambda k, **p: Blocks(MiniBatchKMeans(k, n_init=3, random_state=0, **p), k),
        lambda k, d, n: {"batch_size": [256]},
    ),
    "sklearn Birch": (
        lambda k, **p: Blocks(Birch(**p), k),
        lambda k, d, n: {"n_clusters": [None, k], "threshold": radii(d)[:3]},
    ),
}
OURS = {
    "streamclust": lambda k: StreamClusterer(),
    "streamclust nearest": lambda k: StreamClusterer(assign="nearest"),
    "streamclust nearest, k told": lambda k: StreamClusterer(assign="nearest", n_clusters=k),
}


def streams(seed, n, files=()):
    """Points and labels by name."""
    found = {}
    for made in (blobs(n, seed=seed), drift10(n, seed), blobs(n, 50, 32, 0.0, seed=seed)):
        found[made.name] = made.points, made.labels
    rows = [([*map(float, x.values())], y) for x, y in datasets.ImageSegments()]
    found["image segments"] = _shuffled(*zip(*rows, strict=True), seed)
    for name in SETS:
        one = getattr(bundled, f"load_{name}")()
        found[name] = _shuffled(one.data, one.target.tolist(), seed)
    for file in files:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
        found[Path(file).name.partition(".")[0]] = _shuffled(
            table[:, :-1], table[:, -1].astype(int).tolist(), seed
        )
    return found


def _shuffled(points, labels, seed):
    order = np.random.default_rng([seed, 7]).permutation(len(labels))
    return np.asarray(points, dtype=float)[order], [labels[i] for i in order]


def tuned(make, grid, x, labels, k):
    """The parameters that score best on the first events, and the seconds that an event takes."""
    best = (-math.inf, {}, 0.0)
    for values in itertools.product(*grid.values()):
        options = dict(zip(grid, values, strict=True))
        cost = _seconds(make(k, **options), x[:100], labels[:100])[1]
        n = min(TUNED_ON, max(200, int(TUNING / cost)))
        found, cost = _seconds(make(k, **options), x[:n], labels[:n])
        best = max(best, (found, options, cost), key=lambda b: b[0])
    return best[1:]


def _seconds(model, x, labels):
    """The score of a model over a few events, and the CPU seconds that one took."""
    began = time.process_time()
    found = prequential(model, x, labels, probes=0).scores.ari
    return found, (time.process_time() - began) / len(x)


def compare(name, points, labels, seed, seconds):
    """A row per clusterer."""
    known = {label for label in labels if label not in (-1, None)}
    k, (n, d) = len(known), points.shape
    for peer, make in OURS.items():
        yield _row(name, peer, seed, prequential(make(k), points, labels), {})
    x = mappings(standardised(points))
    for peer, (make, grid) in PEERS.items():
        options, cost = tuned(make, grid(k, d, n), x, labels, k)
        seen = min(n, max(500, int(seconds / cost)))
        found = prequential(make(k, **options), x[:seen], labels[:seen])
        yield _row(name, peer, seed, found, options)


def _row(stream, peer, seed, found, options):
    scores = found.scores
    return {
        "stream": stream,
        "clusterer": peer,
        "seed": seed,
        "ARI": scores.ari,
        "AMI": scores.ami,
        "purity": scores.purity,
        "noise F1": scores.noise_f1,
        "answered -1": scores.noise_share,
        "clusters": scores.clusters,
        "flips": found.flips,
        "events": len(found.answers),
        "us": found.learning.mean + found.predicting.mean,
        "us p50": found.learning.p50 + found.predicting.p50,
        "parameters": " ".join(
            f"{key}={value:.3g}" if isinstance(value, float) else f"{key}={value}"
            for key, value in options.items()
        ),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="one seed, few streams, 2,000 events")
    parser.add_argument("--seeds", type=int, help="how many (3; quick: 1)")
    parser.add_argument("--output", type=Path, default=Path("simulated"), help="folder")
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="more labelled CSV files")
    parser.add_argument("--only", nargs="*", help="names of streams; all the others are left out")
    options = parser.parse_args()
    n, seeds = (2000, options.seeds or 1) if options.quick else (20_000, options.seeds or 3)
    threadpool_limits(1)
    warnings.simplefilter("ignore")  # Birch tells when it finds fewer subclusters than k
    _warm_up()
    chosen, rows = options.only or (QUICK if options.quick else ()), []
    for seed in range(seeds):
        for name, (points, labels) in streams(seed, n, options.data).items():
            if not chosen or name in chosen:
                rows += compare(name, points, labels, seed, 0.5 if options.quick else 6.0)
    told = means([{k: v for k, v in r.items() if k != "parameters"} for r in rows], KEYS)
    for name in dict.fromkeys(row["stream"] for row in told):
        mine = [row for row in told if row["stream"] == name]
        show(name, [{k: v for k, v in row.items() if k != "stream"} for row in mine])
    write(options.output / "compare_peers.csv", rows)
    draw(options.output / "compare_peers.png", told)


KEYS = ("stream", "clusterer")


def _warm_up():
    """Compile before anything is timed."""
    for make in OURS.values():
        prequential(make(3), blobs(500, 3, 2).points)


def draw(path, rows):
    plt = pyplot()
    if plt is None:
        return
    names, peers = ([*dict.fromkeys(row[key] for row in rows)] for key in KEYS)
    at = {(row["stream"], row["clusterer"]): row for row in rows}
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(15, 5.5), width_ratios=[3, 1.3], sharey=True
    )
    table = np.array([[at[name, peer]["ARI"] for name in names] for peer in peers])
    left.imshow(table, vmin=0, vmax=1, cmap="YlGn", aspect="auto")
    for (i, j), value in np.ndenumerate(table):
        left.text(
            j, i, f"{value:.2f}", ha="center", va="center", color="w" if value > 0.75 else "k"
        )
    left.set_xticks(range(len(names)), [n.replace(", ", ",\n") for n in names], rotation=25)
    left.set_yticks(range(len(peers)), peers)
    left.set_title("adjusted Rand index")
    for i, peer in enumerate(peers):
        for figure_of, color in (("us", "tab:orange"), ("us p50", "tab:blue")):
            costs = [at[name, peer][figure_of] for name in names]
            right.plot(costs, [i] * len(costs), "|", color=color, markersize=12)
            right.plot(np.median(costs), i, "o", color=color, label=figure_of if not i else None)
    right.set(xscale="log", xlabel="per event, one mark per stream; dot: median", title="time, us")
    right.legend(loc="lower right", fontsize=8)
    right.grid(alpha=0.3, axis="x")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(f"written to {path}")


if __name__ == "__main__":
    main()
