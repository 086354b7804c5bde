# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""How often NVML is asked for events once a lost GPU in the set ends each wait at once.

The whole exporter in this process, since the fake library counts the calls of the process it is in.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import combinations
from pathlib import Path

from tests.daemon import Page
from tests.fake_nvml import FakeNode
from tests.test_app import Running, until
from veo_exporter.app import App, Hardware
from veo_exporter.clock import SystemClock
from veo_exporter.config import Settings
from veo_exporter.gpu import PciBus, load_library

WAIT = "nvmlEventSetWait"
MOST_PER_SECOND = 5
COUNTED = 26
"""More than the waits with which an event set is left and made anew."""


@asynccontextmanager
async def whole_app(folder: Path) -> AsyncIterator[App]:
    settings = Settings.model_validate(
        {
            "web": {"listen_address": "127.0.0.1:0"},
            "kernel": {"log": "off"},
            "gpu": {
                "fast_interval": "100ms",
                "full_interval": "1s",
                "static_interval": "5s",
                "window": "5s",
                "sysfs_root": str(folder / "sys"),
            },
        }
    )
    hardware = Hardware(
        load_library=load_library,
        pci_functions=PciBus(folder / "sys").functions,
        simulated=False,
    )
    app = App(settings, hardware=hardware, read_settings=lambda: settings, clock=SystemClock())
    stop = asyncio.Event()
    run = asyncio.create_task(app.run(stop))
    try:
        yield app
    finally:
        stop.set()
        await asyncio.wait_for(run, 20)


async def test_a_wait_that_ends_at_once_is_made_five_times_a_second_at_most(
    node: FakeNode, tmp_path: Path
) -> None:
    library = node.attach()
    async with whole_app(tmp_path) as app:

        async def page() -> Page | None:
            if app.server.port == 0:
                return None
            return Page((await Running(app, None, None).ask("GET", "/metrics"))[1])  # type: ignore[arg-type]

        async def hears() -> bool:
            said = await page()
            return said is not None and said.values("veo_exporter_event_source_up") == [1]

        await until(hears)
        with node.changes():
            node.gpus[3].lose()
            node.fail(WAIT, 15)

        async def is_lost_and_deaf() -> bool:
            said = await page()
            return (
                said is not None
                and said.states()["3"] == "lost"
                and said.values("veo_exporter_event_source_up") == [0]
            )

        await until(is_lost_and_deaf)
        first = library.calls(WAIT)
        # When the calls were counted, at the earliest and at the latest, and how many they were.
        seen: list[tuple[float, int, float]] = []

        async def has_waited_often() -> bool:
            earliest, calls = time.monotonic(), library.calls(WAIT)
            seen.append((earliest, calls, time.monotonic()))
            return calls >= first + COUNTED

        await until(has_waited_often)
    # Over any time, from any moment on: not only on the whole.
    for (began, before, _), (_, after, ended) in combinations(seen, 2):
        assert after - before <= MOST_PER_SECOND * (ended - began) + 1
