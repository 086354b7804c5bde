# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of a GPU's health: memory errors and their repair, what the driver advises, what slowed it."""

from typing import Final

from veo_exporter.catalog.gpu import ERROR, IDENTITY, REASON, counter, gauge
from veo_exporter.catalog.spec import Label
from veo_exporter.units import Unit

ECC_ERRORS_KNOWN: Final = ("corrected", "uncorrected")
ECC_LOCATIONS: Final = (
    "l1_cache",
    "l2_cache",
    "device_memory",
    "register_file",
    "texture_memory",
    "texture_shared_memory",
    "cbu",
    "sram",
)
"""By NVML's number of each. Ampere and later tell device memory and the SRAM of all caches alone."""
ECC_LOCATION: Final = Label(
    "location", f"part of the GPU: {', '.join(ECC_LOCATIONS)}", str(len(ECC_LOCATIONS))
)
REMAP_ERRORS_KNOWN: Final = ("correctable", "uncorrectable")
RETIREMENT_ERRORS_KNOWN: Final = ("single_bit", "double_bit")
AVAILABILITIES: Final = ("max", "high", "partial", "low", "none")
RECOVERY_ACTIONS: Final = (
    "none",
    "gpu_reset",
    "node_reboot",
    "drain_p2p",
    "drain_and_reset",
    "recover_imex_domain",
    "bus_reset",
    "system_reboot",
)
"""By NVML's number of each."""
RECOVERY_OTHER: Final = "other"
THROTTLE_REASONS_COUNTED: Final = (
    "sw_power_cap",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
)
"""Reasons whose time the driver counts itself."""

THROTTLE_DRIVER_SECONDS: Final = counter(
    "veo_gpu_throttle_driver_seconds_total",
    Unit.SECONDS,
    "Time during which the clocks were held down, by reason, as the driver counts it without a gap, "
    "busy or not. Reasons overlap. It measures the same as veo_gpu_throttle_seconds_total: never add the two.",
    (*IDENTITY, REASON),
)

ECC_MODE: Final = gauge("veo_gpu_ecc_mode", Unit.NONE, "1 while ECC is on, 0 while it is off.")
ECC_MODE_PENDING: Final = gauge(
    "veo_gpu_ecc_mode_pending", Unit.NONE, "The ECC mode after the next reset of the GPU."
)
ECC_ERRORS: Final = counter(
    "veo_gpu_ecc_errors_total",
    Unit.NONE,
    "ECC errors since the driver was loaded: corrected or uncorrected.",
    (*IDENTITY, ERROR, ECC_LOCATION),
)
ECC_AGGREGATE_ERRORS: Final = counter(
    "veo_gpu_ecc_aggregate_errors_total",
    Unit.NONE,
    "ECC errors over the life of the board, those of veo_gpu_ecc_errors_total among them.",
    (*IDENTITY, ERROR, ECC_LOCATION),
)

RETIRED_PAGES: Final = counter(
    "veo_gpu_retired_pages_total",
    Unit.NONE,
    "Pages of device memory that were retired over the life of the board (before Ampere), "
    "for single_bit or double_bit errors.",
    (*IDENTITY, ERROR),
)
RETIREMENT_PENDING: Final = gauge(
    "veo_gpu_page_retirement_pending",
    Unit.NONE,
    "1 if pages wait for a reset of the GPU to be retired.",
)
REMAPPED_ROWS: Final = counter(
    "veo_gpu_remapped_rows_total",
    Unit.NONE,
    "Rows of device memory that were replaced by spare ones over the life of the board (Ampere and later), "
    "for correctable or uncorrectable errors.",
    (*IDENTITY, ERROR),
)
REMAP_PENDING: Final = gauge(
    "veo_gpu_row_remap_pending",
    Unit.NONE,
    "1 if rows wait for a reset of the GPU to be replaced.",
)
REMAP_FAILURE: Final = gauge(
    "veo_gpu_row_remap_failure",
    Unit.NONE,
    "1 if a row could not be replaced: the board is worn out.",
)
REMAP_BANKS: Final = gauge(
    "veo_gpu_row_remap_banks",
    Unit.NONE,
    "Banks of device memory by how many spare rows they have left.",
    (
        *IDENTITY,
        Label("availability", f"spare rows left: {', '.join(AVAILABILITIES)}", "5"),
    ),
)

RECOVERY_ACTION: Final = gauge(
    "veo_gpu_recovery_action",
    Unit.NONE,
    "1 for what the driver says must be done to this GPU, 0 for the other actions.",
    (
        *IDENTITY,
        Label(
            "action",
            f"{', '.join(RECOVERY_ACTIONS)}, or {RECOVERY_OTHER} for one that is newer than this table",
            str(len(RECOVERY_ACTIONS) + 1),
        ),
    ),
)
