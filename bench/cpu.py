# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The third budget: CPU at rest, with memory and the time to first data beside it."""

import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from bench.nodes import GPUS, busy_node, quiet_node
from bench.results import Row
from bench.scrapes import HEADERS, scrape
from bench.servers import Server, ended, our_server, their_server
from bench.usage import cpu_seconds, resident_bytes

SCRAPE_EACH_SECONDS: Final = 15.0
SETTLE_SECONDS: Final = 3.0
FAST: Final = ("--gpu.fast-interval", "100ms")
_MIB: Final = 1 << 20


def measure(folder: Path, seconds: float) -> list[Row]:
    """All exporters run at the same time, for the same window, each scraped as often."""
    with ExitStack() as stack:
        quiet = quiet_node(folder / "quiet")
        sleepers = [
            stack.enter_context(
                ended(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"]))
            )
            for _ in range(GPUS)
        ]
        busy = busy_node(folder / "busy", [sleeper.pid for sleeper in sleepers])
        ours = stack.enter_context(our_server(quiet))
        ours_fast = stack.enter_context(our_server(quiet, *FAST))
        theirs = stack.enter_context(their_server(quiet))
        theirs_busy = stack.enter_context(their_server(busy))
        servers = [ours, ours_fast, theirs, theirs_busy]
        time.sleep(SETTLE_SECONDS)
        used = _cores_used(servers, seconds)
        resident = [resident_bytes(server.pid) / _MIB for server in servers]
    return [
        _row("CPU at 1 s samples", used[0], used[2], most_ratio=0.5),
        _row("CPU at 100 ms samples, to its 1 s", used[1], used[2], most_ratio=1.0),
        _row("CPU at 1 s samples, to its 1 s with a process on each GPU", used[0], used[3]),
        Row(what="resident memory", unit="MiB", ours=resident[0], theirs=resident[2]),
        Row(
            what="start to first GPU data",
            unit="s",
            ours=ours.first_data_seconds,
            theirs=theirs.first_data_seconds,
            most=2.0,
        ),
    ]


def _row(what: str, ours: float, theirs: float, *, most_ratio: float | None = None) -> Row:
    return Row(
        what=what,
        unit="% of a core",
        ours=100 * ours,
        theirs=100 * theirs,
        most_ratio=most_ratio,
    )


def _cores_used(servers: list[Server], seconds: float) -> list[float]:
    """The share of a core that each used over the same window."""
    started = time.monotonic()
    before = [cpu_seconds(server.pid) for server in servers]
    next_scrape = started + min(SCRAPE_EACH_SECONDS, seconds) / 2
    while (now := time.monotonic()) < started + seconds:
        if now >= next_scrape:
            for server in servers:
                scrape(server.port, HEADERS)
            next_scrape += SCRAPE_EACH_SECONDS
        time.sleep(max(0.0, min(next_scrape, started + seconds) - time.monotonic()))
    lasted = time.monotonic() - started
    return [
        (cpu_seconds(server.pid) - earlier) / lasted
        for server, earlier in zip(servers, before, strict=True)
    ]
