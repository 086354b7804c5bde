# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Everything, wired."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

import structlog

import veo_exporter
from veo_exporter.app.advice import AdviceDesk
from veo_exporter.app.dcgm import DCGM_SETTINGS, dcgm_sources
from veo_exporter.app.gpu_work import DROPPED_SEEDS as GPU_WORK_DROPPED
from veo_exporter.app.gpu_work import GpuWork
from veo_exporter.app.kernel import DROPPED_SEEDS as KERNEL_DROPPED
from veo_exporter.app.kernel import KernelWatch
from veo_exporter.app.life import DROPPED_SEEDS as LIFE_DROPPED
from veo_exporter.app.life import PauseDoor, memory_of
from veo_exporter.app.pods import DROPPED_SEEDS as PODS_DROPPED
from veo_exporter.app.pods import Pods
from veo_exporter.app.work import DROPPED_SEEDS, Surroundings, Work
from veo_exporter.catalog import exporter as catalog
from veo_exporter.clock import Clock
from veo_exporter.config import Gpu, Settings
from veo_exporter.errors import BadConfig
from veo_exporter.exposition import Folds, OwnSource, Page, Source
from veo_exporter.gpu import GpuSource, Nodes, Sampler, Timing, withdrawn_groups
from veo_exporter.web import (
    MAX_BODY_BYTES,
    OTHER_PATH,
    USUAL_ANSWERS,
    Answers,
    Landing,
    Refusal,
    Server,
    build_application,
    events_handler,
)

log = structlog.get_logger(__name__)

SAMPLER_STOP_SECONDS: Final = 1.0
"""With the web's own patience this stays under the two seconds that SIGTERM may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What the node is made of: the driver's bindings and the PCI bus, real or simulated."""

    load_library: Callable[[], Any]
    pci_functions: Callable[[], frozenset[str] | None]
    simulated: bool
    look_at_nodes: Callable[[], Nodes] | None = None


