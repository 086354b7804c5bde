# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The doors on real sockets, with answers that are made up."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from veo_exporter.gpu.readings import Driver, Snapshot
from veo_exporter.web import Answers, Landing, Refusal, Server, build_application

NOBODY = Snapshot(
    sequence=1,
    # Fresh, whatever the time asked about.
    taken_monotonic_seconds=float("inf"),
    driver=Driver(fault=""),
    expected=None,
    gpus=(),
    last_success_unix_seconds={},
    stale_after_seconds={},
)


def landing(**changes: Any) -> Landing:
    said: dict[str, Any] = {
        "version": "1.2.3",
        "node": "node-1",
        "simulated": False,
        "gpus_watched": True,
        "snapshot": NOBODY,
        "withdrawn": [],
        "now_monotonic_seconds": 0.0,
    }
    return Landing(**said | changes)


class Said:
    """What the answers are, and what the server told."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.refusals: Counter[Refusal] = Counter()
        self.reloads = 0
        self.asked: list[tuple[str, str]] = []
        self.fault = ""
        self.withdrawn: list[str] = []
        self.landing: Callable[[], Landing] = landing
        self.reload_error: Exception | None = None
        self.pauses: list[str | None] = []
        self.pause_answer = (200, "paused")
        self.resumes = 0
        self.advice: dict[str, Any] = {}
        self.page: bytes | Exception = b"veo_gpus_visible 8.0\n"

    def metrics(self, accept: str, accept_encoding: str) -> tuple[bytes, dict[str, str]]:
        self.asked.append((accept, accept_encoding))
        if isinstance(self.page, Exception):
            raise self.page
        return self.page, {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}

    async def reload(self) -> None:
        if self.reload_error:
            raise self.reload_error
        self.reloads += 1

    async def pause(self, written: str | None) -> tuple[int, str]:
        self.pauses.append(written)
        return self.pause_answer

    async def resume(self) -> tuple[int, str]:
        self.resumes += 1
        return 200, "resumed"

    async def events(self, request: web.Request) -> web.Response:
        return web.Response(status=202)

    def answers(self) -> Answers:
        return Answers(
            simulated=False,
            server_name="veo-exporter/1.2.3",
            metrics=self.metrics,
            unhealthy=lambda: self.fault,
            withdrawn=lambda: self.withdrawn,
            landing=lambda: self.landing(),  # noqa: PLW0108, tests set another
            advice=lambda: self.advice,
            events=self.events,
            reload=self.reload,
            pause=self.pause,
            resume=self.resume,
            count_request=lambda path, status: self.requests.update([(path, status)]),
            count_refusal=lambda refusal: self.refusals.update([refusal]),
        )


class Site:
    """A server that listens, and the ways to it."""

    def __init__(self, said: Said, port: int, socket: Path) -> None:
        self.said, self.port, self.socket = said, port, socket

    async def ask(
        self, method: str, path: str, *, by: str = "127.0.0.1", **headers: str
    ) -> tuple[int, str, dict[str, str]]:
        """Status, body and headers; `by` is an address of this machine, or "socket"."""
        connector = aiohttp.UnixConnector(str(self.socket)) if by == "socket" else None
        host = "localhost" if by == "socket" else f"{by}:{self.port}"
        async with (
            aiohttp.ClientSession(connector=connector) as client,
            client.request(method, f"http://{host}{path}", headers=headers) as response,
        ):
            return response.status, await response.text(), dict(response.headers)


@asynccontextmanager
async def serving(socket: Path, address: str = "127.0.0.1:0") -> AsyncIterator[Site]:
    """A site on an address and a socket; gone at the end."""
    said = Said()
    server = Server(build_application(said.answers()))
    try:
        await server.start(address, socket)
        yield Site(said, server.port, socket)
    finally:
        await server.stop()
