# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""One GPU, one group: one failure costs one value."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from tests.gpu.board_answers import BOARD_ANSWERS
from tests.gpu.conftest import EVERY, FIELD_VALUES, FakeClock, ScriptedNvml
from veo_exporter.catalog import gpu as catalog
from veo_exporter.gpu.field_table import FIELDS
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.probes import PROBES, SURVEYS
from veo_exporter.gpu.reader import read_gpu
from veo_exporter.gpu.readings import Cadence, Device, Failure, Raw, Reading, Signal, WhyNot


def signals_of(cadence: Cadence) -> set[Signal]:
    found: set[Signal] = {signal for probe in PROBES[cadence] for signal in probe.signals}
    found |= {signal for one in FIELDS[cadence] for signal in one.signals}
    return found | {signal for survey in SURVEYS[cadence] for signal in survey.signals}


FAST_SIGNALS = signals_of(Cadence.FAST)


TEXTS = {
    "name": "board of GPU-1",
    "vbios_version": "96.00",
    "minor_number": "5",
    "brand": "NVIDIA",
    "architecture": "Hopper",
    "compute_capability": "9.0",
    "board_part_number": "699-1",
    "serial": "serial of GPU-1",
}

Read = Callable[..., Reading]


@pytest.fixture
def read(line: Line, first: Device, clock: FakeClock) -> Read:
    """Reads the first of the two GPUs."""

    def read_first(cadence: Cadence = Cadence.FAST, skipped: tuple[Signal, ...] = ()) -> Reading:
        return read_gpu(line, first, cadence, skipped, clock)

    return read_first


def test_a_healthy_gpu(read: Read, clock: FakeClock) -> None:
    reading = read()
    assert set(reading.values) == FAST_SIGNALS
    assert (reading.code, reading.failures, reading.missing) == (0, (), {})
    assert reading.succeeded
    assert reading.finished_monotonic_seconds == clock.monotonic_seconds()
    assert reading.finished_unix_seconds == clock.unix_seconds()


def test_texts_come_with_the_static_group_alone(read: Read) -> None:
    assert read(Cadence.STATIC).texts == TEXTS
    assert read(Cadence.FAST).texts == read(Cadence.FULL).texts == {}


@pytest.mark.parametrize("code", [2, 6, 7, 10, 20, 21, 27, 999, 4242])
def test_one_failure_costs_one_value(read: Read, nvml: ScriptedNvml, code: int) -> None:
    nvml.codes["nvmlDeviceGetPowerUsage", "GPU-1"] = code
    reading = read()
    assert set(reading.values) == FAST_SIGNALS - {catalog.POWER}
    assert reading.failures == (Failure(function="nvmlDeviceGetPowerUsage", code=code),)
    assert reading.missing == {}
    # Nothing speaks against the GPU.
    assert reading.code == 0


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (3, WhyNot.NOT_SUPPORTED),
        (13, WhyNot.NOT_SUPPORTED),
        (25, WhyNot.NOT_SUPPORTED),
        (26, WhyNot.NOT_SUPPORTED),
        (4, WhyNot.NOT_PERMITTED),
        (17, WhyNot.NOT_PERMITTED),
    ],
)
def test_unsupported_and_forbidden_are_no_errors(
    read: Read, nvml: ScriptedNvml, code: int, why: WhyNot
) -> None:
    nvml.codes["nvmlDeviceGetUtilizationRates", "GPU-1"] = code
    reading = read()
    assert reading.missing == {catalog.UTILIZATION: why, catalog.MEMORY_COPY_UTILIZATION: why}
    assert set(reading.values) == FAST_SIGNALS - set(reading.missing)
    assert (reading.code, reading.failures) == (0, ())


@pytest.mark.parametrize("code", [15, 16, 28, 1, 9, 18])
def test_a_gpu_or_session_that_is_gone_is_asked_nothing_more(
    read: Read, nvml: ScriptedNvml, code: int
) -> None:
    nvml.codes["nvmlDeviceGetMemoryInfo", "GPU-1"] = code
    reading = read()
    # Utilization was read before, and is not to be believed now.
    assert reading.values == {}
    assert reading.code == code
    assert [function for function, _ in nvml.calls] == [
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetMemoryInfo",
    ]


