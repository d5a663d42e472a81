"""The server of the page, on a thread of its own: the engine hands over states and goes on."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Collection
from types import TracebackType

from streamclust.errors import AdapterError, MissingExtra
from streamclust_adapters.live import View
from streamclust_adapters.web.app import application
from streamclust_adapters.web.hub import Hub
from streamclust_adapters.web.sections import message, sections

try:
    import uvicorn
except ImportError as error:
    raise MissingExtra("web") from error

CLOSING = 3.0
"""Seconds that open connections have at the end."""


class PageServer:
    """A `Screen` that is served while entered.

    Parameters
    ----------
    title : str
        What the page says is shown.
    host, port : str, int
        Where; port 0 takes a free one, which `port` tells then.
    token : str, optional
        What a browser must know.
    names : collection of str
        Further names of this host, by which the page may be asked for.

    Raises
    ------
    AdapterError
        When the address cannot be taken.
    """

    def __init__(
        self,
        title: str,
        host: str,
        port: int,
        *,
        token: str | None = None,
        names: Collection[str] = (),
    ) -> None:
        self._hub = Hub()
        self._title = title
        self._socket = _listening(host, port)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            application(self._hub, token, {host, *names}),
            log_config=None,
            log_level="error",
            access_log=False,
            lifespan="off",
            ws="none",
            http="h11",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=int(CLOSING),
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self.wait("starting")

    def show(self, view: View) -> None:
        """Show a view on every page."""
        self._hub.publish({**sections(view), "state": message(self._title, "live")})

    def wait(self, text: str) -> None:
        """Show what is waited for."""
        self._hub.publish({"state": message(f"{self._title}: {text}", "waiting")})

    def end(self, text: str) -> None:
        """Show that nothing more will come."""
        self._hub.publish({"state": message(f"{self._title}: {text}", "ended")})

    def __enter__(self) -> PageServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._hub.close()
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    async def _serve(self) -> None:
        self._hub.open()
        await self._server.serve(sockets=[self._socket])


def _listening(host: str, port: int) -> socket.socket:
    """A socket that is bound; who connects early waits for the server."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, number, _, address = found[0]
        bound = socket.socket(family, kind, number)
    except (OSError, OverflowError) as error:
        raise AdapterError(f"cannot serve on {host}:{port}: {error}") from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen()
    except OSError as error:
        bound.close()
        raise AdapterError(
            f"cannot serve on {host}:{port}: {error.strerror}; --port takes another, 0 a free one"
        ) from error
    return bound
