# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The first budget: what a fresh page costs, and that its bytes are prometheus_client's."""

import statistics
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from bench.nodes import quiet_node, vary
from bench.results import Row
from bench.scrapes import HEADERS, count_series, scrape
from bench.servers import Server, our_server, their_server
from bench.writers import our_writer, their_writer
from tests.fake_nvml import FakeNode

MOST_RATIO: Final = 0.25
SNAPSHOTS: Final = 12
"""The sampler publishes one each second, however fast it samples."""
WARM_UP_TURNS: Final = 5
FORMS: Final = ("text", "openmetrics")
PUBLISHED_EACH_SECONDS: Final = 1.0
"""Both show new data this often, by default."""

_PER_1000: Final = "ms"


def measure(folder: Path, seconds: float) -> list[Row]:
    """Half of the time for the writers alone, half for pages over HTTP."""
    return [
        *_written(quiet_node(folder / "written"), seconds / 2),
        *_fetched(quiet_node(folder / "fetched"), seconds / 2),
    ]


def _written(node: FakeNode, seconds: float) -> list[Row]:
    ours: dict[str, list[float]] = {form: [] for form in FORMS}
    theirs: dict[str, list[float]] = {form: [] for form in FORMS}
    with our_writer(node) as our, their_writer(node) as their:
        for turn in range(SNAPSHOTS):
            vary(node, turn)
            our.ask("sample")
        differing = our.ask("equal")["differing"]
        end = time.monotonic() + seconds / 2
        turn = 0
        while time.monotonic() < end or turn < 2 * WARM_UP_TURNS:
            vary(node, turn)
            their.ask("sample")
            for form in FORMS:
                # In turn, so that whatever else the machine does meets both alike.
                for side, figures in ((our, ours[form]), (their, theirs[form])):
                    answer = side.ask(form)
                    if turn >= WARM_UP_TURNS:
                        figures.append(1e6 * answer["seconds"] / answer["series"])
            turn += 1
    rows = [
        Row(
            what=f"fresh page as {form}, per 1,000 series, median of {len(ours[form])}",
            unit=_PER_1000,
            ours=statistics.median(ours[form]),
            theirs=statistics.median(theirs[form]),
            most_ratio=MOST_RATIO,
        )
        for form in FORMS
    ]
    faults = Row(
        what="texts with other bytes than prometheus_client's",
        unit="",
        ours=len(differing),
        most=0,
        note=", ".join(differing),
    )
    return [*rows, faults]


def _fetched(node: FakeNode, seconds: float) -> list[Row]:
    with ExitStack() as stack:
        servers = [
            stack.enter_context(our_server(node)),
            stack.enter_context(their_server(node)),
        ]
        taken: list[list[float]] = [[], []]
        end = time.monotonic() + seconds
        turn = 0
        while time.monotonic() < end or turn < 1:
            vary(node, turn)
            # Long enough that both have sampled the change and show it.
            time.sleep(2.1 * PUBLISHED_EACH_SECONDS)
            for server, figures in zip(servers, taken, strict=True):
                figures.append(_fetch(server))
            turn += 1
        # At the end: nvitop-exporter shows each series only once it has a value.
        series = [count_series(scrape(server.port).body) for server in servers]
    medians = [statistics.median(figures) for figures in taken]
    per_1000 = [1e6 * median / count for median, count in zip(medians, series, strict=True)]
    return [
        Row(
            what=f"GET of a fresh page, gzip, new connection, per 1,000 series, median of {turn}",
            unit=_PER_1000,
            ours=per_1000[0],
            theirs=per_1000[1],
        ),
        Row(what="series of the node", unit="", ours=series[0], theirs=series[1]),
    ]


def _fetch(server: Server) -> float:
    return scrape(server.port, HEADERS).seconds
