# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of what the kernel and the driver tell when it happens, and of who tells it."""

from typing import Final

from veo_exporter.catalog.spec import Kind, Label, MetricSpec
from veo_exporter.units import Unit

OOM_KILLS: Final = MetricSpec(
    "veo_node_oom_kills_total",
    Kind.COUNTER,
    Unit.NONE,
    "Processes that the kernel killed for want of memory, since the exporter's start. "
    "Absent while the kernel log was never read.",
    (
        Label(
            "scope",
            "whose memory ran out: global (the node's), memory_cgroup (a container's limit), "
            "numa (a set of memory nodes) or unknown",
            "4",
        ),
    ),
)
EVENT_SOURCE_UP: Final = MetricSpec(
    "veo_exporter_event_source_up",
    Kind.GAUGE,
    Unit.NONE,
    "1 if what happens is heard from this source, 0 if not; absent for a source that is switched off.",
    (Label("event_source", "nvml_events or kernel_log", "2"),),
)
KERNEL_LOG_LINES: Final = MetricSpec(
    "veo_exporter_kernel_log_lines_total",
    Kind.COUNTER,
    Unit.NONE,
    "Lines of the kernel log that were read, by what each tells. Absent while it was never read.",
    (Label("message", "xid, switch_xid (NVSwitch), oom_kill or other", "4"),),
)
