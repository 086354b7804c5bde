# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics under the names of dcgm-exporter: they are its to give, so they stand apart from ours.

A row for each of its default counters, with the name that DCGM had for it up to 4.5 and the one that it
has from 4.6 on. Names, types and units are those that dashboards and rules were written against.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from veo_exporter.catalog.spec import Kind, Label, MetricSpec, Namespace
from veo_exporter.units import Unit

DCGM: Final = Namespace(
    ("DCGM_FI_",),
    re.compile(r"[A-Z][A-Z0-9_]*"),
    "capital letters, digits and underscores",
    re.compile(r"[A-Za-z][A-Za-z0-9_]*"),
    base_units=False,
)


@dataclass(frozen=True, slots=True)
class Spelling:
    """Which of the names in use are written."""

    renamed: bool = False
    """Those of DCGM 4.6 and later."""
    uuid: str = "UUID"
    hostname: str = "Hostname"


# By identity, as specs are.
@dataclass(frozen=True, slots=True, eq=False)
class DcgmField:
    """One of DCGM's fields; without a new name it kept the old one."""

    classic: str
    kind: Kind
    help: str
    new: str = ""
    further_labels: tuple[Label, ...] = ()

    def name(self, spelling: Spelling) -> str:
        return self.new if self.new and spelling.renamed else self.classic


def _gauge(classic: str, help: str, new: str = "", *further_labels: Label) -> DcgmField:
    return DcgmField(classic, Kind.GAUGE, help, new, further_labels)


def _counter(classic: str, help: str, new: str = "") -> DcgmField:
    return DcgmField(classic, Kind.COUNTER, help, new)


