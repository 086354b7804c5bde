# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What is asked, and how answers become base units."""

from collections import Counter
from types import SimpleNamespace

import pynvml
import pytest

from tests.gpu.conftest import ScriptedNvml
from veo_exporter.catalog import gpu as catalog
from veo_exporter.gpu.nvml import Line, NvmlError
from veo_exporter.gpu.probes import DRIVER_TEXTS, PROBES, TEXTS, Probe, plausible_limits
from veo_exporter.gpu.readings import Cadence, Device, Raw, Signal

ALL = [(cadence, probe) for cadence, probes in PROBES.items() for probe in probes]


def probe_for(signal: Signal) -> Probe:
    (probe,) = [probe for _, probe in ALL if signal in probe.signals]
    return probe


def values(line: Line, device: Device, signal: Signal) -> dict[Signal, float | None]:
    probe = probe_for(signal)
    return dict(zip(probe.signals, probe.read(line, device.handle), strict=True))


def test_each_signal_is_asked_in_one_place() -> None:
    asked = Counter(signal for _, probe in ALL for signal in probe.signals)
    assert set(asked.values()) == {1}
    assert set(PROBES) == set(Cadence)


def test_windowed_signals_belong_to_the_fast_sample() -> None:
    fast = {signal for probe in PROBES[Cadence.FAST] for signal in probe.signals}
    assert set(catalog.WINDOWS) <= fast
    assert Raw.CLOCK_EVENT_REASONS in fast


def test_base_units(line: Line, first: Device, nvml: ScriptedNvml) -> None:
    expected = {
        catalog.UTILIZATION: 0.5,
        catalog.MEMORY_COPY_UTILIZATION: 0.25,
        catalog.MEMORY_TOTAL: 1000,
        catalog.MEMORY_USED: 600,
        catalog.MEMORY_FREE: 300,
        catalog.MEMORY_RESERVED: 100,
        catalog.POWER: 250.0,
        catalog.SM_CLOCK: 1.5e9,
        catalog.TEMPERATURE: 60,
        Raw.CLOCK_EVENT_REASONS: 0,
        catalog.ENERGY: 9000.0,
        catalog.MEMORY_CLOCK: 1.5e9,
        catalog.ENCODER_UTILIZATION: 0.1,
        catalog.DECODER_UTILIZATION: 0.2,
        catalog.POWER_LIMIT: 700.0,
        catalog.SM_CLOCK_MAX: 1.98e9,
        catalog.MEMORY_CLOCK_MAX: 1.98e9,
    }
    read: dict[Signal, float | None] = {}
    for _, probe in ALL:
        read |= dict(zip(probe.signals, probe.read(line, first.handle), strict=True))
    assert read == expected


def test_constants_and_functions_are_those_of_the_bindings(
    nvml: ScriptedNvml, first: Device
) -> None:
    calls: list[tuple[str, tuple[object, ...]]] = []

    class Listening(Line):
        def call(self, function: str, *arguments: object) -> object:
            calls.append((function, arguments[1:]))
            return super().call(function, *arguments)

    listening = Listening(nvml, SimpleNamespace(monotonic_seconds=float))
    for _, probe in ALL:
        probe.read(listening, first.handle)
    for function in [*TEXTS.values(), *DRIVER_TEXTS.values(), *(name for name, _ in calls)]:
        assert hasattr(pynvml, function)
    arguments = {(function, *more) for function, more in calls if more}
    assert arguments == {
        ("nvmlDeviceGetMemoryInfo", pynvml.nvmlMemory_v2),
        ("nvmlDeviceGetClockInfo", pynvml.NVML_CLOCK_SM),
        ("nvmlDeviceGetClockInfo", pynvml.NVML_CLOCK_MEM),
        ("nvmlDeviceGetMaxClockInfo", pynvml.NVML_CLOCK_SM),
        ("nvmlDeviceGetMaxClockInfo", pynvml.NVML_CLOCK_MEM),
        ("nvmlDeviceGetTemperature", pynvml.NVML_TEMPERATURE_GPU),
    }


class OldMemory:
    """A library that knows one form of memory alone."""

    NVMLError = ScriptedNvml.NVMLError

    def __init__(self, code: int) -> None:
        self.code = code

    def nvmlDeviceGetMemoryInfo(self, _gpu: object, version: int | None = None) -> object:  # noqa: N802
        if version is not None:
            raise self.NVMLError(self.code)
        return SimpleNamespace(total=1000, used=700, free=300)


@pytest.mark.parametrize("code", [13, 25])
def test_drivers_before_510_count_the_reserve_in(code: int, first: Device) -> None:
    line = Line(OldMemory(code), SimpleNamespace(monotonic_seconds=float))
    assert values(line, first, catalog.MEMORY_USED) == {
        catalog.MEMORY_TOTAL: 1000,
        catalog.MEMORY_USED: 700,
        catalog.MEMORY_FREE: 300,
        catalog.MEMORY_RESERVED: None,
    }


@pytest.mark.parametrize("code", [3, 15, 999])
def test_other_failures_of_memory_are_no_reason_to_ask_in_the_old_way(
    code: int, first: Device
) -> None:
    line = Line(OldMemory(code), SimpleNamespace(monotonic_seconds=float))
    with pytest.raises(NvmlError) as caught:
        values(line, first, catalog.MEMORY_USED)
    assert caught.value.code == code


def test_clock_event_reasons_under_their_older_name(first: Device) -> None:
    older = SimpleNamespace(
        NVMLError=ScriptedNvml.NVMLError, nvmlDeviceGetCurrentClocksThrottleReasons=lambda _: 0x20
    )
    line = Line(older, SimpleNamespace(monotonic_seconds=float))
    assert values(line, first, Raw.CLOCK_EVENT_REASONS) == {Raw.CLOCK_EVENT_REASONS: 0x20}


def test_a_library_without_either_name(line: Line, first: Device, nvml: ScriptedNvml) -> None:
    nvml.absent.add("nvmlDeviceGetCurrentClocksEventReasons")
    with pytest.raises(NvmlError) as caught:
        values(line, first, Raw.CLOCK_EVENT_REASONS)
    assert caught.value.code == 13


@pytest.mark.parametrize(
    ("signal", "value", "can_be"),
    [
        (catalog.UTILIZATION, 0.0, True),
        (catalog.UTILIZATION, 1.0, True),
        (catalog.UTILIZATION, 1.01, False),
        (catalog.ENCODER_UTILIZATION, -0.01, False),
        (catalog.TEMPERATURE, 200.0, True),
        (catalog.TEMPERATURE, 255.0, False),
        (catalog.TEMPERATURE, -5.0, True),
        (catalog.POWER, -1.0, False),
        (catalog.POWER, float("nan"), False),
        (catalog.TEMPERATURE, float("nan"), False),
        (catalog.UTILIZATION, float("nan"), False),
        (Raw.CLOCK_EVENT_REASONS, 0x1FF, True),
    ],
)
def test_what_can_be_true(signal: Signal, value: float, can_be: bool) -> None:
    low, high = plausible_limits(signal)
    assert (low <= value <= high) is can_be
