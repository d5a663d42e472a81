"""What learning by summaries gives and costs: by partitions, 1 to 64, and by the size of a batch.

    python simulations/scale_out.py [--quick] [--seeds N] [--output FOLDER]

A batch is cut into partitions by chance; each is summarised, the summaries go through bytes as they
would over a network, are merged and applied. Everything runs in this one process: *spread* is what
the slowest partition took, *driver* what merging and applying took, and their sum is what a batch
would take on as many cores as there are partitions. Times are of the process's CPU, per batch.

Quality: prequential ARI on the last half, answers being those of the model before the batch; *other
answers* counts those that one partition would have given otherwise. *one by one* is `learn_one`.
"""

from __future__ import annotations

import argparse
from functools import reduce
from pathlib import Path
from statistics import fmean
from time import process_time

import numpy as np

from simulations.streams import blobs, drift10
from simulations.tables import means, pyplot, show, write
from streamclust import StreamClusterer
from streamclust.evaluate import prequential, score
from streamclust.summary import Summary, summarise

STREAMS = {"blobs10": lambda n, seed: blobs(n, seed=seed), "drift10": drift10}
PARTITIONS = (1, 2, 4, 8, 16, 32, 64)
SIZES = (200, 500, 1000, 2000, 5000)
LOADS = (1_000, 10_000, 100_000, 1_000_000)
BATCH = 1000


def learn(model, points, ids, partitions, rng):
    """Learn a batch in so many parts; return what it cost."""
    begin = process_time()
    frozen = model.freeze()
    freezing = process_time() - begin
    where = rng.integers(0, partitions, len(points))
    spread, parts = [], []
    for p in range(partitions):
        begin = process_time()
        rows = np.flatnonzero(where == p)
        parts.append(summarise(points[rows], frozen, ids=ids[rows]).to_bytes())
        spread.append(process_time() - begin)
    begin = process_time()
    model.apply(reduce(Summary.merge, map(Summary.from_bytes, parts)))
    return {
        "spread ms": 1e3 * max(spread),
        "all parts ms": 1e3 * sum(spread),
        "driver ms": 1e3 * (process_time() - begin + freezing),
        "summary kB": sum(map(len, parts)) / len(parts) / 1e3,
        "model kB": len(frozen.to_bytes()) / 1e3,
    }


def replay(points, size, partitions, seed):
    """Answers of a run over a stream, and what a batch cost on the mean."""
    model, rng = StreamClusterer(), np.random.default_rng(seed)
    answers, costs = np.full(len(points), -1), []
    for at in range(0, len(points), size):
        block = slice(at, at + size)
        answers[block] = model.predict_many(points[block])
        ids = np.arange(at, at + len(points[block]))
        costs.append(learn(model, points[block], ids, partitions, rng))
    return answers, {name: fmean(c[name] for c in costs[1:]) for name in costs[0]}


def ari(answers, labels):
    """Adjusted Rand index of the last half."""
    half = len(labels) // 2
    return score(list(labels[half:]), answers[half:].tolist()).ari


def by_partitions(name, n, seed, partitions=PARTITIONS):
    """Rows of quality and cost by the number of partitions."""
    stream = STREAMS[name](n, seed)
    alone = None
    for parts in partitions:
        answers, costs = replay(stream.points, BATCH, parts, seed)
        alone = answers if alone is None else alone
        yield {
            "stream": name,
            "partitions": parts,
            "seed": seed,
            "ARI": ari(answers, stream.labels),
            "other answers": int((answers != alone).sum()),
            **costs,
        }


def by_size(name, n, seed, sizes=SIZES):
    """Rows of quality by the events of a batch, in eight partitions; size 1 is one by one."""
    stream = STREAMS[name](n, seed)
    told = prequential(StreamClusterer(), stream.points, stream.labels)
    yield {"stream": name, "batch": "one by one", "seed": seed, "ARI": told.scores.ari}
    for size in sizes:
        answers, _ = replay(stream.points, size, 8, seed)
        found = ari(answers, stream.labels)
        yield {"stream": name, "batch": str(size), "seed": seed, "ARI": found}


