# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""One question to a gRPC server on a unix socket: HTTP/2 by h2, the five bytes around a message by us.

A connection for each question: a kubelet that was restarted has a new socket under the old name, and
none of its state is worth keeping.
"""

import socket
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import unquote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import H2Error
from h2.settings import SettingCodes

from veo_exporter.kubernetes.faults import Cause, KubeletFault, garbled

_WINDOW_BYTES: Final = 4 * 1024 * 1024
"""How much may be under way before we say that we took it. HTTP/2's own 64 KiB is a wait for each."""
_READ_BYTES: Final = 256 * 1024
_PREFIX_BYTES: Final = 5
"""Before each message: whether it is compressed (one byte), and its length (four)."""
_OPENING_BYTES: Final = 9
"""The head of a frame. The first one of a server must be of the kind SETTINGS."""
_KIND_BYTE: Final = 3
_SETTINGS: Final = 4
_MOST_WORDS: Final = 200
"""Characters of an error's text that are passed on."""

# gRPC's status codes that a kubelet has reason to answer with.
_STATUS: Final = {
    "1": "CANCELLED",
    "2": "UNKNOWN",
    "4": "DEADLINE_EXCEEDED",
    "7": "PERMISSION_DENIED",
    "8": "RESOURCE_EXHAUSTED",
    "12": "UNIMPLEMENTED",
    "13": "INTERNAL",
    "14": "UNAVAILABLE",
    "16": "UNAUTHENTICATED",
}


def ask(socket_path: Path, method: str, *, deadline_seconds: float, max_answer_bytes: int) -> bytes:
    """The answer to an empty message. Returns or raises KubeletFault within the deadline."""
    line = _Line(socket_path, deadline_seconds)
    with line.socket:
        call = _Call(line, max_answer_bytes)
        try:
            call.begin(method, deadline_seconds)
            while not call.ended:
                call.take(line.receive())
        except H2Error as error:
            raise garbled(f"the answer is no HTTP/2: {error}") from None
        return call.message()


class _Line:
    """A connected socket that keeps to the deadline, over all that is sent and received."""

    def __init__(self, path: Path, deadline_seconds: float) -> None:
        self._path = path
        self._deadline_seconds = deadline_seconds
        self._until_monotonic_seconds = time.monotonic() + deadline_seconds
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._hurry()
            self.socket.connect(str(path))
        except OSError as error:
            self.socket.close()
            self._fail(error)

    def send(self, data: bytes) -> None:
        try:
            self._hurry()
            self.socket.sendall(data)
        except OSError as error:
            self._fail(error)

    def receive(self) -> bytes:
        try:
            self._hurry()
            data = self.socket.recv(_READ_BYTES)
        except OSError as error:
            self._fail(error)
        if not data:
            raise KubeletFault(
                Cause.UNREACHABLE,
                f"{self._path}: the connection was closed before the answer was whole",
                "none needed if the kubelet is being restarted; else see its log",
            )
        return data

    def _hurry(self) -> None:
        left_seconds = self._until_monotonic_seconds - time.monotonic()
        if left_seconds <= 0:
            raise TimeoutError
        self.socket.settimeout(left_seconds)

    def _fail(self, error: OSError) -> NoReturn:
        if isinstance(error, TimeoutError):
            raise KubeletFault(
                Cause.TIMEOUT,
                f"{self._path}: no whole answer within {self._deadline_seconds:g} s",
                "see the kubelet's log and the node's load, or raise kubernetes.deadline",
            ) from None
        why = error.strerror or str(error)
        if isinstance(error, PermissionError):
            raise KubeletFault(
                Cause.DENIED,
                f"{self._path}: {why}",
                "run as user 0: the kubelet's socket is open to root alone",
            ) from None
        raise KubeletFault(
            Cause.UNREACHABLE,
            f"{self._path}: {why}",
            "start the kubelet, mount its folder pod-resources (not the socket itself, which a restart "
            "replaces), or set kubernetes.kubelet_socket",
        ) from None


