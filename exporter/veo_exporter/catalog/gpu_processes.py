# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of the processes on a GPU, by the name of their program."""

from typing import Final

from veo_exporter.catalog.gpu import IDENTITY, gauge
from veo_exporter.catalog.gpu_profiling import PART
from veo_exporter.catalog.spec import Label
from veo_exporter.units import Unit

UNKNOWN: Final = "unknown"
OTHER: Final = "other"
PROCESS: Final = Label(
    "process",
    f"name of the program, as in /proc/<pid>/comm; {UNKNOWN}: there is no such process in gpu.proc_root; "
    f"{OTHER}: all that have no row of their own",
    "gpu.process_names and two more of each GPU, gpu.process_names_max of the node",
)
PARTS: Final = ("sm", "encoder", "decoder", "jpeg", "ofa")

PROCESSES: Final = gauge(
    "veo_gpu_processes",
    Unit.NONE,
    "Processes that have the GPU open for computing or graphics, by the name of their program.",
    (*IDENTITY, PROCESS),
)
PROCESS_MEMORY_USED: Final = gauge(
    "veo_gpu_process_memory_used_bytes",
    Unit.BYTES,
    "Device memory of these processes; absent where the driver does not tell that of all of them.",
    (*IDENTITY, PROCESS),
)
PROCESS_UTILIZATION: Final = gauge(
    "veo_gpu_process_utilization_ratio",
    Unit.RATIO,
    "Share of the driver's sample period in which these processes kept a part of the GPU busy, at most 1: "
    f"{', '.join(PARTS)}. Parts other than sm have a row from the first time on that they were used; "
    f"{OTHER} has sm alone.",
    (*IDENTITY, PROCESS, PART),
)
