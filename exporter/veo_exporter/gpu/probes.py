# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What is asked of NVML, and how its answers become base units: one row for each function.

A new signal of a GPU is a row in the catalogue and a row here.
"""

import math
from dataclasses import dataclass, field
from typing import Final

from veo_exporter.catalog import MetricSpec, Series
from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog import gpu_board as board
from veo_exporter.catalog import gpu_engines as engines
from veo_exporter.catalog import gpu_health as health
from veo_exporter.catalog import gpu_links as links
from veo_exporter.gpu import mig
from veo_exporter.gpu.answers import (
    Ask,
    ask_bar1,
    ask_clock_event_reasons,
    ask_converted,
    ask_ecc_mode,
    ask_engine,
    ask_listed,
    ask_memory,
    ask_performance_state,
    ask_power_constraints,
    ask_row_remap_banks,
    ask_utilization,
)
from veo_exporter.gpu.encoder import ENCODER_SIGNALS, ask_encoder
from veo_exporter.gpu.findings import Survey
from veo_exporter.gpu.readings import Cadence, Raw, Signal
from veo_exporter.gpu.vgpu_license import ask_vgpu_license
from veo_exporter.units import (
    Unit,
    megahertz_to_hertz,
    millijoules_to_joules,
    milliwatts_to_watts,
    percent_to_ratio,
)

# Constants of nvml.h.
_TEMPERATURE_GPU: Final = 0
_CLOCK_GRAPHICS: Final = 0
_CLOCK_SM: Final = 1
_CLOCK_MEM: Final = 2
_CLOCK_VIDEO: Final = 3
_VOLATILE: Final = 0
_AGGREGATE: Final = 1

MAX_PLAUSIBLE_CELSIUS: Final = 200.0
"""DCGM drops readings above this too: some boards answer nonsense right after a reset."""
_MAY_EXCEED_ONE: Final = (board.FAN_SPEED,)
"""Its 100 % is what is bearable to hear, and not what is possible."""


def plausible_limits(signal: Signal) -> tuple[float, float]:
    """Between which values a signal can be true. The driver has been seen to say 101 % and 255 degrees."""
    if isinstance(signal, Raw):
        return -math.inf, math.inf
    unit = signal.spec.unit if isinstance(signal, Series) else signal.unit
    if unit is Unit.RATIO and signal not in _MAY_EXCEED_ONE:
        return 0.0, 1.0
    if unit is Unit.CELSIUS:
        return -math.inf, MAX_PLAUSIBLE_CELSIUS
    return 0.0, math.inf


Check = tuple[Signal, float, float]
"""A signal with its plausible limits, looked up once."""
Checks = tuple[Check, ...]


def checks_of(signals: tuple[Signal, ...]) -> Checks:
    """What the numbers of these signals are checked against, in their order."""
    return tuple((signal, *plausible_limits(signal)) for signal in signals)


@dataclass(frozen=True, slots=True)
class Probe:
    """One question. `read` answers a number for each signal, None where this answer lacks it.

    Where an answer has a return code for each of its parts, `partial`, it gives an error in place
    of each number that has none, and NOTHING for one that is not there now.
    """

    signals: tuple[Signal, ...]
    read: Ask
    partial: bool = False
    checks: Checks = field(init=False, repr=False)
    check_of_one: Check | None = field(init=False, repr=False)
    """Where there is one signal, as mostly, its check."""

    def __post_init__(self) -> None:
        checks = checks_of(self.signals)
        object.__setattr__(self, "checks", checks)
        one = None if self.partial or len(checks) > 1 else checks[0]
        object.__setattr__(self, "check_of_one", one)


def _watts(signal: Signal, function: str) -> Probe:
    return Probe((signal,), ask_converted(milliwatts_to_watts, function))


def _clock(signal: Signal, function: str, domain: int) -> Probe:
    return Probe((signal,), ask_converted(megahertz_to_hertz, function, domain))


def _number(signal: Signal, function: str) -> Probe:
    return Probe((signal,), ask_converted(float, function))


def _ecc_errors(spec: MetricSpec, counter: int) -> tuple[Probe, ...]:
    """A question for each kind of error and location: no board has all of them."""
    return tuple(
        Probe(
            (spec.series(error, location),),
            ask_listed(float, "nvmlDeviceGetMemoryErrorCounter", kind, counter, place),
        )
        for kind, error in enumerate(health.ECC_ERRORS_KNOWN)
        for place, location in enumerate(health.ECC_LOCATIONS)
    )


PROBES: Final[dict[Cadence, tuple[Probe, ...]]] = {
    Cadence.FAST: (
        Probe((catalog.UTILIZATION, catalog.MEMORY_COPY_UTILIZATION), ask_utilization),
        Probe(
            (
                catalog.MEMORY_TOTAL,
                catalog.MEMORY_USED,
                catalog.MEMORY_FREE,
                catalog.MEMORY_RESERVED,
            ),
            ask_memory,
        ),
        _watts(catalog.POWER, "nvmlDeviceGetPowerUsage"),
        _clock(catalog.SM_CLOCK, "nvmlDeviceGetClockInfo", _CLOCK_SM),
        Probe(
            (catalog.TEMPERATURE,),
            ask_converted(float, "nvmlDeviceGetTemperature", _TEMPERATURE_GPU),
        ),
        Probe((Raw.CLOCK_EVENT_REASONS,), ask_clock_event_reasons),
    ),
    Cadence.FULL: (
        Probe(
            (catalog.ENERGY,),
            ask_converted(millijoules_to_joules, "nvmlDeviceGetTotalEnergyConsumption"),
        ),
        _clock(catalog.MEMORY_CLOCK, "nvmlDeviceGetClockInfo", _CLOCK_MEM),
        _clock(board.GRAPHICS_CLOCK, "nvmlDeviceGetClockInfo", _CLOCK_GRAPHICS),
        _clock(board.VIDEO_CLOCK, "nvmlDeviceGetClockInfo", _CLOCK_VIDEO),
        Probe(ENCODER_SIGNALS, ask_encoder, partial=True),
        Probe((catalog.DECODER_UTILIZATION,), ask_engine("nvmlDeviceGetDecoderUtilization")),
        Probe((engines.JPEG_UTILIZATION,), ask_engine("nvmlDeviceGetJpgUtilization")),
        Probe((engines.OFA_UTILIZATION,), ask_engine("nvmlDeviceGetOfaUtilization")),
        Probe((board.BAR1_TOTAL, board.BAR1_USED), ask_bar1),
        Probe((board.PERFORMANCE_STATE,), ask_performance_state, partial=True),
        Probe((board.FAN_SPEED,), ask_converted(percent_to_ratio, "nvmlDeviceGetFanSpeed")),
        _number(board.TEMPERATURE_MARGIN, "nvmlDeviceGetMarginTemperature"),
        _number(links.PCIE_GENERATION, "nvmlDeviceGetCurrPcieLinkGeneration"),
        _number(links.PCIE_WIDTH, "nvmlDeviceGetCurrPcieLinkWidth"),
        *_ecc_errors(health.ECC_ERRORS, _VOLATILE),
    ),
    Cadence.STATIC: (
        _watts(catalog.POWER_LIMIT, "nvmlDeviceGetEnforcedPowerLimit"),
        _watts(board.POWER_LIMIT_MANAGEMENT, "nvmlDeviceGetPowerManagementLimit"),
        _watts(board.POWER_LIMIT_DEFAULT, "nvmlDeviceGetPowerManagementDefaultLimit"),
        Probe((board.POWER_LIMIT_MIN, board.POWER_LIMIT_MAX), ask_power_constraints),
        _clock(catalog.SM_CLOCK_MAX, "nvmlDeviceGetMaxClockInfo", _CLOCK_SM),
        _clock(catalog.MEMORY_CLOCK_MAX, "nvmlDeviceGetMaxClockInfo", _CLOCK_MEM),
        _clock(board.GRAPHICS_CLOCK_MAX, "nvmlDeviceGetMaxClockInfo", _CLOCK_GRAPHICS),
        _clock(board.VIDEO_CLOCK_MAX, "nvmlDeviceGetMaxClockInfo", _CLOCK_VIDEO),
        _clock(board.GRAPHICS_CLOCK_APPLICATION, "nvmlDeviceGetApplicationsClock", _CLOCK_GRAPHICS),
        _clock(board.MEMORY_CLOCK_APPLICATION, "nvmlDeviceGetApplicationsClock", _CLOCK_MEM),
        *(
            Probe(
                (board.TEMPERATURE_THRESHOLD.series(threshold),),
                ask_listed(float, "nvmlDeviceGetTemperatureThreshold", place),
            )
            for place, threshold in enumerate(board.THRESHOLDS)
        ),
        _number(links.PCIE_GENERATION_MAX, "nvmlDeviceGetMaxPcieLinkGeneration"),
        _number(links.PCIE_WIDTH_MAX, "nvmlDeviceGetMaxPcieLinkWidth"),
        Probe((health.ECC_MODE, health.ECC_MODE_PENDING), ask_ecc_mode),
        *_ecc_errors(health.ECC_AGGREGATE_ERRORS, _AGGREGATE),
        Probe(
            tuple(health.REMAP_BANKS.series(one) for one in health.AVAILABILITIES),
            ask_row_remap_banks,
        ),
        Probe((Raw.VGPU_LICENSE,), ask_vgpu_license),
    ),
}

SURVEYS: Final[dict[Cadence, tuple[Survey, ...]]] = {
    Cadence.FAST: (),
    Cadence.FULL: (Survey(mig.SIGNALS, mig.ask_mig),),
    Cadence.STATIC: (),
}
