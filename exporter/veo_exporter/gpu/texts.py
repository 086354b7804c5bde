# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What NVML says of a GPU and of the driver in words, or in numbers that stand for words."""

from collections.abc import Callable
from typing import Any, Final

from veo_exporter.gpu.codes import UNREADABLE, Meaning, meaning_of
from veo_exporter.gpu.nvml import Line, NvmlError
from veo_exporter.gpu.readings import Device, Failure

# By nvmlBrandType_t, in the words that nvidia-smi prints.
_BRANDS: Final = {
    0: "",
    1: "Quadro",
    2: "Tesla",
    3: "NVS",
    4: "GRID",
    5: "GeForce",
    6: "Titan",
    7: "NVIDIA Virtual Applications",
    8: "NVIDIA Virtual PC",
    9: "NVIDIA Virtual Compute Server",
    10: "NVIDIA RTX Virtual Workstation",
    11: "NVIDIA Cloud Gaming",
    12: "Quadro RTX",
    13: "NVIDIA RTX",
    14: "NVIDIA",
    15: "GeForce RTX",
    16: "Titan RTX",
}
# By nvmlDeviceArchitecture_t.
_ARCHITECTURES: Final = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
    # Not even the driver knows.
    0xFFFFFFFF: "",
}


def _brand(number: int) -> str:
    return _BRANDS.get(number, str(number))


def _architecture(number: int) -> str:
    return _ARCHITECTURES.get(number, str(number))


def _compute_capability(version: tuple[int, int]) -> str:
    major, minor = version
    return f"{major}.{minor}"


_Text = tuple[str, Callable[[Any], str]]

TEXTS: Final[dict[str, _Text]] = {
    "name": ("nvmlDeviceGetName", str),
    "vbios_version": ("nvmlDeviceGetVbiosVersion", str),
    # Of the device node; device plugins name GPUs by it.
    "minor_number": ("nvmlDeviceGetMinorNumber", str),
    "brand": ("nvmlDeviceGetBrand", _brand),
    "architecture": ("nvmlDeviceGetArchitecture", _architecture),
    "compute_capability": ("nvmlDeviceGetCudaComputeCapability", _compute_capability),
    "board_part_number": ("nvmlDeviceGetBoardPartNumber", str),
    "serial": ("nvmlDeviceGetSerial", str),
}
"""Labels of the info rows and by what else a GPU is known, with the functions that give them."""

DRIVER_TEXTS: Final = {
    "driver_version": "nvmlSystemGetDriverVersion",
    "nvml_version": "nvmlSystemGetNVMLVersion",
    "cuda_version": "nvmlSystemGetCudaDriverVersion_v2",
}
"""The same for the driver as a whole."""

_NEVER_TOLD: Final = (Meaning.UNSUPPORTED, Meaning.FORBIDDEN)


def read_texts(line: Line, device: Device) -> tuple[dict[str, str], list[Failure]]:
    """What the GPU says of itself, and what it should have said; a text that fails costs that text."""
    texts, failures = {}, []
    for label, (function, write) in TEXTS.items():
        try:
            texts[label] = write(line.call(function, device.handle))
        except NvmlError as error:
            if meaning_of(error.code) not in _NEVER_TOLD:
                failures.append(Failure(function=function, code=error.code))
        except Exception:  # noqa: BLE001, it costs this text and no other
            failures.append(Failure(function=function, code=UNREADABLE))
    return texts, failures
