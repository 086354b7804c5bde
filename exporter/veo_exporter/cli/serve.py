# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""serve and demo: the daemon, on the node's own hardware or on a simulated one."""

import asyncio
import gc
import json
import os
import signal
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import structlog

from veo_exporter.app import App, Hardware
from veo_exporter.cli.log_output import set_up_logging
from veo_exporter.clock import SystemClock
from veo_exporter.config import Settings, load_settings
from veo_exporter.errors import BadConfig
from veo_exporter.gpu import PciBus, load_library, look_at_nodes

log = structlog.get_logger(__name__)

Flags = Mapping[tuple[str, ...], str]
Feed = Callable[[bytes], None]


def serve(config_file: Path | None, flags: Flags) -> int:
    """Watch this node until SIGTERM or SIGINT."""
    # Until it can be obeyed: by default it would end the process.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    read_settings = partial(load_settings, config_file, os.environ, flags)
    settings = read_settings()
    hardware = Hardware(
        load_library=load_library,
        pci_functions=PciBus(settings.gpu.sysfs_root).functions,
        simulated=False,
        look_at_nodes=partial(look_at_nodes, settings.gpu.device_root),
    )
    return _run(settings, hardware, read_settings)


def demo(config_file: Path | None, flags: Flags, scenario: str, *, list_only: bool) -> int:
    """The same on a scenario's node."""
    from veo_exporter.simulate import (
        SimulatedNvml,
        lay_out_process_names,
        load_scenario,
        shipped_scenarios,
    )
    from veo_exporter.simulate.jobs import LOST_AFTER_SECONDS, JobMaker
    from veo_exporter.simulate.videos import EXPECTATION, Films, VideoMaker

    if list_only:
        for name in shipped_scenarios():
            print(f"{name}: {load_scenario(name).about}")
        return 0
    story = load_scenario(scenario)
    node = SimulatedNvml(story, SystemClock())
    hardware = Hardware(load_library=lambda: node, pci_functions=node.pci_functions, simulated=True)
    with tempfile.TemporaryDirectory(prefix="veo-demo-") as name:
        # What jobs name is not watched, and what is watched no job names.
        by_jobs, by_others = Path(name, "jobs"), Path(name, "watched")
        by_others.mkdir()
        processes = Path(name, "proc")
        lay_out_process_names(story, processes)
        watched = {
            "name": "demo",
            "path": str(by_others),
            "expect": EXPECTATION,
            "engine": "veo-demo",
        }
        flags = {
            ("video", "folders"): json.dumps([watched]),
            ("video", "roots"): json.dumps([str(by_jobs)]),
            ("jobs", "lost_after"): f"{LOST_AFTER_SECONDS}s",
            **flags,
            # The names of this machine's own processes are no part of the story.
            ("gpu", "proc_root"): str(processes),
        }
        read_settings = partial(load_settings, config_file, os.environ, flags)
        settings = read_settings()
        videos = VideoMaker(by_others)
        films = Films(by_jobs, seed=4)
        jobs: list[JobMaker] = []

        def begin(feed: Feed) -> None:
            jobs.append(JobMaker(feed, film=films.make))
            jobs[0].start()
            videos.start()

        try:
            return _run(settings, hardware, read_settings, begin)
        finally:
            films.stop()
            videos.stop(1.0)
            for maker in jobs:
                maker.stop(1.0)


def _run(
    settings: Settings,
    hardware: Hardware,
    read_settings: partial[Settings],
    begin: Callable[[Feed], None] = lambda feed: None,
) -> int:
    stream = set_up_logging(settings.log)
    if hardware.simulated:
        log.warning("simulated: every figure is made up")
    app = App(
        settings,
        hardware=hardware,
        read_settings=read_settings,
        clock=SystemClock(),
        log_lines_dropped=lambda: stream.dropped,
        watching=lambda: begin(app.feed),
    )
    # What was made so far stays to the end: the collector need not walk through some 200,000 objects
    # each time, which takes as long as several pages.
    gc.collect()
    gc.freeze()
    try:
        asyncio.run(_run_until_signal(app))
    finally:
        stream.drain()
    return 0


async def _run_until_signal(app: App) -> None:
    stop = asyncio.Event()
    reloads: set[asyncio.Task[None]] = set()
    loop = asyncio.get_running_loop()

    async def reload() -> None:
        try:
            await app.reload()
        except BadConfig:
            # It was logged, and a metric says so; nobody waits for an answer to a signal.
            return

    def reload_soon() -> None:
        task = loop.create_task(reload())
        reloads.add(task)
        task.add_done_callback(reloads.discard)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, reload_soon)
    await app.run(stop)
