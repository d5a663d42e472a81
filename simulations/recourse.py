"""How much one update changes, and what it costs, from a hundred centers to ten thousand.

    python simulations/recourse.py [--quick] [--plot FOLDER]

Three sequences keep k centers in d = 32 features: *random* (a random center goes, a new one
comes), *sorted* (the least along one feature goes, a greater one comes) and *drifting* (a random
center takes a step). Every run is long enough for the whole tree to be looked at once.

Two kinds of recourse. Cut records of other centers created or removed between rebuilds: zero by
construction, counted here from the records. And the share of probes (points of the window) whose
answer changes although neither the old nor the new answer is the updated center, rebuilds included,
times k; the aim is a mean of at most 1. Beside price and fidelity stand those of a fresh tree over
the centers and the window of the end.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from streamclust.tree import ThresholdTree

D = 32
PER_CENTER = 10  # window points
LEAST_WINDOW = 1000
MOST_PROBES = 5000
CLOSELY_UP_TO = 300  # with more centers answers are compared at rebuilds alone ...
SELDOM = 100  # ... and cut records, and the window renewed, once in so many updates
KINDS = ("random", "sorted", "drifting")


def start(k, measure, seed):
    """A tree over k clusters and a window of points around their centers."""
    rng = np.random.default_rng([seed, k])
    centers = rng.uniform(-10, 10, size=(k, D))
    own = rng.integers(0, k, size=max(LEAST_WINDOW, PER_CENTER * k))
    points = centers[own] + rng.normal(size=(own.size, D))
    tree = ThresholdTree(D, measure=measure, seed=seed)
    tree.set_window(points, own)
    tree.build(dict(enumerate(centers)))
    return tree, points, own, rng


def follow(tree, points, own, gone, id, rng):
    """Let the points of a center that is `gone` or moved be drawn anew, around another."""
    rows = np.flatnonzero(own == gone)
    points[rows] = tree.center(id) + rng.normal(size=(rows.size, D))
    own[rows] = id


def updates(tree, kind, n, rng):
    """`n` updates as (id, function that makes it)."""
    k = len(tree.ids)
    live = list(tree.ids)
    order = sorted(live, key=lambda id: tree.center(id)[0])
    for step in range(n):
        if kind == "drifting":
            id = live[int(rng.integers(k))]
            new = tree.center(id) + rng.normal(size=D)
            yield id, lambda id=id, new=new: tree.move(id, new)
            continue
        if step % 2 == 0:
            j = 0 if kind == "sorted" else int(rng.integers(len(order)))
            id = order.pop(j)
            yield id, lambda id=id: tree.delete(id)
        else:
            id, new = k + step, rng.uniform(-10, 10, size=D)
            if kind == "sorted":
                new[0] = 10 + 20 * step / k
            order.append(id)
            yield id, lambda id=id, new=new: tree.insert(id, new)


def foreign(before, after, own, updated):
    """Which answers changed although neither is an updated center's, nor the point."""
    spared = ~np.isin([before, after, own], updated).any(axis=0)
    return (before != after) & spared


def run(k, kind, measure, n, seed=0):
    """Times and recourse of `n` updates."""
    tree, points, own, rng = start(k, measure, seed)
    probes = slice(0, MOST_PROBES)  # centers are drawn at random: any points will do
    calm, looking, cut, changed, sizes, gone, updated = [], [0.0], 0, 0.0, 0, None, []
    before = tree.route_many(points[probes])
    for step, (id, update) in enumerate(updates(tree, kind, n, rng)):
        closely = k <= CLOSELY_UP_TO
        records = closely or step % SELDOM == 0
        cuts = tree.cuts if records else set()
        looks = tree.looks
        begin = time.process_time()
        recourse = update()
        spent = time.process_time() - begin
        (looking if tree.looks > looks else calm).append(spent)
        sizes += recourse.rebuilt
        updated.append(id)
        if records and not recourse.rebuilt:
            cut += max(len(tree.cuts ^ cuts) - recourse.own, 0)
        compared = closely or recourse.rebuilt
        if compared:
            after = tree.route_many(points[probes])
            changed += foreign(before, after, own[probes], updated).mean()
        if id not in tree.ids:
            gone = id
        else:
            follow(tree, points, own, id if kind == "drifting" else gone, id, rng)
        if closely or step % SELDOM == 0:
            tree.set_window(points, own)
        if compared:
            before, updated = tree.route_many(points[probes]), []
    tree._check()
    fresh = ThresholdTree(D, measure=measure, seed=seed)
    fresh.set_window(points, own)
    fresh.build({id: tree.center(id) for id in tree.ids})
    total = sum(calm) + sum(looking)
    return {
        "ms": 1e3 * total / n,
        "calm_ms": 1e3 * np.mean(calm),
        "looking_share": sum(looking) / total,
        "rebuilt": sizes / n,
        "foreign": cut,
        "price": [t.cost_ratio(points[probes]) for t in (tree, fresh)],
        "fidelity": [(t.route_many(points[probes]) == own[probes]).mean() for t in (tree, fresh)],
        "k_times_share": k * changed / n,
    }


