"""What the engine tells of a changing world, beside the script of what truly happened.

    python simulations/replay_drift.py [--quick] [--seeds N] [--output FOLDER]

Gaussian groups in eight features under 5 % noise that drift, jump, come and go, split and merge at
known events. A change that the engine tells belongs to the script's if it is of its kind, names a
cluster of its group (the group that most of the cluster's events have), and comes between the begin
of the change and `PATIENCE` events after its end. The rest is unscripted; what comes before
`SETTLED`, while the first clusters are found, is left out. Every cluster that returns has a new id.

The second table is recourse: how many centers are inserted, deleted or moved in the tree per event.
Bhattacharya, Costa and Farokhnejad (2025, arXiv 2411.03121) keep an O(1)-approximate k-median under
any insertions and deletions with a recourse of polylogarithmic order, log(n)^O(1) centers per
update. The engine promises no such bound: its recourse is measured here, beside the cost of its
centers over the cost of the true ones (of the last `RECENT` events, noise left out). A center has
moved when the tree is told so; the online median takes smaller steps between.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simulations.streams import DRIFTS, drift, drift10
from simulations.tables import means, pyplot, show, write
from streamclust import StreamClusterer
from streamclust.evaluate import prequential
from streamclust.events import Change, ClusterBorn, ClusterDied, ClusterMoved, ClusterSplit
from streamclust.events import ClustersMerged as Merged

PATIENCE = 1000  # events after the end of a change within which it must be told
SETTLED = 1000
EVERY = 500
RECENT = 200
KINDS = {ClusterBorn: "birth", ClusterDied: "death", ClusterSplit: "split", Merged: "merge"}


@dataclass(frozen=True)
class Told:
    """A change of clusters that the engine told."""

    kind: str
    tick: int
    clusters: tuple[int, ...]


class Watched:
    """A model whose changes are kept and whose changes of centers are counted."""

    def __init__(self, model, means):
        self.model, self.means = model, means
        self.predict_one = model.predict_one
        self.told, self.series, self.recent = [], [], []
        self.known, self.changed = set(model.centers), False
        self.inserted = self.deleted = self.moved = 0
        model.on(Change, self.hear)

    @property
    def clusters(self):
        """The living clusters."""
        return self.model.clusters

    def hear(self, change):
        """Keep a change."""
        self.changed = True
        self.moved += isinstance(change, ClusterMoved)
        kind = KINDS.get(type(change))
        if kind:
            self.told.append(Told(kind, change.tick, _clusters(change)))

    def learn_one(self, x):
        """Learn an event and count the centers that it changed."""
        self.changed = False
        self.model.learn_one(x)
        self.recent.append(x)
        if self.changed:
            now = set(self.model.centers)
            self.inserted += len(now - self.known)
            self.deleted += len(self.known - now)
            self.known = now
        if self.model.tick_count % EVERY == 0:
            changes = self.inserted + self.deleted + self.moved
            self.series.append((self.model.tick_count, changes, self.cost_ratio()))

    def cost_ratio(self):
        """Distance to the nearest center over that to the own group's, over the last events."""
        n = self.model.tick_count
        centers = np.array([list(c.values()) for c in self.model.centers.values()])
        self.recent = self.recent[-RECENT:]
        points = np.array([list(x.values()) for x in self.recent])
        means = self.means[max(0, n - RECENT) : n]
        clean = ~np.isnan(means[:, 0])
        if not len(centers) or not clean.any():
            return math.nan
        points, means = points[clean], means[clean]
        nearest = np.linalg.norm(points[:, None] - centers, axis=2).min(axis=1)
        return float(nearest.sum() / np.linalg.norm(points - means, axis=1).sum())


def _clusters(change):
    if isinstance(change, ClusterSplit):
        return (change.parent, *change.children)
    if isinstance(change, Merged):
        return (*change.parents, change.child)
    return (change.cluster,)