@pytest.mark.parametrize("code", [11, 14])
def test_an_ill_gpu_keeps_what_it_answers(read: Read, nvml: ScriptedNvml, code: int) -> None:
    nvml.codes["nvmlDeviceGetTemperature", "GPU-1"] = code
    reading = read()
    assert set(reading.values) == FAST_SIGNALS - {catalog.TEMPERATURE}
    assert reading.code == code


def test_a_gpu_that_answers_nothing_is_not_trusted(read: Read, nvml: ScriptedNvml) -> None:
    nvml.codes[EVERY, "GPU-1"] = 999
    reading = read()
    assert (reading.values, reading.code) == ({}, 999)
    assert len(reading.failures) == len(PROBES[Cadence.FAST])


def test_the_only_supported_signal_of_a_group_condemns_nobody(
    read: Read, nvml: ScriptedNvml
) -> None:
    """Else one failing function would hide a GPU whose other groups answer."""
    nvml.codes["nvmlDeviceGetTotalEnergyConsumption", "GPU-1"] = 999
    reading = read(Cadence.FULL, tuple(signals_of(Cadence.FULL) - {catalog.ENERGY}))
    assert (reading.values, reading.code) == ({}, 0)
    assert [failure.code for failure in reading.failures] == [999]


STATIC_FUNCTIONS = ("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetMaxClockInfo")


def test_a_name_is_an_answer(read: Read, nvml: ScriptedNvml) -> None:
    for function in (*BOARD_ANSWERS, FIELD_VALUES, *STATIC_FUNCTIONS):
        nvml.codes[function, "GPU-1"] = 999
    assert read(Cadence.STATIC).code == 0


def test_a_group_that_is_not_supported_at_all_is_no_fault(read: Read, nvml: ScriptedNvml) -> None:
    nvml.codes[EVERY, "GPU-1"] = 3
    reading = read(Cadence.FULL)
    assert (reading.values, reading.failures, reading.code) == ({}, (), 0)
    assert set(reading.missing) == signals_of(Cadence.FULL)


def test_what_is_known_to_be_missing_is_not_asked(read: Read, nvml: ScriptedNvml) -> None:
    reading = read(skipped=(catalog.POWER,))
    assert nvml.count_calls("nvmlDeviceGetPowerUsage") == 0
    assert set(reading.values) == FAST_SIGNALS - {catalog.POWER}


def test_a_question_is_asked_while_any_of_its_signals_is_wanted(
    read: Read, nvml: ScriptedNvml
) -> None:
    reading = read(skipped=(catalog.MEMORY_RESERVED,))
    assert catalog.MEMORY_USED in reading.values
    assert nvml.count_calls("nvmlDeviceGetMemoryInfo") == 1


def test_what_cannot_be_true_is_left_out_and_counted(read: Read, nvml: ScriptedNvml) -> None:
    nvml.answers["nvmlDeviceGetUtilizationRates", "GPU-1"] = SimpleNamespace(gpu=101, memory=40)
    nvml.answers["nvmlDeviceGetTemperature", "GPU-1"] = 255
    reading = read()
    assert reading.implausible == 2
    assert set(reading.values) == FAST_SIGNALS - {catalog.UTILIZATION, catalog.TEMPERATURE}
    assert reading.values[catalog.MEMORY_COPY_UTILIZATION] == 0.4
    assert (reading.failures, reading.missing, reading.code) == ((), {}, 0)


def test_a_zero_is_a_value(read: Read, nvml: ScriptedNvml) -> None:
    nvml.answers["nvmlDeviceGetUtilizationRates", "GPU-1"] = SimpleNamespace(gpu=0, memory=0)
    nvml.answers["nvmlDeviceGetPowerUsage", "GPU-1"] = 0
    reading = read()
    assert reading.values[catalog.UTILIZATION] == reading.values[catalog.POWER] == 0
    assert reading.values[Raw.CLOCK_EVENT_REASONS] == 0


def test_a_text_that_fails_costs_that_text(read: Read, nvml: ScriptedNvml) -> None:
    nvml.codes["nvmlDeviceGetVbiosVersion", "GPU-1"] = 999
    reading = read(Cadence.STATIC)
    assert reading.texts == {label: TEXTS[label] for label in TEXTS if label != "vbios_version"}
    assert reading.failures == (Failure(function="nvmlDeviceGetVbiosVersion", code=999),)
    nvml.codes["nvmlDeviceGetVbiosVersion", "GPU-1"] = 3
    assert read(Cadence.STATIC).failures == ()