class _Call:
    """One request and its answer on a connection of its own."""

    def __init__(self, line: _Line, max_answer_bytes: int) -> None:
        self._line = line
        self._max_answer_bytes = max_answer_bytes
        self._http = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._stream = 0
        self._answered = False
        self._status = self._words = ""
        self._body = bytearray()
        self._opening = b""
        self.ended = False

    def begin(self, method: str, deadline_seconds: float) -> None:
        self._http.initiate_connection()
        self._http.update_settings(
            {SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW_BYTES, SettingCodes.ENABLE_PUSH: 0}
        )
        self._http.increment_flow_control_window(_WINDOW_BYTES)
        self._stream = self._http.get_next_available_stream_id()
        self._http.send_headers(
            self._stream,
            [
                (":method", "POST"),
                (":scheme", "http"),
                (":path", method),
                (":authority", "localhost"),
                ("te", "trailers"),
                ("content-type", "application/grpc"),
                ("user-agent", "veo-exporter"),
                ("grpc-timeout", f"{max(1, round(deadline_seconds * 1000))}m"),
            ],
        )
        # An empty message: not compressed, no bytes.
        self._http.send_data(self._stream, bytes(_PREFIX_BYTES), end_stream=True)
        self._line.send(self._http.data_to_send())

    def take(self, data: bytes) -> None:
        if len(self._opening) < _OPENING_BYTES:
            self._opening += data[: _OPENING_BYTES - len(self._opening)]
            # h2 would wait for the end of a frame of up to 16 MiB before it looks at it.
            if len(self._opening) == _OPENING_BYTES and self._opening[_KIND_BYTE] != _SETTINGS:
                raise garbled(f"the answer is no HTTP/2: it begins with {self._opening!r}")
        for event in self._http.receive_data(data):
            self._take_event(event)
        if not self.ended and (reply := self._http.data_to_send()):
            self._line.send(reply)

    def _take_event(self, event: Event) -> None:
        match event:
            case ResponseReceived() | TrailersReceived():
                self._take_headers(event.headers or ())
            case DataReceived():
                self._body += event.data or b""
                self._http.acknowledge_received_data(
                    event.flow_controlled_length or 0, self._stream
                )
                if len(self._body) > self._max_answer_bytes + _PREFIX_BYTES:
                    raise self._too_large()
            case StreamEnded():
                self.ended = True
            case StreamReset():
                raise _broken_off("answer", event.error_code)
            case ConnectionTerminated() if (event.last_stream_id or 0) < self._stream:
                raise _broken_off("connection", event.error_code)

    def _take_headers(self, headers: Iterable[tuple[str | bytes, str | bytes]]) -> None:
        said = {_as_text(name): _as_text(value) for name, value in headers}
        if not self._answered:
            self._answered = True
            kind = said.get("content-type", "")
            if said.get(":status") != "200" or not kind.startswith("application/grpc"):
                raise garbled(
                    f"the answer is no gRPC (status {said.get(':status')}, {kind[:40]!r})"
                )
        self._status = said.get("grpc-status", self._status)
        self._words = said.get("grpc-message", self._words)

    def message(self) -> bytes:
        """The message that came, once the call has ended."""
        if self._status != "0":
            raise self._refusal()
        if len(self._body) < _PREFIX_BYTES:
            raise garbled("the answer has no message")
        length = int.from_bytes(self._body[1:_PREFIX_BYTES], "big")
        if self._body[0] or length != len(self._body) - _PREFIX_BYTES:
            raise garbled("the answer is not one plain message")
        del self._body[:_PREFIX_BYTES]
        return bytes(self._body)

    def _refusal(self) -> KubeletFault:
        if not self._status:
            return garbled("the answer ended without a status")
        name = _STATUS.get(self._status, self._status[:20])
        words = unquote(self._words)[:_MOST_WORDS]
        return KubeletFault(
            Cause.TIMEOUT if name == "DEADLINE_EXCEEDED" else Cause.REFUSED,
            f"the kubelet answers {name}" + (f": {words}" if words else ""),
            "UNIMPLEMENTED: the kubelet is older than 1.20; RESOURCE_EXHAUSTED: raise kubernetes.interval; "
            "else see its log",
        )

    def _too_large(self) -> KubeletFault:
        return KubeletFault(
            Cause.TOO_LARGE,
            f"the answer is larger than {self._max_answer_bytes} bytes",
            "raise kubernetes.max_answer_bytes",
        )


def _as_text(word: str | bytes) -> str:
    return word if isinstance(word, str) else word.decode(errors="replace")


def _broken_off(what: str, code: int | None) -> KubeletFault:
    name = code.name if isinstance(code, ErrorCodes) else str(code)
    return KubeletFault(
        Cause.UNREACHABLE, f"the kubelet broke the {what} off ({name})", "see the kubelet's log"
    )
