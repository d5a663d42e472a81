"""Reruns the tables of the papers behind the batch estimators, with one blind default for all sets.

    python simulations/paper_tables.py --quick          # about two minutes
    python simulations/paper_tables.py --out tables/    # all sets and seeds; CSV beside the print

Four tables, each the mean +- deviation over seeds; every seed shuffles the rows, and in the COMET
table draws the noise anew. "told k" means that a method knows the true number of classes; nothing
else in a column knows anything of the labels, but for the lines marked "oracle": the best of a
grid, chosen with them. With --out there is a CSV and, where matplotlib is installed, a picture.

COMET     ARI on the clean rows under 10 % uniform noise in the box of the raw data, then z-scored
          (noise rows included); -1 counts as one more cluster. The line "as published" is the
          authors' solver in the order of the file, which for Newthyroid tells the classes.
RCC       AMI and ARI, no noise; images and pen strokes in one unit, other features z-scored.
rate      COMET's root mean squared error of the centers against n, beside that of the true groups'
          own means, which falls as 1 / sqrt n (the paper's rate).
three-way Accuracy of the best one-to-one matching, silhouette (higher is better) and Davies-Bouldin
          index (lower is better), over all points that have a label and over core points only.

The data are looked for in STREAMCLUST_DATA, or in ../shared/data beside the repository.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import wilcoxon
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.cluster import MeanShift as PeerShift
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    davies_bouldin_score,
    silhouette_score,
)

from streamclust.refit.adam import cluster_by_descent
from streamclust.refit.comet import COMET
from streamclust.refit.mean_shift import MeanShift
from streamclust.refit.rcc import RCC, RCCDR
from streamclust.refit.three_way import ThreeWayMeanShift

FOLDER = Path(os.environ.get("STREAMCLUST_DATA", Path(__file__).parents[2] / "shared" / "data"))
ONE_UNIT = {"digits", "pendigits", "orlraws10p", "r15", "iris"}
"""Sets whose features share a unit; those of the others are z-scored."""
NOISE = 0.1
SLOW = 1000
"""Rows beyond which scikit-learn's MeanShift, which needs minutes there, is left out."""
PUBLISHED_RCC = {
    "metric": "cosine",
    "fusion_strength": 1.0,
    "extraction": "edges",
    "scales": "published",
}

Method = Callable[[Any, int, int], Any]


def read(name: str) -> tuple[Any, Any]:
    """Points and labels of a set, in the order of the file."""
    path = FOLDER / f"{name}.csv.gz"
    if not path.is_file():
        raise SystemExit(f"{path} is missing: set STREAMCLUST_DATA to the folder of the sets")
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    return table[:, :-1], table[:, -1].astype(np.int64)


def standard(X: Any) -> Any:
    """Z-scored features; a constant one stays at zero."""
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


def noisy(X: Any, share: float, generator: np.random.Generator) -> Any:
    """The rows, then uniform ones in their box, z-scored together: the protocol of the paper."""
    low, high = X.min(axis=0), X.max(axis=0)
    box = generator.uniform(0, 1, (int(share * len(X)), X.shape[1]))
    return standard(np.r_[X, low + (high - low) * box])


def peer_shift(X: Any, k: int, seed: int) -> Any:
    """scikit-learn's mean shift with its own bandwidth, or nothing where it takes too long."""
    return PeerShift(bin_seeding=True).fit(X).labels_ if len(X) <= SLOW else None


PEERS: dict[str, Method] = {
    "KMeans, told k": lambda X, k, seed: KMeans(k, n_init=10, random_state=seed).fit(X).labels_,
    "HDBSCAN": lambda X, k, seed: HDBSCAN(min_cluster_size=10, copy=True).fit(X).labels_,
    "sklearn MeanShift": peer_shift,
}


def best_of_grid(X: Any, k: int, truth: Any) -> float:
    """COMET's best ARI over a grid, chosen with the labels: what it could do, not what it does."""
    counts = (None, max(k - 1, 1), k, k + 1)
    models = [COMET(fusion_strength=s, n_clusters=c) for s in (1.0, 10.0, 100.0) for c in counts]
    clean = truth >= 0
    return max(
        float(adjusted_rand_score(truth[clean], model.fit(X).labels_[clean])) for model in models
    )


