"""Seeded streams with known truth: groups, three kinds of noise, drift, and a script of changes.

Groups are Gaussian with standard deviation 1 in every feature, so that distances between centers
read as standard deviations. The label of an event is its group, -1 for noise, and None while a
group that splits or two that merge are neither one nor two.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

NOISES = ("uniform", "heavy", "bursts")
DRIFTS = ("stationary", "gradual", "abrupt", "recurring", "births and deaths", "split and merge")
BURST = 40  # junk events of one burst
APART = 8.0  # distance of the halves of a group that splits


@dataclass(frozen=True)
class Scripted:
    """A change of the truth: `kind` is birth, death, split or merge.

    `begins` and `ends` are event numbers: a group appears or is gone at once, two halves move apart
    or two groups together over a while. `groups` are the labels that take part.
    """

    kind: str
    begins: int
    ends: int
    groups: tuple[int, ...]


@dataclass(frozen=True)
class Replay:
    """A stream with its truth; `means` are the places of the events' groups, nan for noise."""

    name: str
    points: np.ndarray
    labels: list[int | None]
    means: np.ndarray
    script: tuple[Scripted, ...] = ()

    @property
    def events(self):
        """The points as mappings."""
        return mappings(self.points)


@dataclass(frozen=True)
class Group:
    """A group that lives in a stretch of the stream and may move in another (fractions)."""

    label: int
    start: np.ndarray
    lives: tuple[float, float] = (0.0, 1.0)
    shift: np.ndarray | float = 0.0
    moves: tuple[float, float] = (0.0, 1.0)

    def means(self, t):
        """Where it is at the times `t`."""
        begins, ends = self.moves
        gone = np.clip((t - begins) / (ends - begins), 0.0, 1.0)
        return self.start + gone[:, None] * self.shift


@dataclass(frozen=True)
class Plan:
    """Groups, and the script of what happens to them."""

    groups: list[Group]
    script: list[Scripted] = field(default_factory=list)


def mappings(points):
    """Events f0, f1, ... of the rows of an array."""
    names = [f"f{j}" for j in range(points.shape[1])]
    return [dict(zip(names, row, strict=True)) for row in points.tolist()]


def blobs(n, k=10, d=8, noise=0.05, kind="uniform", seed=0):
    """Stationary groups, centers uniform in [-5, 5]^d, and a share of noise of one of NOISES."""
    rng = np.random.default_rng(seed)
    groups = [Group(c, center) for c, center in enumerate(rng.uniform(-5, 5, (k, d)))]
    name = f"{k} groups, {noise:.0%} {kind} noise"
    return _draw(name, Plan(groups), n, noise, kind, rng)


def drift10(n=20_000, seed=0):
    """Ten groups that move 4 sd over the stream; half way one dies and one is born."""
    rng = np.random.default_rng(seed)
    starts, shifts = rng.uniform(-5, 5, (11, 8)), 4.0 * _directions(11, 8, rng)
    lives = [(0.0, 0.5)] + 9 * [(0.0, 1.0)] + [(0.5, 1.0)]
    groups = [Group(c, starts[c], lives[c], shifts[c]) for c in range(11)]
    half = n // 2
    script = [Scripted("death", half, half, (0,)), Scripted("birth", half, half, (10,))]
    return _draw("drift10", Plan(groups, script), n, 0.05, "uniform", rng)


def drift(name, n=20_000, k=6, d=8, noise=0.05, seed=0):
    """A stream of one of DRIFTS; centers are at least twice APART from one another."""
    rng = np.random.default_rng(seed)
    places = _places(2 * k, d, rng)
    plan = _PLANS[name](places[:k], places[k:], n, rng)
    return _draw(name, plan, n, noise, "uniform", rng)


def standardised(points):
    """Rows in units of the mean and deviation so far, as an online scaler gives them."""
    n = np.arange(1, len(points) + 1)[:, None]
    mean = np.cumsum(points, axis=0) / n
    deviation = np.sqrt(np.maximum(np.cumsum(points**2, axis=0) / n - mean**2, 0.0))
    return (points - mean) / np.where(deviation > 1e-12, deviation, 1.0)


# ------------------------------------------------------------ plans


def _stationary(places, spare, n, rng):
    return Plan([Group(c, place) for c, place in enumerate(places)])


def _gradual(places, spare, n, rng):
    shifts = 4.0 * _directions(*places.shape, rng)
    return Plan([Group(c, p, shift=s) for c, (p, s) in enumerate(zip(places, shifts, strict=True))])


