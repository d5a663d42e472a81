"""The pages and what guards them: the host that is asked for, the token, and strict headers."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie
from importlib import resources
from urllib.parse import parse_qs

from streamclust.errors import MissingExtra
from streamclust_adapters.web.hub import Hub

try:
    from starlette.applications import Starlette
    from starlette.datastructures import Headers, MutableHeaders
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, RedirectResponse, Response
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as error:
    raise MissingExtra("web") from error

FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/login": ("login.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/draw.js": ("draw.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}

OPEN = {"/login", "/page.css", "/icon.svg"}
"""What is shown without the token: the form that asks for it."""

COOKIE = "streamclust"

MOST_BROWSERS = 32
"""Browsers that look at the same time; each costs one connection."""

PATIENCE = 30.0
"""Seconds that a browser may take to accept what is sent to it."""

LONGEST_FORM = 4096

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


def application(hub: Hub, token: str | None, names: Collection[str]) -> ASGIApp:
    """Everything that is served.

    Parameters
    ----------
    hub : Hub
        What is shown.
    token : str or None
        What a browser must know; None asks for nothing.
    names : collection of str
        Names under which the page may be asked for, beside ``localhost`` and plain addresses.
        Others are refused: a foreign page could have given its own name our address.
    """
    files = resources.files(__package__) / "static"
    content = {path: (files / name).read_bytes() for path, (name, _) in FILES.items()}

    async def file(request: Request) -> Response:
        path = request.url.path
        return Response(content[path], media_type=FILES[path][1])

    async def login(request: Request) -> Response:
        given = await _form_value(request, "token")
        if token is None or not hmac.compare_digest(given.encode(), token.encode()):
            return Response(content["/login"], 401, media_type=FILES["/login"][1])
        answer = RedirectResponse("./", 303)
        answer.set_cookie(COOKIE, session_of(token), httponly=True, samesite="strict")
        return answer

    async def session(request: Request) -> Response:
        return Response(status_code=204)  # the guard has let it through

    routes = [Route(path, file, methods=["GET"]) for path in FILES]
    routes += [
        Route("/login", login, methods=["POST"]),
        Route("/session", session, methods=["GET"]),
        Route("/events", Events(hub)),
    ]
    return Guard(Starlette(routes=routes), token, names)


def session_of(token: str) -> str:
    """What the cookie holds: it follows from the token and does not tell it."""
    return hmac.new(token.encode(), b"streamclust page", hashlib.sha256).hexdigest()


class Guard:
    """Refuses other hosts and strangers, and puts the headers on every answer."""

    def __init__(self, app: ASGIApp, token: str | None, names: Collection[str]) -> None:
        self._app = app
        self._token = token
        self._names = {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        refused: Response | None = None
        if not self._is_ours(headers.get("host", "")):
            refused = PlainTextResponse("this page is not served under that name\n", 421)
        elif scope["path"] not in OPEN and not self._is_known(headers):
            refused = self._stranger(scope)
        await (refused or self._app)(scope, receive, guarded)

    def _stranger(self, scope: Scope) -> Response:
        if scope["path"] == "/":
            return RedirectResponse("login", 303)
        return PlainTextResponse("a token is needed\n", 401, {"WWW-Authenticate": "Bearer"})

    def _is_ours(self, host: str) -> bool:
        """Whether a Host header names us: by an address, which no foreign name can be."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        try:
            ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return name.lower().rstrip(".") in self._names
        return True

    def _is_known(self, headers: Headers) -> bool:
        """Whether the token was given, as a cookie or in an Authorization header."""
        if self._token is None:
            return True
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and hmac.compare_digest(bearer.encode(), self._token.encode()):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        given = "" if cookie is None else cookie.value
        return hmac.compare_digest(given.encode(), session_of(self._token).encode())


class Events:
    """The stream of states for a browser; one that does not take them is let go."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._browsers = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one browser until it goes, or the hub is closed."""
        if scope["method"] != "GET":
            await PlainTextResponse("GET\n", 405, {"Allow": "GET"})(scope, receive, send)
            return
        if self._browsers >= MOST_BROWSERS:
            await PlainTextResponse("too many browsers\n", 503)(scope, receive, send)
            return
        self._browsers += 1
        gone = asyncio.create_task(_gone(receive))
        sending = asyncio.create_task(self._send(Headers(scope=scope), send))
        try:
            await asyncio.wait({gone, sending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._browsers -= 1
            for task in (gone, sending):
                task.cancel()
            await asyncio.gather(gone, sending, return_exceptions=True)

    async def _send(self, headers: Headers, send: Send) -> None:
        kind = (b"content-type", b"text/event-stream; charset=utf-8")
        await send({"type": "http.response.start", "status": 200, "headers": [kind]})
        async for block in self._hub.stream(headers.get("last-event-id", "")):
            part = {"type": "http.response.body", "body": block, "more_body": True}
            await asyncio.wait_for(send(part), PATIENCE)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    """Wait until the browser has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _form_value(request: Request, name: str) -> str:
    """A field of a short form; empty where there is none."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LONGEST_FORM:
            return ""
    return parse_qs(body.decode("latin-1")).get(name, [""])[0]
