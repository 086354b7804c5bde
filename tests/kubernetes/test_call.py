# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""One question: to a real gRPC server, and to whatever else may listen on that socket."""

import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from tests.daemon import seconds_taken_by
from tests.kubernetes.kubelet import FakeKubelet, Held, answer_of, listening
from veo_exporter.kubernetes import Cause, KubeletFault
from veo_exporter.kubernetes.allocations import LIST_METHOD
from veo_exporter.kubernetes.call import ask

QUICK_SECONDS = 0.3


def question(path: Path, *, deadline_seconds: float = 20, most: int = 64 << 20) -> bytes:
    return ask(path, LIST_METHOD, deadline_seconds=deadline_seconds, max_answer_bytes=most)


def fault_of(path: Path, **how: float) -> KubeletFault:
    with pytest.raises(KubeletFault) as raised:
        question(path, **how)  # type: ignore[arg-type]
    assert raised.value.remedy
    return raised.value


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[FakeKubelet]:
    with FakeKubelet(tmp_path / "kubelet.sock") as kubelet:
        yield kubelet


def test_an_answer(kubelet: FakeKubelet) -> None:
    assert question(kubelet.path) == b""
    kubelet.holds(Held("a", {"nvidia.com/gpu": ["GPU-1"]}))
    assert question(kubelet.path) == kubelet.answer != b""
    assert kubelet.calls == 2


def test_an_answer_beyond_grpcs_usual_4_mib(kubelet: FakeKubelet) -> None:
    kubelet.holds(*(Held(f"pod-{n}" * 100, {"nvidia.com/gpu": ["GPU-1"]}) for n in range(10_000)))
    assert len(kubelet.answer) > 2 * 4 * 1024 * 1024
    assert question(kubelet.path) == kubelet.answer


def test_the_largest_answer_that_is_taken(kubelet: FakeKubelet) -> None:
    kubelet.holds(Held("a", {"nvidia.com/gpu": ["GPU-1"] * 1000}))
    size = len(kubelet.answer)
    assert question(kubelet.path, most=size) == kubelet.answer
    assert fault_of(kubelet.path, most=size - 1).cause is Cause.TOO_LARGE


def test_a_slow_kubelet_is_given_up_at_the_deadline(kubelet: FakeKubelet) -> None:
    kubelet.go_on.clear()

    def give_up() -> None:
        fault = fault_of(kubelet.path, deadline_seconds=QUICK_SECONDS)
        assert fault.cause is Cause.TIMEOUT
        assert "within 0.3 s" in str(fault)

    assert seconds_taken_by(give_up) < QUICK_SECONDS + 1


@pytest.mark.parametrize(
    ("status", "cause", "says"),
    [
        (grpc.StatusCode.UNIMPLEMENTED, Cause.REFUSED, "answers UNIMPLEMENTED: no, 100 % not ü"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, Cause.REFUSED, "answers RESOURCE_EXHAUSTED: no"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, Cause.TIMEOUT, "answers DEADLINE_EXCEEDED: no"),
        (grpc.StatusCode.DATA_LOSS, Cause.REFUSED, "answers 15: no"),
    ],
)
def test_a_kubelet_that_says_no(
    kubelet: FakeKubelet, status: grpc.StatusCode, cause: Cause, says: str
) -> None:
    kubelet.status, kubelet.words = status, "no, 100 % not ü"
    fault = fault_of(kubelet.path)
    assert fault.cause is cause
    assert says in str(fault)


def test_another_service_on_the_socket(tmp_path: Path) -> None:
    with FakeKubelet(tmp_path / "kubelet.sock") as kubelet, pytest.raises(KubeletFault) as raised:
        ask(kubelet.path, "/v2.Other/List", deadline_seconds=20, max_answer_bytes=1000)
    assert raised.value.cause is Cause.REFUSED
    assert "UNIMPLEMENTED" in str(raised.value)


def test_no_socket(tmp_path: Path) -> None:
    fault = fault_of(tmp_path / "kubelet.sock")
    assert fault.cause is Cause.UNREACHABLE
    assert "No such file" in str(fault)


def test_a_socket_that_nobody_listens_on(tmp_path: Path) -> None:
    path = tmp_path / "kubelet.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    fault = fault_of(path)
    assert fault.cause is Cause.UNREACHABLE
    assert "refused" in str(fault)


def test_a_path_that_no_socket_can_have(tmp_path: Path) -> None:
    assert fault_of(tmp_path / ("x" * 200)).cause is Cause.UNREACHABLE


def test_a_socket_that_we_may_not_open(tmp_path: Path) -> None:
    # Root may open anything, so the question is asked by a process that is not root.
    path = tmp_path / "kubelet.sock"
    program = (
        "import os, sys; from pathlib import Path\n"
        "from veo_exporter.kubernetes.call import ask\n"
        "from veo_exporter.kubernetes import KubeletFault\n"
        "if os.getuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "try: ask(Path(sys.argv[1]), '/x/y', deadline_seconds=5, max_answer_bytes=9)\n"
        "except KubeletFault as fault: print(fault.cause.value, '|', fault.remedy)\n"
    )
    with listening(path, lambda connection: None):
        path.chmod(0)
        for folder in (tmp_path, *tmp_path.parents[:2]):
            folder.chmod(0o755)
        run = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
    assert run.stderr == ""
    assert run.stdout.startswith("denied | run as user 0")


