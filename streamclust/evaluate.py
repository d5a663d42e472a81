"""Prequential evaluation: every event is answered first, then learned (Gama et al. 2013).

Works for everything with ``learn_one`` and ``predict_one``, river's clusterers among it. What
follows from the answers alone is kept apart from what a clock measured: two results are equal where
the answers were. Indices come from `river.metrics`; purity is Manning et al. 2008, section 16.3.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from time import perf_counter_ns
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
from river.metrics import (
    AdjustedMutualInfo,
    AdjustedRand,
    Completeness,
    ConfusionMatrix,
    Homogeneity,
)

from streamclust.errors import InvalidParameter
from streamclust.features import table_of
from streamclust.results import NOISE

Label: TypeAlias = Hashable
_END = object()


class Clusterer(Protocol):
    """What can be evaluated."""

    def learn_one(self, x: Any) -> object:
        """Learn an event."""

    def predict_one(self, x: Any) -> int | None:
        """Return its cluster; -1 or None where it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """How well the answers to a stretch of the stream fit its labels.

    The indices compare the partitions of the labelled events that are not noise; answers of -1
    count there as one more cluster. They are 1 where both partitions are the same, also where both
    are a single cluster, and nan where no such event was labelled.

    Attributes
    ----------
    events, labelled : int
        Events of the stretch; those of them that have a label, noise included.
    ari, ami : float
        Adjusted Rand index and adjusted mutual information: about 0 by chance, at most 1.
    homogeneity, completeness, purity : float
        How far a cluster holds one label only, and a label lies in one cluster; the share of events
        that have the most frequent label of their cluster.
    noise_f1 : float
        F1 of the answer -1 for the label -1; nan where there is neither.
    noise_share : float
        Share of events answered with -1; nan without events.
    clusters : int
        Different clusters among the answers.
    """

    events: int
    labelled: int
    ari: float
    ami: float
    homogeneity: float
    completeness: float
    purity: float
    noise_f1: float
    noise_share: float
    clusters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What was found after so many events.

    Attributes
    ----------
    event : int
        Events learned so far.
    scores : Scores
        Of the events since the checkpoint before.
    living : int or None
        Clusters that the model holds; None for a model without a mapping ``clusters``.
    flips : float
        Share of the probes whose answer differs from that at the checkpoint before; nan at the
        first, and without probes.
    """

    event: int
    scores: Scores
    living: int | None
    flips: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Wall-clock time of one call, in microseconds: mean and percentiles; nan without events."""

    mean: float
    p50: float
    p99: float
    p99_9: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """A prequential run. Equal where the answers are: the latencies are not compared.

    Attributes
    ----------
    scores : Scores
        Of the events behind `from_fraction` of the stream.
    flips : float
        Mean share of probes that changed their answer, over the checkpoints in that part; nan where
        it has none.
    series : tuple of Checkpoint
    answers : tuple of int
        One per event, -1 for none.
    learning, predicting : Latency
    """

    scores: Scores
    flips: float
    series: tuple[Checkpoint, ...]
    answers: tuple[int, ...]
    learning: Latency = field(compare=False)
    predicting: Latency = field(compare=False)


def prequential(
    model: Clusterer,
    stream: Any,
    labels: Iterable[Label] | None = None,
    *,
    times: Iterable[Any] | None = None,
    every: int = 1000,
    from_fraction: float = 0.5,
    probes: int = 200,
) -> Evaluation:
    """Let a model answer and then learn every event of a stream, and judge the answers.

    Parameters
    ----------
    model
        Has ``learn_one`` and ``predict_one``; it is taught.
    stream
        An iterable of mappings, or of pairs of a mapping and its label as in river's data sets; an
        array of shape (n, n_features), whose features are f0, f1, ...; or a data frame.
    labels
        The true group of every event: anything hashable, -1 for noise, None where it is unknown.
    times
        Passed to ``learn_one`` as `t`.
    every
        Events between two checkpoints; the last one is at the end of the stream.
    from_fraction
        Where in the stream the overall scores begin, in [0, 1): 0.5 scores the last half.
    probes
        How many of the first events are asked about again at every checkpoint, outside the clock.

    Returns
    -------
    Evaluation

    Raises
    ------
    InvalidParameter
        For a value out of range, or fewer labels or times than events.
    InvalidPoint
        From the model, for an event that it refuses.

    Examples
    --------
    >>> from river.cluster import KMeans
    >>> events = [{"a": 10.0 * (i % 2)} for i in range(100)]
    >>> result = prequential(KMeans(n_clusters=2, seed=1), events, labels=[0, 1] * 50)
    >>> result.scores.ari
    1.0
    """
    _check(every=every, from_fraction=from_fraction, probes=probes)
    truth: list[Label] = []
    answers: list[int] = []
    series: list[Checkpoint] = []
    learning, predicting = array("q"), array("q")
    asked: list[Any] = []
    before: list[int] = []

    def look() -> None:
        nonlocal before
        since = series[-1].event if series else 0
        if len(answers) == since:
            return
        now = [_answer(model, x) for x in asked]
        flips = _mean([a != b for a, b in zip(before, now, strict=False)])
        scores = score(truth[since:], answers[since:])
        series.append(
            Checkpoint(event=len(answers), scores=scores, living=_living(model), flips=flips)
        )
        before = now

    for (x, label), t in zip(_labelled(stream, labels), _times(times), strict=False):
        if t is _END:
            raise InvalidParameter(f"times end after {len(answers)} events; one per event is due")
        begun = perf_counter_ns()
        answer = model.predict_one(x)
        answered = perf_counter_ns()
        model.learn_one(x, **t)
        learned = perf_counter_ns()
        predicting.append(answered - begun)
        learning.append(learned - answered)
        answers.append(NOISE if answer is None else int(answer))
        truth.append(label)
        if len(asked) < probes:
            asked.append(dict(x))  # a stream may reuse one mapping
        if len(answers) % every == 0:
            look()
    look()
    start = int(from_fraction * len(answers))
    return Evaluation(
        scores=score(truth[start:], answers[start:]),
        flips=_mean([c.flips for c in series if c.event > start and not math.isnan(c.flips)]),
        series=tuple(series),
        answers=tuple(answers),
        learning=_latency(learning),
        predicting=_latency(predicting),
    )


