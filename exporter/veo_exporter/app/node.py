# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The first road wired: the node's GPUs, what driver and kernel tell of them, and whose they are."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import structlog

from veo_exporter.app.advice import AdviceDesk
from veo_exporter.app.dcgm import dcgm_sources
from veo_exporter.app.gpu_work import DROPPED_SEEDS as GPU_WORK_DROPPED
from veo_exporter.app.gpu_work import GpuWork
from veo_exporter.app.kernel import DROPPED_SEEDS as KERNEL_DROPPED
from veo_exporter.app.kernel import KernelWatch
from veo_exporter.app.life import DROPPED_SEEDS as LIFE_DROPPED
from veo_exporter.app.life import PauseDoor, memory_of
from veo_exporter.app.pods import DROPPED_SEEDS as PODS_DROPPED
from veo_exporter.app.pods import Pods
from veo_exporter.app.reloading import Changeable, timing_of
from veo_exporter.clock import Clock
from veo_exporter.config import Settings
from veo_exporter.exposition import Source
from veo_exporter.gpu import GpuSource, Nodes, Sampler, Snapshot, withdrawn_groups

log = structlog.get_logger(__name__)

SAMPLER_STOP_SECONDS: Final = 1.0
"""With the web's own patience this stays under the two seconds that SIGTERM may take."""

DROPPED_SEEDS: Final = (*PODS_DROPPED, *KERNEL_DROPPED, *LIFE_DROPPED, *GPU_WORK_DROPPED)
"""What is dropped on this road, as (kind, reason)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What the node is made of: the driver's bindings and the PCI bus, real or simulated."""

    load_library: Callable[[], Any]
    pci_functions: Callable[[], frozenset[str] | None]
    simulated: bool
    look_at_nodes: Callable[[], Nodes] | None = None


class Node:
    """GPUs, Xids, pods, advice. Started and stopped with the exporter."""

    def __init__(
        self,
        settings: Settings,
        hardware: Hardware,
        drop: Callable[[str, str, int], None],
        clock: Clock,
    ) -> None:
        simulated = hardware.simulated
        self._clock = clock
        self._watched = settings.gpu.enabled
        self._sampler = Sampler(
            load_library=hardware.load_library,
            pci_functions=hardware.pci_functions,
            expected=settings.gpu.expected_count,
            timing=timing_of(settings.gpu),
            clock=clock,
            look_at_nodes=hardware.look_at_nodes,
            memory=memory_of(settings.state, os.environ, drop, simulated=simulated),
        )
        self.pauses = PauseDoor(self._sampler, settings.gpu)
        self.advice = AdviceDesk(settings, self._sampler, clock, simulated=simulated)
        self._gpu_work = GpuWork(settings.gpu, self._sampler, drop, clock)
        self._kernel = KernelWatch(
            settings, self._sampler, hardware.load_library, drop, clock, simulated=simulated
        )
        self._pods = Pods(
            settings.kubernetes, lambda: self.latest, drop, clock, simulated=simulated
        )
        gpus: tuple[Source, ...] = (
            GpuSource(lambda: self.latest, self._kernel.missing),
            self.pauses.source,
            self.advice.source,
            *dcgm_sources(settings.gpu, self._sampler, self._kernel.last_xid, os.environ),
        )
        self.sources: tuple[Source, ...] = (
            *(gpus if self._watched else ()),
            *self._kernel.sources,
            *self._pods.sources,
        )

    @property
    def latest(self) -> Snapshot:
        """The newest snapshot of the GPUs."""
        return self._sampler.latest

    def start(self) -> None:
        """Begin to ask and to listen."""
        self._pods.start()
        self._kernel.start()
        if self._watched:
            self._sampler.start()

    async def stop(self) -> None:
        """End; the driver gets its session back if it takes it in time."""
        if self._watched and not await asyncio.to_thread(self._sampler.stop, SAMPLER_STOP_SECONDS):
            log.warning("the driver did not take its session back; the kernel will")
        await self._kernel.stop()
        self._pods.stop()

    def reconfigure(self, parts: Changeable) -> None:
        """Take other settings."""
        self._sampler.reconfigure(parts.timing, parts.expected_gpus)
        self.pauses.reconfigure(parts.pauses)
        self.advice.reconfigure(parts.ladder)
        self._gpu_work.reconfigure(parts.process_names, parts.gpm_signals)
        self._pods.reconfigure(parts.pods)

    def gpu_uuid(self, index: str) -> str | None:
        """A log names a GPU by its index."""
        return next(
            (gpu.uuid for gpu in self.latest.gpus if str(gpu.index) == index and gpu.uuid), None
        )

    def unhealthy(self) -> str:
        """Empty while all goes on, else what is wrong."""
        silent = self.latest.outdated(self._clock.monotonic_seconds())
        if self._sampler.failed or (self._sampler.alive and silent):
            return "the sampler has ended or stands still: restart the exporter"
        return self._kernel.unhealthy()

    def withdrawn(self) -> list[str]:
        """A sentence for each thing that a complete page would have and this one has not."""
        if not self._watched:
            return []
        return withdrawn_groups(self.latest, self._clock.monotonic_seconds())