class App:
    """One exporter. Two can live in one process."""

    def __init__(
        self,
        settings: Settings,
        *,
        hardware: Hardware,
        read_settings: Callable[[], Settings],
        clock: Clock,
        log_lines_dropped: Callable[[], int] = lambda: 0,
        watching: Callable[[], None] = lambda: None,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._simulated = hardware.simulated
        self._read_settings = read_settings
        self._own = OwnSource(
            simulated=hardware.simulated,
            configured_unix_seconds=clock.unix_seconds(),
            log_lines_dropped=log_lines_dropped,
        )
        self._failed_parts: set[str] = set()
        # Made anew once a second, lest each scrape that is counted make the page anew.
        self._folds = Folds(refresh_seconds=1.0)
        self._dropped = self._folds.counter(
            catalog.DROPPED,
            [
                ("page_part", "failed"),
                *(("http_request", refusal.value) for refusal in Refusal),
                *DROPPED_SEEDS,
                *PODS_DROPPED,
                *KERNEL_DROPPED,
                *LIFE_DROPPED,
                *GPU_WORK_DROPPED,
            ],
        )
        self._requests = self._folds.counter(catalog.HTTP_REQUESTS, USUAL_ANSWERS)
        self._sampler = Sampler(
            load_library=hardware.load_library,
            pci_functions=hardware.pci_functions,
            expected=settings.gpu.expected_count,
            timing=timing_of(settings.gpu),
            clock=clock,
            look_at_nodes=hardware.look_at_nodes,
            memory=memory_of(
                settings.state,
                os.environ,
                lambda kind, reason, count: self._dropped.labels(kind, reason).inc(count),
                simulated=hardware.simulated,
            ),
        )
        self._pauses = PauseDoor(self._sampler, lambda: self.settings.gpu)
        self._gpu_work = GpuWork(
            settings.gpu,
            self._sampler,
            lambda kind, reason, count: self._dropped.labels(kind, reason).inc(count),
            clock,
        )
        self._kernel = KernelWatch(
            settings,
            self._sampler,
            hardware.load_library,
            lambda kind, reason, count: self._dropped.labels(kind, reason).inc(count),
            clock,
            simulated=hardware.simulated,
        )
        self._advice = AdviceDesk(settings, self._sampler, clock, simulated=hardware.simulated)
        gpus: tuple[Source, ...] = (
            GpuSource(lambda: self._sampler.latest, self._kernel.missing),
            self._pauses.source,
            self._advice.source,
            *dcgm_sources(settings.gpu, self._sampler, self._kernel.last_xid, os.environ),
        )
        self._work = Work(
            settings,
            Surroundings(
                folds=self._folds,
                drop=lambda kind, reason, count: self._dropped.labels(kind, reason).inc(count),
                clock=clock,
                simulated=hardware.simulated,
                gpu_uuid=self._gpu_uuid,
                watching=watching,
            ),
        )
        self._pods = Pods(
            settings.kubernetes,
            lambda: self._sampler.latest,
            lambda kind, reason, count: self._dropped.labels(kind, reason).inc(count),
            clock,
            simulated=hardware.simulated,
        )
        own: tuple[Source, ...] = (
            *self._kernel.sources,
            *self._pods.sources,
            *self._work.sources,
            self._folds,
            self._own,
        )
        self._page = Page((*(gpus if settings.gpu.enabled else ()), *own), self._part_failed)
        self.server = Server(build_application(self._answers()))

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until told to stop. Raises ListenFailed."""
        async with AsyncExitStack() as lifetimes:
            # First of all: if the address is taken, the driver need not be touched.
            lifetimes.push_async_callback(self.server.stop)
            await self.server.start(self.settings.web.listen_address, self.settings.web.unix_socket)
            self._work.start()
            lifetimes.push_async_callback(self._work.stop)
            self._pods.start()
            lifetimes.callback(self._pods.stop)
            self._kernel.start()
            lifetimes.push_async_callback(self._kernel.stop)
            if self.settings.gpu.enabled:
                self._sampler.start()
                lifetimes.push_async_callback(self._stop_sampler)
            log.info(
                "serving",
                url=f"http://localhost:{self.server.port}/",
                port=self.server.port,
                unix_socket=self.settings.web.unix_socket and str(self.settings.web.unix_socket),
                version=veo_exporter.__version__,
                simulated=self._simulated,
            )
            await stop.wait()
            log.info("ending")

    def feed(self, body: bytes) -> None:
        """Take events of jobs as if they had been posted; from any thread, once it runs."""
        self._work.feed(body)

    async def reload(self) -> None:
        """Read the configuration again. Raises BadConfig, and then everything stays as it was."""
        try:
            settings = self._read_settings()
            self._refuse_what_needs_a_restart(settings)
        except BadConfig as error:
            self._own.reloaded(False, self._clock.unix_seconds())
            log.error("configuration refused, the old one stays", faults=error.faults)
            raise
        self.settings = settings
        self._work.reconfigure(settings)
        self._advice.reconfigure(settings)
        self._pods.reconfigure(settings.kubernetes)
        self._sampler.reconfigure(timing_of(settings.gpu), settings.gpu.expected_count)
        self._gpu_work.reconfigure(settings.gpu)
        self._own.reloaded(True, self._clock.unix_seconds())
        log.info("configuration reloaded")

    def _refuse_what_needs_a_restart(self, settings: Settings) -> None:
        fixed = {
            "web.listen_address": (self.settings.web.listen_address, settings.web.listen_address),
            "web.unix_socket": (self.settings.web.unix_socket, settings.web.unix_socket),
            "gpu.enabled": (self.settings.gpu.enabled, settings.gpu.enabled),
            "kubernetes.enabled": (
                self.settings.kubernetes.enabled,
                settings.kubernetes.enabled,
            ),
            "gpu.sysfs_root": (self.settings.gpu.sysfs_root, settings.gpu.sysfs_root),
            "gpu.device_root": (self.settings.gpu.device_root, settings.gpu.device_root),
            **{
                f"gpu.{name}": (getattr(self.settings.gpu, name), getattr(settings.gpu, name))
                for name in DCGM_SETTINGS
            },
            "state": (self.settings.state, settings.state),
            "kernel": (self.settings.kernel, settings.kernel),
            "log": (self.settings.log, settings.log),
            "logs": (self.settings.logs, settings.logs),
            "traces": (self.settings.traces, settings.traces),
            "video.folders": (self.settings.video.folders, settings.video.folders),
            "video.enabled": (self.settings.video.enabled, settings.video.enabled),
            "jobs.engines": (self.settings.jobs.engines, settings.jobs.engines),
            "jobs.models": (self.settings.jobs.models, settings.jobs.models),
            "jobs.variants": (self.settings.jobs.variants, settings.jobs.variants),
            "jobs.profiles": (self.settings.jobs.profiles, settings.jobs.profiles),
        }
        if faults := [
            f"{name} cannot change while the exporter runs: restart it"
            for name, (before, after) in fixed.items()
            if before != after
        ]:
            raise BadConfig(faults)

    async def _stop_sampler(self) -> None:
        if not await asyncio.to_thread(self._sampler.stop, SAMPLER_STOP_SECONDS):
            log.warning("the driver did not take its session back; the kernel will")

    def _answers(self) -> Answers:
        now = self._clock.monotonic_seconds
        return Answers(
            server_name=f"veo-exporter/{veo_exporter.__version__}",
            simulated=self._simulated,
            metrics=lambda accept, encoding: self._page.answer(now(), accept, encoding),
            unhealthy=self._unhealthy,
            withdrawn=self._withdrawn,
            landing=lambda: Landing(
                version=veo_exporter.__version__,
                node=socket.gethostname(),
                simulated=self._simulated,
                gpus_watched=self.settings.gpu.enabled,
                snapshot=self._sampler.latest,
                withdrawn=self._withdrawn(),
                now_monotonic_seconds=now(),
            ),
            advice=self._advice.document,
            reload=self.reload,
            pause=self._pauses.pause,
            resume=self._pauses.resume,
            events=events_handler(
                self._work.intake,
                max_body_bytes=MAX_BODY_BYTES,
                max_batch=self.settings.jobs.max_batch,
            ),
            count_request=lambda path, status: self._requests.labels(
                path or OTHER_PATH, str(status)
            ).inc(),
            count_refusal=lambda refusal: self._dropped.labels("http_request", refusal.value).inc(),
        )

    def _gpu_uuid(self, index: str) -> str | None:
        """A log names a GPU by its index."""
        gpus = self._sampler.latest.gpus
        return next((gpu.uuid for gpu in gpus if str(gpu.index) == index and gpu.uuid), None)

    def _part_failed(self, source: Source) -> None:
        name = type(source).__name__
        self._dropped.labels("page_part", "failed").inc()
        if name not in self._failed_parts:
            self._failed_parts.add(name)
            log.error("a part of the page is left out", source=name, exc_info=True)  # noqa: LOG014, called in one

    def _unhealthy(self) -> str:
        silent = self._sampler.latest.outdated(self._clock.monotonic_seconds())
        if self._sampler.failed or (self._sampler.alive and silent):
            return "the sampler has ended or stands still: restart the exporter"
        return ""

    def _withdrawn(self) -> list[str]:
        if not self.settings.gpu.enabled:
            return []
        return withdrawn_groups(self._sampler.latest, self._clock.monotonic_seconds())


def timing_of(gpu: Gpu) -> Timing:
    """The sampler's timing as the settings say it."""
    return Timing(
        fast_interval_seconds=gpu.fast_interval,
        full_interval_seconds=gpu.full_interval,
        static_interval_seconds=gpu.static_interval,
        window_seconds=gpu.window,
        call_deadline_seconds=gpu.call_deadline,
        start_deadline_seconds=gpu.start_deadline,
        driver_samples=gpu.driver_samples,
    )
