# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Single NVML calls, and how their answers become base units."""

from collections.abc import Callable
from typing import Any, Final

from veo_exporter.gpu.codes import ReturnCode
from veo_exporter.gpu.nvml import Handle, Line, NvmlError
from veo_exporter.units import milliwatts_to_watts, percent_to_ratio

Ask = Callable[[Line, Handle], tuple[Any, ...]]
"""Asks a GPU, and gives a number for each signal of its probe."""

_MEMORY_V2: Final = 0x02000028
_NO_MEMORY_V2: Final = (ReturnCode.FUNCTION_NOT_FOUND, ReturnCode.ARGUMENT_VERSION_MISMATCH)
_UNKNOWN_STATE: Final = 32
"""What NVML calls the performance state that it cannot tell."""


class Nothing:
    """What an answer gives in place of a number that is not there now, and may be the next time."""


NOTHING: Final = Nothing()

Part = float | Nothing | NvmlError
"""A number, or what stands in its place."""


def ask_converted(convert: Callable[[float], float], function: str, *arguments: int) -> Ask:
    """One call, one number."""

    def ask(line: Line, gpu: Handle) -> tuple[float]:
        return (convert(line.call(function, gpu, *arguments)),)

    return ask


def ask_listed(convert: Callable[[float], float], function: str, *arguments: int) -> Ask:
    """As `ask_converted`, where an argument is a number of a list that grew from driver to driver: a
    library that finds it invalid does not know it."""
    plain = ask_converted(convert, function, *arguments)

    def ask(line: Line, gpu: Handle) -> tuple[Any, ...]:
        try:
            return plain(line, gpu)
        except NvmlError as error:
            if error.code != ReturnCode.INVALID_ARGUMENT:
                raise
            raise NvmlError(function, ReturnCode.NOT_SUPPORTED) from None

    return ask


def ask_engine(function: str) -> Ask:
    """How busy an engine is; NVML names the window with each answer."""

    def ask(line: Line, gpu: Handle) -> tuple[float]:
        percent, _window_microseconds = line.call(function, gpu)
        return (percent_to_ratio(percent),)

    return ask


def ask_utilization(line: Line, gpu: Handle) -> tuple[float, float]:
    """Of the GPU, and of copies in its memory."""
    rates = line.call("nvmlDeviceGetUtilizationRates", gpu)
    return percent_to_ratio(rates.gpu), percent_to_ratio(rates.memory)


def ask_memory(line: Line, gpu: Handle) -> tuple[float | None, ...]:
    """Total, used, free and reserved."""
    try:
        memory = line.call("nvmlDeviceGetMemoryInfo", gpu, _MEMORY_V2)
        return memory.total, memory.used, memory.free, memory.reserved
    except NvmlError as error:
        if error.code not in _NO_MEMORY_V2:
            raise
    # Drivers before 510 know only this form, in which "used" holds the reserve.
    memory = line.call("nvmlDeviceGetMemoryInfo", gpu)
    return memory.total, memory.used, memory.free, None


def ask_clock_event_reasons(line: Line, gpu: Handle) -> tuple[float]:
    """A mask."""
    try:
        return (line.call("nvmlDeviceGetCurrentClocksEventReasons", gpu),)
    except NvmlError as error:
        if error.code != ReturnCode.FUNCTION_NOT_FOUND:
            raise
    # The name of the same call before driver 535.
    return (line.call("nvmlDeviceGetCurrentClocksThrottleReasons", gpu),)


def ask_bar1(line: Line, gpu: Handle) -> tuple[float, float]:
    """Total and used."""
    memory = line.call("nvmlDeviceGetBAR1MemoryInfo", gpu)
    return memory.bar1Total, memory.bar1Used


def ask_performance_state(line: Line, gpu: Handle) -> tuple[float | Nothing]:
    """Its number."""
    state = line.call("nvmlDeviceGetPerformanceState", gpu)
    return (NOTHING if state == _UNKNOWN_STATE else state,)


def ask_power_constraints(line: Line, gpu: Handle) -> tuple[float, float]:
    """Lowest and highest limit."""
    low, high = line.call("nvmlDeviceGetPowerManagementLimitConstraints", gpu)
    return milliwatts_to_watts(low), milliwatts_to_watts(high)


def ask_ecc_mode(line: Line, gpu: Handle) -> tuple[float, float]:
    """Current and pending."""
    current, pending = line.call("nvmlDeviceGetEccMode", gpu)
    return current, pending


def ask_row_remap_banks(line: Line, gpu: Handle) -> tuple[float, ...]:
    """Banks by what they have left, the fullest first."""
    banks = line.call("nvmlDeviceGetRowRemapperHistogram", gpu)
    return banks.max, banks.high, banks.partial, banks.low, banks.none
