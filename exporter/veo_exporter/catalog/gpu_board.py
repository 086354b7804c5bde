# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of the board: what it is, its limits, its clocks and what cools it."""

from typing import Final

from veo_exporter.catalog.gpu import IDENTITY, gauge
from veo_exporter.catalog.spec import Label
from veo_exporter.units import Unit

THRESHOLDS: Final = ("shutdown", "slowdown", "memory_max", "gpu_max")
THRESHOLD: Final = Label(
    "threshold",
    "what happens there: shutdown, slowdown (by hardware), memory_max or gpu_max (slowdown by software)",
    "4",
)

BOARD_INFO: Final = gauge(
    "veo_gpu_board_info",
    Unit.INFO,
    "What the board is, and what a repair order asks for; always 1. Join on (instance, uuid).",
    (
        *IDENTITY,
        Label("brand", "product line in NVML's words", "GPU models of the node"),
        Label("architecture", "generation of the GPU", "GPU models of the node"),
        Label("compute_capability", "CUDA compute capability", "GPU models of the node"),
        Label("board_part_number", "part number of the board", "GPU models of the node"),
        Label("serial", "serial number of the board", "GPUs of the node"),
    ),
)

BAR1_TOTAL: Final = gauge(
    "veo_gpu_bar1_memory_total_bytes",
    Unit.BYTES,
    "Size of the window (BAR1) through which the PCIe bus sees device memory.",
)
BAR1_USED: Final = gauge(
    "veo_gpu_bar1_memory_used_bytes",
    Unit.BYTES,
    "Part of that window that is mapped.",
)

TEMPERATURE_THRESHOLD: Final = gauge(
    "veo_gpu_temperature_threshold_celsius",
    Unit.CELSIUS,
    "The board's own temperature thresholds.",
    (*IDENTITY, THRESHOLD),
)
TEMPERATURE_MARGIN: Final = gauge(
    "veo_gpu_temperature_margin_celsius",
    Unit.CELSIUS,
    "How far the GPU is from the temperature at which it slows down (T.Limit).",
)
TEMPERATURE_MARGIN_THRESHOLD: Final = gauge(
    "veo_gpu_temperature_margin_threshold_celsius",
    Unit.CELSIUS,
    "The board's own thresholds of the margin, in place of those of the temperature on Ada and later.",
    (*IDENTITY, THRESHOLD),
)

POWER_INSTANT: Final = gauge(
    "veo_gpu_power_instant_watts", Unit.WATTS, "Power draw of the board at this moment."
)
POWER_LIMIT_MANAGEMENT: Final = gauge(
    "veo_gpu_power_limit_management_watts",
    Unit.WATTS,
    "Power limit that was asked for; the one in force may be lower.",
)
POWER_LIMIT_DEFAULT: Final = gauge(
    "veo_gpu_power_limit_default_watts", Unit.WATTS, "Power limit that the board starts with."
)
POWER_LIMIT_MIN: Final = gauge(
    "veo_gpu_power_limit_min_watts", Unit.WATTS, "Lowest power limit that can be set."
)
POWER_LIMIT_MAX: Final = gauge(
    "veo_gpu_power_limit_max_watts", Unit.WATTS, "Highest power limit that can be set."
)

PERFORMANCE_STATE: Final = gauge(
    "veo_gpu_performance_state",
    Unit.NONE,
    "Performance state, from 0 (P0, the fastest) to 15 (P15).",
)
FAN_SPEED: Final = gauge(
    "veo_gpu_fan_speed_ratio",
    Unit.RATIO,
    "Speed that is asked of the fan, as a share of the loudest intended; it may exceed 1. "
    "A blocked fan does not show.",
)

GRAPHICS_CLOCK: Final = gauge(
    "veo_gpu_graphics_clock_hertz", Unit.HERTZ, "Clock of the graphics domain."
)
GRAPHICS_CLOCK_MAX: Final = gauge(
    "veo_gpu_graphics_clock_max_hertz", Unit.HERTZ, "Highest clock of the graphics domain."
)
GRAPHICS_CLOCK_APPLICATION: Final = gauge(
    "veo_gpu_graphics_clock_application_hertz",
    Unit.HERTZ,
    "Clock of the graphics domain that was set for applications.",
)
MEMORY_CLOCK_APPLICATION: Final = gauge(
    "veo_gpu_memory_clock_application_hertz",
    Unit.HERTZ,
    "Clock of the device memory that was set for applications.",
)
VIDEO_CLOCK: Final = gauge(
    "veo_gpu_video_clock_hertz", Unit.HERTZ, "Clock of the video encoder and decoder."
)
VIDEO_CLOCK_MAX: Final = gauge(
    "veo_gpu_video_clock_max_hertz",
    Unit.HERTZ,
    "Highest clock of the video encoder and decoder.",
)

VGPU_LICENSE_ACTIVE: Final = gauge(
    "veo_gpu_vgpu_license_active",
    Unit.NONE,
    "1 while a virtual GPU has its licence, 0 while it has none and its driver holds it back; "
    "absent where none is needed.",
)