def http2(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """A frame: three bytes of length, kind, flags, stream."""
    return (
        struct.pack(">I", len(payload))[1:]
        + bytes([kind, flags])
        + struct.pack(">I", stream)
        + payload
    )


SETTINGS = http2(4, 0, 0, b"")
# From HPACK's static table: ":status: 200" is 8, ":status: 404" is 13.
NOT_FOUND = http2(1, 4, 1, b"\x8d")
GOAWAY = http2(7, 0, 0, struct.pack(">II", 0, 0))
RESET = http2(3, 0, 1, struct.pack(">I", 7))


def plain(name: bytes, value: bytes) -> bytes:
    """A header as a literal without indexing."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


HEADERS = http2(1, 4, 1, b"\x88" + plain(b"content-type", b"application/grpc"))
TRAILERS = http2(1, 5, 1, plain(b"grpc-status", b"0"))


@pytest.mark.parametrize(
    ("answer", "cause", "says"),
    [
        (b"", Cause.UNREACHABLE, "closed before"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", Cause.GARBLED, "no HTTP/2"),
        (bytes(range(256)) * 16, Cause.GARBLED, "no HTTP/2"),
        (SETTINGS, Cause.UNREACHABLE, "closed before"),
        (SETTINGS + NOT_FOUND, Cause.GARBLED, "no gRPC"),
        (SETTINGS + GOAWAY, Cause.UNREACHABLE, "broke the connection off (NO_ERROR)"),
        (SETTINGS + RESET, Cause.UNREACHABLE, "broke the answer off (REFUSED_STREAM)"),
        (SETTINGS + HEADERS, Cause.UNREACHABLE, "closed before"),
        (SETTINGS + HEADERS + TRAILERS, Cause.GARBLED, "no message"),
        (SETTINGS + HEADERS + http2(0, 1, 1, bytes(5)), Cause.GARBLED, "without a status"),
        (SETTINGS + HEADERS + http2(0, 0, 1, b"\1" + bytes(4)) + TRAILERS, Cause.GARBLED, "plain"),
        (SETTINGS + HEADERS + http2(0, 0, 1, bytes(4) + b"\2x") + TRAILERS, Cause.GARBLED, "plain"),
        (SETTINGS + http2(1, 4, 1, b"\xff\xff\xff"), Cause.GARBLED, "no HTTP/2"),
        (SETTINGS + http2(0, 0, 1, b"data first"), Cause.GARBLED, "no HTTP/2"),
    ],
)
def test_garbage(tmp_path: Path, answer: bytes, cause: Cause, says: str) -> None:
    def serve(connection: socket.socket) -> None:
        # Taken first: a connection that is closed with something unread is reset.
        connection.recv(65536)
        connection.sendall(answer)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass

    path = tmp_path / "kubelet.sock"
    with listening(path, serve):
        fault = fault_of(path)
    assert fault.cause is cause
    assert says in str(fault)


def test_frames_by_hand_are_an_answer(tmp_path: Path) -> None:
    """What the cases above are made of is right where they leave it alone."""
    body = answer_of(Held("a", {"nvidia.com/gpu": ["GPU-1"]}))
    data = http2(0, 0, 1, b"\0" + struct.pack(">I", len(body)) + body)

    def serve(connection: socket.socket) -> None:
        connection.recv(65536)
        # A byte at a time: frames come as they come.
        for byte in SETTINGS + HEADERS + data + TRAILERS:
            connection.sendall(bytes([byte]))

    path = tmp_path / "kubelet.sock"
    with listening(path, serve):
        assert question(path) == body


@pytest.mark.parametrize("drop", [b"", SETTINGS + http2(6, 0, 0, bytes(8))])
def test_a_server_that_drips_for_ever_is_left_at_the_deadline(tmp_path: Path, drop: bytes) -> None:
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        connection.sendall(drop)
        while not over.wait(0.01):
            connection.sendall(http2(6, 0, 0, bytes(8)) if drop else b"")

    path = tmp_path / "kubelet.sock"

    def leave() -> None:
        assert fault_of(path, deadline_seconds=QUICK_SECONDS).cause is Cause.TIMEOUT

    with listening(path, serve):
        try:
            assert seconds_taken_by(leave) < QUICK_SECONDS + 1
        finally:
            over.set()


def test_nothing_is_left_open(kubelet: FakeKubelet, tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    def settled(count: Callable[[], int], most: int) -> bool:
        deadline = time.monotonic() + 10
        while count() > most and time.monotonic() < deadline:
            time.sleep(0.01)
        return count() <= most

    question(kubelet.path)
    before = descriptors()
    for _ in range(20):
        question(kubelet.path)
        fault_of(tmp_path / "nowhere")
    # The server's own ends are closed when it notices.
    assert settled(descriptors, before + 2)
