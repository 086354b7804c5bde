# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Xids and OOM kills wired: NVML's events and the kernel log to counts, the log and whoever asks."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import structlog

from veo_exporter.app.loops import Loops
from veo_exporter.catalog import MetricSpec
from veo_exporter.catalog.xid import XID_ERRORS
from veo_exporter.clock import Clock
from veo_exporter.config import Kernel, KernelLogMode, Settings
from veo_exporter.exposition import Source
from veo_exporter.gpu import (
    XID_DROPPED_SEEDS,
    Device,
    EventListener,
    GpuName,
    Happened,
    Road,
    Sampler,
    Sighting,
    Snapshot,
    WhyNot,
    XidEvent,
    XidIntake,
    XidSource,
)
from veo_exporter.logs import (
    KERNEL_DROPPED_SEEDS,
    KernelLog,
    KernelLogSource,
    KernelNews,
    OomKill,
    Places,
    XidMessage,
    open_kernel_log,
)

log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 1.0
"""As often as a page can change; the kernel writes the time of each message itself."""
STOP_SECONDS: Final = 0.4
DROPPED_SEEDS: Final = (*XID_DROPPED_SEEDS, *KERNEL_DROPPED_SEEDS)
"""What is dropped here, as (kind, reason)."""

NVML_EVENTS: Final = "nvml_events"
KERNEL_LOG: Final = "kernel_log"


def places_of(settings: Kernel) -> Places:
    """Where the kernel log is looked for, as the settings say it."""
    return Places(path=settings.log_path)


