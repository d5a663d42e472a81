"""Speed, latency, memory, cold start and growth, beside river and scikit-learn in the same run.

    python simulations/benchmark.py [--quick] [--events N] [--output FILE] [--plot FOLDER]

Rates are events per second of CPU time of this thread. Every figure is a median over slices, and
the slices of the project and of its peer take turns, so that what else the machine does falls on
both: read the ratios, not the rates. Peers are told the true number of clusters; the project is
not. Data are Gaussian groups: *blobs10* has k = 10, d = 8 and 5 % uniform noise, *blobs50* k = 50,
d = 32 and none. Steady rates leave out slices with a refit; the whole stream has all of them.

Latency is that of every single `learn_one` of a stream that comes as fast as it is learned, as the
clock on the wall shows it and as CPU time of this thread, which others on the machine lengthen too.
Event for event all runs do the same work, so the least of their CPU times is what the work takes.
After each event a control does a fixed piece of plain Python: what it takes at the worst is the
machine, not the work; late events during which the system gave the processor to somebody else are
counted. A stream that never pauses has to wait for refits in the background; that time is in the
wall's figures, is told apart, and the target leaves it out.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from river.cluster import KMeans
from sklearn.cluster import MiniBatchKMeans
from threadpoolctl import threadpool_limits

from streamclust import StreamClusterer
from streamclust.kernels import stream as kernel

ROOT = Path(__file__).parents[1]
STREAMS = {"blobs10": (10, 8, 0.05), "blobs50": (50, 32, 0.0)}
BLOCK, WARM, SLICES, RUNS = 256, 2000, 7, 3
TARGETS = {  # ratio to the peer, or an upper bound with its unit
    "blobs10 predict + learn, to river KMeans": (">=", 10),
    "blobs50 predict + learn, to river KMeans": (">=", 40),
    "blobs10 whole stream, to river KMeans": (">=", 2.5),
    "blobs10 predict alone, to river KMeans": (">=", 20),
    "blobs10 learn_many, to MiniBatchKMeans": (">=", 4),
    "blobs10 predict_many, to MiniBatchKMeans": (">=", 4),
    "refit share of predict + learn, %": ("<=", 20),  # over a million events
    "blobs50 latency p99.9, background, CPU ms": ("<=", 1),
    "blobs50 latency max, background, CPU ms": ("<=", 20),
    "blobs50 latency p99.9, background, wall ms": ("<=", 1),  # less waiting
    "blobs50 latency max, background, wall ms": ("<=", 20),
    "import, s": ("<=", 1.5),
    "first event, empty cache, s": ("<=", 20),
    "first event, warm cache, s": ("<=", 1.5),
    "memory growth, MB": ("<=", 5),
}
COLD = """
import json, time
began = time.process_time()
from streamclust import StreamClusterer
imported = time.process_time()
model = StreamClusterer()
model.learn_one({"a": 1.0, "b": 2.0})
first = time.process_time()
for i in range(200):
    model.learn_one({"a": float(i % 2 * 9 + i % 7 / 7), "b": i % 5 / 5})
    model.predict_one({"a": 1.0, "b": 2.0})
