# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The HTTP server: routes and nothing that decides about data."""

import asyncio
import errno
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from aiohttp.typedefs import Handler

from veo_exporter.errors import BadConfig, ListenFailed
from veo_exporter.web.advice import PATH as ADVICE_PATH
from veo_exporter.web.advice import USUAL_ADVICE_ANSWERS, advice_handler
from veo_exporter.web.doors import Refusal, guard
from veo_exporter.web.events import PATH as EVENTS_PATH
from veo_exporter.web.landing import Landing, render_landing
from veo_exporter.web.pause import (
    PAUSE_PATH,
    RESUME_PATH,
    USUAL_PAUSE_ANSWERS,
    by_socket_alone,
    pause_handler,
    resume_handler,
)

SHUTDOWN_SECONDS: Final = 0.3
"""How long an answer under way may take once the exporter is asked to end."""
MAX_BODY_BYTES: Final = 1 << 20
SOCKET_MODE: Final = 0o600
OTHER_PATH: Final = "other"
USUAL_ANSWERS: Final = (
    ("/metrics", "200"),
    ("/-/healthy", "200"),
    ("/-/healthy", "503"),
    ("/-/ready", "200"),
    ("/-/ready", "503"),
    ("/-/reload", "200"),
    ("/-/reload", "400"),
    ("/-/reload", "403"),
    *USUAL_PAUSE_ANSWERS,
    *USUAL_ADVICE_ANSWERS,
    *((EVENTS_PATH, code) for code in ("202", "400", "403", "413", "415", "429")),
    ("/", "200"),
    ("/", "403"),
)
"""Paths and statuses that are counted from the start, so that the first one is seen."""

