"""When the window is clustered anew, where that runs, and what becomes of the clusters by it.

A refit has three steps: a *sample* of the window is taken; a *survey* of it finds clusters, which
depends on the sample alone; the survey is *adopted*: identity, centers, fences. Inline the three
follow one another. In the background a glance at the window is kept, a thread makes sample and
survey of it, and the survey is adopted at a fixed number of events later, ready or not: learning
waits for it, so that no result depends on the clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from heapq import nlargest
from operator import itemgetter
from typing import Any

import numpy as np

from streamclust.beside import Beside, Work
from streamclust.census import Census
from streamclust.drift import BLOCK, Evidence
from streamclust.events import Event, RefitDone, RefitDue, RefitReady, RefitSkipped
from streamclust.features import FeatureSpace
from streamclust.figures import weights_of
from streamclust.glance import Glance, glance_of, surveyed
from streamclust.identity import SHARE, Matching, lineage, match, succeed
from streamclust.kernels import metric, stream
from streamclust.refit.offered import build
from streamclust.regions import AMBIGUOUS, ambiguity
from streamclust.results import NOISE, FloatArray, IntArray
from streamclust.router import Router
from streamclust.scaling import Scaling
from streamclust.survey import (
    Sample,
    Survey,
    faint,
    silent,
    survey_of_centers,
    survey_of_labels,
    valley,
)
from streamclust.tracker import BIRTH_WEIGHT, NEVER, CenterTracker, Placing
from streamclust.windows import Window

WARM_UP = 40
"""Events before anything is clustered."""
FEWEST = 5
"""Window points of a living center from which it is placed anew."""
LONGEST = 20_000
"""Events between two refits at the most, at first ..."""
CALM = 5
"""... and this many times as many in the end, doubled by every refit that finds what is known."""
ASKED = "asked for"
"""Reason of a refit that a user asked for, which is always made at once."""
INITIAL = "initial"
"""Reason of the refit, or of what was given instead, that a model begins with."""
AT_ONCE = (ASKED, INITIAL)
"""Reasons of refits that are made at once, and so is what they ask of the tree."""
CHANGED = stream.MOVED | stream.BORN | stream.DIED
"""Alerts that the world is not as the last refit found it."""
TOLD = 100
"""Clusters whose weights a finished refit tells, the heaviest."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A refit on its way."""

    glance: Glance
    found: Work[tuple[Sample, Survey]]