print(json.dumps([imported - began, first - imported, time.process_time() - first]))
"""


def blobs(n, k, d, noise, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.uniform(-5, 5, (k, d))[rng.integers(0, k, n)] + rng.normal(size=(n, d))
    wild = rng.random(n) < noise
    points[wild] = rng.uniform(-8, 8, (int(wild.sum()), d))
    return points


def events(points):
    names = [f"f{j}" for j in range(points.shape[1])]
    return [dict(zip(names, row, strict=True)) for row in points.tolist()]


def seconds(work, *arguments):
    began = time.thread_time()
    work(*arguments)
    return time.thread_time() - began


def learn(model, part):
    for x in part:
        model.learn_one(x)


def predict(model, part):
    for x in part:
        model.predict_one(x)


def both(model, part):
    for x in part:
        model.predict_one(x)
        model.learn_one(x)


def rates(work, ours, peer, mine, theirs):
    """Median rates of both, slices in turns; ours without slices that a refit fell into."""
    found, refits = ([], []), ours.metrics()["refits"]
    for i in range(2 * SLICES):
        part = mine[i * len(mine) // (2 * SLICES) : (i + 1) * len(mine) // (2 * SLICES)]
        rate = len(part) / seconds(work, ours, part)
        if ours.metrics()["refits"] == refits:
            found[0].append(rate)
        refits = ours.metrics()["refits"]
        part = theirs[i * len(theirs) // (2 * SLICES) : (i + 1) * len(theirs) // (2 * SLICES)]
        found[1].append(len(part) / seconds(work, peer, part))
    return [statistics.median(told) for told in found]


def single(name, report):
    """Rates of single events, steady and over a whole stream."""
    k, d, noise = STREAMS[name]
    x = events(blobs(20_000, k, d, noise))
    learn(StreamClusterer(), x[:1500])  # compile and load
    few = 2800 if d < 20 else 700
    ours, peer = StreamClusterer(), KMeans(n_clusters=k, halflife=0.2)
    learn(ours, x[:WARM]), learn(peer, x[:WARM])
    for title, work in (("learn", learn), ("predict", predict), ("both", both)):
        report[f"{name} {title}"] = rates(work, ours, peer, x[WARM:16_000], x[WARM : WARM + few])
    whole = []
    for i in range(3):
        model, beside = StreamClusterer(seed=i), KMeans(n_clusters=k, halflife=0.2)
        began = time.process_time()
        both(model, x)
        spent = time.process_time() - began
        whole.append((len(x) / spent, few / seconds(both, beside, x[:few])))
    report[f"{name} whole stream"] = [statistics.median(told) for told in zip(*whole, strict=True)]


def bulk(name, report):
    """Rates of blocks."""
    k, d, noise = STREAMS[name]
    points = blobs(60_000, k, d, noise)
    ours, peer = StreamClusterer(), MiniBatchKMeans(n_clusters=k, n_init=1, random_state=0)
    ours.learn_many(points[:WARM])
    peer.partial_fit(points[:WARM])

    def blocks(call):
        def work(_, part):
            for at in range(0, len(part), BLOCK):
                call[_ is ours](part[at : at + BLOCK])

        return work

    work = blocks([peer.partial_fit, ours.learn_many])
    report[f"{name} learn_many"] = rates(work, ours, peer, points[WARM:], points[WARM:])
    work = blocks([peer.predict, ours.predict_many])
    report[f"{name} predict_many"] = rates(work, ours, peer, points[WARM:], points[WARM:])


def timed(work, *arguments):
    """Seconds on the wall and of this thread's CPU."""
    began, spent = time.perf_counter(), time.thread_time()
    work(*arguments)
    return time.perf_counter() - began, time.thread_time() - spent


def control():
    """About as much plain Python as an event takes."""
    total = 0
    for i in range(150):
        total += i
    return total


def preempted():
    """How often this thread lost the processor; 0 where the system does not tell of threads."""
    which = getattr(resource, "RUSAGE_THREAD", None)
    return 0 if which is None else resource.getrusage(which).ru_nivcsw


def latency(name, mode):
    """Percentiles of learn_one over fresh streams and of the control beside it, ms."""
    x = events(blobs(20_000, *STREAMS[name]))
    learn(StreamClusterer(refit_mode=mode), x[:3000])  # compile and load
    found, lost, waits = np.empty((RUNS, len(x), 5)), np.empty((RUNS, len(x)), dtype=bool), []
    for run in range(RUNS):
        model, waited = StreamClusterer(refit_mode=mode), 0.0
        beside = model._engine.beside
        for i, event in enumerate(x):
            before = preempted()
            wall, spent = timed(model.learn_one, event)
            lost[run, i] = preempted() > before
            found[run, i] = spent, wall, wall - (beside.waited - waited), *timed(control)[::-1]
            waited = beside.waited
        waits.append((1e3 * beside.waited, 1e3 * beside.longest_wait))
    rows = ("CPU", "wall", "wall less waiting", "control CPU", "control wall")
    rows = dict(zip(rows, found.reshape(-1, 5).T, strict=True))
    rows = {f"CPU, least of {RUNS}": found[:, :, 0].min(axis=0), **rows}
    late = {row: 1000 * float((told > 1e-3).mean()) for row, told in rows.items()}
    late["preempted"] = 1000 * float(((found[:, :, 2] > 1e-3) & lost).mean())
    cuts = {row: np.percentile(1e3 * told, [50, 99, 99.9, 100]) for row, told in rows.items()}
    return {
        "percentiles": {row: told.tolist() for row, told in cuts.items()},
        "of 1,000 above 1 ms": late,
        "waited": np.mean(waits, axis=0).tolist(),
    }


