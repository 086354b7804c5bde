# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The second budget: scrapes while a GPU hangs."""

import statistics
import time
from pathlib import Path
from typing import Final

from bench.nodes import quiet_node
from bench.results import Row
from bench.scrapes import Crowd, crowd, scrape
from bench.servers import Server, ServerFailed, our_server, their_server
from bench.usage import cpu_seconds

CLIENTS: Final = 100
MOST_MILLISECONDS: Final = 50.0
INTERVAL_SECONDS: Final = 1.0
HUNG_GPU: Final = 3
HUNG_FUNCTION: Final = "nvmlDeviceGetPowerUsage"
NOTICED_SECONDS: Final = 10.0


def measure(folder: Path, seconds: float) -> list[Row]:
    """The hang begins with the scrapes, so that they also meet the moment of its discovery."""
    node = quiet_node(folder / "hanging")
    with our_server(node) as ours, their_server(node) as theirs:
        try:
            well = crowd(ours.port, CLIENTS, 0.2 * seconds, INTERVAL_SECONDS)
            cpu_before = cpu_seconds(ours.pid)
            node.gpus[HUNG_GPU].hang(HUNG_FUNCTION)
            together = crowd(ours.port, CLIENTS, 0.4 * seconds, INTERVAL_SECONDS)
            cpu_used = cpu_seconds(ours.pid) - cpu_before
            _wait_until_noticed(ours)
            apart = crowd(ours.port, CLIENTS, 0.2 * seconds, INTERVAL_SECONDS, spread=True)
            unbroken = crowd(ours.port, CLIENTS, 0.1 * seconds, 0.0)
            other = crowd(theirs.port, CLIENTS, 0.1 * seconds, INTERVAL_SECONDS)
        finally:
            # What hangs in the fake driver would not let its process end.
            node.release()
    return [
        Row(
            what=f"/metrics while a GPU hangs, {CLIENTS} scrapes at once each second, p99",
            unit="ms",
            ours=_p99(together),
            theirs=_p99(other),
            most=MOST_MILLISECONDS,
            note=f"Median {1000 * statistics.median(together.seconds):.1f} ms; CPU of the exporter "
            f"for each scrape {1000 * cpu_used / len(together.seconds):.2f} ms. Failed scrapes: "
            f"{together.failures} of {_asked(together)} here, {other.failures} of {_asked(other)} "
            "at nvitop-exporter, which goes on to show what it read before the hang.",
        ),
        Row(
            what="the same before the hang, p99",
            unit="ms",
            ours=_p99(well),
        ),
        Row(
            what=f"during it, the {CLIENTS} spread over the second, p99",
            unit="ms",
            ours=_p99(apart),
        ),
        Row(
            what=f"during it, each of the {CLIENTS} asking again at once, p99",
            unit="ms",
            ours=_p99(unbroken),
            note=f"{len(unbroken.seconds) / (0.1 * seconds):,.0f} scrapes a second.",
        ),
    ]


def _asked(result: Crowd) -> int:
    return len(result.seconds) + result.failures


def _p99(result: Crowd) -> float:
    # A scrape without an answer took for ever.
    taken = sorted(result.seconds) + [float("inf")] * result.failures
    return 1000 * taken[min(len(taken) - 1, int(0.99 * len(taken)))]


def _wait_until_noticed(server: Server) -> None:
    sign = f'veo_gpu_state{{gpu="{HUNG_GPU}"'
    end = time.monotonic() + NOTICED_SECONDS
    while time.monotonic() < end:
        for line in scrape(server.port).body.decode().splitlines():
            if line.startswith(sign) and 'state="hung"' in line and line.endswith(" 1.0"):
                return
        time.sleep(0.1)
    raise ServerFailed("the hung GPU is not shown as hung: the figures mean nothing")
