# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""MIG: whether a GPU is divided, and what its parts are. Asked anew each time, for it may change meanwhile."""

from typing import Final, NamedTuple

from veo_exporter.catalog import gpu_mig as catalog
from veo_exporter.gpu.answers import ask_memory
from veo_exporter.gpu.codes import ReturnCode
from veo_exporter.gpu.findings import Finding
from veo_exporter.gpu.nvml import Handle, Line, NvmlError
from veo_exporter.gpu.readings import Device, GpuInstance, Signal

SIGNALS: Final[tuple[Signal, ...]] = (catalog.MIG_MODE, catalog.MIG_MODE_PENDING)
"""What is absent on boards that cannot be divided."""
MAX_SLOTS: Final = 64
"""No board has more than 7 today, and no answer makes us ask for ever."""

_NOTHING_THERE: Final = (ReturnCode.NOT_FOUND, ReturnCode.INVALID_ARGUMENT)
"""A slot is empty; or what was in it is gone since."""
_NAME_BEFORE_PROFILE: Final = " MIG "
_MEMORY: Final = (
    catalog.MIG_MEMORY_TOTAL,
    catalog.MIG_MEMORY_USED,
    catalog.MIG_MEMORY_FREE,
)


class _MigDevice(NamedTuple):
    """A compute instance of a GPU instance."""

    uuid: str
    profile: str
    gpu_instance: int
    compute_instance: int
    handle: Handle


def ask_mig(line: Line, device: Device) -> list[Finding]:
    """Mode, MIG devices, and the memory of each GPU instance. One that fails costs its own rows."""
    current, pending = line.call("nvmlDeviceGetMigMode", device.handle)
    findings: list[Finding] = [
        (catalog.MIG_MODE, (), current),
        (catalog.MIG_MODE_PENDING, (), pending),
    ]
    first_of: dict[int, _MigDevice] = {}
    for mig in _devices(line, device.handle, findings) if current else ():
        labels = (mig.uuid, mig.profile, str(mig.gpu_instance), str(mig.compute_instance))
        findings.append((catalog.MIG_INFO, labels, 1))
        # The lowest compute instance gives the GPU instance its name, whatever slot it is in.
        known = first_of.get(mig.gpu_instance)
        if known is None or mig.compute_instance < known.compute_instance:
            first_of[mig.gpu_instance] = mig
    for mig in first_of.values():
        findings += _memory(line, mig)
    device.bookmarks.gpu_instances = tuple(
        GpuInstance(mig.gpu_instance, mig.uuid) for mig in first_of.values()
    )
    return findings


def _devices(line: Line, gpu: Handle, findings: list[Finding]) -> list[_MigDevice]:
    devices: dict[str, _MigDevice] = {}
    try:
        slots = min(line.call("nvmlDeviceGetMaxMigDeviceCount", gpu), MAX_SLOTS)
    except NvmlError as error:
        findings.append((catalog.MIG_INFO, (), error))
        return []
    for slot in range(slots):
        try:
            handle = line.call("nvmlDeviceGetMigDeviceHandleByIndex", gpu, slot)
            found = _MigDevice(
                uuid=str(line.call("nvmlDeviceGetUUID", handle)),
                profile=profile_in(str(line.call("nvmlDeviceGetName", handle))),
                gpu_instance=line.call("nvmlDeviceGetGpuInstanceId", handle),
                compute_instance=line.call("nvmlDeviceGetComputeInstanceId", handle),
                handle=handle,
            )
        except NvmlError as error:
            if error.code not in _NOTHING_THERE:
                findings.append((catalog.MIG_INFO, (), error))
            continue
        # While it is divided anew, one device may be met in two slots.
        devices[found.uuid] = found
    return list(devices.values())


def _memory(line: Line, mig: _MigDevice) -> list[Finding]:
    labels = (str(mig.gpu_instance), mig.uuid)
    try:
        numbers = ask_memory(line, mig.handle)
    except NvmlError as error:
        return [] if error.code in _NOTHING_THERE else [(spec, (), error) for spec in _MEMORY]
    return [
        (spec, labels, number)
        for spec, number in zip(_MEMORY, numbers, strict=False)
        if number is not None
    ]


def profile_in(name: str) -> str:
    """The profile in a MIG device's name ("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), the only place where
    NVML writes it out."""
    return name.rpartition(_NAME_BEFORE_PROFILE)[2] if _NAME_BEFORE_PROFILE in name else "unknown"
