# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What is asked of NVML, and how its answers become base units: one row for each function.

A new signal of a GPU is a row in the catalogue and a row here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from veo_exporter.catalog import MetricSpec, Series
from veo_exporter.catalog import gpu as catalog
from veo_exporter.gpu.codes import ReturnCode
from veo_exporter.gpu.nvml import Handle, Line, NvmlError
from veo_exporter.gpu.readings import Cadence, Device, Raw, Row, Signal
from veo_exporter.units import (
    Unit,
    megahertz_to_hertz,
    millijoules_to_joules,
    milliwatts_to_watts,
    percent_to_ratio,
)

# Constants of nvml.h.
_TEMPERATURE_GPU: Final = 0
_CLOCK_SM: Final = 1
_CLOCK_MEM: Final = 2
_MEMORY_V2: Final = 0x02000028
_NO_MEMORY_V2: Final = (ReturnCode.FUNCTION_NOT_FOUND, ReturnCode.ARGUMENT_VERSION_MISMATCH)

MAX_PLAUSIBLE_CELSIUS: Final = 200.0
"""DCGM drops readings above this too: some boards answer nonsense right after a reset."""


def plausible_limits(signal: Signal) -> tuple[float, float]:
    """Between which values a signal can be true. The driver has been seen to say 101 % and 255 degrees."""
    if isinstance(signal, Raw):
        return -math.inf, math.inf
    unit = signal.spec.unit if isinstance(signal, Series) else signal.unit
    if unit is Unit.RATIO:
        return 0.0, 1.0
    if unit is Unit.CELSIUS:
        return -math.inf, MAX_PLAUSIBLE_CELSIUS
    return 0.0, math.inf


@dataclass(frozen=True, slots=True)
class Probe:
    """One question. `read` answers a number for each signal, None where this answer lacks it.

    Where an answer has a return code for each of its parts, `partial`, it gives an error in place
    of each number that has none.
    """

    signals: tuple[Signal, ...]
    read: Callable[[Line, Handle], tuple[Any, ...]]
    partial: bool = False
    checks: tuple[tuple[Signal, float, float], ...] = field(init=False, repr=False)
    """The signals with their plausible limits, looked up once."""

    def __post_init__(self) -> None:
        checks = tuple((signal, *plausible_limits(signal)) for signal in self.signals)
        object.__setattr__(self, "checks", checks)


@dataclass(frozen=True, slots=True)
class Survey:
    """A question whose answer has rows that are not known beforehand. All of them or none are given."""

    signals: tuple[MetricSpec, ...]
    read: Callable[[Line, Device], list[Row]]


def _utilization(line: Line, gpu: Handle) -> tuple[float, float]:
    rates = line.call("nvmlDeviceGetUtilizationRates", gpu)
    return percent_to_ratio(rates.gpu), percent_to_ratio(rates.memory)


def _memory(line: Line, gpu: Handle) -> tuple[float | None, ...]:
    try:
        memory = line.call("nvmlDeviceGetMemoryInfo", gpu, _MEMORY_V2)
        return memory.total, memory.used, memory.free, memory.reserved
    except NvmlError as error:
        if error.code not in _NO_MEMORY_V2:
            raise
    # Drivers before 510 know only this form, in which "used" holds the reserve.
    memory = line.call("nvmlDeviceGetMemoryInfo", gpu)
    return memory.total, memory.used, memory.free, None


def _clock_event_reasons(line: Line, gpu: Handle) -> tuple[float]:
    try:
        return (line.call("nvmlDeviceGetCurrentClocksEventReasons", gpu),)
    except NvmlError as error:
        if error.code != ReturnCode.FUNCTION_NOT_FOUND:
            raise
    # The name of the same call before driver 535.
    return (line.call("nvmlDeviceGetCurrentClocksThrottleReasons", gpu),)


def _engine_utilization(function: str) -> Callable[[Line, Handle], tuple[float]]:
    def read(line: Line, gpu: Handle) -> tuple[float]:
        percent, _window_microseconds = line.call(function, gpu)
        return (percent_to_ratio(percent),)

    return read


def _converted(
    convert: Callable[[float], float], function: str, *arguments: int
) -> Callable[[Line, Handle], tuple[float]]:
    def read(line: Line, gpu: Handle) -> tuple[float]:
        return (convert(line.call(function, gpu, *arguments)),)

    return read


PROBES: Final[dict[Cadence, tuple[Probe, ...]]] = {
    Cadence.FAST: (
        Probe((catalog.UTILIZATION, catalog.MEMORY_COPY_UTILIZATION), _utilization),
        Probe(
            (
                catalog.MEMORY_TOTAL,
                catalog.MEMORY_USED,
                catalog.MEMORY_FREE,
                catalog.MEMORY_RESERVED,
            ),
            _memory,
        ),
        Probe((catalog.POWER,), _converted(milliwatts_to_watts, "nvmlDeviceGetPowerUsage")),
        Probe(
            (catalog.SM_CLOCK,), _converted(megahertz_to_hertz, "nvmlDeviceGetClockInfo", _CLOCK_SM)
        ),
        Probe(
            (catalog.TEMPERATURE,), _converted(float, "nvmlDeviceGetTemperature", _TEMPERATURE_GPU)
        ),
        Probe((Raw.CLOCK_EVENT_REASONS,), _clock_event_reasons),
    ),
    Cadence.FULL: (
        Probe(
            (catalog.ENERGY,),
            _converted(millijoules_to_joules, "nvmlDeviceGetTotalEnergyConsumption"),
        ),
        Probe(
            (catalog.MEMORY_CLOCK,),
            _converted(megahertz_to_hertz, "nvmlDeviceGetClockInfo", _CLOCK_MEM),
        ),
        Probe(
            (catalog.ENCODER_UTILIZATION,), _engine_utilization("nvmlDeviceGetEncoderUtilization")
        ),
        Probe(
            (catalog.DECODER_UTILIZATION,), _engine_utilization("nvmlDeviceGetDecoderUtilization")
        ),
    ),
    Cadence.STATIC: (
        Probe(
            (catalog.POWER_LIMIT,),
            _converted(milliwatts_to_watts, "nvmlDeviceGetEnforcedPowerLimit"),
        ),
        Probe(
            (catalog.SM_CLOCK_MAX,),
            _converted(megahertz_to_hertz, "nvmlDeviceGetMaxClockInfo", _CLOCK_SM),
        ),
        Probe(
            (catalog.MEMORY_CLOCK_MAX,),
            _converted(megahertz_to_hertz, "nvmlDeviceGetMaxClockInfo", _CLOCK_MEM),
        ),
    ),
}

SURVEYS: Final[dict[Cadence, tuple[Survey, ...]]] = dict.fromkeys(Cadence, ())

SIGNALS: Final[tuple[Signal, ...]] = tuple(
    signal for probes in PROBES.values() for probe in probes for signal in probe.signals
)
"""All that probes ask for."""

TEXTS: Final = {
    "name": "nvmlDeviceGetName",
    "vbios_version": "nvmlDeviceGetVbiosVersion",
    # Of the device node; device plugins name GPUs by it.
    "minor_number": "nvmlDeviceGetMinorNumber",
}
"""Labels of the info row, with the functions that give them, and by what else a GPU is known."""

DRIVER_TEXTS: Final = {
    "driver_version": "nvmlSystemGetDriverVersion",
    "nvml_version": "nvmlSystemGetNVMLVersion",
    "cuda_version": "nvmlSystemGetCudaDriverVersion_v2",
}
"""The same for the driver as a whole."""
