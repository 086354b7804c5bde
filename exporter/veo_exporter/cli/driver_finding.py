# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What doctor finds of NVML and its GPUs, held against the PCI bus."""

from collections.abc import Iterator, Sequence
from typing import Final

from veo_exporter.cli.findings import Finding, Grade
from veo_exporter.clock import SystemClock
from veo_exporter.config import Settings
from veo_exporter.gpu import DriverReport, GpuReport, PciBus, inspect_driver, load_library

DRIVER_PATIENCE_SECONDS: Final = 15.0
NAMES_SHOWN: Final = 3


def driver(
    settings: Settings, patience_seconds: float = DRIVER_PATIENCE_SECONDS
) -> Iterator[Finding]:
    """NVML: the library, the driver, and each GPU. No call is waited for longer than told."""
    if not settings.gpu.enabled:
        yield Finding(Grade.GOOD, "GPUs", "not watched (gpu.enabled is false)")
        return
    report = inspect_driver(
        load_library(),
        SystemClock(),
        call_deadline_seconds=min(settings.gpu.call_deadline, patience_seconds),
        start_deadline_seconds=min(settings.gpu.start_deadline, patience_seconds),
    )
    if report.fault:
        yield Finding(Grade.BAD, "NVML", report.fault_name, report.fault)
        return
    yield Finding(Grade.GOOD, "NVML", f"driver {report.driver_version}, {len(report.gpus)} GPUs")
    functions = PciBus(settings.gpu.sysfs_root).functions() or frozenset()
    left_over = sorted(functions - {gpu.pci_bus_id for gpu in report.gpus})
    unread = [gpu.index for gpu in report.gpus if not gpu.pci_bus_id]
    # NVML lists in the order of the bus, so what is left over on both sides belongs together.
    named = dict(zip(unread, left_over, strict=True)) if len(unread) == len(left_over) else {}
    for gpu in report.gpus:
        yield _of_gpu(gpu, named.get(gpu.index, ""))
    if len(left_over) > len(unread):
        yield _of_missing(report, len(functions), left_over, unread)


def _of_gpu(gpu: GpuReport, address: str) -> Finding:
    missing = f"; not supported: {_first_of(gpu.not_supported)}" if gpu.not_supported else ""
    denied = f"not permitted: {', '.join(gpu.not_permitted)}" if gpu.not_permitted else ""
    grade = Grade.BAD if gpu.fault else Grade.WARNING if denied else Grade.GOOD
    remedy = "see nvidia-smi and the kernel log for this GPU" if gpu.fault else denied
    about = f" (PCI {address})" if address else f" ({gpu.name})" if gpu.fault and gpu.name else ""
    return Finding(grade, f"GPU {gpu.index}", (gpu.fault or gpu.name) + about + missing, remedy)


def _first_of(names: Sequence[str]) -> str:
    """No board has everything: a few names say what kind of things, the page has all of them."""
    further = len(names) - NAMES_SHOWN
    listed = ", ".join(names[:NAMES_SHOWN])
    return f"{listed} and {further} more (veo_gpu_capability_missing)" if further > 0 else listed


def _of_missing(
    report: DriverReport, on_bus: int, left_over: list[str], unread: list[int]
) -> Finding:
    which = "not listed or not readable" if unread else "not listed"
    return Finding(
        Grade.BAD,
        "GPU count",
        f"NVML lists {len(report.gpus)} of the {on_bus} GPUs on the PCI bus; {which}: {', '.join(left_over)}",
        "see the kernel log for these addresses: the driver did not start them, or hides them",
    )