class KernelWatch:
    """Hears what the driver and the kernel tell. All counts are made on the event loop's thread."""

    def __init__(
        self,
        settings: Settings,
        sampler: Sampler,
        load_library: Callable[[], Any],
        drop: Callable[[str, str, int], None],
        clock: Clock,
        *,
        simulated: bool,
        happened: Happened = lambda at_unix_seconds, kind, fields: None,
    ) -> None:
        self._sampler = sampler
        self._clock = clock
        self._drop = drop
        self._happened = happened
        self._gpus_watched = settings.gpu.enabled
        # Real kernel lines beside made-up GPUs would look real.
        self._log_wanted = settings.kernel.log is not KernelLogMode.OFF and not simulated
        places = places_of(settings.kernel)
        self._log = KernelLog(
            lambda: open_kernel_log(places),
            clock,
            wanted=settings.kernel.log is KernelLogMode.ON,
        )
        self._listener = EventListener(load_library, clock, self._heard, sampler.calls)
        if self._gpus_watched:
            sampler.when_found(self._listener.attend)
            sampler.before_closing(self._listener.release)
            sampler.ask_who_holds(self._listener.stuck_calls)
            sampler.also_tell(self._listener.calls_told)
        self._intake = XidIntake(name_of=self._name_of, happened=happened, dropped=drop)
        self._xids = XidSource(self._intake.tallies, gpus=self._gpus, watched=self._is_watched)
        self._kernel_source = KernelLogSource(
            was_read=lambda: self._log.was_up, sources_up=self._sources_up
        )
        self._named: tuple[Snapshot | None, tuple[GpuName, ...]] = (None, ())
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loops = Loops(drop)

    @property
    def sources(self) -> tuple[Source, ...]:
        """This part's side of the page."""
        return (self._xids, self._kernel_source)

    def missing(self) -> list[tuple[str, MetricSpec, WhyNot]]:
        """The GPUs, by UUID, whose Xids nobody tells, and why NVML does not."""
        if self._log.was_up:
            return []
        return [(uuid, XID_ERRORS, why) for uuid, why in self._listener.missing().items()]

    def last_xid(self, pci_bus_id: str) -> int | None:
        """The number of a GPU's last Xid, 0 if it had none; None if nobody would tell of one."""
        code = self._intake.tallies.newest.get(pci_bus_id)
        if code is None and self._is_watched(GpuName(pci_bus_id=pci_bus_id)):
            return 0
        return code

    def start(self) -> None:
        """Begin to look."""
        self._loop = asyncio.get_running_loop()
        self._loops.start("kernel", self._look)

    async def stop(self) -> None:
        """End within a moment; a look that a disk holds up is left to itself."""
        await self._loops.stop()
        await asyncio.to_thread(self._listener.stop, STOP_SECONDS)
        self._log.close()

    def unhealthy(self) -> str:
        """Empty while it looks, else what is wrong."""
        ended = self._loops.ended()
        return f"the loop of {ended[0]} has ended: restart the exporter" if ended else ""

    async def _look(self) -> float:
        self._listener.watch()
        if self._log_wanted:
            quick = self._log.quick
            self._fold(self._log.look() if quick else await asyncio.to_thread(self._log.look))
        return LOOK_SECONDS

    def _fold(self, news: KernelNews) -> None:
        self._kernel_source.lines.update(news.lines)
        for (kind, reason), count in news.dropped.items():
            self._drop(kind, reason, count)
        for told in news.told:
            match told.message:
                case XidMessage() as xid:
                    self._intake.take(
                        self._sighting(Road.KERNEL, xid.pci_bus_id, xid.code, told.at_unix_seconds),
                        gpu_instance=xid.gpu_instance,
                        compute_instance=xid.compute_instance,
                        pid=xid.pid,
                        process=xid.process,
                        detail=xid.detail,
                    )
                case OomKill() as kill:
                    self._take_kill(kill, told.at_unix_seconds)
                case switch:
                    log.warning("Xid of an NVSwitch", xid=switch.code, pci_bus_id=switch.pci_bus_id)

    def _take_kill(self, kill: OomKill, at_unix_seconds: float) -> None:
        self._kernel_source.kills[kill.scope] += 1
        fields = {
            "scope": kill.scope.value,
            "pid": kill.pid,
            "process": kill.process,
            "cgroup": kill.cgroup,
        }
        log.warning("the kernel killed a process for want of memory", **fields)
        self._happened(at_unix_seconds, "oom_kill", fields)

    def _heard(self, device: Device | None, event: XidEvent) -> None:
        sighting = self._sighting(
            Road.NVML,
            device.pci_bus_id if device else "",
            event.code,
            self._clock.unix_seconds(),
        )
        if self._loop is not None:
            # A loop that has ended counts nothing, and nobody is left to read it.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._take_event, sighting, event)

    def _take_event(self, sighting: Sighting, event: XidEvent) -> None:
        self._intake.take(
            sighting, gpu_instance=event.gpu_instance, compute_instance=event.compute_instance
        )

    def _sighting(self, road: Road, pci_bus_id: str, code: int, at_unix_seconds: float) -> Sighting:
        return Sighting(
            road=road,
            pci_bus_id=pci_bus_id,
            code=code,
            at_unix_seconds=at_unix_seconds,
            at_monotonic_seconds=self._clock.monotonic_seconds(),
        )

    def _gpus(self) -> tuple[GpuName, ...]:
        # Every scrape asks, and a snapshot is the newest for a second.
        snapshot = self._sampler.latest
        known, names = self._named
        if known is not snapshot:
            names = tuple(
                GpuName(
                    pci_bus_id=gpu.pci_bus_id,
                    gpu="" if gpu.index is None else str(gpu.index),
                    uuid=gpu.uuid,
                )
                for gpu in snapshot.gpus
            )
            self._named = snapshot, names
        return names

    def _name_of(self, pci_bus_id: str) -> GpuName:
        named = (gpu for gpu in self._gpus() if pci_bus_id and gpu.pci_bus_id == pci_bus_id)
        return next(named, GpuName(pci_bus_id=pci_bus_id))

    def _is_watched(self, gpu: GpuName) -> bool:
        return self._log.was_up or self._listener.has_heard_of(gpu.pci_bus_id)

    def _sources_up(self) -> Mapping[str, bool]:
        up = {NVML_EVENTS: self._listener.up} if self._gpus_watched else {}
        return up | ({KERNEL_LOG: self._log.up} if self._log_wanted else {})
