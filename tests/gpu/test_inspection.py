# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""One look at the driver."""

from collections.abc import Iterator

import pytest

from tests.gpu.conftest import FakeClock, ScriptedNvml, wait_until
from veo_exporter.clock import SystemClock
from veo_exporter.gpu.inspection import DriverReport, inspect_driver


@pytest.fixture
def fresh() -> ScriptedNvml:
    return ScriptedNvml("GPU-1", "GPU-2")


def test_a_healthy_node(fresh: ScriptedNvml, clock: FakeClock) -> None:
    report = inspect_driver(fresh, clock)
    assert (report.fault, report.fault_name, report.driver_version) == ("", "", "570.1")
    assert [(gpu.index, gpu.name, gpu.fault) for gpu in report.gpus] == [
        (0, "board of GPU-1 (GPU-1, 0000:01:00.0)", ""),
        (1, "board of GPU-2 (GPU-2, 0000:02:00.0)", ""),
    ]
    assert all(gpu.not_supported == gpu.not_permitted == () for gpu in report.gpus)
    assert not fresh.open


@pytest.mark.parametrize(
    ("code", "name", "remedy"),
    [
        (9, "DRIVER_NOT_LOADED", "modprobe nvidia"),
        (12, "LIBRARY_NOT_FOUND", "install the NVIDIA driver"),
        (18, "LIB_RM_VERSION_MISMATCH", "restart the exporter"),
    ],
)
def test_no_driver(
    fresh: ScriptedNvml, clock: FakeClock, code: int, name: str, remedy: str
) -> None:
    fresh.codes["nvmlInit", ""] = code
    report = inspect_driver(fresh, clock)
    assert report.fault_name == name
    assert remedy in report.fault
    assert report.gpus == ()
    assert fresh.count_calls("nvmlShutdown") == 0


def test_a_session_that_counts_no_gpus_is_closed(fresh: ScriptedNvml, clock: FakeClock) -> None:
    fresh.codes["nvmlDeviceGetCount", ""] = 999
    report = inspect_driver(fresh, clock)
    assert report.fault_name == "UNKNOWN"
    assert not fresh.open


def test_one_ill_gpu_is_reported_and_the_other_inspected(
    fresh: ScriptedNvml, clock: FakeClock
) -> None:
    fresh.lose("GPU-1")
    first, second = inspect_driver(fresh, clock).gpus
    assert first.fault == "nvmlDeviceGetHandleByIndex: GPU_IS_LOST"
    assert first.name == ""
    assert second.fault == ""


def test_what_is_missing_is_told_apart_from_what_fails(
    fresh: ScriptedNvml, clock: FakeClock
) -> None:
    fresh.codes["nvmlDeviceGetDecoderUtilization", "GPU-1"] = 3
    fresh.codes["nvmlDeviceGetTotalEnergyConsumption", "GPU-1"] = 4
    fresh.codes["nvmlDeviceGetPowerUsage", "GPU-1"] = 999
    first, second = inspect_driver(fresh, clock).gpus
    assert first.not_supported == ("veo_gpu_decoder_utilization_ratio",)
    assert first.not_permitted == ("veo_gpu_energy_joules_total",)
    assert first.fault == "nvmlDeviceGetPowerUsage: UNKNOWN"
    assert (second.not_supported, second.not_permitted, second.fault) == ((), (), "")


def inspect(nvml: ScriptedNvml) -> DriverReport:
    return inspect_driver(
        nvml, SystemClock(), call_deadline_seconds=1.0, start_deadline_seconds=1.0
    )


@pytest.fixture
def three() -> Iterator[ScriptedNvml]:
    """Every call that hangs returns at the end."""
    nvml = ScriptedNvml("GPU-1", "GPU-2", "GPU-3")
    yield nvml
    nvml.release_all()
    wait_until(lambda: not nvml.waiting)


def test_a_hanging_gpu_hides_no_other(three: ScriptedNvml) -> None:
    three.hang("GPU-1", "nvmlDeviceGetEncoderUtilization")
    first, second, third = inspect(three).gpus
    assert first.fault == "nvmlDeviceGetEncoderUtilization does not return"
    assert first.pci_bus_id == "0000:01:00.0"
    assert (second.fault, third.fault) == ("", "")
    # Who closes while a call hangs may hang behind it.
    assert three.count_calls("nvmlShutdown") == 0


def test_nor_does_one_whose_look_up_hangs(three: ScriptedNvml) -> None:
    three.hang("GPU-2", "nvmlDeviceGetHandleByIndex")
    first, second, third = inspect(three).gpus
    assert (second.fault, second.pci_bus_id) == ("nvmlDeviceGetHandleByIndex does not return", "")
    assert (first.fault, third.fault) == ("", "")


def test_behind_two_hanging_calls_nothing_more_is_asked(three: ScriptedNvml) -> None:
    three.hang("GPU-1")
    three.hang("GPU-2")
    *_, third = inspect(three).gpus
    assert third.fault == "not asked: two calls hang, so the driver itself holds a lock"
    assert three.count_calls(uuid="GPU-3") == 0


@pytest.mark.parametrize("function", ["nvmlInit", "nvmlDeviceGetCount"])
def test_a_driver_that_hangs(three: ScriptedNvml, function: str) -> None:
    three.hang(function=function)
    report = inspect(three)
    assert report.fault_name == f"{function} does not return"
    assert "reboot the node" in report.fault
    assert report.gpus == ()


def test_a_fault_of_ours_is_told_as_such(fresh: ScriptedNvml, clock: FakeClock) -> None:
    # A text where a number is wanted goes by the conversion's error; a count that is no number is ours.
    fresh.answers["nvmlDeviceGetCount", ""] = "many"
    assert inspect_driver(fresh, clock).fault_name == "UNREADABLE"


def test_a_node_without_gpus(clock: FakeClock) -> None:
    assert inspect_driver(ScriptedNvml(), clock) == DriverReport(driver_version="570.1")
