"""Text embeddings: support tickets of four topics, and a fifth that comes up half way.

    python -m simulations.examples.text_embeddings [--quick] [--output FOLDER]

Tickets are written by a small generator. They are embedded without any download: hashed words, then
a fixed random projection to 48 numbers, scaled to length 1. Thresholds on such numbers say nothing
to a reader, so each cluster is also told by the words that are much more frequent in it than
elsewhere.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from simulations.examples.telling import draw, options, tell_changes
from streamclust import StreamClusterer

TOPICS = {
    "password": "password login reset account locked email link code sign forgot",
    "invoice": "invoice payment refund charged card bill amount tax receipt twice",
    "delivery": "parcel delivery late courier address tracking package lost door delayed",
    "crash": "app crash screen freezes update version error phone restart bug",
    "outage": "server outage down timeout unreachable region status gateway unavailable 503",
}
COMMON = "please help hello thanks my the since today again still need with for team hi a is it"
BEGINS = 0.5  # of the last topic
SIZE, WORDS, OFF_TOPIC = 48, 9, 6


def stream(n, seed=0):
    """Yield tickets and their topic, which the model never sees."""
    rng = np.random.default_rng(seed)
    names = list(TOPICS)
    for at in range(n):
        known = names if at >= BEGINS * n else names[:-1]
        topic = known[rng.integers(len(known))]
        words = [*rng.choice(TOPICS[topic].split(), WORDS, replace=True)]
        words += [*rng.choice(COMMON.split(), OFF_TOPIC)]
        rng.shuffle(words)
        yield " ".join(words), topic


def embedder(seed=0):
    """A function from a text to its embedding; nothing is fitted."""
    hashed = HashingVectorizer(
        n_features=2**12, alternate_sign=False, norm=None, stop_words="english"
    )
    matrix = np.random.default_rng(seed).normal(size=(2**12, SIZE))

    def embed(text):
        vector = hashed.transform([text]) @ matrix
        vector = vector[0] / np.linalg.norm(vector[0])
        return {f"e{j:02}": value for j, value in enumerate(vector.tolist())}

    return embed


def run(n):
    """Answer and learn; return the model, the tickets by cluster, and the topics by cluster."""
    model, embed = StreamClusterer(), embedder()
    words, topics = defaultdict(Counter), defaultdict(Counter)
    for text, topic in stream(n):
        x = embed(text)
        cluster = model.predict_one(x)
        model.learn_one(x)
        words[cluster].update(text.split())
        topics[cluster][topic] += 1
    return model, words, topics


def keywords(words, cluster, most=5):
    """The words that are much more frequent in a cluster than in all tickets."""
    every = sum(words.values(), Counter())
    total, own = every.total(), words[cluster].total()
    lift = {w: c / own * math.log(c / own * total / every[w]) for w, c in words[cluster].items()}
    return sorted(lift, key=lambda word: -lift[word])[:most]


def main(n, folder):
    """Run it, print what was found, draw the window on a plane."""
    model, words, topics = run(n)
    print(f"script: {BEGINS * n:,.0f} tickets about an outage begin")
    print("changes:")
    tell_changes(model.events_since(0))
    print("clusters:")
    for one in model.clusters.values():
        top = keywords(words, one.id)
        model.name(one.id, top[0])
        topic, count = topics[one.id].most_common(1)[0]
        share = count / topics[one.id].total()
        print(f"  cluster {one.id}, {one.size:,} tickets: {', '.join(top)} ({share:.0%} {topic})")
    draw("projection", folder / "text_embeddings.png", model)


if __name__ == "__main__":
    main(*options(__doc__, 6_000, 3_000))