def by_load(seed, loads=LOADS, partitions=8):
    """Rows of cost by the events of a batch, on a model that is warm."""
    for n in loads:
        stream = blobs(n, seed=seed)
        model, rng = StreamClusterer(), np.random.default_rng(seed)
        model.learn_many(blobs(5000, seed=seed).points)
        learn(model, stream.points[:1000], np.arange(1000), partitions, rng)
        costs = learn(model, stream.points, np.arange(n), partitions, rng)
        each = {"us per event": 1e3 * costs["all parts ms"] / n}
        yield {"batch": n, "partitions": partitions, "seed": seed, **costs, **each}


def draw(path, parts, sizes, loads):
    """Draw quality and cost."""
    plt = pyplot()
    if plt is None:
        return
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
    for name, colour in zip(STREAMS, ("#0072B2", "#D55E00"), strict=True):
        mine = [row for row in parts if row["stream"] == name]
        left.plot(
            [row["partitions"] for row in mine], [row["ARI"] for row in mine], "o-", c=colour,
            label=f"{name}, batches of {BATCH:,}",
        )  # fmt: skip
        alone = next(r["ARI"] for r in sizes if r["stream"] == name and r["batch"] == "one by one")
        left.axhline(alone, c=colour, ls=":", label=f"{name}, one by one")
        mine = [row for row in sizes if row["stream"] == name and row["batch"] != "one by one"]
        middle.plot(
            [int(row["batch"]) for row in mine], [row["ARI"] for row in mine], "o-", c=colour,
            label=f"{name}, 8 partitions",
        )  # fmt: skip
        middle.axhline(alone, c=colour, ls=":", label=f"{name}, one by one")
    left.set(xscale="log", xlabel="partitions", ylabel="ARI", ylim=(0.85, 1), title="Quality")
    middle.set(xscale="log", xlabel="events in a batch", ylabel="ARI", ylim=(0.85, 1))
    middle.set_title("Quality by the size of a batch")
    left.set_xticks(PARTITIONS, [str(p) for p in PARTITIONS])
    ticks = [int(row["batch"]) for row in mine]
    middle.set_xticks(ticks, [f"{t:,}" for t in ticks])
    for axes in (left, middle):
        axes.minorticks_off()
        axes.legend(fontsize=8, loc="lower left")
    n = [row["batch"] for row in loads]
    for name, colour, told in (
        ("spread ms", "#009E73", "the slowest of 8 partitions"),
        ("driver ms", "#CC79A7", "driver: freeze, merge, apply"),
    ):
        right.plot(n, [row[name] for row in loads], "o-", c=colour, label=told)
    right.set(xscale="log", yscale="log", xlabel="events in a batch", ylabel="CPU ms per batch")
    right.set_title("Cost")
    right.legend(fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"written to {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="one seed, 4,000 events, few counts")
    parser.add_argument("--seeds", type=int, help="how many (3; quick: 1)")
    parser.add_argument("--output", type=Path, default=Path("simulated"), help="folder")
    given = parser.parse_args()
    seeds = range(given.seeds or (1 if given.quick else 3))
    n = 4_000 if given.quick else 20_000
    partitions = PARTITIONS[::3] if given.quick else PARTITIONS
    loads = LOADS[:3] if given.quick else LOADS
    parts = [r for name in STREAMS for s in seeds for r in by_partitions(name, n, s, partitions)]
    some = [size for size in SIZES if size <= n // 4]
    sizes = [r for name in STREAMS for s in seeds for r in by_size(name, n, s, some)]
    costs = [r for s in seeds for r in by_load(s, loads)]
    told = (
        ("partitions", parts, ("stream", "partitions"), f"By partitions, batches of {BATCH:,}"),
        ("sizes", sizes, ("stream", "batch"), "By the size of a batch, 8 partitions"),
        ("loads", costs, ("batch", "partitions"), "Cost by the size of a batch"),
    )
    for name, rows, keys, title in told:
        show(title, means(rows, keys))
        write(given.output / f"scale_out_{name}.csv", rows)
    means_of = [means(rows, keys) for _, rows, keys, _ in told]
    draw(given.output / "scale_out.png", *means_of)


if __name__ == "__main__":
    main()
