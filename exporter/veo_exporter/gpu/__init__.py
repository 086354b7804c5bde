# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA GPUs: from NVML to metric families.

One sample's way, in this order: nvml (the gate), probes (what is asked), reader (one GPU, one group),
record and ledger (what is kept), readings (the snapshot), families (the page). Who asks, when, and
what if no answer comes: worker, crew, plan with schedule and timing, sampler. Which GPUs there are:
session, presence, roster, and state, the judge.
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
