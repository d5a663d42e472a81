"""Payments in which a new fraud pattern is born: how soon it is a cluster, and what its rule is.

    python -m simulations.examples.payments [--quick] [--output FOLDER]

Cards pay for groceries, online and for travel. Half way a group starts to test stolen cards: small
payments, seconds apart, far from home; 3 % of all from then on. 1 % of all payments are odd for no
reason.
"""

from __future__ import annotations

import math

import numpy as np

from simulations.examples.telling import draw, options, tell_changes, tell_clusters
from streamclust import StreamClusterer
from streamclust.events import ClusterBorn

#           amount, minutes since the last payment, km from home: of each the median, and the spread
#           of its logarithm
KINDS = {
    "groceries": ((35, 2000, 4), (0.5, 0.5, 0.5)),
    "online": ((60, 4000, 0.5), (0.6, 0.6, 0.3)),
    "travel": ((240, 700, 900), (0.5, 0.5, 0.4)),
    "card testing": ((1.5, 0.5, 5000), (0.2, 0.4, 0.3)),
}
BEGINS, FRAUD, ODD = 0.5, 0.03, 0.01


def stream(n, seed=0):
    """Yield payments and their kind, which the model never sees.

    Amounts, times and distances span many powers of ten: the model gets their logarithms.
    """
    rng = np.random.default_rng(seed)
    for at in range(n):
        kind = ("groceries", "online", "travel")[rng.choice(3, p=(0.5, 0.35, 0.15))]
        if at >= BEGINS * n and rng.random() < FRAUD:
            kind = "card testing"
        median, spread = KINDS[kind]
        values = np.log10(median) + rng.normal(size=3) * np.array(spread) / math.log(10)
        if rng.random() < ODD:
            kind, values = "odd", rng.uniform((-1, -1, -1), (4, 5, 4))
        names = ("log10 amount", "log10 minutes", "log10 km")
        yield dict(zip(names, values.tolist(), strict=True)), kind


def run(n):
    """Answer and learn the stream; return the model, answers and kinds."""
    model, answers, kinds = StreamClusterer(), [], []
    for x, kind in stream(n):
        answers.append(model.predict_one(x))
        kinds.append(kind)
        model.learn_one(x)
    return model, answers, kinds


def caught(model, answers, kinds):
    """The cluster that holds most of the fraud: its birth, and its precision and recall since."""
    fraud = [a for a, kind in zip(answers, kinds, strict=True) if kind == "card testing" and a >= 0]
    cluster = max(set(fraud), key=fraud.count)
    (born,) = (
        one
        for one in model.events_since(0)
        if isinstance(one, ClusterBorn) and one.cluster == cluster
    )
    since = list(zip(answers[born.tick :], kinds[born.tick :], strict=True))
    hits = sum(a == cluster and kind == "card testing" for a, kind in since)
    precision = hits / max(1, sum(a == cluster for a, _ in since))
    recall = hits / max(1, sum(kind == "card testing" for _, kind in since))
    before = sum(kind == "card testing" for kind in kinds[: born.tick])
    return cluster, born.tick, before, precision, recall


def main(n, folder):
    """Run it, print what was found, draw the rules by feature."""
    model, answers, kinds = run(n)
    cluster, born, before, precision, recall = caught(model, answers, kinds)
    model.name(cluster, "card testing")
    print(f"script: {BEGINS * n:,.0f} card testing begins")
    print("changes:")
    tell_changes(model.events_since(0))
    print("clusters:")
    tell_clusters(model)
    print(f"cluster {cluster} was born at event {born:,}, after {before} fraudulent payments")
    print(f"since then: precision {precision:.1%}, recall {recall:.1%}")
    print(f"why not groceries: {model.why_not_one(next(stream(1))[0], cluster)}")
    draw("intervals", folder / "payments.png", model)


if __name__ == "__main__":
    main(*options(__doc__, 12_000, 5_000))