OURS: dict[str, Method] = {
    "COMET": lambda X, k, seed: COMET().fit(X).labels_,
    "RCC": lambda X, k, seed: RCC().fit(X).labels_,
    "RCC-DR": lambda X, k, seed: RCCDR().fit(X).labels_,
    "MeanShift": lambda X, k, seed: MeanShift().fit(X).labels_,
}
TOLD: dict[str, Method] = {
    "COMET, told k": lambda X, k, seed: COMET(n_clusters=k).fit(X).labels_,
    "RCC, told k": lambda X, k, seed: RCC(n_clusters=k).fit(X).labels_,
}
RCC_FORMS: dict[str, Method] = {
    "RCC": OURS["RCC"],
    "RCC, edges": lambda X, k, seed: RCC(extraction="edges").fit(X).labels_,
    "RCC as published": lambda X, k, seed: RCC(**PUBLISHED_RCC, tolerance=0.1).fit(X).labels_,
    "RCC-DR": OURS["RCC-DR"],
    "RCC-DR as published": lambda X, k, seed: RCCDR(**PUBLISHED_RCC, tolerance=0.01).fit(X).labels_,
}


class Table:
    """Figures by row, column and seed; prints means and keeps a CSV."""

    def __init__(self, title: str, columns: Iterable[str]) -> None:
        self.title, self.columns = title, list(columns)
        self.figures: dict[tuple[str, str], list[float]] = {}

    def add(self, row: str, column: str, figure: float) -> None:
        """Note one seed's figure."""
        self.figures.setdefault((row, column), []).append(figure)

    @property
    def rows(self) -> list[str]:
        """The rows, in the order of their first figure."""
        return list(dict.fromkeys(row for row, _ in self.figures))

    def mean(self, row: str, column: str) -> float:
        """The mean over seeds; nan where there is no figure."""
        return float(np.mean(self.figures.get((row, column), [np.nan])))

    def show(self, out: Path | None) -> None:
        """Print means and deviations; write every figure where there is a folder for it."""
        width = max(len(row) for row in self.rows)
        print(f"\n{self.title}\n{'':{width}}  " + "  ".join(f"{c:>13}" for c in self.columns))
        for row in self.rows:
            cells = []
            for column in self.columns:
                found = self.figures.get((row, column))
                told = f"{np.mean(found):.3f}+-{np.std(found):.3f}" if found else "-"
                cells.append(f"{told:>{max(13, len(column))}}")
            print(f"{row:{width}}  " + "  ".join(cells), flush=True)
        if out is not None:
            with (out / f"{self.title.split(':')[0]}.csv").open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(["row", "column", "seed", "figure"])
                for (row, column), found in self.figures.items():
                    writer.writerows([row, column, seed, f] for seed, f in enumerate(found))
            self.draw(out)

    def draw(self, out: Path) -> None:
        """Draw the means: bars by set, or for the rate lines on logarithmic axes."""
        try:
            from matplotlib.figure import Figure  # noqa: PLC0415  the tables do without it
        except ImportError:
            return
        figure = Figure(figsize=(11, 5), layout="constrained")
        axes = figure.add_subplot()
        name = self.title.split(":")[0]
        places = np.arange(len(self.columns), dtype=float)
        for at, row in enumerate(self.rows):
            means = [self.mean(row, column) for column in self.columns]
            if name == "rate":
                axes.loglog([int(column) for column in self.columns], means, "o-", label=row)
            else:
                width = 0.8 / len(self.rows)
                hatch = "//" if at >= 10 else None  # the colours start again
                axes.bar(places + (at + 0.5) * width - 0.4, means, width, label=row, hatch=hatch)
        if name != "rate":
            axes.set_xticks(places, self.columns)
        axes.set_title(self.title)
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")
        figure.savefig(out / f"{name}.png", dpi=110)


