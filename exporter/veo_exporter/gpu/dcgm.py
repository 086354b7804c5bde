# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A snapshot of GPUs under the names of dcgm-exporter, in its units."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Final

from veo_exporter.catalog import MetricSpec, Series, dcgm
from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog import gpu_health as health
from veo_exporter.catalog import gpu_links as links
from veo_exporter.catalog import gpu_profiling as profiling
from veo_exporter.catalog.dcgm import DcgmField, Spelling
from veo_exporter.catalog.xid import UNKNOWN_MEANING, xid_table
from veo_exporter.exposition import Family
from veo_exporter.gpu.readings import GpuView, Raw, Snapshot
from veo_exporter.gpu.vgpu_license import VgpuLicense

NO_XID: Final = "no Xid"

_Key = tuple[MetricSpec | Raw, tuple[str, ...]]
"""A metric of ours, or what one is made of, and the values of its labels after gpu and uuid."""


def _part(name: str) -> _Key:
    return profiling.PROFILING_ACTIVE, (name,)


# NVML gave these as whole numbers; rounding undoes what the way to base units lost of them.
def _percent(ratio: float) -> float:
    return float(round(ratio * 100))


def _megahertz(hertz: float) -> float:
    return float(round(hertz / 1e6))


def _millijoules(joules: float) -> float:
    return float(round(joules * 1000))


def _bytes_per_second(rate: float) -> float:
    return float(round(rate))


def _licensed(standing: float) -> float:
    # DCGM has 0 for a board that needs no licence, too.
    return float(standing == VgpuLicense.ACTIVE)


def _mebibytes(size: float) -> float:
    # DCGM cuts the rest off.
    return size // 1_048_576


_ORIGINS: Final[Mapping[DcgmField, tuple[_Key, Callable[[float], float]]]] = {
    dcgm.SM_CLOCK: ((catalog.SM_CLOCK, ()), _megahertz),
    dcgm.MEMORY_CLOCK: ((catalog.MEMORY_CLOCK, ()), _megahertz),
    dcgm.MEMORY_TEMPERATURE: ((catalog.MEMORY_TEMPERATURE, ()), float),
    dcgm.TEMPERATURE: ((catalog.TEMPERATURE, ()), float),
    dcgm.POWER: ((catalog.POWER, ()), float),
    dcgm.ENERGY: ((catalog.ENERGY, ()), _millijoules),
    dcgm.PCIE_REPLAYS: ((links.PCIE_REPLAYS, ()), float),
    dcgm.UTILIZATION: ((catalog.UTILIZATION, ()), _percent),
    dcgm.MEMORY_COPY_UTILIZATION: ((catalog.MEMORY_COPY_UTILIZATION, ()), _percent),
    dcgm.ENCODER_UTILIZATION: ((catalog.ENCODER_UTILIZATION, ()), _percent),
    dcgm.DECODER_UTILIZATION: ((catalog.DECODER_UTILIZATION, ()), _percent),
    dcgm.MEMORY_FREE: ((catalog.MEMORY_FREE, ()), _mebibytes),
    dcgm.MEMORY_USED: ((catalog.MEMORY_USED, ()), _mebibytes),
    dcgm.MEMORY_RESERVED: ((catalog.MEMORY_RESERVED, ()), _mebibytes),
    dcgm.VGPU_LICENSE: ((Raw.VGPU_LICENSE, ()), _licensed),
    dcgm.UNCORRECTABLE_REMAPPED_ROWS: ((health.REMAPPED_ROWS, ("uncorrectable",)), float),
    dcgm.CORRECTABLE_REMAPPED_ROWS: ((health.REMAPPED_ROWS, ("correctable",)), float),
    dcgm.ROW_REMAP_FAILURE: ((health.REMAP_FAILURE, ()), float),
    dcgm.GRAPHICS_ACTIVE: (_part("graphics"), float),
    dcgm.TENSOR_ACTIVE: (_part("tensor"), float),
    dcgm.DRAM_ACTIVE: (_part("dram"), float),
    dcgm.PCIE_TRANSMIT: ((profiling.PROFILING_PCIE_TRANSMIT, ()), _bytes_per_second),
    dcgm.PCIE_RECEIVE: ((profiling.PROFILING_PCIE_RECEIVE, ()), _bytes_per_second),
}
"""The Xid and the rate of the NVLinks are told by others."""


