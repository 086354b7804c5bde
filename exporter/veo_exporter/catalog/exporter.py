# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of the exporter about itself."""

from typing import Final

from veo_exporter.catalog.spec import Kind, Label, MetricSpec
from veo_exporter.units import Unit

BUILD_INFO: Final = MetricSpec(
    "veo_exporter_build_info",
    Kind.GAUGE,
    Unit.INFO,
    "What is running; always 1.",
    (
        Label("version", "version of veo-exporter", "1"),
        Label("python_version", "version of Python", "1"),
    ),
)
SIMULATED: Final = MetricSpec(
    "veo_exporter_simulated",
    Kind.GAUGE,
    Unit.NONE,
    "1 if every figure of this exporter is made up by the simulation, 0 if it watches real hardware.",
)
LAST_SUCCESS: Final = MetricSpec(
    "veo_exporter_last_success_timestamp_seconds",
    Kind.GAUGE,
    Unit.TIMESTAMP,
    "When a group of signals was last read from any GPU; absent if it never was.",
    (Label("group", "gpu_fast, gpu_full or gpu_static", "3"),),
)
CONFIG_LAST_RELOAD_SUCCESSFUL: Final = MetricSpec(
    "veo_exporter_config_last_reload_successful",
    Kind.GAUGE,
    Unit.NONE,
    "1 if the configuration in force is the one last asked for, 0 if that was refused and the old one stays.",
)
CONFIG_LAST_RELOAD_SUCCESS: Final = MetricSpec(
    "veo_exporter_config_last_reload_success_timestamp_seconds",
    Kind.GAUGE,
    Unit.TIMESTAMP,
    "When the configuration in force was read.",
)
DROPPED: Final = MetricSpec(
    "veo_exporter_dropped_total",
    Kind.COUNTER,
    Unit.NONE,
    "What was left out because it was bad or beyond a bound.",
    (
        Label(
            "kind",
            "what was dropped: an event, a field of one, a log line, a video file, a span, a request, a label value, "
            "a row of a pod, the name of a process, a round of the exporter's own loops",
            "25",
        ),
        Label("reason", "why", "a closed set for each kind"),
    ),
)
LOG_LINES_DROPPED: Final = MetricSpec(
    "veo_exporter_log_lines_dropped_total",
    Kind.COUNTER,
    Unit.NONE,
    "Log lines that were not written because whoever reads standard error does not keep up.",
)
HTTP_REQUESTS: Final = MetricSpec(
    "veo_exporter_http_requests_total",
    Kind.COUNTER,
    Unit.NONE,
    "Requests answered, by path and status.",
    (
        Label("path", "one of the exporter's own paths, else other", "paths of the exporter"),
        Label("code", "HTTP status", "statuses in use"),
    ),
)
PROCESS_VIRTUAL_MEMORY: Final = MetricSpec(
    "process_virtual_memory_bytes", Kind.GAUGE, Unit.BYTES, "Virtual memory size in bytes."
)
PROCESS_RESIDENT_MEMORY: Final = MetricSpec(
    "process_resident_memory_bytes", Kind.GAUGE, Unit.BYTES, "Resident memory size in bytes."
)
PROCESS_START_TIME: Final = MetricSpec(
    "process_start_time_seconds",
    Kind.GAUGE,
    Unit.SECONDS,
    "Start time of the process since unix epoch in seconds.",
)
PROCESS_CPU_SECONDS: Final = MetricSpec(
    "process_cpu_seconds_total",
    Kind.COUNTER,
    Unit.SECONDS,
    "Total user and system CPU time spent in seconds.",
)
PROCESS_OPEN_FDS: Final = MetricSpec(
    "process_open_fds", Kind.GAUGE, Unit.NONE, "Number of open file descriptors."
)
PROCESS_MAX_FDS: Final = MetricSpec(
    "process_max_fds", Kind.GAUGE, Unit.NONE, "Maximum number of open file descriptors."
)
