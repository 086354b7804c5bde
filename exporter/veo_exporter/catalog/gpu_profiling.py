# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of what a GPU's parts did between two full sweeps, by the driver's performance counters (GPM)."""

from typing import Final

from veo_exporter.catalog.gpu import IDENTITY, gauge
from veo_exporter.catalog.spec import Label
from veo_exporter.units import Unit

USUAL_PARTS: Final = ("graphics", "sm", "tensor", "dram")
FURTHER_PARTS: Final = ("fp64", "fp32", "fp16", "nvdec", "nvenc", "nvjpg", "ofa")
PART: Final = Label(
    "part", "part of the GPU; which there are, the metric's own text says", "11 of each metric"
)

PROFILING_ACTIVE: Final = gauge(
    "veo_gpu_profiling_active_ratio",
    Unit.RATIO,
    "Share of the time between two full sweeps in which a part of the GPU was active (Hopper and later): "
    f"{', '.join(USUAL_PARTS)}; with gpu.gpm on also {', '.join(FURTHER_PARTS)}, of each engine the busiest. "
    "It says how much of the GPU was at work, as utilization does not; graphics is anything at all.",
    (*IDENTITY, PART),
)
PROFILING_OCCUPANCY: Final = gauge(
    "veo_gpu_profiling_sm_occupancy_ratio",
    Unit.RATIO,
    "Warps that resided on the SMs, of as many as can, over the same time.",
)
PROFILING_PCIE_TRANSMIT: Final = gauge(
    "veo_gpu_profiling_pcie_transmit_bytes_per_second",
    Unit.BYTES_PER_SECOND,
    "Mean rate at which the GPU sent over PCIe, headers included, over the same time.",
)
PROFILING_PCIE_RECEIVE: Final = gauge(
    "veo_gpu_profiling_pcie_receive_bytes_per_second",
    Unit.BYTES_PER_SECOND,
    "Mean rate at which the GPU received over PCIe, headers included, over the same time.",
)

ACTIVE: Final = {part: PROFILING_ACTIVE.series(part) for part in (*USUAL_PARTS, *FURTHER_PARTS)}
"""The series of each part."""
