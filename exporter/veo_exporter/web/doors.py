# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Who is let in. While no authentication is configured, other hosts get the scrape and no more."""

import ipaddress
import socket
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

PUBLIC_PATHS: Final = frozenset({"/metrics", "/-/healthy", "/-/ready"})
_LOOPBACK_NAMES: Final = frozenset({"localhost", "localhost.localdomain"})


class Refusal(StrEnum):
    """Why a request was turned away; the value is the reason in the counter of dropped things."""

    NOT_LOCAL = "not_local"
    BAD_HOST = "bad_host"
    NOT_ON_SOCKET = "not_on_socket"


_SENTENCES: Final = {
    Refusal.NOT_LOCAL: "Only /metrics, /-/healthy and /-/ready are answered to other hosts while no "
    "authentication is configured. Ask from this machine.",
    Refusal.BAD_HOST: "The Host header names another machine than this one, as a web page that was led "
    "here by its name server would. Ask for localhost or a loopback address.",
    Refusal.NOT_ON_SOCKET: "This is answered on the unix socket alone (web.unix_socket).",
}


def came_by_socket(request: web.Request) -> bool:
    """Whether the request came over the unix socket, where file rights have decided."""
    connection = request.get_extra_info("socket")
    return connection is not None and connection.family == socket.AF_UNIX


def _is_loopback(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped:
        return parsed.ipv4_mapped.is_loopback
    return parsed.is_loopback


def names_loopback(host_header: str) -> bool:
    """Whether a Host header means this machine, whatever the port."""
    host = host_header.strip().lower()
    if host.startswith("["):
        name, bracket, _ = host[1:].partition("]")
        return bool(bracket) and _is_loopback(name)
    name = host.partition(":")[0]
    return name in _LOOPBACK_NAMES or _is_loopback(name)


def judge_request(request: web.Request) -> Refusal | None:
    """Why the request is turned away; None lets it in."""
    if request.method in ("GET", "HEAD") and request.path in PUBLIC_PATHS:
        return None
    if came_by_socket(request):
        return None
    peer = request.get_extra_info("peername")
    if not peer or not _is_loopback(peer[0]):
        return Refusal.NOT_LOCAL
    return None if names_loopback(request.headers.get("Host", "")) else Refusal.BAD_HOST


def refuse(refusal: Refusal) -> web.Response:
    """The answer to a request that is turned away."""
    return web.Response(status=403, text=_SENTENCES[refusal] + "\n")


def guard(count: Callable[[Refusal], None]) -> Middleware:
    """A middleware that stands at the door; `count` is told of each refusal."""

    @web.middleware
    async def door(request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = judge_request(request)
        if refusal is None:
            return await handler(request)
        count(refusal)
        return refuse(refusal)

    return door
