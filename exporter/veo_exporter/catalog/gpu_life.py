# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of the way to the driver: whether it is used at all now, and what it costs."""

from typing import Final

from veo_exporter.catalog.gpu import FUNCTION
from veo_exporter.catalog.spec import Kind, MetricSpec
from veo_exporter.units import Unit

PAUSED: Final = MetricSpec(
    "veo_exporter_paused",
    Kind.GAUGE,
    Unit.NONE,
    "1 while nobody calls NVML, by request, so that the driver can be unloaded; GPU values are withdrawn then.",
)
PAUSE_EXPIRY: Final = MetricSpec(
    "veo_exporter_pause_expiry_timestamp_seconds",
    Kind.GAUGE,
    Unit.TIMESTAMP,
    "When the pause ends by itself; 0 while there is none.",
)
NVML_CALLS: Final = MetricSpec(
    "veo_gpu_nvml_calls_total",
    Kind.COUNTER,
    Unit.NONE,
    "NVML calls that returned, whatever they answered.",
    (FUNCTION,),
)
NVML_CALL_SECONDS: Final = MetricSpec(
    "veo_gpu_nvml_call_seconds_total",
    Kind.COUNTER,
    Unit.SECONDS,
    "Time spent in NVML calls that returned.",
    (FUNCTION,),
)