def groups_of(answers, labels):
    """The group that most events of every cluster have."""
    votes = {}
    for answer, label in zip(answers, labels, strict=True):
        if answer != -1 and label not in (None, -1):
            votes.setdefault(answer, Counter())[label] += 1
    return {cluster: found.most_common(1)[0][0] for cluster, found in votes.items()}


def match(script, told, groups):
    """Every scripted change with what told it first, or None, and all that was told beside."""
    left = [change for change in told if change.tick > SETTLED]
    pairs = []
    for change in script:
        fitting = (
            one
            for one in left
            if one.kind == change.kind
            and change.begins <= one.tick <= change.ends + PATIENCE
            and {groups.get(c) for c in one.clusters} & {*change.groups}
        )
        found = next(fitting, None)
        pairs.append((change, found))
        if found:
            left.remove(found)
    return pairs, left


@dataclass(frozen=True)
class Run:
    """One replay: the stream, what was found, and how what was told fits the script."""

    stream: object
    found: object
    watched: Watched
    pairs: list
    beside: list


def replay(stream, assign="tree", **options):
    """Run a model over a stream and match what it tells."""
    watched = Watched(StreamClusterer(assign=assign, **options), stream.means)
    found = prequential(watched, stream.points, stream.labels, every=EVERY)
    groups = groups_of(found.answers, stream.labels)
    return Run(stream, found, watched, *match(stream.script, watched.told, groups))


