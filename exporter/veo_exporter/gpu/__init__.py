# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA GPUs: from NVML to metric families.

One sample's way, in this order: nvml (the gate), probes (what is asked, by answers and encoder) and
field_table (the same by fields, many in one call), texts, reader (one GPU, one group), capability,
record and ledger (what is kept), readings (the snapshot), families (the page). Between two readings:
samples (the driver's buffers), account with fold, window and histogram (what all samples come to),
sample_families. Who asks, when, and what if no answer comes: worker, crew, plan with schedule and
timing, sampler. Which GPUs there are: session, presence, roster, and state, the judge. When nobody
asks: pause, with life for its metrics and those of calls. Why nobody answers: nodes. What outlives
the process: memory.
What works on a GPU: processes with process_names, mig, gpm with gpm_signals; asked by surveys, whose rows are
findings.
Xids: event_set, event_calls, event_registrations and events (NVML's road), xid (each counted
once), xid_intake, xid_families.
Advice: advice (pure), advisor. The names of another exporter: dcgm, dcgm_links; imported only where they are on.
"""

from veo_exporter.gpu.advice import Ladder
from veo_exporter.gpu.advisor import AdviceSource, Advisor, advice_document
from veo_exporter.gpu.event_set import XidEvent
from veo_exporter.gpu.events import EventListener
from veo_exporter.gpu.families import GpuSource
from veo_exporter.gpu.gpm import Gpm
from veo_exporter.gpu.gpm_signals import ALL as ALL_GPM_SIGNALS
from veo_exporter.gpu.gpm_signals import USUAL as USUAL_GPM_SIGNALS
from veo_exporter.gpu.gpm_signals import GpmSignal
from veo_exporter.gpu.inspection import DriverReport, GpuReport, inspect_driver
from veo_exporter.gpu.life import LifeSource
from veo_exporter.gpu.memory import AddressMemory
from veo_exporter.gpu.nodes import Nodes, look_at_nodes
from veo_exporter.gpu.nvml import load_library
from veo_exporter.gpu.presence import PciBus
from veo_exporter.gpu.process_names import NameLimits, ProcessNames
from veo_exporter.gpu.processes import NAMES_DROPPED as PROCESS_NAMES_DROPPED
from veo_exporter.gpu.processes import ProcessSurveys
from veo_exporter.gpu.readiness import withdrawn_groups
from veo_exporter.gpu.readings import Cadence, Device, GpuView, Signal, Snapshot, State, WhyNot
from veo_exporter.gpu.sampler import Sampler
from veo_exporter.gpu.timing import Timing
from veo_exporter.gpu.xid import Road, Sighting
from veo_exporter.gpu.xid_families import XidSource
from veo_exporter.gpu.xid_intake import XID_DROPPED_SEEDS, GpuName, Happened, XidIntake

__all__ = [
    "ALL_GPM_SIGNALS",
    "PROCESS_NAMES_DROPPED",
    "USUAL_GPM_SIGNALS",
    "XID_DROPPED_SEEDS",
    "AddressMemory",
    "AdviceSource",
    "Advisor",
    "Cadence",
    "Device",
    "DriverReport",
    "EventListener",
    "Gpm",
    "GpmSignal",
    "GpuName",
    "GpuReport",
    "GpuSource",
    "GpuView",
    "Happened",
    "Ladder",
    "LifeSource",
    "NameLimits",
    "Nodes",
    "PciBus",
    "ProcessNames",
    "ProcessSurveys",
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
    "advice_document",
    "inspect_driver",
    "load_library",
    "look_at_nodes",
    "withdrawn_groups",
]
