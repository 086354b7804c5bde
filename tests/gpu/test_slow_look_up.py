# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A look-up that takes its time keeps the other GPUs waiting for half a second and no longer."""

import time
from dataclasses import replace

from tests.gpu.conftest import ScriptedNvml, wait_until
from tests.gpu.running import ALL_OK, QUICK, Start, nvml_threads_of
from veo_exporter.gpu.readings import State

# A look-up may take twenty seconds here, and a reading two fifths of one.
PATIENT = replace(QUICK, start_deadline_seconds=60.0)


def hang_first(nvml: ScriptedNvml) -> None:
    nvml.hang("GPU-1", "nvmlDeviceGetHandleByIndex")


def test_the_others_are_read_meanwhile_and_nobody_is_called_hung(start: Start) -> None:
    begin = time.monotonic()
    running = start(timing=PATIENT, prepare=hang_first)
    running.wait_for({"GPU-2": State.OK, "GPU-3": State.OK})
    # Well within the twenty seconds that the look-up may take.
    assert time.monotonic() - begin < 10
    running.wait_for_calls(30, "GPU-2")
    assert State.HUNG not in {gpu.state for gpu in running.sampler.latest.gpus}
    assert running.sampler.latest.driver.errors == {}


def test_it_is_not_looked_up_a_second_time_meanwhile(start: Start) -> None:
    running = start(timing=PATIENT, prepare=hang_first)
    running.wait_for({"GPU-2": State.OK, "GPU-3": State.OK})
    counts = running.nvml.count_calls("nvmlDeviceGetCount")
    wait_until(lambda: running.nvml.count_calls("nvmlDeviceGetCount") > counts + 2)
    assert running.nvml.count_calls("nvmlDeviceGetHandleByIndex", "GPU-1") == 1


def test_its_answer_counts_as_if_nothing_had_been(start: Start) -> None:
    running = start(timing=PATIENT, prepare=hang_first)
    running.wait_for({"GPU-2": State.OK, "GPU-3": State.OK})
    running.nvml.release("GPU-1", "nvmlDeviceGetHandleByIndex")
    running.wait_for(ALL_OK)
    assert running.nvml.count_calls("nvmlDeviceGetHandleByIndex", "GPU-1") == 1
    assert running.known("GPU-1").errors == {}
    # Its thread has ended, and one goes on.
    wait_until(lambda: len(nvml_threads_of(running)) == 1)


def test_over_its_deadline_it_is_hung(start: Start) -> None:
    # A third of the start's deadline: 0.8 s, more than the others' patience.
    timing = replace(QUICK, start_deadline_seconds=2.4)
    running = start(timing=timing, prepare=hang_first)
    running.wait_for({"GPU-2": State.OK, "GPU-3": State.OK})
    wait_until(lambda: State.HUNG in {gpu.state for gpu in running.sampler.latest.gpus})
    running.wait_for({"GPU-2": State.OK, "GPU-3": State.OK})
    running.nvml.release("GPU-1", "nvmlDeviceGetHandleByIndex")
    running.wait_for(ALL_OK)


def test_who_waits_behind_its_lock_is_not_to_blame(start: Start) -> None:
    """Opening a GPU may hold a lock of the driver's: a reading that waits for it is over its deadline
    of two fifths of a second, and no sign of a GPU that hangs."""

    def lock(nvml: ScriptedNvml) -> None:
        hang_first(nvml)
        nvml.hang("GPU-2", "nvmlDeviceGetPowerUsage")

    running = start(timing=PATIENT, prepare=lock)
    wait_until(lambda: running.nvml.waiting == 2)
    running.wait_for_snapshots(2)
    assert State.HUNG not in {gpu.state for gpu in running.sampler.latest.gpus}
    running.nvml.release("GPU-1", "nvmlDeviceGetHandleByIndex")
    running.nvml.release("GPU-2", "nvmlDeviceGetPowerUsage")
    running.wait_for(ALL_OK)


def test_once_it_has_returned_the_others_are_judged_as_ever(start: Start) -> None:
    def lock(nvml: ScriptedNvml) -> None:
        hang_first(nvml)
        nvml.hang("GPU-2", "nvmlDeviceGetPowerUsage")

    running = start(timing=PATIENT, prepare=lock)
    wait_until(lambda: running.nvml.waiting == 2)
    running.nvml.release("GPU-1", "nvmlDeviceGetHandleByIndex")
    running.wait_for({"GPU-1": State.OK, "GPU-2": State.HUNG, "GPU-3": State.OK})


def test_a_session_that_ends_meanwhile_takes_no_handle_of_the_old_one(start: Start) -> None:
    running = start(timing=PATIENT, prepare=hang_first)
    running.wait_for({"GPU-2": State.OK, "GPU-3": State.OK})
    running.nvml.end_session()
    wait_until(lambda: running.nvml.session == 2)
    running.nvml.release("GPU-1", "nvmlDeviceGetHandleByIndex")
    running.wait_for(ALL_OK)
    # One dead handle, had it been used, would have ended this session too.
    assert running.nvml.session == 2


def test_a_pause_waits_for_it(start: Start) -> None:
    running = start(timing=PATIENT, prepare=hang_first)
    running.wait_for({"GPU-2": State.OK, "GPU-3": State.OK})
    assert not running.sampler.pause(3600, 0.3).released
    wait_until(
        lambda: running.sampler.pauses.status.held_by == ("nvmlDeviceGetHandleByIndex (index 0)",)
    )
    running.nvml.release("GPU-1", "nvmlDeviceGetHandleByIndex")
    wait_until(lambda: running.sampler.pauses.status.released)
    assert not running.nvml.open
