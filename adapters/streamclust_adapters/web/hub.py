"""Who looks at the page, and what each of them has seen: the engine never waits for a browser.

The newest state is kept by section. A browser that is slow or away misses the states in between and
gets the newest one when it can take it; nothing is queued up for it.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import AsyncIterator, Mapping

BEAT = 15.0
"""Seconds of silence after which a comment is sent, so that dead browsers are found."""

RETRY = 2000
"""Milliseconds after which a browser tries again."""


class Hub:
    """The newest state, and those who wait for a newer one.

    `publish` and `close` may be called on any thread; all else belongs to the thread of the loop.
    """

    def __init__(self) -> None:
        self._run = secrets.token_hex(4)  # states of another run have other ids
        self._lock = threading.Lock()
        self._coming: dict[str, bytes] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sections: dict[str, tuple[int, bytes]] = {}
        self._version = 0
        self._news = asyncio.Event()
        self.closed = False

    def publish(self, sections: Mapping[str, bytes]) -> None:
        """Replace sections of the state; returns at once."""
        with self._lock:
            is_asked = bool(self._coming)  # the loop has not come to the last state yet
            self._coming.update(sections)
            if self._loop is not None and not is_asked:
                self._loop.call_soon_threadsafe(self._take)

    def open(self) -> None:
        """Begin to serve on the loop of this thread."""
        with self._lock:
            self._loop = asyncio.get_running_loop()
        self._take()

    def close(self) -> None:
        """End all streams."""
        with self._lock:
            loop, self._loop = self._loop, None
            self.closed = True
            if loop is not None:
                loop.call_soon_threadsafe(self._tell)

    async def stream(self, last_id: str) -> AsyncIterator[bytes]:
        """Server-sent events for one browser, until the hub is closed.

        Parameters
        ----------
        last_id : str
            What the browser has seen, by its ``Last-Event-ID``; empty for nothing.
        """
        seen = self._seen(last_id)
        yield b"retry: %d\n\n" % RETRY
        while not self.closed:
            news = self._news
            if self._version > seen:
                block = self._since(seen)
                seen = self._version
                yield block
                continue
            try:
                await asyncio.wait_for(news.wait(), BEAT)
            except TimeoutError:
                yield b":\n\n"

    def _take(self) -> None:
        """Make what was published the state."""
        with self._lock:
            coming, self._coming = self._coming, {}
        known = self._sections
        changed = {
            name: content
            for name, content in coming.items()
            if name not in known or known[name][1] != content
        }
        if changed:
            self._version += 1
            known.update((name, (self._version, content)) for name, content in changed.items())
            self._tell()

    def _tell(self) -> None:
        """Wake everyone who waits."""
        self._news.set()
        self._news = asyncio.Event()

    def _since(self, seen: int) -> bytes:
        """The sections that are newer than a version; only the last one carries the id.

        A browser that loses the connection within them asks for all of them again.
        """
        newer = [
            (name, content) for name, (version, content) in self._sections.items() if version > seen
        ]
        blocks = [b"event: %b\ndata: %b\n" % (name.encode(), content) for name, content in newer]
        return b"\n".join(blocks) + f"id: {self._run}-{self._version}\n\n".encode()

    def _seen(self, last_id: str) -> int:
        run, _, version = last_id.partition("-")
        if run != self._run or not version.isascii() or not version.isdigit():
            return 0
        return int(version[:18])