def score(truth: Sequence[Label], answers: Sequence[int]) -> Scores:
    """Judge answers (-1: noise) by the labels of the same events (-1: noise, None: unknown)."""
    known = Counter((y, a) for y, a in zip(truth, answers, strict=True) if y is not None)
    table = {pair: n for pair, n in known.items() if pair[0] != NOISE}
    matrix = cast(Any, ConfusionMatrix)()
    most: Counter[int] = Counter()
    for (label, answer), n in table.items():
        for _ in range(n):  # river counts calls, not weights
            matrix.update(label, answer)
        most[answer] = max(most[answer], n)
    clean = sum(table.values())

    def index(kind: Any) -> float:
        return float(kind(cm=matrix).get()) if clean else math.nan

    said = sum(n for (_, answer), n in known.items() if answer == NOISE)
    due = known.total() - clean
    found = sum(n for (label, answer), n in known.items() if label == answer == NOISE)
    return Scores(
        events=len(answers),
        labelled=known.total(),
        ari=index(AdjustedRand),
        ami=index(AdjustedMutualInfo),
        homogeneity=index(Homogeneity),
        completeness=index(Completeness),
        purity=most.total() / clean if clean else math.nan,
        noise_f1=2 * found / (said + due) if said + due else math.nan,
        noise_share=_mean([answer == NOISE for answer in answers]),
        clusters=len({*answers} - {NOISE}),
    )


def _check(*, every: int, from_fraction: float, probes: int) -> None:
    for name, value, least in (("every", every, 1), ("probes", probes, 0)):
        if value < least:
            raise InvalidParameter(f"{name}={value!r}; a whole number >= {least} is accepted")
    if not 0 <= from_fraction < 1:
        raise InvalidParameter(f"from_fraction={from_fraction!r}; a number in [0, 1) is accepted")


def _labelled(stream: Any, labels: Iterable[Label] | None) -> Iterator[tuple[Any, Label]]:
    """Return every event with its label, None where it has none."""
    if isinstance(stream, np.ndarray) or hasattr(stream, "columns"):
        names, values = table_of(stream)
        columns = names or [f"f{j}" for j in range(values.shape[1])]
        stream = (dict(zip(columns, row, strict=True)) for row in values.tolist())
    if isinstance(labels, np.ndarray):
        labels = labels.tolist()
    told = repeat(None) if labels is None else iter(labels)
    for n, item in enumerate(stream):
        x, own = (item, None) if isinstance(item, Mapping) else item
        label = next(told, _END)
        if label is _END:
            raise InvalidParameter(f"labels end after {n} events; one per event is due")
        yield x, own if labels is None else label


def _times(times: Iterable[Any] | None) -> Iterator[Any]:
    """Return the keywords of every ``learn_one``, then the sign that there are no more."""
    if times is None:
        yield from repeat({})
    else:
        yield from ({"t": t} for t in times)
    yield _END


def _answer(model: Clusterer, x: Any) -> int:
    answer = model.predict_one(x)
    return NOISE if answer is None else int(answer)


def _living(model: object) -> int | None:
    held = getattr(model, "clusters", None)
    return len(held) if isinstance(held, Mapping) else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _latency(nanoseconds: array[int]) -> Latency:
    found = [math.nan] * 4
    if nanoseconds:
        found = (np.percentile(nanoseconds, [50, 99, 99.9, 100]) / 1000).tolist()
    mean = _mean(nanoseconds) / 1000
    return Latency(mean=mean, p50=found[0], p99=found[1], p99_9=found[2], max=found[3])