def figures(run, assign, seed):
    """The rows of one run: its scores, and its recourse."""
    n, w = len(run.stream.points), run.watched
    whole = {"stream": run.stream.name, "assign": assign, "seed": seed}
    scores = whole | {
        "ARI": run.found.scores.ari,
        "AMI": run.found.scores.ami,
        "noise F1": run.found.scores.noise_f1,
        "living": run.found.series[-1].living,
        "scripted": len(run.pairs),
        "told": sum(one is not None for _, one in run.pairs),
        "unscripted": len(run.beside),
    }
    changes = w.inserted + w.deleted + w.moved
    recourse = whole | {
        "inserted": w.inserted,
        "deleted": w.deleted,
        "moved": w.moved,
        "per 1,000 events": 1000 * changes / n,
        "in the last half": 1000 * (changes - w.series[len(w.series) // 2 - 1][1]) / (n / 2),
        "theory, log2(n)": 1000 * math.log2(n),
        "cost ratio": float(np.nanmean([ratio for _, _, ratio in w.series])),
    }
    return scores, recourse


def story(run, assign, seed):
    """The rows of the script beside what was told."""
    rows = [
        {
            "scripted": change.kind,
            "groups": " ".join(map(str, change.groups)),
            "from": change.begins,
            "to": change.ends,
            "told at": one.tick if one else math.nan,
            "after": one.tick - change.begins if one else math.nan,
            "clusters": " ".join(map(str, one.clusters)) if one else "never told",
        }
        for change, one in run.pairs
    ]
    rows += [
        {
            "scripted": f"({one.kind})",
            "groups": "unscripted",
            "from": math.nan,
            "to": math.nan,
            "told at": one.tick,
            "after": math.nan,
            "clusters": " ".join(map(str, one.clusters)),
        }
        for one in run.beside
    ]
    whole = {"stream": run.stream.name, "assign": assign, "seed": seed}
    return [whole | row for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="one seed, 8,000 events, trees only")
    parser.add_argument("--seeds", type=int, help="how many (3; quick: 1)")
    parser.add_argument("--output", type=Path, default=Path("simulated"), help="folder")
    options = parser.parse_args()
    n, seeds = (8000, options.seeds or 1) if options.quick else (20_000, options.seeds or 3)
    scores, recourse, told, shown = [], [], [], {}
    for seed in range(seeds):
        streams = [drift10(n, seed), *(drift(name, n, seed=seed) for name in DRIFTS)]
        for stream in streams:
            for assign in ("tree",) if options.quick else ("tree", "nearest"):
                run = replay(stream, assign)
                rows = figures(run, assign, seed)
                scores.append(rows[0])
                recourse.append(rows[1])
                told += story(run, assign, seed)
                if (seed, assign) == (0, "tree"):
                    shown[stream.name] = run
    first = [row for row in told if row["seed"] == 0 and row["assign"] == "tree"]
    show("the script beside what was told, trees, seed 0", [_without(r, "assign") for r in first])
    show(f"{n:,} events, {seeds} seeds, prequential on the last half", means(scores, KEYS))
    show("changes of centers", means(recourse, KEYS))
    for name, rows in (("scores", scores), ("recourse", recourse), ("told", told)):
        write(options.output / f"replay_drift_{name}.csv", rows)
    draw(options.output, shown)


KEYS = ("stream", "assign")


def _without(row, name):
    return {key: value for key, value in row.items() if key not in (name, "seed")}


def draw(folder, runs):
    plt = pyplot()
    if plt is None:
        return
    figure, axes = plt.subplots(len(runs), 1, figsize=(10, 1.7 * len(runs)), sharex=True)
    for ax, (name, run) in zip(axes, runs.items(), strict=True):
        _draw_story(ax, name, run)
    named = {}
    for ax in axes:
        named |= {
            label: handle for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
        }
    figure.legend(named.values(), named, fontsize=9, ncols=len(named), loc="upper center")
    axes[-1].set_xlabel("event")
    figure.tight_layout(rect=(0, 0, 1, 0.975))
    figure.savefig(folder / "replay_drift.png", dpi=110)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5))
    for name, run in runs.items():
        ticks, changes, ratios = np.array(run.watched.series).T
        left.plot(ticks, changes, label=name)
        right.plot(ticks, ratios)
    left.plot(ticks, ticks, "k:", label="one center per event")
    left.plot(ticks, ticks * np.log2(ticks), "k--", label="log2(n) centers per event")
    left.set(xlabel="event", ylabel="centers inserted, deleted or moved so far", yscale="log")
    right.set(xlabel="event", ylabel="cost over that of the true centers", ylim=(0.9, None))
    for ax in (left, right):
        ax.grid(alpha=0.3)
    figure.legend(fontsize=9, ncols=5, loc="upper center")
    figure.tight_layout(rect=(0, 0, 1, 0.89))
    figure.savefig(folder / "replay_drift_recourse.png", dpi=130)
    print(f"drawn in {folder}")


def _draw_story(ax, name, run):
    """ARI over time; what is scripted as bands, what was told as marks that step down and up."""
    ticks = [c.event for c in run.found.series]
    ax.plot(ticks, [c.scores.ari for c in run.found.series], "k-", lw=1, label="ARI")
    for change, one in run.pairs:
        color, label = ("tab:green", "script, told") if one else ("tab:red", "script, never told")
        least = ticks[-1] / 150  # what takes no time is a line
        ax.axvspan(
            change.begins,
            max(change.ends, change.begins + least),
            color=color,
            alpha=0.3,
            label=label,
        )
    scripted = {id(one) for _, one in run.pairs if one}
    told = [one for _, one in run.pairs if one] + run.beside
    for step, one in enumerate(sorted(told, key=lambda one: one.tick)):
        known = id(one) in scripted
        color, label = ("tab:green", "told") if known else ("tab:orange", "told, unscripted")
        height = 0.7 - 0.2 * (step % 4)
        ax.plot(one.tick, height, "v" if known else "X", color=color, label=label)
        ax.annotate(
            one.kind,
            (one.tick, height),
            (6, 0),
            textcoords="offset points",
            fontsize=8,
            va="center",
        )
    ax.set(ylim=(0, 1.05), ylabel=name.replace(" and ", "\nand "))
    ax.grid(alpha=0.3)


if __name__ == "__main__":
    main()
