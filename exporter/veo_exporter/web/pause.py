# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The routes that give the driver back and take it again; on the unix socket alone."""

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from veo_exporter.web.doors import Refusal, came_by_socket, refuse

PAUSE_PATH: Final = "/-/pause"
RESUME_PATH: Final = "/-/resume"
USUAL_PAUSE_ANSWERS: Final = (
    *((path, code) for path in (PAUSE_PATH, RESUME_PATH) for code in ("200", "400", "403")),
    (PAUSE_PATH, "202"),
    (PAUSE_PATH, "409"),
)

Said = tuple[int, str]
"""Status and sentence."""


def by_socket_alone(handler: Handler, count_refusal: Callable[[Refusal], None]) -> Handler:
    """The handler, for those who come by the unix socket; the others are refused and counted."""

    async def handle(request: web.Request) -> web.StreamResponse:
        if came_by_socket(request):
            return await handler(request)
        count_refusal(Refusal.NOT_ON_SOCKET)
        return refuse(Refusal.NOT_ON_SOCKET)

    return handle


def pause_handler(pause: Callable[[str | None], Awaitable[Said]]) -> Handler:
    """Takes `for`, how long the pause shall last, as it is written."""

    async def handle(request: web.Request) -> web.StreamResponse:
        fault = _query_fault(request, "for")
        return _answer((400, fault) if fault else await pause(request.query.get("for")))

    return handle


def resume_handler(resume: Callable[[], Awaitable[Said]]) -> Handler:
    """Takes nothing."""

    async def handle(request: web.Request) -> web.StreamResponse:
        fault = _query_fault(request)
        return _answer((400, fault) if fault else await resume())

    return handle


def _answer(said: Said) -> web.Response:
    status, sentence = said
    return web.Response(status=status, text=sentence + "\n")


def _query_fault(request: web.Request, *known: str) -> str:
    """What is wrong with the names of the parameters: one that was ignored would be believed."""
    for name in request.query:
        if name not in known:
            takes = f"{', '.join(known)} only" if known else "none"
            return f"{name[:40]}: no such parameter; {request.path} takes {takes}"
        if len(request.query.getall(name)) > 1:
            return f"{name}: stands twice"
    return ""