def resident():
    """Resident memory in MB, or nan where the system does not tell."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return float("nan")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def long_stream(n):
    """Memory over n stationary events; CPU seconds of refits with their upkeep, and of the rest."""
    model, spent, rows = StreamClusterer(), [0.0], []
    dispatch = model._engine._dispatch

    def counted(queue):
        began = time.process_time()
        told = dispatch(queue)
        spent[0] += time.process_time() - began
        return told

    model._engine._dispatch = counted
    points = blobs(100_000, *STREAMS["blobs10"])
    total, marks = 0.0, {*np.linspace(100_000, n, 10).astype(int).tolist()}
    for at in range(0, n, BLOCK):
        block = points[at % 99_584 : at % 99_584 + BLOCK]
        began = time.process_time()
        model.learn_many(block)
        total += time.process_time() - began
        if any(at <= mark < at + BLOCK for mark in marks):
            del model._engine._dispatch
            rows.append(
                (at, resident(), len(pickle.dumps(model)) / 1e6, model.memory_usage() / 1e6)
            )
            model._engine._dispatch = counted
    return rows, spent[0], total - spent[0]


def cold_start():
    """CPU seconds of import, first event and the next 200: empty cache, then warm."""
    with tempfile.TemporaryDirectory() as folder:
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "PYTHONPATH": paths}
        command = [sys.executable, "-c", COLD]
        runs = [
            subprocess.run(command, env=environment, capture_output=True, check=True).stdout
            for _ in range(2)
        ]
    return [json.loads(told) for told in runs]


def scaling(ks, ds, ns):
    """Microseconds of learn and predict per event as k, d and n grow, without refits."""
    found = {}
    cases = [("k", k, 8, WARM) for k in ks] + [("d", 10, d, WARM) for d in ds]
    for axis, k, d, n in cases + [("n", 10, 8, n) for n in ns]:
        warm = max(n, 12 * k)
        points = blobs(warm + 3000, k, d, 0.0)
        model = StreamClusterer(n_clusters=k, window=max(1000, 10 * k))
        model.learn_many(points[:warm])
        model._engine.tracker.counts[kernel.NEXT_REFIT] = 10**15
        x = events(points[warm:])
        parts = [x[i : i + 500] for i in range(0, 3000, 500)]
        costs = [
            statistics.median(1e6 * seconds(work, model, part) / len(part) for part in parts)
            for work in (learn, predict)
        ]
        found.setdefault(axis, []).append([{"k": k, "d": d, "n": n}[axis], *costs])
    return found


def figures(report):
    """What TARGETS speaks of, from the report."""

    def ratio(row):
        return report["rates"][row][0] / report["rates"][row][1]

    memory = [row[1] for row in report["memory"]]
    empty, warm = report["cold start"]
    late = report["latency"]["blobs50 background"]["percentiles"]
    told = [
        ratio("blobs10 both"),
        ratio("blobs50 both"),
        ratio("blobs10 whole stream"),
        ratio("blobs10 predict"),
        ratio("blobs10 learn_many"),
        ratio("blobs10 predict_many"),
        report["refit share"],
        *late[f"CPU, least of {RUNS}"][2:],
        *late["wall less waiting"][2:],
        warm[0],
        empty[1],
        warm[1],
        memory[-1] - memory[0],
    ]
    return dict(zip(TARGETS, told, strict=True))


def show(report):
    print(f"\n{'rate, per CPU second':24}{'streamclust':>14}{'peer':>12}{'ratio':>9}")
    for row, (ours, peer) in report["rates"].items():
        print(f"{row:24}{ours:14,.0f}{peer:12,.0f}{ours / peer:9.1f}")
    for name, told in report["latency"].items():
        print(f"\n{name + ', ms':24}" + "".join(f"{p:>9}" for p in ("p50", "p99", "p99.9", "max")))
        for row, cuts in told["percentiles"].items():
            print(f"{row:24}" + "".join(f"{v:9.3g}" for v in cuts), end="")
            late = told["of 1,000 above 1 ms"]
            lost = f", {late['preempted']:.2f} preempted" if row == "wall less waiting" else ""
            print(f"{late[row]:9.2f} of 1,000 above 1 ms{lost}")
        print("waited {:.3g} ms in all, {:.3g} at the most".format(*told["waited"]))
    print()
    for title, told in zip(("empty", "warm"), report["cold start"], strict=True):
        print(
            "cache {}: import {:.2f} s, first event {:.2f} s, 200 more {:.2f} s".format(
                title, *told
            )
        )
    for at, rss, pickled, arrays in (report["memory"][0], report["memory"][-1]):
        print(
            f"{at:>12,} events: {rss:.1f} MB resident, {pickled:.2f} pickled, {arrays:.2f} arrays"
        )
    print(f"refit share of learn_many: {report['refit share of learn_many']:.0f} %")
    for axis, rows in report["scaling"].items():
        print(f"{axis}: " + "; ".join("{:,}: {:.1f} + {:.1f} us".format(*row) for row in rows))
    print(f"\n{'target':44}{'found':>10}{'wanted':>10}")
    for row, found in report["figures"].items():
        sign, bound = TARGETS[row]
        met = found >= bound if sign == ">=" else found <= bound
        print(f"{row:44}{found:10.3g}{sign + f' {bound}':>10}  {'met' if met else 'missed'}")


def plot(folder, report):
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415  (only drawing needs it)
    except ImportError:
        print("no picture: matplotlib is not installed (pip install 'streamclust[plot]')")
        return
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.5))
    for ax, (axis, rows) in zip(axes, report["scaling"].items(), strict=True):
        values, learned, predicted = zip(*rows, strict=True)
        ax.plot(values, learned, "o-", label="learn_one")
        ax.plot(values, predicted, "s-", label="predict_one")
        ax.set(xscale="log", xlabel=axis, ylabel="us of CPU per event", ylim=0)
        ax.legend()
    figure.tight_layout()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "benchmark.png", dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="under three minutes")
    parser.add_argument("--events", type=int, help="length of the long stream; 10 million is flat")
    parser.add_argument("--output", type=Path, default=Path("benchmark.json"))
    parser.add_argument("--plot", type=Path, help="folder for the picture (needs matplotlib)")
    options = parser.parse_args()
    threadpool_limits(1)
    report = {"rates": {}}
    for name in STREAMS:
        single(name, report["rates"])
        bulk(name, report["rates"])
    report["latency"] = {
        f"{name} {mode}": latency(name, mode)
        for name in STREAMS
        for mode in ("inline", "background")
    }
    n = max(options.events or 1_000_000, 200_000)
    report["memory"], refits, rest = long_stream(n)
    one_by_one = n / report["rates"]["blobs10 both"][0]
    report["refit share"] = 100 * refits / (refits + one_by_one)
    report["refit share of learn_many"] = 100 * refits / (refits + rest)
    report["cold start"] = cold_start()
    report["scaling"] = (
        scaling([2, 10, 50], [2, 8, 64], [2_000, 50_000])
        if options.quick
        else scaling([2, 10, 50, 200], [2, 8, 32, 256], [2_000, 20_000, 200_000, 1_000_000])
    )
    report["figures"] = figures(report)
    show(report)
    options.output.write_text(json.dumps(report, indent=1))
    print(f"written to {options.output}")
    if options.plot:
        plot(options.plot, report)


if __name__ == "__main__":
    main()