_CONTENT_SECURITY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What the routes serve, handed over by the composition root. Nothing here waits for a driver."""

    server_name: str
    simulated: bool
    metrics: Callable[[str, str], tuple[bytes, dict[str, str]]]
    unhealthy: Callable[[], str]
    """Empty while the process is well, else what is wrong with it."""
    withdrawn: Callable[[], list[str]]
    landing: Callable[[], Landing]
    advice: Callable[[], Mapping[str, Any]]
    events: Callable[[web.Request], Awaitable[web.Response]]
    reload: Callable[[], Awaitable[None]]
    """Raises BadConfig if the new configuration is refused."""
    pause: Callable[[str | None], Awaitable[tuple[int, str]]]
    """Status and sentence; given how long it shall last, as it is written in the request."""
    resume: Callable[[], Awaitable[tuple[int, str]]]
    count_request: Callable[[str, int], None]
    count_refusal: Callable[[Refusal], None]


def build_application(answers: Answers) -> web.Application:
    """The routes, behind the door."""
    mark = " (simulated)" if answers.simulated else ""

    async def metrics(request: web.Request) -> web.Response:
        body, headers = answers.metrics(
            request.headers.get("Accept", ""), request.headers.get("Accept-Encoding", "")
        )
        return web.Response(body=body, headers=headers)

    async def healthy(request: web.Request) -> web.Response:
        fault = answers.unhealthy()
        return web.Response(status=503 if fault else 200, text=(fault or f"healthy{mark}") + "\n")

    async def ready(request: web.Request) -> web.Response:
        sentences = answers.withdrawn()
        text = "\n".join([f"withdrawn{mark}:", *sentences] if sentences else [f"ready{mark}"])
        return web.Response(status=503 if sentences else 200, text=text + "\n")

    async def landing(request: web.Request) -> web.Response:
        return web.Response(
            # A board's name may hold what UTF-8 cannot say.
            body=render_landing(answers.landing()).encode(errors="replace"),
            content_type="text/html",
            charset="utf-8",
            headers={
                "Content-Security-Policy": _CONTENT_SECURITY,
                "Referrer-Policy": "no-referrer",
            },
        )

    async def reload(request: web.Request) -> web.Response:
        try:
            await answers.reload()
        except BadConfig as error:
            return web.Response(
                status=400, text=f"refused, the old configuration stays:\n{error}\n"
            )
        return web.Response(text="reloaded\n")

    @web.middleware
    async def count(request: web.Request, handler: Handler) -> web.StreamResponse:
        resource = request.match_info.route.resource
        path = resource.canonical if resource is not None else OTHER_PATH
        try:
            response = await handler(request)
        except web.HTTPException as error:
            answers.count_request(path, error.status)
            raise
        except Exception:
            answers.count_request(path, 500)
            raise
        answers.count_request(path, response.status)
        return response

    async def sign(request: web.Request, response: web.StreamResponse) -> None:
        response.headers["Server"] = answers.server_name
        response.headers["X-Content-Type-Options"] = "nosniff"

    application = web.Application(
        middlewares=[count, guard(answers.count_refusal)], client_max_size=MAX_BODY_BYTES
    )
    application.on_response_prepare.append(sign)
    application.router.add_get("/metrics", metrics)
    application.router.add_get("/-/healthy", healthy)
    application.router.add_get("/-/ready", ready)
    for path, handler in (
        ("/-/reload", reload),
        (PAUSE_PATH, pause_handler(answers.pause)),
        (RESUME_PATH, resume_handler(answers.resume)),
    ):
        application.router.add_post(path, by_socket_alone(handler, answers.count_refusal))
    application.router.add_post(EVENTS_PATH, answers.events)
    application.router.add_get(ADVICE_PATH, advice_handler(answers.advice))
    application.router.add_get("/", landing)
    return application


def build_runner(application: web.Application) -> web.AppRunner:
    """What carries the routes; bodies come as they were sent, and are unpacked where they are read."""
    return web.AppRunner(
        application,
        access_log=None,
        shutdown_timeout=SHUTDOWN_SECONDS,
        # aiohttp's own answers 500 to what it cannot unpack, and takes half a body for a whole one.
        auto_decompress=False,
    )


class Server:
    """Listens on an address and, if asked to, on a unix socket."""

    def __init__(self, application: web.Application) -> None:
        self._runner = build_runner(application)
        self._unix_socket: Path | None = None
        self.port = 0

    async def start(self, listen_address: str, unix_socket: Path | None) -> None:
        """Begin to answer. Raises ListenFailed."""
        await self._runner.setup()
        host, _, port = listen_address.rpartition(":")
        try:
            site = web.TCPSite(self._runner, host.strip("[]") or None, int(port))
            await site.start()
        except OSError as error:
            raise ListenFailed(
                f"web.listen_address {listen_address}: {_why_not_listening(error)}"
            ) from None
        self.port = next(address[1] for address in self._runner.addresses)
        if unix_socket is not None:
            await self._start_socket(unix_socket)

    async def _start_socket(self, path: Path) -> None:
        try:
            if await asyncio.to_thread(_is_served, path):
                raise ListenFailed(
                    f"web.unix_socket {path}: another process is serving on it: end it or choose another"
                )
            if await asyncio.to_thread(_is_something_else, path):
                raise ListenFailed(
                    f"web.unix_socket {path}: a file that is no socket stands there: "
                    "remove it or choose another"
                )
            await asyncio.to_thread(_clear_away, path)
            # Nobody may connect between the socket's making and the change of its mode.
            mask = os.umask(0o777 & ~SOCKET_MODE)
            try:
                await web.UnixSite(self._runner, str(path)).start()
            finally:
                os.umask(mask)
        except OSError as error:
            # A path that is too long for a socket has no error number.
            raise ListenFailed(
                f"web.unix_socket {path}: {error.strerror or error}: "
                "choose a shorter path in a folder we may write to"
            ) from None
        self._unix_socket = path

    async def stop(self) -> None:
        """End: answers under way get a moment, then connections are closed."""
        await self._runner.cleanup()
        if self._unix_socket is not None:
            self._unix_socket.unlink(missing_ok=True)


def _why_not_listening(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"{error.strerror}: write an address of this machine, or none for all of them"
    # asyncio's own sentence names the address once more; some of its errors carry no number.
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.errno == errno.EADDRINUSE:
        return f"{reason}: free the port or choose another"
    if error.errno == errno.EACCES:
        return f"{reason}: choose a port from 1024 on, or grant CAP_NET_BIND_SERVICE"
    return f"{reason}: write an address of this machine, or none for all of them"


def _is_something_else(path: Path) -> bool:
    return path.exists() and not path.is_socket()


def _clear_away(path: Path) -> None:
    if path.is_socket():
        path.unlink()


def _is_served(path: Path) -> bool:
    if not path.is_socket():
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError:
            # Left over from a process that was killed.
            return False
    return True
