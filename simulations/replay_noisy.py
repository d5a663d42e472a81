"""How the engine stands noise: none to 30 %, uniform, heavy-tailed, and in adversarial bursts.

    python simulations/replay_noisy.py [--quick] [--seeds N] [--output FOLDER]

Ten Gaussian groups in eight features. *uniform* fills a box 1.6 times as wide as the data; *heavy*
is Cauchy in every feature, so that single values are thousands of times too large; *bursts* are
dense blobs of 40 junk events each within 80 events, made to look like a cluster that is born. They
are noise to the truth, yet an engine that is to notice births within a few hundred events must
take a burst for one while it lasts: *born* and *died* count what it told in the last half.

Scores are prequential, on the last half; the adjusted Rand index leaves noise out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from simulations.streams import NOISES, blobs
from simulations.tables import means, pyplot, show, write
from streamclust import StreamClusterer
from streamclust.evaluate import prequential
from streamclust.events import ClusterBorn, ClusterDied

SHARES = (0.0, 0.05, 0.1, 0.2, 0.3)
KEYS = ("noise", "share", "assign")


def replay(kind, share, assign, n, seed):
    """Figures of one run."""
    stream = blobs(n, noise=share, kind=kind, seed=seed)
    model = StreamClusterer(assign=assign)
    found = prequential(model, stream.points, stream.labels)
    told = [e for e in model.events_since(0) if e.tick > n // 2]
    late = zip(found.answers[n // 2 :], stream.labels[n // 2 :], strict=True)
    clean = [answer for answer, label in late if label != -1]
    return {
        "noise": kind,
        "share": share,
        "assign": assign,
        "seed": seed,
        "ARI": found.scores.ari,
        "AMI": found.scores.ami,
        "purity": found.scores.purity,
        "noise F1": found.scores.noise_f1,
        "answered -1": found.scores.noise_share,
        "groups lost": clean.count(-1) / len(clean),
        "living": found.series[-1].living,
        "born": sum(isinstance(e, ClusterBorn) for e in told),
        "died": sum(isinstance(e, ClusterDied) for e in told),
        "flips": found.flips,
        "us learn p50": found.learning.p50,
        "us predict p50": found.predicting.p50,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="one seed, 4,000 events, fewer shares")
    parser.add_argument("--seeds", type=int, help="how many (3; quick: 1)")
    parser.add_argument("--output", type=Path, default=Path("simulated"), help="folder")
    options = parser.parse_args()
    n, seeds = (4000, options.seeds or 1) if options.quick else (20_000, options.seeds or 3)
    rows = [
        replay(kind, share, assign, n, seed)
        for kind in NOISES
        for share in (SHARES[::2] if options.quick else SHARES)
        for assign in ("tree", "nearest")
        for seed in range(seeds)
    ]
    show(f"ten groups under noise, {n:,} events, {seeds} seeds", means(rows, KEYS))
    write(options.output / "replay_noisy.csv", rows)
    draw(options.output / "replay_noisy.png", means(rows, KEYS))


def draw(path, rows):
    plt = pyplot()
    if plt is None:
        return
    figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharex=True)
    for ax, figure_of in zip(axes, ("ARI", "noise F1", "born"), strict=True):
        for color, kind in enumerate(NOISES):
            for assign, style in (("tree", "o-"), ("nearest", "s--")):
                mine = [r for r in rows if r["noise"] == kind and r["assign"] == assign]
                ax.plot(
                    [100 * r["share"] for r in mine],
                    [r[figure_of] for r in mine],
                    style,
                    color=f"C{color}",
                    markersize=9 - 2 * color,  # curves that coincide stay visible
                    label=f"{kind}, {assign}",
                )
        ax.set(xlabel="noise, % of events", title=figure_of)
        ax.grid(alpha=0.3)
    axes[0].set_ylim(0, 1.02)
    axes[1].set_ylim(0, 1.02)
    axes[2].set_ylim(bottom=-0.5)
    axes[2].set_title("births told in the last half")
    axes[0].legend(fontsize=8, loc="lower left")
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    print(f"written to {path}")


if __name__ == "__main__":
    main()
