# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of what is advised to whoever plans the next job on a GPU."""

from typing import Final

from veo_exporter.catalog.gpu import gauge
from veo_exporter.units import Unit

RECOMMENDED_FRAME_RATE: Final = gauge(
    "veo_gpu_recommended_frame_rate_hertz",
    Unit.HERTZ,
    "Frame rate that the GPU's memory leaves room for: 120 while little of it is used, 60, or 30 "
    "(thresholds: advice.medium_from, advice.low_above). It follows the memory after three sweeps; "
    "absent before, and while memory is not read.",
)
MEMORY_PRESSURE: Final = gauge(
    "veo_gpu_memory_pressure",
    Unit.NONE,
    "1 once free memory was below advice.pressure_free_bytes in three sweeps running with no recovery, "
    "until it recovers; else 0.",
)
