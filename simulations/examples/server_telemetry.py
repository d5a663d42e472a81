"""Server telemetry with a fault injected: when it begins, how it is described, when it is over.

    python -m simulations.examples.server_telemetry [--quick] [--output FOLDER]

Three kinds of server report processor, memory, disk traffic and latency. From 40 % to 70 % of the
stream a third of the web servers leaks memory: it swaps, and answers slowly.
"""

from __future__ import annotations

import numpy as np

from simulations.examples.telling import draw, options, tell_changes, tell_clusters
from streamclust import StreamClusterer
from streamclust.events import ClusterBorn, ClusterDied

#        cpu %, memory %, disk MB/s, latency ms: mean and deviation
KINDS = {
    "web": ((45, 50, 8, 35), (6, 4, 2, 5)),
    "database": ((30, 80, 90, 12), (5, 3, 12, 2)),
    "batch": ((88, 35, 40, 150), (4, 5, 8, 20)),
    "leaking web": ((70, 94, 60, 400), (6, 2, 10, 40)),
}
FEATURES = ("cpu", "memory", "disk", "latency")
BEGINS, ENDS = 0.4, 0.7


def stream(n, seed=0):
    """Yield events and the kind of server behind each, which the model never sees."""
    rng = np.random.default_rng(seed)
    for at in range(n):
        kind = ("web", "database", "batch")[rng.integers(3)]
        if kind == "web" and BEGINS * n <= at < ENDS * n and rng.random() < 1 / 3:
            kind = "leaking web"
        mean, deviation = KINDS[kind]
        yield dict(zip(FEATURES, rng.normal(mean, deviation).tolist(), strict=True)), kind


def run(n):
    """Learn the stream; return the model, and the rule of the fault as an operator was told it."""
    model = StreamClusterer()
    rules = {}
    model.on(ClusterBorn, lambda born: rules.setdefault(born.cluster, ""))
    for x, _ in stream(n):
        model.learn_one(x)
        for cluster in [one for one, rule in rules.items() if not rule]:
            rules[cluster] = str(model.rule(cluster))
    return model, rules


def main(n, folder):
    """Run it, print what was found, draw the lives of the clusters."""
    model, rules = run(n)
    print(f"script: {BEGINS * n:,.0f} a leak begins, {ENDS * n:,.0f} it is repaired")
    print("changes:")
    tell_changes(model.events_since(0))
    print("clusters at the end:")
    tell_clusters(model)
    ended = [one.cluster for one in model.events_since(0) if isinstance(one, ClusterDied)]
    for cluster in ended:
        print(f"cluster {cluster} was, when it was born: {rules[cluster]}")
    draw("timeline", folder / "server_telemetry.png", model.events_since(0), model)


if __name__ == "__main__":
    main(*options(__doc__, 12_000, 4_000))
