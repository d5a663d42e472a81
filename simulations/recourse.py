"""How much one update changes, and what it costs, from a hundred centers to ten thousand.

    python simulations/recourse.py [--quick] [--plot FOLDER]

Three sequences keep k centers in d = 32 features: *random* (a random center goes, a new one
comes), *sorted* (the least along one feature goes, a greater one comes) and *drifting* (a random
center takes a step). Two kinds of recourse: cut records of other centers created or removed between
rebuilds (zero by construction, counted here from the records), and the share of window points whose
answer changes although neither the old nor the new answer is the updated center (rebuilds
included; the aim is a mean of at most 1/k). Time is CPU time per insert, delete or move.
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
COUNTED_UP_TO = 1000  # comparing all cut records and all answers is dear with more centers


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
    """The window after an update: the points of a center that is `gone` or moved are drawn anew."""
    rows = np.flatnonzero(own == gone)
    points[rows] = tree.center(id) + rng.normal(size=(rows.size, D))
    own[rows] = id
    tree.set_window(points, own)


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


def run(k, kind, measure, n, seed=0):
    """Times and recourse of `n` updates."""
    tree, points, own, rng = start(k, measure, seed)
    counted = k <= COUNTED_UP_TO
    calm, rebuilding, foreign, shares, sizes = [], [], 0, [], 0
    gone = None
    for id, update in updates(tree, kind, n, rng):
        if counted:
            cuts, answers = tree.cuts, tree.route_many(points)
        begin = time.process_time()
        recourse = update()
        spent = time.process_time() - begin
        (rebuilding if recourse.rebuilt else calm).append(spent)
        sizes += recourse.rebuilt
        if counted:
            now, after = tree.cuts, tree.route_many(points)
            if not recourse.rebuilt:
                foreign += max(len(now ^ cuts) - recourse.own, 0)
            moved = (after != answers) & (after != id) & (answers != id)
            shares.append(moved.mean())
        if id not in tree.ids:
            gone = id
        else:
            follow(tree, points, own, id if kind == "drifting" else gone, id, rng)
    tree._check()
    total = sum(calm) + sum(rebuilding)
    return {
        "ms": 1e3 * total / n,
        "calm_ms": 1e3 * np.mean(calm),
        "rebuild_share": sum(rebuilding) / total,
        "rebuilt": sizes / n,
        "foreign": foreign,
        "price": tree.cost_ratio(points),
        "k_times_share": k * np.mean(shares) if counted else np.nan,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 1,000 centers")
    parser.add_argument("--plot", type=Path, help="folder for the picture (needs matplotlib)")
    options = parser.parse_args()
    ks = [100, 300, 1000] if options.quick else [100, 300, 1000, 3000, 10_000]
    run(100, "random", "gap", 50)  # compiles the kernels
    print(f"d = {D}; per update: CPU ms (without rebuilds), share of time in rebuilds, centers")
    print(
        "rebuilt; foreign cuts between rebuilds; k x share of foreign answers; cost of the answers"
    )
    results = {}
    for measure in ("gap", "paper"):
        for kind in ("random", "sorted", "drifting"):
            for k in ks:
                # Half of k updates pass at least one rebuild of the whole tree.
                r = results[measure, kind, k] = run(k, kind, measure, max(200, k // 2))
                print(
                    f"{measure:6} {kind:9} k={k:<6} {r['ms']:8.3f} ms ({r['calm_ms']:.3f})  "
                    f"rebuilds {r['rebuild_share']:4.0%}  rebuilt {r['rebuilt']:6.1f}  "
                    f"foreign cuts {r['foreign']}  answers {r['k_times_share']:.2f}  "
                    f"price {r['price']:.2f}",
                    flush=True,
                )
            growth = results[measure, kind, ks[-1]]["ms"] / results[measure, kind, ks[0]]["ms"]
            print(f"{measure:6} {kind:9} grows {growth:.1f} times from k={ks[0]} to {ks[-1]}")
    if options.plot:
        options.plot.mkdir(parents=True, exist_ok=True)
        plot(options.plot, ks, results)


def plot(folder, ks, results):
    import matplotlib.pyplot as plt  # noqa: PLC0415  (only drawing needs it)

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for measure, style in (("gap", "-"), ("paper", ":")):
        for n, kind in enumerate(("random", "sorted", "drifting")):
            rows = [results[measure, kind, k] for k in ks]
            label = f"{kind}, {measure}"
            left.plot(ks, [r["ms"] for r in rows], f"o{style}", color=f"C{n}", label=label)
            right.plot(ks, [r["k_times_share"] for r in rows], f"o{style}", color=f"C{n}")
    log = np.log(ks) ** 3
    first = results["gap", "random", ks[0]]["ms"]
    left.plot(ks, first * log / log[0], "k--", label="log^3 k")
    left.set(xscale="log", yscale="log", xlabel="centers k", ylabel="CPU ms per update")
    left.legend(fontsize=8)
    right.axhline(1, color="k", linestyle="--")
    right.set(xscale="log", xlabel="centers k", ylabel="k x share of foreign answers per update")
    figure.tight_layout()
    figure.savefig(folder / "recourse.png", dpi=120)


if __name__ == "__main__":
    main()