def told(figures):
    return " / ".join(f"{figure:.2f}" for figure in figures)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 1,000 centers")
    parser.add_argument("--plot", type=Path, help="folder for the picture (needs matplotlib)")
    options = parser.parse_args()
    ks = [100, 300, 1000] if options.quick else [100, 300, 1000, 3000, 10_000]
    run(100, "random", "gap", 50)  # compiles the kernels
    print(
        f"d = {D}; per update: CPU ms (where no subtree is looked at), share of time in looks and"
    )
    print("rebuilds, centers rebuilt; foreign cuts between rebuilds; k x share of foreign answers;")
    print("price and fidelity of the tree / of a fresh one")
    results = {}
    for measure in ("gap", "paper"):
        for kind in KINDS:
            for k in ks:
                # A subtree is looked at when a quarter of its centers were updated; but about
                # half of the steps of drifting centers change no cut and are no update.
                n = max(400, (k // 2 if kind == "drifting" else k // 4) + 1)
                r = results[measure, kind, k] = run(k, kind, measure, n)
                print(
                    f"{measure:6} {kind:9} k={k:<6} {r['ms']:8.3f} ms ({r['calm_ms']:.3f})  "
                    f"looks {r['looking_share']:4.0%}  rebuilt {r['rebuilt']:4.1f}  "
                    f"foreign cuts {r['foreign']}  answers {r['k_times_share']:.2f}  "
                    f"price {told(r['price'])}  fidelity {told(r['fidelity'])}",
                    flush=True,
                )
            growth = results[measure, kind, ks[-1]]["ms"] / results[measure, kind, ks[0]]["ms"]
            print(f"{measure:6} {kind:9} grows {growth:.1f} times from k={ks[0]} to {ks[-1]}")
    if options.plot:
        options.plot.mkdir(parents=True, exist_ok=True)
        plot(options.plot, ks, results)


def plot(folder, ks, results):
    """Draw time and foreign answers against k."""
    import matplotlib.pyplot as plt  # noqa: PLC0415  (only drawing needs it)

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5))
    for n, kind in enumerate(KINDS):
        for measure, style in (("gap", "o-"), ("paper", "s:")):
            rows = [results[measure, kind, k] for k in ks]
            label = f"{kind}, {measure}"
            left.plot(ks, [r["ms"] for r in rows], style, color=f"C{n}", label=label)
            right.plot(ks, [r["k_times_share"] for r in rows], style, color=f"C{n}")
    first, log = results["gap", "random", ks[0]]["ms"], np.log(ks) ** 3
    left.plot(ks, first * log / log[0], "k--", label="growth of log^3 k")
    left.set(xscale="log", yscale="log", xlabel="centers k", ylabel="CPU ms per update")
    left.set_title("time")
    right.axhline(1, color="k", linewidth=0.8)
    right.set(xscale="log", yscale="log", xlabel="centers k", ylabel="k x share of answers")
    right.set_title("foreign answers per update")
    figure.legend(loc="lower center", ncols=4, fontsize=8)
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    figure.savefig(folder / "recourse.png", dpi=120)


if __name__ == "__main__":
    main()
