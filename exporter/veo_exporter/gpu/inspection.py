# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""One look at the driver and its GPUs, for a person who asks what is wrong."""

from dataclasses import dataclass
from typing import Any

from veo_exporter.clock import Clock
from veo_exporter.gpu.codes import code_name, remedy_for
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.reader import read_gpu
from veo_exporter.gpu.readings import Cadence, WhyNot, signal_name
from veo_exporter.gpu.session import close_session, count_gpus, find_gpu, open_session


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReport:
    """One GPU; `fault` is empty if it answers."""

    index: int
    name: str = ""
    fault: str = ""
    not_supported: tuple[str, ...] = ()
    not_permitted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverReport:
    """The driver; `fault` is empty if a session could be opened."""

    fault: str = ""
    fault_name: str = ""
    driver_version: str = ""
    gpus: tuple[GpuReport, ...] = ()


def inspect_driver(library: Any, clock: Clock) -> DriverReport:
    """Open a session, ask every GPU everything once, and close it. May hang as the driver does."""
    line = Line(library, clock)
    opened = open_session(line)
    if opened.code:
        return DriverReport(fault=remedy_for(opened.code), fault_name=code_name(opened.code))
    try:
        counted = count_gpus(line)
        if counted.code:
            return DriverReport(fault=remedy_for(counted.code), fault_name=code_name(counted.code))
        return DriverReport(
            driver_version=opened.texts.get("driver_version", ""),
            gpus=tuple(_inspect_gpu(line, index, clock) for index in range(counted.count)),
        )
    finally:
        close_session(line)


def _inspect_gpu(line: Line, index: int, clock: Clock) -> GpuReport:
    found = find_gpu(line, index)
    if found.device is None:
        return GpuReport(index=index, fault=f"{found.function}: {code_name(found.code)}")
    readings = [read_gpu(line, found.device, cadence, (), clock) for cadence in Cadence]
    missing = {signal: why for reading in readings for signal, why in reading.missing.items()}
    failures = [failure for reading in readings for failure in reading.failures]
    texts = {label: text for reading in readings for label, text in reading.texts.items()}

    def named(why: WhyNot) -> tuple[str, ...]:
        return tuple(signal_name(signal) for signal, reason in missing.items() if reason is why)

    return GpuReport(
        index=index,
        name=f"{texts.get('name', 'no name')} ({found.device.uuid}, {found.device.pci_bus_id})",
        fault=", ".join(f"{failure.function}: {code_name(failure.code)}" for failure in failures),
        not_supported=named(WhyNot.NOT_SUPPORTED),
        not_permitted=named(WhyNot.NOT_PERMITTED),
    )
