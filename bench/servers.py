# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Exporters as processes of their own, on free ports of the loopback address."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from bench.nodes import sysfs_root
from bench.scrapes import ScrapeFailed, scrape
from tests.fake_nvml import FakeNode

ROOT: Final = Path(__file__).resolve().parent.parent
OTHER_PYTHON: Final = ROOT / ".venv-bench/bin/python"
"""The interpreter of nvitop-exporter's own environment."""

_AS_INSTALLED: Final = (
    "import sys; sys.modules['rich'] = None; from veo_exporter.cli import main; sys.exit(main())"
)
"""structlog imports rich wherever it is: here the development tools bring it, five megabytes of it, and
no installation of the exporter does."""
START_SECONDS: Final = 30.0
END_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.01

Process = TypeVar("Process", subprocess.Popen[bytes], subprocess.Popen[str])

# A series that each GPU has as soon as it was read.
OUR_FIRST_DATA: Final = b"\nveo_gpu_utilization_ratio{"
THEIR_FIRST_DATA: Final = b"\ngpu_utilization_Percentage{"


class ServerFailed(Exception):
    """An exporter did not do what a measurement needs."""


@dataclass(frozen=True, slots=True)
class Server:
    """An exporter that runs and has shown GPU data."""

    name: str
    pid: int
    port: int
    first_data_seconds: float


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def our_server(node: FakeNode, *flags: str) -> Iterator[Server]:
    """veo-exporter on a node, with its defaults but for these flags."""
    port = free_port()
    command = [
        *(sys.executable, "-c", _AS_INSTALLED, "serve"),
        *("--web.listen-address", f"127.0.0.1:{port}"),
        *("--gpu.sysfs-root", str(sysfs_root(node))),
        *flags,
    ]
    with _running("veo-exporter", command, node, port, OUR_FIRST_DATA) as server:
        yield server


@contextmanager
def their_server(node: FakeNode) -> Iterator[Server]:
    """nvitop-exporter on a node, with its defaults."""
    port = free_port()
    command = [
        *(str(OTHER_PYTHON), "-m", "nvitop_exporter"),
        *("--bind-address", "127.0.0.1", "--port", str(port), "--hostname", "bench"),
    ]
    with _running("nvitop-exporter", command, node, port, THEIR_FIRST_DATA) as server:
        yield server


@contextmanager
def _running(
    name: str, command: list[str], node: FakeNode, port: int, first_data: bytes
) -> Iterator[Server]:
    log_path = node.scenario_path.parent / f"{name}-{port}.log"
    started = time.monotonic()
    with (
        log_path.open("wb") as log,
        ended(
            subprocess.Popen(
                command, cwd=ROOT, env=os.environ | node.environment(), stdout=log, stderr=log
            )
        ) as process,
    ):
        while _page(port).count(first_data) < len(node.gpus):
            waited = time.monotonic() - started
            if process.poll() is not None or waited > START_SECONDS:
                said = log_path.read_text(errors="replace")[-2000:]
                raise ServerFailed(f"{name} shows no GPU data after {waited:.1f} s:\n{said}")
            time.sleep(_POLL_SECONDS)
        yield Server(name, process.pid, port, time.monotonic() - started)


def _page(port: int) -> bytes:
    try:
        return b"\n" + scrape(port).body
    except ScrapeFailed:
        # Not listening yet.
        return b""


@contextmanager
def ended(process: Process) -> Iterator[Process]:
    """A process that is gone afterwards, whatever happens in between."""
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
