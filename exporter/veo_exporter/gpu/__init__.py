# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA GPUs: from NVML to metric families.

One sample's way, in this order: nvml (the gate), probes (what is asked), reader (one GPU, one group),
record and ledger (what is kept), readings (the snapshot), families (the page). Who asks, when, and
what if no answer comes: worker, crew, plan with schedule and timing, sampler. Which GPUs there are:
session, presence, roster, and state, the judge. When nobody asks: pause, with life for its metrics and
those of calls. Why nobody answers: nodes. What outlives the process: memory.
Xids: event_set and events (NVML's road), xid (each counted once), xid_intake, xid_families.
"""

from veo_exporter.gpu.event_set import XidEvent
from veo_exporter.gpu.events import EventListener
from veo_exporter.gpu.families import GpuSource
from veo_exporter.gpu.inspection import DriverReport, inspect_driver
from veo_exporter.gpu.life import LifeSource
from veo_exporter.gpu.memory import AddressMemory
from veo_exporter.gpu.nodes import Nodes, look_at_nodes
from veo_exporter.gpu.nvml import load_library
from veo_exporter.gpu.presence import pci_functions
from veo_exporter.gpu.readiness import withdrawn_groups
from veo_exporter.gpu.readings import Cadence, Device, GpuView, Signal, Snapshot, State, WhyNot
from veo_exporter.gpu.sampler import Sampler
from veo_exporter.gpu.timing import Timing
from veo_exporter.gpu.xid import Road, Sighting
from veo_exporter.gpu.xid_families import XidSource
from veo_exporter.gpu.xid_intake import XID_DROPPED_SEEDS, GpuName, Happened, XidIntake

__all__ = [
    "XID_DROPPED_SEEDS",
    "AddressMemory",
    "Cadence",
    "Device",
    "DriverReport",
    "EventListener",
    "GpuName",
    "GpuSource",
    "GpuView",
    "Happened",
    "LifeSource",
    "Nodes",
    "Road",
    "Sampler",
    "Sighting",
    "Signal",
    "Snapshot",
    "State",
    "Timing",
    "WhyNot",
    "XidEvent",
    "XidIntake",
    "XidSource",
    "inspect_driver",
    "load_library",
    "look_at_nodes",
    "pci_functions",
    "withdrawn_groups",
]