class Refitter:
    """Makes refits on the engine's components.

    Attributes
    ----------
    estimator : object or None
        What finds the clusters.
    refits : int
        Refits that were adopted.
    ratio : float
        The boundary ratio: the one that was set, or what the last refit suggests.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        seed: int,
        beside: Beside,
        features: FeatureSpace,
        scaling: Scaling,
        window: Window,
        tracker: CenterTracker,
        router: Router,
    ) -> None:
        self.estimator = build(settings["refit"], settings["n_clusters"], seed)
        self.refits = 0
        given = settings["boundary_ratio"]
        self.ratio = AMBIGUOUS if given is None else float(given)
        self._ratio_given = given is not None
        self.evidence = Evidence()
        self._p, self._most = float(settings["p"]), int(settings["max_clusters"])
        self._how = self._p, self._most, settings["n_clusters"] is not None
        self._beside = beside
        self._features, self._scaling, self._window = features, scaling, window
        self._tracker, self._router = tracker, router
        self._since = self._planned = 0
        self._longest = LONGEST
        self._pending: Pending | None = None
        tracker.counts[stream.NEXT_REFIT] = WARM_UP

    # ------------------------------------------------------------ when

    @property
    def is_pending(self) -> bool:
        """Whether a refit is on its way."""
        return self._pending is not None

    def wake(self, alerts: int) -> Iterable[Event]:
        """Return what an observed event has made due."""
        tracker, reason = self._tracker, ""
        if alerts & stream.LOOK:
            tracker.counts[stream.NEXT_LOOK] = tracker.tick + BLOCK
            if self.evidence.look(*tracker.take_look()) and self._pending is None:
                self._since, reason = tracker.tick, "drift"
                self._longest = LONGEST
        if alerts & CHANGED:
            self._heed(alerts)
        if alerts & stream.REFIT:
            if self._pending is not None:
                return (RefitReady(tick=tracker.tick, time=tracker.now),)
            reason = reason or "schedule"
        return (self.due(reason),) if reason else ()

    def _heed(self, alerts: int) -> None:
        """Bring the next refit forward where the world is not as the last one found it."""
        tracker = self._tracker
        soon, due = tracker.tick + self._window.capacity // 2, stream.NEXT_REFIT
        # What a refit alone can find, a merge or a split, begins with centers that move.
        calm, self._longest = self._longest > LONGEST, LONGEST
        if self._pending is not None:
            return
        if calm:
            tracker.counts[due] = min(tracker.counts[due], max(self._planned + LONGEST, soon))
        if alerts & (stream.BORN | stream.DIED) and self._window.is_full:
            # The window is of a world that is gone: one refit soon, and the schedule anew.
            self._since = tracker.tick
            tracker.counts[due] = min(tracker.counts[due], soon)

    def due(self, reason: str) -> RefitDue:
        """Return the record of a refit that is due now."""
        return RefitDue(tick=self._tracker.tick, time=self._tracker.now, reason=reason)

    def _plan(self) -> None:
        """Set when the next refit is due, and look for drift from here on.

        Intervals grow by a factor with the events since the beginning, or since the last drift: by
        a half while the window fills, then to the double. So the schedule depends on nothing but
        the window, and an end of the growth is only evidence or the longest interval, which grows
        while refits find what is known and no center moves.
        """
        tracker, full = self._tracker, self._window.is_full
        tick = tracker.tick
        grown = tick - self._since
        least = self._window.capacity // 2 if self._since else WARM_UP // 2
        interval = min(max(grown if full else grown // 2, least), self._longest)
        self._planned = tick
        tracker.counts[stream.NEXT_REFIT] = tick + interval
        self.evidence.reset()
        tracker.take_look()
        # A young model changes by itself; and an alarm finds nothing new in an old window.
        calm = full and tracker.k and self.estimator is not None
        tracker.counts[stream.NEXT_LOOK] = tick + self._window.capacity if calm else NEVER

    # ------------------------------------------------------------ where

    def begin(self, event: RefitDue) -> Iterable[Event]:
        """Refit now, or begin to in the background."""
        tick, now, tracker = event.tick, event.time, self._tracker
        if self._pending is not None:
            self._beside.result(self._pending.found)  # one fit of the estimator at a time
            self._pending = None
        self._plan()
        if self._window.is_empty:
            return (RefitSkipped(tick=tick, time=now, reason="no events yet"),)
        glance = self._glance(event)
        if self.estimator is None:
            self._scaling.freeze(self._scaling.proposed(glance.points))
            self._router.widen(self._scaling.weights, self._features.keys)
            tracker.seek_births(glance.points, self._scaling.weights)
            return (RefitSkipped(tick=tick, time=now, reason="refit=None"),)
        if self._beside and event.reason not in AT_ONCE:
            tracker.counts[stream.NEXT_REFIT] = self._beside.due(tick, glance.full)
            self._submit(glance)
            return ()
        return self.adopt(*surveyed(self.estimator, glance, *self._how), tick, now)

    def finish(self, event: RefitReady) -> Iterable[Event]:
        """Adopt the pending refit; wait for it where it is not ready."""
        assert self._pending is not None
        pending, self._pending = self._pending, None
        self._plan()
        sample, survey = self._beside.result(pending.found)
        known = sample.points.shape[1]
        stand_ins = self._features.stand_ins[known:] - self._scaling.origin[known:]
        if len(stand_ins):  # features were admitted since the sample was taken
            sample = sample.widen(stand_ins)
            survey = replace(survey, census=survey.census.widen(stand_ins))
        return self.adopt(sample, survey, event.tick, event.time)

    def adopt(self, sample: Sample, survey: Survey, tick: int, time: float) -> Iterable[Event]:
        """Let the clusters of a survey be those of the model from now on.

        Clusters are matched by the sample's points that each holds by the present centers; a center
        that moved since the sample was taken goes on from where it is.
        """
        tracker, scaling, masses = self._tracker, self._scaling, sample.masses
        points = sample.points
        living = list(dict.fromkeys(tracker.clusters))
        slots = tracker.owners(points, scaling.weights)
        index = np.array([*map(living.index, tracker.clusters), -1], dtype=np.int64)
        renewed = scaling.freeze(sample.weights)
        self._router.widen(scaling.weights, self._features.keys)
        census = survey.census.without(self._gone(sample, survey.census, living))
        old = index[slots]
        matching = match(living, old, census.labels, census.k, masses, tracker.pinned)
        vain = [c for c in matching.born if self._in_vain(census, c, sample)]
        if vain and sample.reason != INITIAL:
            census = census.without(vain)
            matching = match(living, old, census.labels, census.k, masses, tracker.pinned)
        apart = self._parted(sample, census, matching)
        if apart is not None:
            census = survey_of_labels(sample, apart, self._p, self._most).census
            matching = match(living, old, census.labels, census.k, masses, tracker.pinned)
        if not census.k:
            return (RefitSkipped(tick=tick, time=time, reason="no cluster found"),)
        clusters = [matching.survivors.get(c, -1) for c in range(census.k)]
        clusters = [tracker.new_id() if c < 0 else c for c in clusters]
        placing = self._placing(sample, census, clusters, slots, not renewed)
        events = tracker.adopt(placing, matching.unseen)
        holders, nearest = tracker.standing(points, scaling.weights)
        self._router.look(tracker, points, holders, sample.reason in AT_ONCE)
        self.refits += 1
        if matching.is_calm and tick - self._since > LONGEST:
            self._longest = min(2 * self._longest, CALM * LONGEST)
        elif not matching.is_calm:
            self._longest = LONGEST
        if not self._ratio_given:
            first, second = nearest[holders >= 0].T
            self.ratio = ambiguity(first, second, survey.ambiguous)
        done = RefitDone(
            tick=tick,
            time=time,
            reason=sample.reason,
            asked=sample.tick,
            clusters=census.k,
            noise_share=float(masses[census.labels < 0].sum() / masses.sum()),
            weights=dict(nlargest(TOLD, weights_of(tracker).items(), key=itemgetter(1))),
        )
        return (*events, *lineage(matching, clusters, census.cluster_masses, tick, time), done)

    def _placing(
        self, sample: Sample, census: Census, clusters: list[int], slots: IntArray, steady: bool
    ) -> Placing:
        """Say under which ids and where the centers of a census go on."""
        tracker = self._tracker
        owners = [clusters[c] for c in census.owners]
        heirs = succeed(tracker.ids, tracker.clusters, slots, owners, census.members, sample.masses)
        ids, living = [], set(tracker.clusters)
        for center, cluster in enumerate(owners):
            fresh = cluster not in living and cluster not in ids
            ids.append(heirs[center] if center in heirs else cluster if fresh else tracker.new_id())
        positions, scales, limits = (
            a.copy() for a in (census.positions, census.scales, census.limits)
        )
        for at, center in enumerate(ids):
            if center not in tracker.ids:
                continue
            slot = tracker.slot(center)
            if census.sizes[at] < FEWEST:  # too few to say anew where it is and how far it reaches
                positions[at] = tracker.centers[slot]
                scales[at], limits[at] = tracker.stats[slot, [stream.SCALE, stream.FENCE]]
            elif center in sample.centers:
                positions[at] += tracker.centers[slot] - sample.centers[center]
        if sample.full and steady:
            positions = tracker.keep_places(ids, positions, scales, self._scaling.weights)
        shares = census.masses / sample.masses.sum()
        return Placing(ids, owners, positions, scales, limits, census.sizes, shares)

    def _parted(self, sample: Sample, census: Census, matching: Matching) -> IntArray | None:
        """Return labels without the merges that cross a valley; None where none does.

        A window remembers where clusters were, and the trails of two that pass each other fill the
        space between them; the newer points tell whether they are one.
        """
        tracker, labels = self._tracker, census.labels.copy()
        for child, absorbed in matching.merges.items() if sample.full else ():
            for other in absorbed:
                slots = tracker.slots(matching.survivors[child]) + tracker.slots(other)
                both = np.flatnonzero(labels == child)
                if len(slots) == 2 and valley(sample, both, *tracker.centers[slots]):
                    table = tracker.distances(sample.points[both], sample.weights)[:, slots]
                    labels[both[table[:, 1] < table[:, 0]]] = labels.max() + 1
        return None if np.array_equal(labels, census.labels) else labels

    def _in_vain(self, census: Census, cluster: int, sample: Sample) -> bool:
        """Whether a cluster without a parent is none: it has ended, or is no more than noise.

        In a grown model it also needs as many events as a birth from outliers does.
        """
        if silent(census, cluster, sample) or faint(census, cluster, sample, self._p):
            return True
        share = census.cluster_masses[cluster] / sample.masses.sum()
        few = self._tracker.gauges[stream.MASS] * share < BIRTH_WEIGHT
        return bool(few and sample.full and self._tracker.k)

    def _gone(self, sample: Sample, census: Census, living: list[int]) -> list[int]:
        """Return the clusters of a census that have died since the sample was taken."""
        if sample.tick == self._tracker.tick:
            return []
        dead = ~np.isin(sample.owners, [*living, NOISE])
        mass = np.bincount(census.labels[census.labels >= 0], minlength=census.k)
        lost = np.bincount(census.labels[dead & (census.labels >= 0)], minlength=census.k)
        return np.flatnonzero(lost >= SHARE * mass).tolist()

    def given_labels(
        self,
        points: FloatArray,
        masses: FloatArray,
        labels: IntArray | None,
        centers: FloatArray | None,
    ) -> Iterable[Event]:
        """Adopt labelled points; without labels each belongs to the nearest of the centers."""
        sample = self._given(points, masses)
        if labels is None:
            assert centers is not None
            table = metric.distance_table(points, centers, sample.weights, self._p)
            labels = table.argmin(axis=1)
        self._plan()
        survey = survey_of_labels(sample, labels, self._p, self._most)
        return self.adopt(sample, survey, sample.tick, self._tracker.now)

    def given_centers(self, centers: FloatArray) -> Iterable[Event]:
        """Adopt centers of which nothing else is known."""
        sample = self._given(centers, np.ones(len(centers)))
        return self.adopt(sample, survey_of_centers(sample, self._p), 0, self._tracker.now)

    def _given(self, points: FloatArray, masses: FloatArray) -> Sample:
        return Sample(
            tick=self._tracker.tick,
            reason=INITIAL,
            points=points,
            times=np.zeros(len(points)),
            masses=masses,
            weights=self._scaling.proposed(points),
            owners=np.full(len(points), NOISE, dtype=np.int64),
            centers={},
            full=False,
        )

    def _submit(self, glance: Glance) -> None:
        found = self._beside.begin(surveyed, self.estimator, glance, *self._how)
        self._pending = Pending(glance, found)

    def _glance(self, event: RefitDue) -> Glance:
        """Take the window and the centers as they are."""
        tracker, scaling = self._tracker, self._scaling
        return Glance(
            tick=event.tick,
            reason=event.reason,
            full=self._window.is_full,
            points=self._window.points().copy(),
            times=self._window.times().copy(),
            masses=self._window.weights(event.time),
            ids=np.array(tracker.ids, dtype=np.int64),
            clusters=np.array(tracker.clusters, dtype=np.int64),
            centers=tracker.living.copy(),
            fences=tracker.living_stats[:, stream.FENCE].copy(),
            weights=scaling.weights.copy(),
            scale=scaling.kind,
            frozen=scaling.epoch > 0,
        )

    # ------------------------------------------------------------ figures and state

    def figures(self) -> dict[str, float | int]:
        """Return live figures by name."""
        return {
            "refits": self.refits,
            "drift_alarms": self.evidence.alarms,
            "refit_pending": int(self.is_pending),
        }

    def to_state(self) -> dict[str, Any]:
        """Return plain numbers, strings and arrays from which `from_state` restores all."""
        return {
            "refits": self.refits,
            "ratio": self.ratio,
            "since": self._since,
            "planned": self._planned,
            "longest": self._longest,
            "evidence": self.evidence.to_state(),
            "pending": None if self._pending is None else self._pending.glance.to_state(),
        }

    def from_state(self, state: Mapping[str, Any]) -> None:
        """Take over a state; a refit on its way is begun again, with the same result."""
        self.refits, self._since = int(state["refits"]), int(state["since"])
        self._planned, self._longest = int(state["planned"]), int(state["longest"])
        self.ratio = float(state["ratio"])
        self.evidence.from_state(state["evidence"])
        self._pending = None
        if state["pending"] is not None:
            self._submit(glance_of(state["pending"]))
