# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What the scripted library's boards answer beside the fast sample: all that is ever asked."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from veo_exporter.gpu.fields import ROW, TYPES, UNSIGNED_INT

ENCODER_SESSIONS = [
    SimpleNamespace(codecType=codec, averageFps=30, encodeLatency=4000) for codec in range(3)
]

BOARD_ANSWERS: dict[str, Callable[[str], Any]] = {
    "nvmlDeviceGetMinorNumber": lambda _: 5,
    "nvmlDeviceGetBrand": lambda _: 14,
    "nvmlDeviceGetArchitecture": lambda _: 9,
    "nvmlDeviceGetCudaComputeCapability": lambda _: (9, 0),
    "nvmlDeviceGetBoardPartNumber": lambda _: "699-1",
    "nvmlDeviceGetSerial": lambda uuid: f"serial of {uuid}",
    "nvmlDeviceGetEncoderStats": lambda _: (3, 30, 4000),
    "nvmlDeviceGetEncoderSessions": lambda _: ENCODER_SESSIONS,
    "nvmlDeviceGetJpgUtilization": lambda _: (30, 167_000),
    "nvmlDeviceGetOfaUtilization": lambda _: (40, 167_000),
    "nvmlDeviceGetBAR1MemoryInfo": lambda _: SimpleNamespace(bar1Total=256, bar1Used=16),
    "nvmlDeviceGetPerformanceState": lambda _: 2,
    "nvmlDeviceGetFanSpeed": lambda _: 50,
    "nvmlDeviceGetMarginTemperature": lambda _: 25,
    "nvmlDeviceGetCurrPcieLinkGeneration": lambda _: 4,
    "nvmlDeviceGetMaxPcieLinkGeneration": lambda _: 5,
    "nvmlDeviceGetCurrPcieLinkWidth": lambda _: 8,
    "nvmlDeviceGetMaxPcieLinkWidth": lambda _: 16,
    "nvmlDeviceGetMemoryErrorCounter": lambda _: 6,
    "nvmlDeviceGetPowerManagementLimit": lambda _: 690_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": lambda _: 680_000,
    "nvmlDeviceGetPowerManagementLimitConstraints": lambda _: (200_000, 710_000),
    "nvmlDeviceGetApplicationsClock": lambda _: 1400,
    "nvmlDeviceGetTemperatureThreshold": lambda _: 90,
    "nvmlDeviceGetEccMode": lambda _: (1, 0),
    "nvmlDeviceGetMigMode": lambda _: (0, 0),
    "nvmlDeviceGetGridLicensableFeatures": lambda _: SimpleNamespace(
        isGridLicenseSupported=1,
        licensableFeaturesCount=1,
        gridLicensableFeatures=[SimpleNamespace(featureState=1)],
    ),
    "nvmlDeviceGetRowRemapperHistogram": lambda _: SimpleNamespace(
        max=9, high=8, partial=7, low=6, none=5
    ),
}


def zero_fields(asked: Sequence[tuple[int, int]]) -> bytes:
    """Each field that was asked for is 0; those of bytes are wide enough to be believed."""
    wide = UNSIGNED_INT + 2
    return b"".join(ROW.pack(*place, 0, 0, wide, 0, TYPES[wide].pack(0)) for place in asked)
