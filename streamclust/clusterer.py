"""The river face of the engine: `StreamClusterer`."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

import numpy as np
from river import base

from streamclust import snapshot
from streamclust.engine import Engine
from streamclust.errors import InvalidParameter, InvalidPoint, SnapshotError
from streamclust.events import Change, Changes, RefitDone, RefitSkipped
from streamclust.figures import fidelity, price
from streamclust.frozen import Frozen
from streamclust.parameters import PARAMETERS, Parameter, check_parameters
from streamclust.results import (
    NOISE,
    Assignment,
    Cluster,
    Explanation,
    FeatureName,
    FloatArray,
    IntArray,
    Rule,
    WhyNot,
)
from streamclust.summary import Summary
from streamclust.windows import Window, window_of

AnyChange = TypeVar("AnyChange", bound=Change)
Point = Mapping[Any, Any]
_ABSENT = math.nan
_ONE = 1.0


class StreamClusterer(base.Clusterer):
    """Online clustering whose every answer is a readable rule.

    Events are mappings of feature names to numbers. The number of clusters is found from the data;
    cluster ids are permanent; -1 means noise, or that nothing is known yet; what changed is told as
    events. Features of different units are scaled for you.

    Parameters
    ----------
    n_clusters
        None: found from the data; k: a refit answers with the best of several clusterings into k
        (not mean shift).
    p
        The distance: 1 is city block, 2 is Euclid; any finite p >= 1.
    scale
        "robust" (default), "standard": units do not matter; "none": you scale yourself.
    half_life
        How fast the past fades, in time units; None: it does not.
    time_unit
        "events" or "seconds": what `half_life` and `max_lateness` count. Seconds need `t`.
    window
        Points kept for refits, 50 to 100,000: an exponentially biased reservoir. Or an empty
        `Reservoir` or `SlidingWindow`, of which the model makes one of its own.
    refit
        What finds the clusters: "comet", "rcc", "rcc_dr", "mean_shift", "three_way", an estimator
        with `fit` and `labels_`, or None.
    refit_mode
        "inline": a refit is made at once. "background": once the window is full, a refit runs in a
        thread beside the stream and is used exactly `refit_lag` events later; learning waits where
        it is not ready, so results do not depend on the clock.
    refit_lag
        Events between a background refit and its use.
    assign
        "tree": the rule decides; "nearest": the nearest center decides and the rule explains.
    leaves_per_center
        More: finer rules, closer to the nearest center.
    draws
        How many random trees compete at a rebuild.
    measure
        "gap": cuts prefer gaps in the data; "paper": the paper's law.
    noise
        False: never answer -1 once warm.
    boundary_ratio
        How close a runner-up makes an event boundary, in (0, 1); None: chosen from the data.
    missing
        What an absent known feature gets: "median", "zero"; "refuse": the event is refused.
    max_clusters, max_features
        Hard caps.
    max_lateness
        How far back `t` may go, in time units.
    event_log
        Change events kept.
    seed
        Everything random.

    Attributes
    ----------
    source : dict or None
        What was saved beside the model: the position of the reader, for example.

    Notes
    -----
    Whatever takes an event raises `InvalidPoint` for one that it cannot read, naming the feature
    and the value; whatever takes the id of a cluster raises `UnknownCluster` where none of it
    lives. The model is then as it was. Rules and centers are in your units; distances are scaled:
    one is a quarter of a feature's guarded range in the window.

    References
    ----------
    * Makarychev, Papanikolaou, Shan (2025). Dynamic Algorithm for Explainable k-medians
      Clustering under lp Norm. NeurIPS 2025, arXiv 2512.01150.
    * COMET: robust convex clustering with median of means. AAAI 2026, arXiv 2511.14784.
    * Shah and Koltun (2017). Robust continuous clustering. PNAS 114(37).
    * Lv, Xu, Sun, Yang (2023). Three-way clustering based on mean shift. Pure Mathematics 13(12),
      doi 10.12677/PM.2023.1312353.

    Examples
    --------
    >>> import random
    >>> from streamclust import StreamClusterer
    >>> draw = random.Random(7)
    >>> model = StreamClusterer()
    >>> model.predict_one({"load": 0.5, "temp": 20.0})
    -1
    >>> for i in range(400):
    ...     busy = i % 2
    ...     model.learn_one({"load": draw.gauss(0.2 + 0.6 * busy, 0.05),
    ...                      "temp": draw.gauss(40 + 30 * busy, 2)})
    >>> len(model.clusters)
    2
    >>> model.predict_one({"load": 0.8, "temp": 70}) != model.predict_one({"load": 0.2, "temp": 40})
    True
    >>> model.predict_one({"load": 0.5, "temp": 5000})
    -1
    """

    def __init__(
        self,
        *,
        n_clusters: int | None = None,
        p: float = 2.0,
        scale: str = "robust",
        half_life: float | None = 2000,
        time_unit: str = "events",
        window: int | Window = 1000,
        refit: Any = "comet",
        refit_mode: str = "inline",
        refit_lag: int = 1000,
        assign: str = "tree",
        leaves_per_center: int = 8,
        draws: int = 16,
        measure: str = "gap",
        noise: bool = True,
        boundary_ratio: float | None = None,
        missing: str = "median",
        max_clusters: int = 1000,
        max_features: int = 10_000,
        max_lateness: float = 0,
        event_log: int = 10_000,
        seed: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.p = p
        self.scale = scale
        self.half_life = half_life
        self.time_unit = time_unit
        self.window = window
        self._refit = refit  # the attribute `refit` is the method
        self.refit_mode = refit_mode
        self.refit_lag = refit_lag
        self.assign = assign
        self.leaves_per_center = leaves_per_center
        self.draws = draws
        self.measure = measure
        self.noise = noise
        self.boundary_ratio = boundary_ratio
        self.missing = missing
        self.max_clusters = max_clusters
        self.max_features = max_features
        self.max_lateness = max_lateness
        self.event_log = event_log
        self.seed = seed
        self.source: dict[str, Any] | None = None
        given = self._get_params()
        check_parameters(given)
        self._engine = Engine(given)

    @classmethod
    def parameter_table(cls) -> Mapping[str, Parameter]:
        """Return the table of parameters: defaults, accepted ranges, what a user sees."""
        return PARAMETERS

    # ------------------------------------------------------------ learning

    def learn_one(self, x: Point, *, t: Any = None, w: float = _ONE) -> None:
        """Learn one event.

        Parameters
        ----------
        x
            Feature names and numbers. New features are kept aside until the next refit.
        t
            Time of the event: a number or a datetime (naive ones are read as UTC); needed with
            ``time_unit="seconds"``.
        w
            Weight, above 0: how many events it stands for.

        Raises
        ------
        InvalidPoint
            Naming the feature and the value; the model is as it was.
        """
        time = _ABSENT if t is None else _seconds(t)
        self._engine.learn(x, time, _ONE if w is _ONE else _weight(w))

    def learn_many(self, X: Any, *, t: Any = None, w: Any = None) -> None:
        """Learn every row of an array of shape (n, n_features) or of a data frame, in order.

        The result equals that of `learn_one` row by row, to the bit. A bare array takes the known
        feature order, or f0, f1, ... when none is known. `t` and `w` are arrays of shape (n,) or
        None. A refused row is named in the error; the rows before it stay learned.
        """
        self._engine.learn_many(X, *_columns(t, w))

    def freeze(self, *, rules: bool = False) -> Frozen:
        """Return the model as it is now, small and without its window, for workers elsewhere.

        `streamclust.summary.summarise` makes of it and of a part of a batch what `apply` learns;
        with ``rules=True`` it also holds every cluster's rule as text.
        """
        return self._engine.freeze(rules=rules)

    def apply(self, summary: Summary) -> None:
        """Learn the events of a summary, as one step; raises StaleSummary for another state's.

        It must have been made, in whatever parts, with the model as it is now (`freeze`).
        """
        self._engine.apply(summary)

    def fit_initial(
        self,
        X: Any = None,
        *,
        labels: Any = None,
        centers: Any = None,
        t: Any = None,
        w: Any = None,
    ) -> None:
        """Begin warm: with a batch of events, with clusters that you know, or with centers alone.

        Parameters
        ----------
        X : array of shape (n, n_features) or data frame, optional
            Events; they are learned, and then the clusters are found by a refit of the window.
        labels : int array of shape (n,), optional
            The cluster of each event of X, -1 for noise, instead of the refit. The model's ids are
            0, 1, ... in the order of the labels.
        centers : array of shape (k, n_features) or data frame, optional
            With X: each event belongs to the nearest of them, instead of the refit. Alone, at least
            two: a cluster around each, whose fence stands half way to the nearest other.
        t, w
            Times and weights of the events, as in `learn_many`.

        Raises
        ------
        InvalidParameter
            After the first event, or for labels and centers that do not fit X.
        InvalidPoint
            For a value that is no number; rows of X before it stay learned.
        """
        if X is None and (centers is None or labels is not None or len(centers) < 2):
            raise InvalidParameter("a warm start takes X, or at least two centers alone")
        if labels is not None:
            if centers is not None:
                raise InvalidParameter("got labels and centers; one of them is accepted")
            labels = np.asarray(labels)
            if labels.shape != (len(X),) or labels.dtype.kind not in "iu" or labels.max() < 0:
                raise InvalidParameter(
                    f"labels of shape {labels.shape} and type {labels.dtype}; accepted are "
                    f"{len(X)} integers, one of them at least 0"
                )
            labels = np.where(labels < 0, NOISE, labels).astype(np.int64)
        self._engine.start(X, *_columns(t, w), labels, centers)

    def name(self, id: int, name: str | None) -> None:
        """Call a living cluster by a name, or by none again; a name goes with its cluster.

        Raises
        ------
        UnknownCluster
            Where no such cluster lives.
        """
        if name is not None and not isinstance(name, str):
            raise InvalidParameter(f"name={name!r}: a string is accepted, or None")
        self._engine.name(id, name)

    def pin(self, id: int) -> None:
        """Let a living cluster never die and never merge, whatever the stream does.

        Raises
        ------
        UnknownCluster
            Where no such cluster lives.
        """
        self._engine.pin(id, True)

    def unpin(self, id: int) -> None:
        """Let a pinned cluster live as others do again."""
        self._engine.pin(id, False)

    def refit(self) -> RefitDone | RefitSkipped:
        """Cluster the window anew, now; return what came of it."""
        return self._engine.refit()

    def tick(self, t: Any) -> None:
        """Let time pass without an event, so that silence is noticed.

        `t` is the clock's new value: a count of events, or with ``time_unit="seconds"`` a number of
        seconds or a datetime; `InvalidPoint` for one that lies before the clock.
        """
        self._engine.tick(_seconds(t))

    # ------------------------------------------------------------ answers

    def predict_one(self, x: Point) -> int:
        """Return the id of the cluster of an event: -1 for noise, and while nothing is known."""
        return self._engine.answers.predict(x)

    def predict_many(self, X: Any) -> IntArray:
        """Return the cluster id of every row, as `predict_one` does; shape (n,)."""
        return self._engine.answers.predict_many(X)

    def assign_one(self, x: Point) -> Assignment:
        """Return cluster id, region (core, boundary, noise), alternatives and scaled distance."""
        return self._engine.answers.assign(x)

    def explain_one(self, x: Point) -> Explanation:
        """Return the conditions and the fence that gave an event its label.

        Raises
        ------
        NotReady
            While there is no cluster.
        """
        return self._engine.answers.explain(x)

    def rule(self, id: int) -> Rule:
        """Return the boxes and the fence of a living cluster; UnknownCluster for another id."""
        return self._engine.answers.rule(id)

    def why_not_one(self, x: Point, id: int) -> WhyNot:
        """Return what keeps an event from a living cluster.

        The smallest change of one feature that would land it there; where none suffices, the
        conditions of the cluster's nearest box that it does not meet, and the fence.
        """
        return self._engine.answers.why_not(x, id)

    def score_one(self, x: Point) -> float:
        """Return how anomalous an event is: its distance over the fence; above 1 is noise.

        Of all clusters the smallest counts; 0 while there is none.
        """
        return self._engine.answers.score(x)

    def transform_one(self, x: Point) -> dict[FeatureName, float]:
        """Return the distance to every living cluster, in units of its own scale, by id."""
        return self._engine.answers.transform(x)

    @property
    def clusters(self) -> dict[int, Cluster]:
        """The living clusters by id."""
        return self._engine.answers.clusters()

    @property
    def centers(self) -> dict[int, dict[FeatureName, float]]:
        """The living centers by id, in the user's units."""
        return self._engine.answers.centers()

    def tree(self) -> dict[str, Any]:
        """Return the threshold tree as nested dicts, in the user's units; empty while cold.

        A node is ``{"feature", "threshold", "told", "left", "right"}``: left where the feature is
        at most the threshold; "told" is the threshold in few digits. A leaf is ``{"cluster",
        "center"}``.
        """
        return self._engine.answers.rules.tree()

    def window_points(self) -> dict[FeatureName, FloatArray]:
        """Return the points kept for refits as columns by feature, each of shape (n,).

        In the user's units; nan where an event came without the feature before a refit knew it.
        """
        return self._engine.answers.rules.points()

    @property
    def tick_count(self) -> int:
        """The number of events learned."""
        return self._engine.tracker.tick

    def metrics(self) -> dict[str, float | int]:
        """Return live figures: events, clusters, noise share, cost, refits, fidelity, price."""
        return self._engine.metrics()

    def memory_usage(self) -> int:
        """Return the bytes of the model's arrays: window, centers, outlier store and tree.

        They do not grow with the number of events.
        """
        return self._engine.memory_usage()

    def fidelity(self) -> float:
        """Return the share of recent events on which rule and nearest center agreed (prequential).

        Events outside every fence do not count; an exponential mean over about 1,000 events, each
        judged before it is learned; nan while there is none.
        """
        return fidelity(self._engine.tracker)

    def price_of_explainability(self) -> float:
        """Return the mean distance to the rule's center over that to the nearest, recently.

        1 means that rules cost nothing. Prequential, as `fidelity`.
        """
        return price(self._engine.tracker)

    # ------------------------------------------------------------ what changed

    def events_since(self, n: int) -> Changes:
        """Return the changes numbered above `n`; its ``evicted`` tells how many are gone."""
        return self._engine.log.since(n)

    def on(
        self, event_type: type[AnyChange], callback: Callable[[AnyChange], object]
    ) -> Callable[[], None]:
        """Call `callback` with every change of a type; return a function that ends it.

        Callbacks run after the event has been learned; what they raise reaches the caller.
        """
        return self._engine.subscribe(event_type, callback)  # type: ignore[arg-type]

    # ------------------------------------------------------------ state

    def save(self, path: str | os.PathLike[str], source: dict[str, Any] | None = None) -> None:
        """Write a snapshot, whole or not at all.

        Parameters
        ----------
        path
            The file to replace.
        source
            The reader's position, or anything else that JSON can hold; kept as `source`.

        Raises
        ------
        SnapshotError
            Where it cannot be written; what stood there is untouched.
        """
        snapshot.write(path, self._state(source))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, refit: Any = None) -> Self:
        """Return the model in a snapshot: it goes on learning bit for bit the same.

        Parameters
        ----------
        path
            A file that `save` wrote.
        refit
            The estimator, where the saved model had one of its own: objects are not saved.

        Raises
        ------
        SnapshotError
            For a file that is missing, torn, foreign, altered, or of a newer format.
        """
        state = snapshot.read(path)
        try:
            parameters = dict(state["parameters"])
            if parameters["refit"] == {"object": True}:
                if refit is None:
                    raise SnapshotError(
                        f"snapshot {path}: the model had an estimator of its own; pass it as refit="
                    )
                parameters["refit"] = refit
            if isinstance(parameters["window"], Mapping):
                parameters["window"] = window_of(parameters["window"], None)
            model = cls(**parameters)
            model._engine.from_state(state["engine"])
            model.source = state["source"]
        except (
            KeyError,
            ValueError,
            TypeError,
            IndexError,
            AttributeError,
            OverflowError,
        ) as error:
            if isinstance(error, SnapshotError):
                raise
            raise SnapshotError(f"snapshot {path}: malformed state ({error})") from error
        return model

    def __repr__(self) -> str:
        told = (f"{name}={value!r}" for name, value in self._get_params().items())
        return f"{type(self).__name__}({', '.join(told)})"

    def _get_params(self) -> dict[str, Any]:
        return {**super()._get_params(), "refit": self._refit}

    def _state(self, source: dict[str, Any] | None) -> dict[str, Any]:
        parameters = self._get_params()
        if not isinstance(self._refit, str | None):
            parameters["refit"] = {"object": True}
        if isinstance(self.window, Window):
            parameters["window"] = self.window.described()
        return {"parameters": parameters, "source": source, "engine": self._engine.to_state()}

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name != "_engine"}
        return {**kept, "engine": self._engine.to_state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        engine = state.pop("engine")
        self.__dict__.update(state)
        self._engine = Engine(self._get_params())
        self._engine.from_state(engine)


def _columns(t: Any, w: Any) -> tuple[FloatArray | float, FloatArray | float]:
    """Return times and weights of many events."""
    times: FloatArray | float = _ABSENT
    if t is not None:
        times = np.array([_seconds(one) for one in np.asarray(t, dtype=object).tolist()])
    weights: FloatArray | float = 1.0
    if w is not None:
        weights = np.array([_weight(one) for one in np.atleast_1d(np.asarray(w)).tolist()])
    return times, weights


def _seconds(t: Any) -> float:
    """Return a time as a float: a datetime in seconds since 1970, naive ones read as UTC."""
    if isinstance(t, datetime):
        return (t if t.tzinfo else t.replace(tzinfo=UTC)).timestamp()
    try:
        if isinstance(t, str | bytes):
            raise TypeError
        time = float(t)
    except (TypeError, ValueError, OverflowError):
        raise InvalidPoint(
            f"got t={t!r} ({type(t).__name__}); a number or a datetime is accepted"
        ) from None
    if not math.isfinite(time):
        raise InvalidPoint(f"got t={time!r}; a finite time is accepted")
    return time


def _weight(w: Any) -> float:
    try:
        return float(w)
    except (TypeError, ValueError, OverflowError):
        raise InvalidPoint(
            f"got w={w!r} ({type(w).__name__}); a number above 0 is accepted"
        ) from None