def comet_table(sets: list[str], seeds: int, shares: list[float]) -> list[Table]:
    """The COMET table for every share of noise, and the published runs on Newthyroid."""
    methods = OURS | PEERS | TOLD
    tables = []
    for share in shares:
        table = Table(f"comet-{share:.0%}: ARI of the clean rows, {share:.0%} noise", sets)
        for name in sets:
            X, y = read(name)
            for seed in range(seeds):
                generator = np.random.default_rng(seed)
                points = noisy(X, share, generator)
                order = generator.permutation(len(points))
                back = np.argsort(order)[: len(X)]
                for method, run in methods.items():
                    labels = run(points[order], len(np.unique(y)), seed)
                    if labels is not None:
                        table.add(method, name, adjusted_rand_score(y, labels[back]))
                truth = np.append(y, np.full(len(points) - len(X), -1))[order]
                oracle = best_of_grid(points[order], len(np.unique(y)), truth)
                table.add("COMET, best of grid (oracle)", name, oracle)
        if "newthyroid" in sets and share == NOISE:
            for figure in published_runs(seeds):
                table.add("COMET as published, file order", "newthyroid", figure)
        tables.append(table)
    return tables


def published_runs(count: int) -> list[float]:
    """ARI of the authors' runs on Newthyroid: their generator, their graph, the file's order."""
    X, y = read("newthyroid")
    generator = np.random.default_rng(0)
    found = []
    for _ in range(count):
        points = noisy(X, NOISE, generator)
        labels = cluster_by_descent(points, generator, n_binned=len(X))
        found.append(float(adjusted_rand_score(y, labels[: len(X)])))
    return found


def signed_ranks(table: Table, against: str) -> None:
    """Wilcoxon's signed-rank test over data sets, as in the COMET paper."""
    reference = np.array([table.mean(against, name) for name in table.columns])
    print(f"Wilcoxon signed-rank over {len(reference)} sets, {against} against:")
    for row in table.rows:
        other = np.array([table.mean(row, name) for name in table.columns])
        if row != against and np.isfinite(other).all() and (other != reference).any():
            ahead = int((reference > other).sum())
            p = wilcoxon(reference, other).pvalue
            print(f"  {row:24} ahead on {ahead} of {len(reference)}, p = {p:.3f}")