class DcgmSource:
    """The GPUs' side of the page for dashboards of dcgm-exporter. What is too old is left out."""

    def __init__(
        self,
        latest: Callable[[], Snapshot],
        *,
        spelling: Spelling,
        hostname: str,
        last_xid: Callable[[str], int | None],
        link_bytes_per_second: Callable[[str], float | None],
    ) -> None:
        """`last_xid` is asked by PCI address and says 0 for none, None if nobody would tell;
        `link_bytes_per_second` by UUID."""
        self._latest = latest
        self._hostname = hostname
        self._last_xid = last_xid
        self._link_bytes_per_second = link_bytes_per_second
        self._specs = dcgm.declare(spelling)

    def revision(self, now_monotonic_seconds: float) -> Hashable:
        snapshot = self._latest()
        return (
            snapshot.sequence,
            sum(
                snapshot.withdrawn(reading, now_monotonic_seconds)
                for gpu in snapshot.gpus
                for reading in gpu.readings
            ),
            *(self._last_xid(gpu.pci_bus_id) for gpu in snapshot.gpus),
        )

    def families(self, now_monotonic_seconds: float) -> Iterable[Family]:
        snapshot = self._latest()
        families = {field: Family(spec) for field, spec in self._specs.items()}
        driver_version = snapshot.driver.texts.get("driver_version", "")
        for gpu in snapshot.gpus:
            if gpu.index is None or not gpu.uuid:
                # DCGM does not know of it either; our own state metric does.
                continue
            values = _shown(snapshot, gpu, now_monotonic_seconds)
            labels = (
                str(gpu.index),
                gpu.uuid,
                nvml_address(gpu.pci_bus_id),
                f"nvidia{gpu.index}",
                gpu.texts.get("name", ""),
                self._hostname,
                driver_version,
            )
            for field, (key, convert) in _ORIGINS.items():
                if key in values:
                    families[field].add(labels, convert(values[key]))
            rate = self._link_bytes_per_second(gpu.uuid)
            if rate is not None and (links.NVLINK_TRANSMIT, ()) in values:
                # As DCGM has it: KiB, then thousands of them, cut to a whole number.
                families[dcgm.NVLINK_BANDWIDTH].add(labels, float(rate / 1024 // 1000))
            code = self._last_xid(gpu.pci_bus_id)
            if code is not None:
                # Shown of a GPU that is lost, too: it may say why.
                families[dcgm.XID].add((*labels, str(code), _meaning(code)), code)
        return families.values()


def _shown(snapshot: Snapshot, gpu: GpuView, now_monotonic_seconds: float) -> dict[_Key, float]:
    """What is read of a GPU and not withdrawn, by what it is called on our side of the page."""
    values: dict[_Key, float] = {}
    for reading in gpu.readings:
        if snapshot.withdrawn(reading, now_monotonic_seconds):
            continue
        for signal, value in reading.values.items():
            if isinstance(signal, Series):
                values[signal.spec, signal.labels] = value
            else:
                values[signal, ()] = value
        values.update({(spec, labels): value for spec, labels, value in reading.rows})
    return values


def nvml_address(pci_bus_id: str) -> str:
    """A PCI address as NVML writes it: 0000:1b:00.0 is 00000000:1B:00.0."""
    domain, _, rest = pci_bus_id.partition(":")
    return f"{domain:0>8}:{rest}".upper() if rest else pci_bus_id


def _meaning(code: int) -> str:
    if code == 0:
        return NO_XID
    xid = xid_table().get(code)
    return xid.meaning if xid else UNKNOWN_MEANING
