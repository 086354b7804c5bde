# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA GPUs: from NVML to metric families.

Read in this order: nvml (the gate), probes (what is asked), reader (one GPU, one group), plan (what
to ask when), worker and sampler (who asks, and what if no answer comes), record and ledger (what is
kept), readings (the snapshot), families (the page).
"""

from veo_exporter.gpu.families import GpuSource
from veo_exporter.gpu.inspection import DriverReport, inspect_driver
from veo_exporter.gpu.nvml import load_library
from veo_exporter.gpu.presence import pci_functions
from veo_exporter.gpu.readiness import withdrawn_groups
from veo_exporter.gpu.readings import Cadence, GpuView, Signal, Snapshot, State
from veo_exporter.gpu.sampler import Sampler
from veo_exporter.gpu.timing import Timing

__all__ = [
    "Cadence",
    "DriverReport",
    "GpuSource",
    "GpuView",
    "Sampler",
    "Signal",
    "Snapshot",
    "State",
    "Timing",
    "inspect_driver",
    "load_library",
    "pci_functions",
    "withdrawn_groups",
]