def _abrupt(places, spare, n, rng):
    """Half way, a third of the groups is elsewhere: these places die, and others are born."""
    k, gone, half = len(places), max(1, len(places) // 3), n // 2
    groups = [Group(c, p, (0.0, 0.5 if c < gone else 1.0)) for c, p in enumerate(places)]
    groups += [Group(k + c, spare[c], (0.5, 1.0)) for c in range(gone)]
    script = [Scripted("death", half, half, (c,)) for c in range(gone)]
    script += [Scripted("birth", half, half, (k + c,)) for c in range(gone)]
    return Plan(groups, script)


def _recurring(places, spare, n, rng):
    """The first group comes and goes; every return has a label of its own, as it gets a new id."""
    k, quarter = len(places), n // 4
    groups = [Group(c, p) for c, p in enumerate(places) if c]
    groups += [Group(0, places[0], (0.0, 0.25)), Group(k, places[0], (0.5, 0.75))]
    script = [
        Scripted("death", quarter, quarter, (0,)),
        Scripted("birth", 2 * quarter, 2 * quarter, (k,)),
        Scripted("death", 3 * quarter, 3 * quarter, (k,)),
    ]
    return Plan(groups, script)


def _births_and_deaths(places, spare, n, rng):
    k = len(places)
    lives = {0: (0.0, 0.4), 1: (0.0, 0.75), k: (0.3, 1.0), k + 1: (0.55, 1.0)}
    every = [*enumerate(places), (k, spare[0]), (k + 1, spare[1])]
    script = [
        Scripted(kind, int(n * at), int(n * at), (c,))
        for at, kind, c in sorted(
            [(0.3, "birth", k), (0.4, "death", 0), (0.55, "birth", k + 1), (0.75, "death", 1)]
        )
    ]
    return Plan([Group(c, p, lives.get(c, (0.0, 1.0))) for c, p in every], script)


def _split_and_merge(places, spare, n, rng):
    """Two halves of the first group move APART; later two others meet in their middle."""
    k = len(places)
    one, two = APART / 2 * _directions(2, places.shape[1], rng)
    groups = [Group(c, p) for c, p in enumerate(places) if c > 1]
    groups += [
        Group(0, places[0], shift=one, moves=(0.25, 0.4)),
        Group(k, places[0], shift=-one, moves=(0.25, 0.4)),
        Group(1, places[1] + two, shift=-two, moves=(0.6, 0.75)),
        Group(k + 1, places[1] - two, shift=two, moves=(0.6, 0.75)),
    ]
    script = [
        Scripted("split", int(0.25 * n), int(0.4 * n), (0, k)),
        Scripted("merge", int(0.6 * n), int(0.75 * n), (1, k + 1)),
    ]
    return Plan(groups, script)


_PLANS = dict(
    zip(
        DRIFTS,
        (_stationary, _gradual, _abrupt, _recurring, _births_and_deaths, _split_and_merge),
        strict=True,
    )
)


# ------------------------------------------------------------ drawing


def _draw(name, plan, n, noise, kind, rng):
    t = np.arange(n) / n
    alive = np.array([(g.lives[0] <= t) & (t < g.lives[1]) for g in plan.groups]).T
    own = np.where(alive, rng.random(alive.shape), -1.0).argmax(axis=1)
    means = np.empty((n, len(plan.groups[0].start)))
    for c, group in enumerate(plan.groups):
        means[own == c] = group.means(t[own == c])
    points = means + rng.normal(size=means.shape)
    labels = np.array([g.label for g in plan.groups], dtype=object)[own]
    _relabel(labels, plan.script)
    wild = _noise(points, noise, kind, rng)
    labels[wild], means[wild] = -1, np.nan
    return Replay(name, points, labels.tolist(), means, tuple(plan.script))


def _relabel(labels, script):
    """Give the halves of one group one label, and none while they are neither one nor two."""
    when = np.arange(len(labels))
    for change in script:
        if change.kind in ("split", "merge"):
            both = np.isin(labels, change.groups)
            one = when < change.begins if change.kind == "split" else when >= change.ends
            labels[both & one] = change.groups[0]
            labels[both & (when >= change.begins) & (when < change.ends)] = None


def _noise(points, share, kind, rng):
    """Turn a share of the rows into noise, in place; return which."""
    n, d = points.shape
    low, high = np.quantile(points, [0.001, 0.999], axis=0)
    middle, half = (low + high) / 2, 0.8 * (high - low)
    wild = rng.random(n) < share
    if kind == "uniform":
        points[wild] = middle + half * rng.uniform(-1, 1, (int(wild.sum()), d))
    elif kind == "heavy":
        points[wild] = middle + 0.5 * half * rng.standard_cauchy((int(wild.sum()), d))
    else:
        wild = _bursts(n, share, rng)
        numbers = (np.cumsum(wild) - 1) // BURST  # which burst
        spots = middle + half * rng.uniform(-1, 1, (numbers.max() + 1, d))
        points[wild] = spots[numbers[wild]] + 0.3 * rng.normal(size=(int(wild.sum()), d))
    return wild


def _bursts(n, share, rng):
    """Rows of bursts: BURST junk events within twice as many, at random times apart."""
    wild = np.zeros(n, dtype=bool)
    slots = n // (2 * BURST)
    for slot in rng.choice(slots, round(share * n / BURST), replace=False).tolist():
        wild[2 * BURST * slot + rng.choice(2 * BURST, BURST, replace=False)] = True
    return wild


def _directions(k, d, rng):
    found = rng.normal(size=(k, d))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def _places(k, d, rng):
    """Centers uniform in a cube, each at least twice APART from the others; it grows as needed."""
    found, half = rng.uniform(-10, 10, (1, d)), 10.0
    while len(found) < k:
        one = rng.uniform(-half, half, d)
        if np.linalg.norm(found - one, axis=1).min() >= 2 * APART:
            found = np.vstack([found, one])
        else:
            half *= 1.01
    return found
