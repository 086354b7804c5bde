# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The sampler with real threads, on a library that blocks when it is told to."""

import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.gpu.conftest import EVERY, ScriptedNvml, address_of, wait_until
from tests.gpu.running import ALL_OK, QUICK, UUIDS, Running, Start, nvml_threads_of
from veo_exporter.catalog import gpu as catalog
from veo_exporter.clock import SystemClock
from veo_exporter.gpu.codes import OVERDUE, UNREADABLE
from veo_exporter.gpu.readings import Cadence, State
from veo_exporter.gpu.sampler import Sampler


def test_before_it_starts_nothing_is_known(start: Start) -> None:
    nvml = ScriptedNvml(*UUIDS)
    running = Running(nvml, QUICK, None)
    assert running.sampler.latest.driver.fault == "the driver was not asked yet"
    assert running.sampler.latest.gpus == ()
    assert not running.sampler.alive
    assert nvml.calls == []


def test_healthy_gpus(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    view = running.known("GPU-1")
    wait_until(lambda: len(running.known("GPU-1").readings) == len(Cadence))
    snapshot = running.sampler.latest
    values = snapshot.current_values(view, time.monotonic())
    assert values[catalog.POWER] == 250.0
    assert view.texts == {
        "name": "board of GPU-1",
        "vbios_version": "96.00",
        "minor_number": "5",
        "brand": "NVIDIA",
        "architecture": "Hopper",
        "compute_capability": "9.0",
        "board_part_number": "699-1",
        "serial": "serial of GPU-1",
    }
    assert snapshot.driver.texts["cuda_version"] == "12.8"
    assert (snapshot.driver.visible, snapshot.expected) == (3, 3)
    wait_until(lambda: catalog.POWER in running.known("GPU-1").windows)
    # Initialised once, not at each tick.
    running.wait_for_snapshots(3)
    assert running.nvml.count_calls("nvmlInit") == 1


def test_one_gpu_hangs_and_the_others_are_read(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    running.nvml.hang("GPU-2", "nvmlDeviceGetPowerUsage")
    running.wait_for({"GPU-2": State.HUNG})
    view = running.known("GPU-2")
    assert view.overdue_call is not None
    assert view.overdue_call.function == "nvmlDeviceGetPowerUsage"
    assert view.overdue_call.seconds >= QUICK.call_deadline_seconds
    assert view.errors[("nvmlDeviceGetPowerUsage", OVERDUE)] == 1
    running.wait_for({"GPU-1": State.OK, "GPU-3": State.OK})
    running.wait_for_calls(30, "GPU-1")
    running.wait_for_calls(30, "GPU-3")
    assert running.state("GPU-2") is State.HUNG
    assert running.nvml.waiting == 1
    # Its last reading stays until it is stale: five seconds for the fast group.
    view, snapshot = running.known("GPU-2"), running.sampler.latest
    (fast,) = [reading for reading in view.readings if reading.cadence is Cadence.FAST]
    assert fast.values[catalog.POWER] == 250.0
    assert not snapshot.withdrawn(fast, fast.finished_monotonic_seconds + 4.9)
    assert snapshot.withdrawn(fast, fast.finished_monotonic_seconds + 5.1)


def test_the_call_in_flight_grows_older_in_each_snapshot(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    running.nvml.hang("GPU-2")
    running.wait_for({"GPU-2": State.HUNG})
    first = running.known("GPU-2").overdue_call
    running.wait_for_snapshots(3)
    second = running.known("GPU-2").overdue_call
    assert first is not None
    assert second is not None
    assert second.seconds > first.seconds


def test_a_gpu_that_hung_is_asked_again_after_its_call_returned(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    running.nvml.hang("GPU-2")
    running.wait_for({"GPU-2": State.HUNG})
    asked = running.nvml.count_calls(uuid="GPU-2")
    running.wait_for_calls(30, "GPU-1")
    assert running.nvml.count_calls(uuid="GPU-2") == asked
    running.nvml.release("GPU-2")
    running.wait_for(ALL_OK)
    assert running.known("GPU-2").overdue_call is None
    # It was found anew, and the thread that was left behind is gone.
    assert ("nvmlDeviceGetHandleByIndex", "GPU-2") in running.nvml.calls[asked:]
    wait_until(lambda: len(nvml_threads_of(running)) == 1)


def test_two_stuck_threads_are_a_locked_driver(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    running.nvml.hang("GPU-1")
    running.nvml.hang("GPU-3")
    running.wait_for(dict.fromkeys(UUIDS, State.HUNG))
    assert running.nvml.waiting == 2
    calls = len(running.nvml.calls)
    # Many ticks, and not one call.
    running.wait_for_snapshots(3)
    assert len(running.nvml.calls) == calls
    assert running.state("GPU-2") is State.HUNG
    # It goes on as soon as one returns; the one that still hangs is left out.
    running.nvml.release("GPU-1")
    running.wait_for({"GPU-1": State.OK, "GPU-2": State.OK, "GPU-3": State.HUNG})
    running.nvml.release("GPU-3")
    running.wait_for(ALL_OK)


def test_a_count_that_hangs_costs_the_count_alone(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    running.nvml.hang(function="nvmlDeviceGetCount")
    wait_until(lambda: running.sampler.latest.driver.overdue_call is not None)
    call = running.sampler.latest.driver.overdue_call
    assert call is not None
    assert call.function == "nvmlDeviceGetCount"
    counts = running.nvml.count_calls("nvmlDeviceGetCount")
    running.wait_for_calls(30, "GPU-1")
    running.wait_for(ALL_OK)
    assert running.nvml.count_calls("nvmlDeviceGetCount") == counts
    running.nvml.release(function="nvmlDeviceGetCount")
    wait_until(lambda: running.sampler.latest.driver.overdue_call is None)
    wait_until(lambda: running.nvml.count_calls("nvmlDeviceGetCount") > counts)


def test_a_driver_that_does_not_start(start: Start) -> None:
    running = start(prepare=lambda nvml: nvml.hang(function="nvmlInit"))
    wait_until(lambda: "nvmlInit has not returned" in running.sampler.latest.driver.fault)
    assert {gpu.state for gpu in running.sampler.latest.gpus} == {State.HUNG}
    running.wait_for_snapshots(3)
    assert running.nvml.calls == [("nvmlInit", "")]
    running.nvml.release(function="nvmlInit")
    running.wait_for(ALL_OK)


def test_a_look_up_that_hangs_hides_no_neighbour(start: Start) -> None:
    running = start(prepare=lambda nvml: nvml.hang("GPU-1", "nvmlDeviceGetHandleByIndex"))
    running.wait_for({"GPU-2": State.OK, "GPU-3": State.OK})
    wait_until(
        lambda: (
            (0, "", address_of("GPU-1"), State.HUNG)
            in [
                (gpu.index, gpu.uuid, gpu.pci_bus_id, gpu.state)
                for gpu in running.sampler.latest.gpus
            ]
        )
    )
    running.nvml.release("GPU-1", "nvmlDeviceGetHandleByIndex")
    running.wait_for(ALL_OK)
    assert len(running.sampler.latest.gpus) == 3


def test_a_lost_gpu_comes_back(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    running.nvml.lose("GPU-2")
    running.wait_for({"GPU-1": State.OK, "GPU-2": State.LOST, "GPU-3": State.OK})
    looked_up = running.nvml.count_calls("nvmlDeviceGetHandleByIndex", "GPU-2")
    wait_until(
        lambda: running.nvml.count_calls("nvmlDeviceGetHandleByIndex", "GPU-2") > looked_up + 2
    )
    running.wait_for_snapshots(2)
    assert [gpu.uuid for gpu in running.sampler.latest.gpus] == list(UUIDS)
    view = running.known("GPU-2")
    assert (view.code, [*view.windows]) == (15, [])
    # It stays the board it was.
    assert view.texts["name"] == "board of GPU-2"
    running.nvml.recover("GPU-2")
    running.wait_for(ALL_OK)


def test_a_gpu_that_needs_a_reset(start: Start) -> None:
    running = start(prepare=lambda nvml: nvml.lose("GPU-3", 16))
    running.wait_for({"GPU-1": State.OK, "GPU-2": State.OK})
    wait_until(lambda: State.RESET_REQUIRED in {gpu.state for gpu in running.sampler.latest.gpus})


def test_a_gpu_lost_before_the_start_has_its_name_from_the_bus(start: Start) -> None:
    running = start(prepare=lambda nvml: nvml.lose("GPU-2"))
    running.wait_for({"GPU-1": State.OK, "GPU-3": State.OK})
    wait_until(
        lambda: (
            [
                (gpu.index, gpu.uuid, gpu.pci_bus_id, gpu.state, gpu.code)
                for gpu in running.sampler.latest.gpus
                if not gpu.uuid
            ]
            == [(1, "", address_of("GPU-2"), State.LOST, 15)]
        )
    )
    running.nvml.recover("GPU-2")
    running.wait_for(ALL_OK)
    assert len(running.sampler.latest.gpus) == 3


def test_a_hidden_gpu(start: Start) -> None:
    running = start("GPU-1", "GPU-3")
    running.wait_for({"GPU-1": State.OK, "GPU-3": State.OK})
    # Until all are looked up it is not known to be hidden.
    wait_until(
        lambda: (
            [
                (gpu.index, gpu.pci_bus_id, gpu.state)
                for gpu in running.sampler.latest.gpus
                if not gpu.uuid
            ]
            == [(None, address_of("GPU-2"), State.HIDDEN)]
        )
    )
    snapshot = running.sampler.latest
    assert (snapshot.driver.visible, snapshot.expected) == (2, 3)


def test_a_driver_that_is_loaded_later(start: Start) -> None:
    def unload(nvml: ScriptedNvml) -> None:
        nvml.codes["nvmlInit", ""] = 9

    running = start(prepare=unload, bus=frozenset())
    wait_until(lambda: "modprobe nvidia" in running.sampler.latest.driver.fault)
    # It keeps trying.
    wait_until(lambda: running.nvml.count_calls("nvmlInit") >= 3)
    assert running.sampler.latest.expected == 0
    running.bus = frozenset(map(address_of, UUIDS))
    running.nvml.codes.clear()
    running.wait_for(ALL_OK)
    assert running.sampler.latest.driver.fault == ""
    wait_until(lambda: running.sampler.latest.expected == 3)


def test_after_a_driver_reload_gpus_are_found_by_uuid(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    running.nvml.listed.reverse()
    running.nvml.end_session()
    wait_until(lambda: running.nvml.session == 2)
    wait_until(
        lambda: (
            [(gpu.index, gpu.uuid, gpu.state) for gpu in running.sampler.latest.gpus]
            == [(0, "GPU-3", State.OK), (1, "GPU-2", State.OK), (2, "GPU-1", State.OK)]
        )
    )
    assert running.nvml.count_calls("nvmlInit") == 2
    assert running.nvml.count_calls("nvmlShutdown") == 1


def test_a_library_that_no_longer_fits_the_driver(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    for key in ((EVERY, "GPU-1"), (EVERY, "GPU-2"), (EVERY, "GPU-3"), ("nvmlInit", "")):
        running.nvml.codes[key] = 18
    wait_until(lambda: "restart the exporter" in running.sampler.latest.driver.fault)
    assert {gpu.state for gpu in running.sampler.latest.gpus} == {State.UNKNOWN}
    assert {gpu.code for gpu in running.sampler.latest.gpus} == {18}


def test_what_is_not_supported_is_asked_again_at_the_static_sweep_only(start: Start) -> None:
    def unsupport(nvml: ScriptedNvml) -> None:
        nvml.codes["nvmlDeviceGetPowerUsage", "GPU-1"] = 3

    running = start(prepare=unsupport, timing=replace(QUICK, static_interval_seconds=0.5))
    running.wait_for(ALL_OK)
    sweeps = running.nvml.count_calls("nvmlDeviceGetEnforcedPowerLimit", "GPU-1")
    wait_until(
        lambda: running.nvml.count_calls("nvmlDeviceGetEnforcedPowerLimit", "GPU-1") > sweeps + 1
    )
    running.wait_for_calls(30, "GPU-1")
    asked = running.nvml.count_calls("nvmlDeviceGetPowerUsage", "GPU-1")
    sweeps = running.nvml.count_calls("nvmlDeviceGetEnforcedPowerLimit", "GPU-1")
    # Once for each sweep, and once more where a sweep is under way.
    assert asked <= sweeps + 1
    assert running.nvml.count_calls("nvmlDeviceGetTemperature", "GPU-1") > 2 * sweeps
    assert catalog.POWER.name in running.known("GPU-1").missing
    del running.nvml.codes["nvmlDeviceGetPowerUsage", "GPU-1"]
    wait_until(lambda: catalog.POWER.name not in running.known("GPU-1").missing)


def test_a_fault_of_ours_costs_one_value(start: Start) -> None:
    def confuse(nvml: ScriptedNvml) -> None:
        # The conversion to base units raises TypeError.
        nvml.answers["nvmlDeviceGetTotalEnergyConsumption", "GPU-1"] = None

    running = start(prepare=confuse)
    running.wait_for(ALL_OK)
    wait_until(lambda: len(running.known("GPU-1").readings) == 3)
    known = running.known("GPU-1")
    [full] = [reading for reading in known.readings if reading.cadence is Cadence.FULL]
    assert catalog.ENERGY not in full.values
    assert catalog.MEMORY_CLOCK in full.values
    assert known.errors["nvmlDeviceGetTotalEnergyConsumption", UNREADABLE] >= 1
    assert known.state is State.OK
    assert running.sampler.alive


def test_it_ends_in_time_and_gives_its_session_back(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    assert running.sampler.stop(5)
    assert not running.sampler.alive
    assert not running.nvml.open
    assert running.nvml.calls[-1] == ("nvmlShutdown", "")
    wait_until(lambda: not nvml_threads_of(running))


def test_it_leaves_no_thread_behind_without_a_driver(start: Start) -> None:
    def unload(nvml: ScriptedNvml) -> None:
        nvml.codes["nvmlInit", ""] = 12

    running = start(prepare=unload)
    wait_until(lambda: running.nvml.count_calls("nvmlInit"))
    assert running.sampler.stop(5)
    wait_until(lambda: not nvml_threads_of(running))
    assert running.nvml.count_calls("nvmlShutdown") == 0


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the threads that anybody joins."""
    names: list[str] = []
    join = threading.Thread.join

    def listen(thread: threading.Thread, timeout: float | None = None) -> None:
        names.append(thread.name)
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", listen)
    return names


@pytest.mark.parametrize("stuck", ["before its deadline", "after its deadline"])
def test_it_ends_in_time_also_while_a_call_hangs(
    start: Start, stuck: str, joined: list[str]
) -> None:
    patience = 60.0 if stuck == "before its deadline" else QUICK.call_deadline_seconds
    running = start(timing=replace(QUICK, call_deadline_seconds=patience))
    running.wait_for(ALL_OK)
    running.nvml.hang("GPU-2")
    wait_until(lambda: running.nvml.waiting)
    if stuck == "after its deadline":
        running.wait_for({"GPU-2": State.HUNG})
    begin = time.monotonic()
    assert not running.sampler.stop(5)
    took = time.monotonic() - begin
    assert not running.sampler.alive
    # It closes for half a second at most; the rest is the machine's.
    assert took < 3
    # A thread that the driver keeps must not keep us.
    assert joined == ["gpu-sampler"]
    assert running.nvml.count_calls("nvmlShutdown") == 0


def test_stopping_waits_no_longer_than_told(start: Start) -> None:
    running = start(timing=replace(QUICK, call_deadline_seconds=60))
    running.wait_for(ALL_OK)
    running.nvml.hang("GPU-2")
    wait_until(lambda: running.nvml.waiting)
    assert not running.sampler.stop(0.01)


def test_a_session_that_cannot_be_given_back_is_left(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    running.nvml.hang(function="nvmlShutdown")
    assert not running.sampler.stop(5)
    assert not running.sampler.alive


def test_other_settings_take_effect(start: Start) -> None:
    running = start(
        timing=replace(
            QUICK,
            fast_interval_seconds=30,
            full_interval_seconds=30,
            static_interval_seconds=60,
        )
    )
    wait_until(lambda: running.state("GPU-1") is State.OK)
    assert running.sampler.latest.expected == 3
    assert running.sampler.latest.stale_after_seconds[Cadence.FAST] == 90
    reads = running.nvml.count_calls("nvmlDeviceGetPowerUsage", "GPU-1")
    running.sampler.reconfigure(QUICK, 8)
    wait_until(lambda: running.nvml.count_calls("nvmlDeviceGetPowerUsage", "GPU-1") > reads + 3)
    wait_until(lambda: running.sampler.latest.expected == 8)
    assert running.sampler.latest.stale_after_seconds[Cadence.FAST] == 5
    # The session goes on.
    assert running.nvml.count_calls("nvmlInit") == 1
    running.sampler.reconfigure(QUICK, None)
    wait_until(lambda: running.sampler.latest.expected == 3)


def test_another_expected_count_leaves_the_windows_alone(start: Start) -> None:
    timing = replace(QUICK, window_seconds=3600)

    def peak(nvml: ScriptedNvml) -> None:
        nvml.answers["nvmlDeviceGetPowerUsage", "GPU-1"] = 690_000

    running = start(timing=timing, prepare=peak)
    running.wait_for(ALL_OK)
    running.nvml.answers["nvmlDeviceGetPowerUsage", "GPU-1"] = 100_000
    running.sampler.reconfigure(timing, 8)
    wait_until(lambda: running.sampler.latest.expected == 8)
    running.wait_for_snapshots(3)
    assert running.known("GPU-1").windows[catalog.POWER].peak == 690.0


def test_changes_are_logged_once(start: Start) -> None:
    with capture_logs() as lines:
        running = start()
        running.wait_for(ALL_OK)
        running.nvml.hang("GPU-2")
        running.wait_for({"GPU-2": State.HUNG})
        running.wait_for_snapshots(3)
    told = [line for line in lines if line["event"] == "GPU state changed"]
    assert [line["state"] for line in told if line["uuid"] == "GPU-2"][-1] == "hung"
    assert [line["state"] for line in told if line["uuid"] == "GPU-2"].count("hung") == 1


def test_two_samplers_in_one_process(start: Start) -> None:
    one, two = start("GPU-1"), start("GPU-2")
    one.wait_for({"GPU-1": State.OK})
    two.wait_for({"GPU-2": State.OK})
    one.nvml.hang("GPU-1")
    one.wait_for({"GPU-1": State.HUNG})
    assert two.state("GPU-2") is State.OK


def test_the_library_is_not_loaded_before_it_is_needed() -> None:
    loads: list[str] = []

    def load() -> Any:
        loads.append("loaded")
        return SimpleNamespace()

    Sampler(
        load_library=load,
        pci_functions=lambda: None,
        expected=None,
        timing=QUICK,
        clock=SystemClock(),
    )
    assert loads == []
