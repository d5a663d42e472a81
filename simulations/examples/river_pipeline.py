"""A river pipeline: the clusterer behind river's transformers, judged by river's metrics.

    python -m simulations.examples.river_pipeline [--quick] [--output FOLDER]

The stream is river's ImageSegments: 2,310 regions of outdoor photographs, seven kinds of what they
show. Two features that tell where a region lies are left out, and brightness is taken by its
logarithm. Kinds are used to judge only.
"""

from __future__ import annotations

import math

from river import compose, metrics
from river.datasets import ImageSegments

from simulations.examples.telling import draw, options, tell_changes, tell_clusters
from streamclust import StreamClusterer

WHERE = ("region-centroid-col", "region-centroid-row", "region-pixel-count")
BRIGHT = ("intensity-mean", "rawred-mean", "rawblue-mean", "rawgreen-mean", "value-mean")


def tamed(x):
    """Brightness by its logarithm."""
    return {name: math.log1p(value) if name in BRIGHT else value for name, value in x.items()}


def run(n):
    """Predict, judge, learn; return the pipeline and the score."""
    pipeline = compose.Discard(*WHERE) | compose.FuncTransformer(tamed) | StreamClusterer()
    score = metrics.AdjustedRand()
    for x, kind in ImageSegments().take(n):
        cluster = pipeline.predict_one(x)
        if cluster >= 0:
            score.update(kind, cluster)
        pipeline.learn_one(x)
    return pipeline, score


def main(n, folder):
    """Run it, print what was found, draw the window on a plane."""
    pipeline, score = run(n)
    model = pipeline["StreamClusterer"]
    print(pipeline)
    print(f"{score} of the answers that are not noise")
    print("clusters:")
    tell_clusters(model)
    print("changes behind event 500:")
    tell_changes(model.events_since(0), 500)
    draw("projection", folder / "river_pipeline.png", model)


if __name__ == "__main__":
    main(*options(__doc__, 2_310, 1_000))