def rate_table(seeds: int, quick: bool) -> Table:
    """Error of COMET's centers against n: five groups in four dimensions, 10 % noise."""
    sizes = [2**power for power in range(7, 12 if quick else 14)]
    table = Table("rate: root mean squared error of the centers", [str(n) for n in sizes])
    for n in sizes:
        for seed in range(seeds):
            generator = np.random.default_rng(seed)
            centers = np.zeros((5, 4))
            centers[1:] = 8.0 * np.eye(4)
            clean = centers[generator.integers(0, 5, n)] + generator.normal(size=(n, 4))
            low, high = clean.min(axis=0), clean.max(axis=0)
            points = np.r_[clean, generator.uniform(low, high, (n // 10, 4))]
            labels = COMET().fit(points).labels_
            found = np.array([points[labels == c].mean(axis=0) for c in range(labels.max() + 1)])
            gaps = ((centers[:, None] - found[None]) ** 2).sum(axis=2).min(axis=1)
            table.add("COMET", str(n), float(np.sqrt(gaps.mean())))
            table.add("1 / sqrt n", str(n), float(np.sqrt(4.0 * 5.0 / n)))
    slope = np.polyfit(np.log(sizes), np.log([table.mean("COMET", c) for c in table.columns]), 1)[0]
    print(f"\nerror falls as n to the power {slope:.2f}; the paper's bound: -0.5")
    return table


def rcc_table(sets: list[str], seeds: int) -> list[Table]:
    """AMI and ARI of RCC in its forms, beside the peers."""
    ami, ari = Table("rcc-ami: AMI, no noise", sets), Table("rcc-ari: ARI, no noise", sets)
    for name in sets:
        X, y = read(name)
        X = X / np.ptp(X) if name == "digits" else X if name in ONE_UNIT else standard(X)
        for seed in range(seeds):
            order = np.random.default_rng(seed).permutation(len(X))
            for method, run in (RCC_FORMS | PEERS).items():
                labels = run(X[order], len(np.unique(y)), seed)
                if labels is not None:
                    ami.add(method, name, adjusted_mutual_info_score(y[order], labels))
                    ari.add(method, name, adjusted_rand_score(y[order], labels))
    return [ami, ari]


def accuracy(truth: Any, labels: Any) -> float:
    """Share of points in the best one-to-one matching of clusters and classes; -1 is an error."""
    counts = np.zeros((truth.max() + 1, max(labels.max() + 1, 1)))
    np.add.at(counts, (truth[labels >= 0], labels[labels >= 0]), 1)
    return float(counts[linear_sum_assignment(-counts)].sum() / len(truth))


def indices(X: Any, y: Any, labels: Any, points: Any) -> tuple[float, float, float]:
    """Accuracy, silhouette and Davies-Bouldin index over some of the points."""
    told = points & (labels >= 0)
    several = len(np.unique(labels[told])) > 1
    return (
        accuracy(y[points], labels[points]),
        float(silhouette_score(X[told], labels[told])) if several else np.nan,
        float(davies_bouldin_score(X[told], labels[told])) if several else np.nan,
    )


def three_way_table(sets: list[str], seeds: int) -> list[Table]:
    """Scores of three-way mean shift on all points and on core points, beside the peers."""
    names = ("ACC", "silhouette", "DBI", "core share")
    tables = []
    for name in sets:
        X, y = read(name)
        X = X if name in ONE_UNIT else standard(X)
        table = Table(f"three-way-{name}: {len(X)} x {X.shape[1]}", names)
        for seed in range(seeds):
            order = np.random.default_rng(seed).permutation(len(X))
            points, truth = X[order], y[order]
            everywhere = np.ones(len(X), dtype=bool)
            model = ThreeWayMeanShift().fit(points)
            scored = [
                ("three-way, all points", model.labels_, everywhere),
                ("three-way, core only", model.labels_, model.core_),
            ]
            for method, run in PEERS.items():
                labels = run(points, len(np.unique(y)), seed)
                if labels is not None:
                    scored.append((method, labels, everywhere))
            for method, labels, kept in scored:
                for column, figure in zip(
                    names, indices(points, truth, labels, kept), strict=False
                ):
                    table.add(method, column, figure)
            table.add("three-way, core only", "core share", float(model.core_.mean()))
        tables.append(table)
    return tables


def main() -> None:
    parser = argparse.ArgumentParser(description="Tables of the papers behind the estimators.")
    parser.add_argument("--quick", action="store_true", help="small sets, three seeds")
    parser.add_argument("--seeds", type=int, help="repetitions of every figure")
    parser.add_argument("--out", type=Path, help="folder for CSV files and pictures")
    parser.add_argument("--only", choices=["comet", "rate", "rcc", "three-way"], help="one table")
    given = parser.parse_args()
    seeds = given.seeds or (3 if given.quick else 15)
    noise_sets = ["newthyroid", "wisconsin", "wine", "dermatology", "lung_discrete"]
    rcc_sets = ["digits", "mice_protein", "wine", "dermatology", "newthyroid"]
    shift_sets = ["r15", "iris", "wine", "newthyroid", "wisconsin"]
    if not given.quick:
        noise_sets += ["orlraws10p", "brain", "wdbc", "iris"]
        rcc_sets[1:1] = ["pendigits"]
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore", category=UserWarning, module="sklearn")
    started = time.monotonic()
    if given.only in (None, "comet"):
        for table in comet_table(noise_sets, seeds, [NOISE]):
            table.show(given.out)
            signed_ranks(table, "COMET")
        if not given.quick:
            for table in comet_table(["brain"], seeds, [0.0, 0.05, 0.15, 0.2]):
                table.show(given.out)
    if given.only in (None, "rate"):
        rate_table(seeds, given.quick).show(given.out)
    if given.only in (None, "rcc"):
        for table in rcc_table(rcc_sets, 1 if given.quick else seeds):
            table.show(given.out)
    if given.only in (None, "three-way"):
        for table in three_way_table(shift_sets, seeds):
            table.show(given.out)
    print(f"\n{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
