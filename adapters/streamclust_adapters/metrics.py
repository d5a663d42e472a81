"""What a worker shows of itself over HTTP: Prometheus metrics, ``/healthz`` and ``/readyz``."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from streamclust.errors import AdapterError, MissingExtra
from streamclust_adapters.answering import Totals
from streamclust_adapters.worker import Turn

try:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
    from prometheus_client.exposition import CONTENT_TYPE_LATEST
except ImportError as error:
    raise MissingExtra("kafka") from error

ALIVE = 300.0
"""Seconds without a turn after which ``/healthz`` fails; a group expels a worker then, too."""

GAUGES_EVERY = 2.0
"""Seconds between two looks into the engines, which cost more than a counter."""

OF_MODEL = {
    "clusters": "Living clusters",
    "noise_share": "Share of recent events that are noise",
    "window_fidelity": "Share of the window whose rule names the nearest center",
    "refits": "Refits so far",
    "micro_centers": "Micro-centers",
}
"""Figures of a model that are shown, where it has them."""


class Metrics:
    """Counts turns; takes gauges between them, on the thread that owns the engines.

    Parameters
    ----------
    lag : callable
        Offsets not read yet, by partition.
    clock, wall : callable
        Seconds; seconds since 1970, as messages have them.
    """

    def __init__(
        self,
        lag: Callable[[], Mapping[int, int]],
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._lag = lag
        self._clock, self._wall = clock, wall
        self._counted: dict[str, tuple[Totals, dict[str, int]]] = {}  # by engine
        self._next_gauges = -math.inf
        self._last_turn = clock()
        self._ready = False
        registry = self._registry = CollectorRegistry()
        engine = ["engine"]
        self._events = Counter("streamclust_events", "Events answered", engine, registry=registry)
        self._refused = Counter(
            "streamclust_dead_letters", "Records without an answer", engine, registry=registry
        )
        self._changes = Counter(
            "streamclust_changes", "Change events", ["engine", "kind"], registry=registry
        )
        self._seconds = Histogram(
            "streamclust_batch_seconds", "From a batch read to it delivered", registry=registry
        )
        self._latency = Histogram(
            "streamclust_latency_seconds",
            "From the timestamp of a batch's oldest message to its answer delivered",
            buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, math.inf),
            registry=registry,
        )
        self._lags = Gauge(
            "streamclust_lag", "Offsets not read yet", ["partition"], registry=registry
        )
        self._age = Gauge(
            "streamclust_snapshot_age_seconds", "Age of the snapshot", engine, registry=registry
        )
        self._replaying = Gauge(
            "streamclust_replaying", "1 while an engine is rebuilt", engine, registry=registry
        )
        self._of_model = {
            name: Gauge(f"streamclust_{name}", told, engine, registry=registry)
            for name, told in OF_MODEL.items()
        }

    def __call__(self, turn: Turn) -> None:
        """Count one turn."""
        now = self._last_turn = self._clock()
        self._ready = turn.ready
        if turn.messages:
            self._seconds.observe(turn.seconds)
            times = [message.time for message in turn.messages if message.time is not None]
            if times:
                self._latency.observe(max(self._wall() - min(times), 0.0))
        for lane in turn.lanes:
            self._count(lane.name, lane.totals)
        if now >= self._next_gauges:
            self._next_gauges = now + GAUGES_EVERY
            self._take_gauges(turn, now)

    def alive(self) -> bool:
        """Whether the worker's loop turns."""
        return self._clock() - self._last_turn < ALIVE

    def ready(self) -> bool:
        """Whether it has engines, and all of them answer."""
        return self._ready and self.alive()

    def page(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def _count(self, name: str, totals: Totals) -> None:
        """Count what is new in an engine's totals; one that was opened anew begins at zero."""
        known, before = self._counted.get(name, (totals, {}))
        if known is not totals:
            before = {}
        now = {"answered": totals.answered, "refused": totals.refused, **totals.changes}
        self._counted[name] = (totals, now)
        for kind, n in now.items():
            counter = {"answered": self._events, "refused": self._refused}.get(kind)
            child = counter.labels(name) if counter else self._changes.labels(name, kind)
            child.inc(n - before.get(kind, 0))

    def _take_gauges(self, turn: Turn, now: float) -> None:
        self._lags.clear()
        for partition, lag in self._lag().items():
            self._lags.labels(str(partition)).set(lag)
        every = [self._age, self._replaying, *self._of_model.values()]
        for gauge in every:
            gauge.clear()
        for lane in turn.lanes:
            self._age.labels(lane.name).set(0 if lane.saved_at is None else now - lane.saved_at)
            self._replaying.labels(lane.name).set(lane.replaying)
            figures = lane.model.metrics()
            for name, gauge in self._of_model.items():
                if name in figures:
                    gauge.labels(lane.name).set(figures[name])


class MetricsServer:
    """Serves metrics while entered.

    Parameters
    ----------
    metrics : Metrics
        What is served.
    host, port : str, int
        Where; port 0 takes a free one, which `port` tells then.

    Raises
    ------
    AdapterError
        When the address cannot be taken.
    """

    def __init__(self, metrics: Metrics, host: str, port: int) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, kind, body = _answer(metrics, self.path.partition("?")[0])
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:
                """A scrape is no news."""

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except (OSError, OverflowError) as error:
            raise AdapterError(f"cannot serve metrics on {host}:{port}: {error}") from error
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> MetricsServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _answer(metrics: Metrics, path: str) -> tuple[int, str, bytes]:
    """Status, content type and body of a page."""
    text = "text/plain; charset=utf-8"
    if path == "/metrics":
        return 200, CONTENT_TYPE_LATEST, metrics.page()
    if path in {"/healthz", "/readyz"}:
        well = metrics.alive() if path == "/healthz" else metrics.ready()
        return (200, text, b"ok\n") if well else (503, text, b"no\n")
    return 404, text, b"/metrics, /healthz and /readyz are here\n"
