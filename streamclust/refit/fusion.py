"""What robust continuous clustering fuses along: weighted edges, their systems, and the levels.

Shah and Koltun, "Robust continuous clustering" (PNAS 114(37), 2017), supplement: weights of the
edges, the line process of Geman and McClure, and the graduation of its truncation. A system
(H + A) U = H X is solved for all columns side by side: by a factorisation whose pattern is found
once, or, where that fills up, by conjugate gradients from the last solution.
"""

from __future__ import annotations

import numpy as np

from streamclust.kernels.comet import draw_together, solve_fusion
from streamclust.kernels.elimination import IndexArray, eliminate, find_entries, solve_directly
from streamclust.kernels.rcc import edge_pulls, edge_squares, laplacian_norm
from streamclust.refit.graph import Graph
from streamclust.results import FloatArray, IntArray

INNER = 4
"""Systems per level of the truncation at the most, as published."""
RESIDUAL = 1e-2
"""Relative residual of a linear system, as published; the next one starts from its solution."""
MAX_STEPS = 100
"""Conjugate gradient steps per system, at the most."""
TYPICAL_STEPS = 20
"""Conjugate gradient steps that a factorisation may cost."""

Factor = tuple[IntArray, IntArray, IndexArray, IntArray, IntArray, IntArray, IntArray]
"""Where a factor has entries, as the kernels take it."""


class FusionGraph:
    """The edges that fuse, their weights, and the operations on them.

    Points are numbered by *position*: in the order in which a factorisation eliminates them, so
    that it walks through memory; where none is used, as in the graph.

    Parameters
    ----------
    graph : Graph
    mass : float array of shape (n,)
        Weights of the points, as in the graph.
    columns : int, default 0
        Coordinates per point. A factorisation is used where it costs less than conjugate gradients
        for so many; 0: never, as few systems do not repay its order.

    Attributes
    ----------
    first, second : int array of shape (m,)
        Ends of the edges, as positions.
    base : float array of shape (m,)
        Weights of the edges.
    order : int array of shape (n,)
        The point at each position.
    place : int array of shape (n,)
        The position of each point.
    """

    def __init__(self, graph: Graph, mass: FloatArray, *, columns: int = 0) -> None:
        chosen = graph.fused
        first, second = graph.first[chosen], graph.second[chosen]
        start, neighbours, edge = graph.lists(chosen)
        self.order = self.place = np.arange(graph.n)
        self._factor: Factor | None = None
        self._lists = start, neighbours, edge
        if columns:
            first, second = self._eliminate(first, second, columns)
        self.first, self.second = first, second
        degree = np.diff(start)[self.order]
        held = np.sqrt(mass)[self.order]
        self.base: FloatArray = degree.mean() / np.sqrt(
            (degree[first] * degree[second]).astype(float)
        )
        self.base *= held[first] * held[second]
        self._vector = np.where(np.arange(graph.n) % 2 == 0, 1.0, -1.0) + np.linspace(
            0.0, 0.5, graph.n
        )

    def squares(self, U: FloatArray) -> FloatArray:
        """Squared length of every edge."""
        out = np.empty(len(self.first))
        edge_squares(self.first, self.second, U, out)
        return out

    def penalty(self, U: FloatArray, truncation: float) -> tuple[float, FloatArray]:
        """The fusion term, without lambda / 2, and the pull of every edge."""
        pulls = np.empty(len(self.first))
        return edge_pulls(self.first, self.second, self.base, U, truncation, pulls), pulls

    def norm(self, pulls: FloatArray) -> float:
        """The spectral norm of the Laplacian; the next call starts from its vector."""
        unit = float(pulls.max()) or 1.0  # squares of faded weights could vanish
        norm = laplacian_norm(self.first, self.second, pulls / unit, self._vector, 1e-3, 200)
        return max(unit * float(norm), np.finfo(float).tiny)

    def solve(self, pulls: FloatArray, held: FloatArray, X: FloatArray, U: FloatArray) -> None:
        """Move U to the solution of (H + A) U = H X."""
        if self._factor is not None:
            solve_directly(self.first, self.second, pulls, held, X, *self._factor, U)
        else:
            start, neighbours, edge = self._lists
            solve_fusion(start, neighbours, pulls[edge], held, X, U, RESIDUAL, MAX_STEPS)

    def draw_together(
        self,
        Z: FloatArray,
        U: FloatArray,
        weights: FloatArray,
        bins: IntArray,
        strength: float,
        resist: float,
        truncation: float,
        end: float,
    ) -> None:
        """Move U, which starts at Z, level by level; see `kernels.comet.draw_together`."""
        draw_together(
            *self._lists,
            self.first,
            self.second,
            self.base,
            weights,
            bins,
            strength,
            resist,
            truncation,
            end,
            RESIDUAL,
            MAX_STEPS,
            Z,
            U,
        )

    def _eliminate(
        self, first: IntArray, second: IntArray, columns: int
    ) -> tuple[IntArray, IntArray]:
        """Take the order of elimination, unless it costs too much; the edges' ends as positions."""
        n, m = len(self.order), len(first)
        most = float(TYPICAL_STEPS * columns * (4 * m + 10 * n))
        place = np.empty(n, np.int64)
        blocks, bounds = np.empty((2, n + 1), np.int64)
        rows = eliminate(*self._lists[:2], most, place, blocks, bounds)
        if len(rows) and rows[0] == n:
            return first, second
        self.place, self.order = place, np.argsort(place)
        low, high = np.minimum(place[first], place[second]), np.maximum(place[first], place[second])
        along = np.argsort(low * n + high)
        first, second = low[along], high[along]
        count = int(np.searchsorted(blocks, n))
        blocks, bounds = blocks[: count + 1], bounds[: count + 1]
        width = np.diff(blocks)
        tall = width + np.diff(bounds)
        owner = np.repeat(np.arange(count), width)
        at = np.concatenate(([0], np.cumsum(width * tall)))
        pivots = at[owner] + (np.arange(n) - blocks[owner]) * (tall[owner] + 1)
        entries = np.empty(m, np.int64)
        find_entries(first, second, blocks, bounds, rows, owner, at, entries)
        self._factor = blocks, bounds, rows, owner, at, pivots, entries
        return first, second


class Schedule:
    """The truncation, halved level by level down to its end.

    Parameters
    ----------
    truncation : float
        The first level.
    end : float
        Below it the truncation is not halved; the last level is half of it.
    tolerance : float
        Change of the objective at which a level is done.
    relative : bool
        Whether the tolerance is a share of the objective.
    """

    def __init__(self, truncation: float, end: float, tolerance: float, *, relative: bool) -> None:
        self.truncation = truncation
        self.end = end
        self.ended = False
        self._tolerance = tolerance
        self._relative = relative
        self._inner = 0
        self._objective = np.inf

    def advance(self, objective: float) -> bool:
        """Take note of one solve; return whether the level changed."""
        change = abs(self._objective - objective)
        done = change < self._tolerance * (objective if self._relative else 1.0)
        self._objective = objective
        self._inner += 1
        if not done and self._inner < INNER:
            return False
        if self.truncation >= self.end:
            self.truncation *= 0.5
        elif self._inner >= INNER:
            self.truncation = 0.5 * self.end
        else:
            self.ended = True
        self._inner = 0
        return True
