"""Sensors that drift: which clusters keep their id, and how a jump of all of them is told.

    python -m simulations.examples.sensor_drift [--quick] [--output FOLDER]

A machine works in four states. Its pressure sensor loses its calibration slowly, over the first
half. At 60 % of the stream the machine is moved to another hall: temperature and vibration of every
state jump at once.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from simulations.examples.telling import draw, news, options, tell_changes, tell_clusters
from streamclust import StreamClusterer
from streamclust.events import ClusterMoved, RefitDone

STATES = {
    "off": (20, 1.0, 0.1),
    "idle": (45, 2.0, 0.6),
    "half load": (70, 4.0, 1.8),
    "full load": (95, 6.5, 3.5),
}
DEVIATIONS = (1.5, 0.15, 0.12)
DRIFT, ENDS = 1.2, 0.5  # bar, over this share of the stream
JUMP, AT = (-12.0, 0.0, 1.2), 0.6


def stream(n, seed=0):
    """Yield readings and the state behind each, which the model never sees."""
    rng = np.random.default_rng(seed)
    names = list(STATES)
    for at in range(n):
        state = names[rng.integers(len(names))]
        reading = rng.normal(STATES[state], DEVIATIONS)
        reading[1] += DRIFT * min(at / (ENDS * n), 1.0)
        if at >= AT * n:
            reading += JUMP
        features = ("temperature", "pressure", "vibration")
        yield dict(zip(features, reading.tolist(), strict=True)), state


def run(n):
    """Answer and learn; return the model, and which ids each state had in each tenth."""
    model, ids = StreamClusterer(), [{state: Counter() for state in STATES} for _ in range(10)]
    for at, (x, state) in enumerate(stream(n)):
        ids[10 * at // n][state][model.predict_one(x)] += 1
        model.learn_one(x)
    return model, ids


def main(n, folder):
    """Run it, print what was found, draw noise, clusters and movements over time."""
    model, ids = run(n)
    print(f"script: pressure drifts until {ENDS * n:,.0f}; at {AT * n:,.0f} everything jumps")
    print("the id of each state, by tenths of the stream (-1: noise):")
    for state in STATES:
        row = [tenth[state].most_common(1)[0] for tenth in ids]
        print(f"  {state:>9}: " + " ".join(f"{id:>3}" for id, _ in row))
    print("changes behind the first tenth:")
    tell_changes(model.events_since(0), n // 10)
    moved = [one for one in model.events_since(0) if isinstance(one, ClusterMoved)]
    print(f"clusters moved {len(moved)} times, far enough to matter")
    alarms = [one.tick for one in news(model.events_since(0)) if isinstance(one, RefitDone)]
    print(f"drift alarms at events {alarms}")
    print("clusters at the end:")
    tell_clusters(model)
    draw("noise", folder / "sensor_drift.png", model.events_since(0))


if __name__ == "__main__":
    main(*options(__doc__, 12_000, 5_000))
