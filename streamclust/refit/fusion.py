"""What robust continuous clustering fuses along: weighted edges, their systems, and the levels.

Shah and Koltun, "Robust continuous clustering" (PNAS 114(37), 2017), supplement: weights of the
edges, the line process of Geman and McClure, and the graduation of its truncation. A system
(H + A) U = H X is solved for all columns side by side: by a factorisation whose pattern is found
once, or, where that fills up, by conjugate gradients from the last solution.
"""

from __future__ import annotations

import numpy as np

from streamclust.kernels.comet import solve_fusion
from streamclust.kernels.elimination import RowArray, eliminate, find_entries, solve_directly
from streamclust.kernels.rcc import edge_squares, laplacian_norm
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


class FusionGraph:
    """The edges that fuse, their weights, and the operations on them.

    Parameters
    ----------
    graph : Graph
    mass : float array of shape (n,)
        Weights of the points.
    direct : bool, default True
        Whether a factorisation is used where it costs less; few systems do not repay its order.
    """

    def __init__(self, graph: Graph, mass: FloatArray, *, direct: bool = True) -> None:
        chosen = graph.fused
        self.first, self.second = graph.first[chosen], graph.second[chosen]
        degree = np.bincount(np.concatenate((self.first, self.second)), minlength=graph.n)
        self.base: FloatArray = degree.mean() / np.sqrt(
            (degree[self.first] * degree[self.second]).astype(float)
        )
        self.base *= np.sqrt(mass[self.first] * mass[self.second])
        self._start, self._neighbours, self._place = graph.lists(chosen)
        self._vector = np.where(np.arange(graph.n) % 2 == 0, 1.0, -1.0) + np.linspace(
            0.0, 0.5, graph.n
        )
        self._factor: tuple[IntArray, IntArray, RowArray, IntArray] | tuple[()] | None = None
        if not direct:
            self._factor = ()

    def squares(self, U: FloatArray) -> FloatArray:
        """Squared length of every edge."""
        out = np.empty(len(self.first))
        edge_squares(self.first, self.second, U, out)
        return out

    def penalty(self, U: FloatArray, truncation: float) -> tuple[float, FloatArray]:
        """The fusion term, without lambda / 2, and the pull of every edge."""
        square = self.squares(U)
        root = truncation / (truncation + square)
        pulls = self.base * root**2
        return float(pulls @ square + truncation * (self.base @ (root - 1.0) ** 2)), pulls

    def norm(self, pulls: FloatArray) -> float:
        """The spectral norm of the Laplacian; the next call starts from its vector."""
        unit = float(pulls.max()) or 1.0  # squares of faded weights could vanish
        norm = laplacian_norm(self.first, self.second, pulls / unit, self._vector, 1e-3, 200)
        return max(unit * float(norm), np.finfo(float).tiny)

    def solve(self, pulls: FloatArray, held: FloatArray, X: FloatArray, U: FloatArray) -> None:
        """Move U to the solution of (H + A) U = H X."""
        if self._factor is None:
            self._factor = self._eliminated(X.shape[1])
        if self._factor:
            solve_directly(self.first, self.second, pulls, held, X, *self._factor, U)
        else:
            pulled = pulls[self._place]
            start, neighbours = self._start, self._neighbours
            solve_fusion(start, neighbours, pulled, held, X, U, RESIDUAL, MAX_STEPS)

    def _eliminated(
        self, columns: int
    ) -> tuple[IntArray, IntArray, RowArray, IntArray] | tuple[()]:
        """Where the factor has entries; nothing where conjugate gradients cost less."""
        n, m = len(self._start) - 1, len(self.first)
        most = float(TYPICAL_STEPS * columns * (4 * m + 10 * n))
        place, bounds = np.empty(n, np.int64), np.empty(n + 1, np.int64)
        rows = eliminate(self._start, self._neighbours, most, place, bounds)
        if len(rows) and rows[0] == n:
            return ()
        entries = np.empty(m, np.int64)
        find_entries(self.first, self.second, place, bounds, rows, entries)
        return place, bounds, rows, entries


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