SM_CLOCK: Final = _gauge("DCGM_FI_DEV_SM_CLOCK", "Clock of the streaming multiprocessors, in MHz.")
MEMORY_CLOCK: Final = _gauge("DCGM_FI_DEV_MEM_CLOCK", "Clock of the device memory, in MHz.")
MEMORY_TEMPERATURE: Final = _gauge(
    "DCGM_FI_DEV_MEMORY_TEMP",
    "Temperature of the device memory, in degrees Celsius.",
    "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS",
)
TEMPERATURE: Final = _gauge(
    "DCGM_FI_DEV_GPU_TEMP",
    "Temperature of the GPU core, in degrees Celsius.",
    "DCGM_FI_DEV_GPU_TEMP_CELSIUS",
)
POWER: Final = _gauge(
    "DCGM_FI_DEV_POWER_USAGE", "Power draw of the board, in W.", "DCGM_FI_DEV_BOARD_POWER_WATTS"
)
ENERGY: Final = _counter(
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Energy used since the driver was loaded, in mJ."
)
PCIE_REPLAYS: Final = _counter(
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "Packets that PCIe had to send once more.",
    "DCGM_FI_DEV_PCIE_REPLAY_TOTAL",
)
UTILIZATION: Final = _gauge(
    "DCGM_FI_DEV_GPU_UTIL",
    "Share of the driver's window in which a kernel ran, in percent.",
    "DCGM_FI_DEV_GPU_UTIL_RATIO",
)
MEMORY_COPY_UTILIZATION: Final = _gauge(
    "DCGM_FI_DEV_MEM_COPY_UTIL",
    "Share of the driver's window in which device memory was read or written, in percent; not how full it is.",
)
ENCODER_UTILIZATION: Final = _gauge(
    "DCGM_FI_DEV_ENC_UTIL",
    "Share of the driver's window in which the video encoder was busy, in percent.",
)
DECODER_UTILIZATION: Final = _gauge(
    "DCGM_FI_DEV_DEC_UTIL",
    "Share of the driver's window in which the video decoder was busy, in percent.",
)
XID: Final = _gauge(
    "DCGM_FI_DEV_XID_ERRORS",
    "Number of the last Xid since the exporter's start, 0 if there was none.",
    "DCGM_FI_DEV_XID_ERROR",
    Label("err_code", "number of the last Xid", "1 of each GPU"),
    Label("err_msg", "what it means, in this project's words", "1 of each GPU"),
)
MEMORY_FREE: Final = _gauge("DCGM_FI_DEV_FB_FREE", "Device memory that is free, in MiB.")
MEMORY_USED: Final = _gauge(
    "DCGM_FI_DEV_FB_USED", "Device memory in use, the driver's reserve left out, in MiB."
)
MEMORY_RESERVED: Final = _gauge(
    "DCGM_FI_DEV_FB_RESERVED",
    "Device memory that driver and firmware keep for themselves, in MiB.",
)
NVLINK_BANDWIDTH: Final = _counter(
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
    "Rate over all NVLinks, both directions, in thousands of KiB a second. DCGM's type says counter; it is none.",
    "DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL",
)
VGPU_LICENSE: Final = _gauge(
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS",
    "1 while a virtual GPU has its licence, 0 while it has none; 0 of a board that needs none as well.",
)
UNCORRECTABLE_REMAPPED_ROWS: Final = _counter(
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
    "Rows of device memory that were replaced for uncorrectable errors.",
    "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL",
)
CORRECTABLE_REMAPPED_ROWS: Final = _counter(
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
    "Rows of device memory that were replaced for correctable errors.",
    "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL",
)
ROW_REMAP_FAILURE: Final = _gauge(
    "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    "1 if a row could not be replaced.",
    "DCGM_FI_DEV_ROW_REMAP_FAILED",
)
GRAPHICS_ACTIVE: Final = _gauge(
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "Share of the time in which anything of the GPU was active, from 0 to 1.",
    "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO",
)
TENSOR_ACTIVE: Final = _gauge(
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "Share of the time in which the tensor cores were active, from 0 to 1.",
    "DCGM_FI_PROF_TENSOR_UTIL_RATIO",
)
DRAM_ACTIVE: Final = _gauge(
    "DCGM_FI_PROF_DRAM_ACTIVE",
    "Share of the time in which the interface of the device memory was active, from 0 to 1.",
    "DCGM_FI_PROF_DRAM_UTIL_RATIO",
)
PCIE_TRANSMIT: Final = _gauge(
    "DCGM_FI_PROF_PCIE_TX_BYTES",
    "Rate at which the GPU sent over PCIe, headers included, in bytes a second.",
)
PCIE_RECEIVE: Final = _gauge(
    "DCGM_FI_PROF_PCIE_RX_BYTES",
    "Rate at which the GPU received over PCIe, headers included, in bytes a second.",
)

FIELDS: Final = tuple(value for value in globals().values() if isinstance(value, DcgmField))
"""In the order of dcgm-exporter's own list."""

DRIVER_VERSION: Final = "DCGM_FI_DRIVER_VERSION"
DRIVER_VERSION_NEW: Final = "DCGM_FI_SYSTEM_DRIVER_VERSION"


def declare(spelling: Spelling) -> Mapping[DcgmField, MetricSpec]:
    """The metrics as one spelling has them. Raises ValueError where it has a label twice."""
    labels = (
        Label("gpu", "NVML index of the GPU", "GPUs of the node"),
        Label(spelling.uuid, "the GPU's UUID", "GPUs of the node"),
        Label("pci_bus_id", "PCI address as NVML writes it (00000000:1B:00.0)", "GPUs of the node"),
        Label("device", "nvidia and the index", "GPUs of the node"),
        Label("modelName", "product name", "GPU models of the node"),
        Label(spelling.hostname, "name of the node", "1"),
        Label(
            DRIVER_VERSION_NEW if spelling.renamed else DRIVER_VERSION,
            "version of the kernel driver",
            "1",
        ),
    )
    return {
        field: MetricSpec(
            field.name(spelling),
            field.kind,
            Unit.NONE,
            field.help,
            (*labels, *field.further_labels),
            namespace=DCGM,
        )
        for field in FIELDS
    }
