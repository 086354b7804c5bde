# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What a simulated board answers the same at all times: a row for each NVML function."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

from veo_exporter.simulate.scenario import Board

_GIB: Final = 1024**3
CLOCK_MEM: Final = 2
_HOPPER: Final = 9
_BRAND_NVIDIA: Final = 14
_BANKS: Final = 2560
# Celsius, by NVML's number of each threshold.
_THRESHOLDS: Final = (92, 89, 95, 87)
# Device memory and SRAM, by NVML's numbers: what boards of this generation count in.
_ECC_LOCATIONS: Final = (2, 7)


def _ecc_errors(_board: Board, _error: int, _counter: int, location: int) -> int | None:
    return 0 if location in _ECC_LOCATIONS else None


def _top_clock(board: Board, domain: int) -> int:
    return board.memory_clock_megahertz if domain == CLOCK_MEM else board.sm_clock_max_megahertz


def _limit(board: Board) -> int:
    return round(1000 * board.power_limit_watts)


STEADY: Final[dict[str, Callable[..., Any]]] = {
    "nvmlDeviceGetBrand": lambda _: _BRAND_NVIDIA,
    "nvmlDeviceGetArchitecture": lambda _: _HOPPER,
    "nvmlDeviceGetCudaComputeCapability": lambda _: (9, 0),
    "nvmlDeviceGetBoardPartNumber": lambda _: "simulated",
    "nvmlDeviceGetSerial": lambda _: "simulated",
    "nvmlDeviceGetBAR1MemoryInfo": lambda _: SimpleNamespace(
        bar1Total=128 * _GIB, bar1Used=_GIB // 32
    ),
    "nvmlDeviceGetPowerManagementLimit": _limit,
    "nvmlDeviceGetPowerManagementDefaultLimit": _limit,
    "nvmlDeviceGetPowerManagementLimitConstraints": lambda board: (
        _limit(board) * 2 // 7,
        _limit(board),
    ),
    "nvmlDeviceGetMaxClockInfo": _top_clock,
    # As this board leaves the factory.
    "nvmlDeviceGetApplicationsClock": _top_clock,
    "nvmlDeviceGetTemperatureThreshold": lambda _, threshold: _THRESHOLDS[threshold],
    "nvmlDeviceGetCurrPcieLinkGeneration": lambda _: 5,
    "nvmlDeviceGetMaxPcieLinkGeneration": lambda _: 5,
    "nvmlDeviceGetCurrPcieLinkWidth": lambda _: 16,
    "nvmlDeviceGetMaxPcieLinkWidth": lambda _: 16,
    "nvmlDeviceGetEccMode": lambda _: (1, 1),
    "nvmlDeviceGetMemoryErrorCounter": _ecc_errors,
    "nvmlDeviceGetRowRemapperHistogram": lambda _: SimpleNamespace(
        max=_BANKS, high=0, partial=0, low=0, none=0
    ),
    # A node without virtual machines.
    "nvmlDeviceGetGridLicensableFeatures": lambda _: SimpleNamespace(
        isGridLicenseSupported=0, licensableFeaturesCount=0, gridLicensableFeatures=()
    ),
    "nvmlDeviceGetJpgUtilization": lambda _: (0, 167_000),
    "nvmlDeviceGetOfaUtilization": lambda _: (0, 167_000),
}
"""Each is given the board and the call's further arguments; None is NOT_SUPPORTED."""

MARGIN_THRESHOLDS: Final = (-8, -2, 0, 0)
"""By NVML's order of them."""
SLOWDOWN_CELSIUS: Final = _THRESHOLDS[3]
"""The margin of temperature is what is left to it."""
