# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Scrapes over the loopback address: one at a time, and many clients at once."""

import http.client
import selectors
import socket
import time
from dataclasses import dataclass, field
from typing import Final

# As Prometheus 3 asks.
HEADERS: Final = {
    "Accept": "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
    "Accept-Encoding": "gzip",
}
TIMEOUT_SECONDS: Final = 10.0
_CHUNK: Final = 1 << 18


class ScrapeFailed(Exception):
    """A scrape got no whole answer, or one that is not 200."""


@dataclass(frozen=True, slots=True)
class Scraped:
    body: bytes
    seconds: float


def scrape(port: int, headers: dict[str, str] | None = None) -> Scraped:
    """Get the page over a new connection. Raises ScrapeFailed."""
    started = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/metrics", headers=headers or {})
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise ScrapeFailed(str(error)) from error
    finally:
        connection.close()
    if response.status != 200:
        raise ScrapeFailed(f"status {response.status}")
    return Scraped(body, time.perf_counter() - started)


def count_series(page: bytes) -> int:
    """The series on a page in either text format."""
    return sum(1 for line in page.splitlines() if line and not line.startswith(b"#"))


@dataclass(slots=True)
class Crowd:
    """How long scrapes took, and how many got no answer."""

    seconds: list[float] = field(default_factory=list)
    failures: int = 0


class _Client:
    """One scraper. It keeps its connection where the server does, as Prometheus would."""

    def __init__(self, port: int, selector: selectors.DefaultSelector, crowd: Crowd) -> None:
        self._port = port
        self._selector = selector
        self._crowd = crowd
        self._request = (
            f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            + "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
            + "\r\n"
        ).encode()
        self._socket: socket.socket | None = None
        self._received = bytearray()
        self._wanted = 0
        self._keep = False
        self._started = 0.0
        self.due_seconds = 0.0
        self.waiting = False

    def begin(self, now: float) -> None:
        self._started = now
        self._received.clear()
        self._wanted = 0
        self.waiting = True
        if self._socket is None:
            self._socket = socket.socket()
            self._socket.setblocking(False)
            self._socket.connect_ex(("127.0.0.1", self._port))
            self._selector.register(self._socket, selectors.EVENT_WRITE, self)
        else:
            self._send(self._socket)

    def step(self, mask: int) -> None:
        """The socket is ready. A whole answer ends the scrape, a broken one counts as failed."""
        assert self._socket is not None  # noqa: S101 - only registered sockets get here
        try:
            if mask & selectors.EVENT_WRITE:
                self._selector.modify(self._socket, selectors.EVENT_READ, self)
                self._send(self._socket)
                return
            data = self._socket.recv(_CHUNK)
        except OSError:
            data = b""
        self._received += data
        if not self._wanted and (end := self._received.find(b"\r\n\r\n")) >= 0:
            self._read_head(bytes(self._received[:end]).lower(), end + 4)
        if self._wanted and len(self._received) >= self._wanted:
            self._crowd.seconds.append(time.perf_counter() - self._started)
            self._end(keep=self._keep)
        elif not data:
            self._crowd.failures += 1
            self._end(keep=False)

    def close(self) -> None:
        """Let go; a scrape that is still under way counts as failed."""
        self._crowd.failures += self.waiting
        self._end(keep=False)

    def _send(self, connection: socket.socket) -> None:
        # A request is far smaller than a socket's buffer.
        connection.send(self._request)

    def _read_head(self, head: bytes, length: int) -> None:
        status, _, fields = head.partition(b"\r\n")
        found = dict(line.split(b": ", 1) for line in fields.split(b"\r\n"))
        self._keep = status.startswith(b"http/1.1") and found.get(b"connection") != b"close"
        # Without a length, or with another status, the answer can only fail.
        if b" 200 " in status + b" " and b"content-length" in found:
            self._wanted = length + int(found[b"content-length"])

    def _end(self, *, keep: bool) -> None:
        self.waiting = False
        if not keep and self._socket is not None:
            self._selector.unregister(self._socket)
            self._socket.close()
            self._socket = None


def crowd(
    port: int, clients: int, seconds: float, interval_seconds: float, *, spread: bool = False
) -> Crowd:
    """Let many clients scrape until time is up, each at this interval, or without pause if it is 0.

    All at the same moment, or spread over the interval as independent Prometheus servers are.
    """
    result = Crowd()
    with selectors.DefaultSelector() as selector:
        everyone = [_Client(port, selector, result) for _ in range(clients)]
        try:
            if spread:
                first = time.perf_counter()
                for place, client in enumerate(everyone):
                    client.due_seconds = first + interval_seconds * place / clients
            _attend(everyone, selector, seconds, interval_seconds)
        finally:
            for client in everyone:
                client.close()
    return result


def _attend(
    everyone: list[_Client],
    selector: selectors.DefaultSelector,
    seconds: float,
    interval_seconds: float,
) -> None:
    end = time.perf_counter() + seconds
    while (now := time.perf_counter()) < end + TIMEOUT_SECONDS:
        idle = [client for client in everyone if not client.waiting]
        if now >= end and len(idle) == len(everyone):
            return
        for client in idle:
            if client.due_seconds <= now < end:
                client.begin(time.perf_counter())
                client.due_seconds = now + interval_seconds
        next_due = min((client.due_seconds for client in idle), default=now + 1.0)
        for key, mask in selector.select(min(max(next_due - now, 0.0), 1.0)):
            key.data.step(mask)
