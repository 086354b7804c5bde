# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Giving the driver back by request, and taking it again."""

import threading
from dataclasses import replace

import pytest

from tests.gpu.conftest import PATIENCE_SECONDS, FakeClock, ScriptedNvml, wait_until
from tests.gpu.running import ALL_OK, QUICK, Running, Start, nvml_threads_of
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.pause import NOT_PAUSED, Pause, Pauses, PauseStatus
from veo_exporter.gpu.readiness import withdrawn_groups
from veo_exporter.gpu.readings import State

LONG = 3600.0


def test_a_pause_holds_until_its_end_and_not_longer() -> None:
    clock = FakeClock(1000.0)
    pauses = Pauses(clock)
    assert pauses.current() is None
    assert pauses.seconds_left() == float("inf")
    pause = pauses.ask(60)
    # The wall clock is a million seconds ahead.
    assert pause == Pause(1_001_060.0, 1060.0)
    clock.now = 1059.9
    assert pauses.current() is pause
    assert pauses.seconds_left() == pytest.approx(0.1)
    clock.now = 1060.0
    assert pauses.current() is None
    assert not pauses.end()


def test_asked_again_it_lasts_from_then_on() -> None:
    clock = FakeClock(1000.0)
    pauses = Pauses(clock)
    pauses.ask(60)
    clock.now = 1050.0
    second = pauses.ask(30)
    assert second.until_monotonic_seconds == 1080.0
    clock.now = 1070.0
    assert pauses.current() is second
    assert pauses.end()
    assert pauses.current() is None


def test_what_is_said_of_it() -> None:
    # 2001-09-09T01:46:40Z is a thousand million seconds.
    pause = Pause(1e9, 0.0)
    said = "paused until 2001-09-09T01:46:40Z, by request; the driver "
    assert PauseStatus(pause=pause).sentence == said + "is being released"
    assert PauseStatus(pause=pause, released=True).sentence == said + "is released"
    assert PauseStatus(pause=pause, held_by=("nvmlInit (driver)",)).sentence == (
        said + "cannot be released, for a call has not returned: nvmlInit (driver)"
    )
    assert NOT_PAUSED.sentence == ""


def test_whoever_waits_is_told_of_this_pause_alone() -> None:
    pauses = Pauses(FakeClock())
    first = pauses.ask(60)
    pauses.tell(PauseStatus(pause=first, released=True))
    assert pauses.wait_until_released(first, 0).released
    second = pauses.ask(60)
    # What is known is of the first one.
    assert pauses.wait_until_released(second, 0.01).pause is first
    # Somebody else's request takes its place, and there is nothing to wait for.
    waiting = threading.Thread(target=pauses.wait_until_released, args=(first, PATIENCE_SECONDS))
    waiting.start()
    waiting.join(PATIENCE_SECONDS / 2)
    assert not waiting.is_alive()


def withdrawn(running: Running) -> list[str]:
    snapshot = running.sampler.latest
    return withdrawn_groups(snapshot, snapshot.taken_monotonic_seconds)


def wait_until_held_by(running: Running, call: str) -> None:
    wait_until(lambda: running.sampler.pauses.status.held_by == (call,), "it is named")


def test_the_driver_is_released_and_nothing_more_is_called(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    before = running.sampler.latest.last_success_unix_seconds
    status = running.sampler.pause(LONG, PATIENCE_SECONDS)
    assert status.released
    assert not running.nvml.open
    calls = len(running.nvml.calls)
    assert running.nvml.calls[-1] == ("nvmlShutdown", "")
    snapshot = running.sampler.latest
    assert {gpu.state for gpu in snapshot.gpus} == {State.UNKNOWN}
    assert {gpu.code for gpu in snapshot.gpus} == {None}
    assert [gpu.readings for gpu in snapshot.gpus] == [(), (), ()]
    assert snapshot.driver.visible == 0
    assert withdrawn(running) == [f"GPUs: {status.sentence}"]
    # When they were last read stays known.
    for cadence, at in snapshot.last_success_unix_seconds.items():
        assert at >= before[cadence] > 0
    running.wait_for_snapshots(2)
    assert len(running.nvml.calls) == calls


def test_resumed_it_goes_on_by_uuid(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    running.sampler.pause(LONG, PATIENCE_SECONDS)
    running.nvml.listed.reverse()
    assert running.sampler.resume()
    running.wait_for(ALL_OK)
    assert [(gpu.index, gpu.uuid) for gpu in running.sampler.latest.gpus] == [
        (0, "GPU-3"), (1, "GPU-2"), (2, "GPU-1")
    ]  # fmt: skip
    assert running.nvml.count_calls("nvmlInit") == 2
    assert running.sampler.pauses.status is NOT_PAUSED
    assert not running.sampler.resume()


def test_it_ends_by_itself(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    assert running.sampler.pause(1.0, PATIENCE_SECONDS).released
    running.wait_for(ALL_OK)
    assert running.nvml.count_calls("nvmlInit") == 2


def test_to_pause_twice_is_to_pause_longer(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    first = running.sampler.pause(60, PATIENCE_SECONDS).pause
    second = running.sampler.pause(LONG, PATIENCE_SECONDS)
    assert second.released
    assert first is not None
    assert second.pause is not None
    assert second.pause.until_unix_seconds > first.until_unix_seconds + 3000
    assert running.nvml.count_calls("nvmlShutdown") == 1
    assert withdrawn(running) == [f"GPUs: {second.sentence}"]


def test_a_pause_before_the_first_session(start: Start) -> None:
    running = start(prepare=lambda nvml: nvml.codes.update({("nvmlInit", ""): 9}))
    wait_until(lambda: "modprobe" in running.sampler.latest.driver.fault)
    assert running.sampler.pause(LONG, PATIENCE_SECONDS).released
    tries = running.nvml.count_calls("nvmlInit")
    running.wait_for_snapshots(2)
    assert running.nvml.count_calls("nvmlInit") == tries
    assert running.nvml.count_calls("nvmlShutdown") == 0
    running.nvml.codes.clear()
    running.sampler.resume()
    running.wait_for(ALL_OK)


def test_a_gpu_that_hangs_holds_the_driver_and_is_named(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    running.nvml.hang("GPU-2", "nvmlDeviceGetPowerUsage")
    running.wait_for({"GPU-2": State.HUNG})
    assert not running.sampler.pause(LONG, 0.3).released
    wait_until_held_by(running, "nvmlDeviceGetPowerUsage (GPU-2)")
    assert "cannot be released" in withdrawn(running)[0]
    # It hangs, and that is true of it; of the others nothing is known.
    running.wait_for({"GPU-1": State.UNKNOWN, "GPU-2": State.HUNG, "GPU-3": State.UNKNOWN})
    assert running.nvml.count_calls("nvmlShutdown") == 0
    running.nvml.release("GPU-2", "nvmlDeviceGetPowerUsage")
    wait_until(lambda: running.sampler.pauses.status.released)
    assert not running.nvml.open
    running.wait_for(dict.fromkeys(ALL_OK, State.UNKNOWN))


def test_a_call_that_is_under_way_is_waited_for(start: Start) -> None:
    running = start(timing=replace(QUICK, call_deadline_seconds=60))
    running.wait_for(ALL_OK)
    running.nvml.hang("GPU-2", "nvmlDeviceGetPowerUsage")
    wait_until(lambda: running.nvml.waiting)
    assert not running.sampler.pause(LONG, 0.1).released
    wait_until_held_by(running, "nvmlDeviceGetPowerUsage (GPU-2)")
    running.nvml.release("GPU-2", "nvmlDeviceGetPowerUsage")
    wait_until(lambda: running.sampler.pauses.status.released)
    assert running.nvml.calls[-1] == ("nvmlShutdown", "")
    assert running.state("GPU-2") is State.UNKNOWN


def test_a_call_that_gets_over_its_deadline_meanwhile_makes_its_gpu_hung(start: Start) -> None:
    running = start(timing=replace(QUICK, call_deadline_seconds=0.5))
    running.wait_for(ALL_OK)
    running.nvml.hang("GPU-2", "nvmlDeviceGetPowerUsage")
    wait_until(lambda: running.nvml.waiting)
    assert not running.sampler.pause(LONG, 0.0).released
    running.wait_for({"GPU-1": State.UNKNOWN, "GPU-2": State.HUNG})


def test_a_start_that_is_under_way_is_closed_as_soon_as_it_is_there(start: Start) -> None:
    running = start(
        timing=replace(QUICK, start_deadline_seconds=60),
        prepare=lambda nvml: nvml.hang(function="nvmlInit"),
    )
    wait_until(lambda: running.nvml.waiting)
    assert not running.sampler.pause(LONG, 0.1).released
    wait_until_held_by(running, "nvmlInit (driver)")
    running.nvml.release(function="nvmlInit")
    wait_until(lambda: running.sampler.pauses.status.released)
    assert not running.nvml.open
    assert [name for name, _ in running.nvml.calls] == ["nvmlInit", *VERSIONS, "nvmlShutdown"]


VERSIONS = [
    "nvmlSystemGetDriverVersion",
    "nvmlSystemGetNVMLVersion",
    "nvmlSystemGetCudaDriverVersion_v2",
]


def test_a_start_that_was_given_up_is_closed_too_when_it_returns(start: Start) -> None:
    running = start(prepare=lambda nvml: nvml.hang(function="nvmlInit"))
    wait_until(lambda: "nvmlInit has not returned" in running.sampler.latest.driver.fault)
    assert not running.sampler.pause(LONG, 0.1).released
    running.nvml.release(function="nvmlInit")
    wait_until(lambda: running.sampler.pauses.status.released)
    assert not running.nvml.open


def test_a_shutdown_that_hangs_is_named(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    running.nvml.hang(function="nvmlShutdown")
    running.sampler.pause(LONG, 0.0)
    wait_until_held_by(running, "nvmlShutdown (driver)")
    running.nvml.release(function="nvmlShutdown")
    wait_until(lambda: running.sampler.pauses.status.released)
    assert running.nvml.count_calls("nvmlShutdown") == 1


def test_what_others_hold_is_freed_before_the_session_ends(start: Start) -> None:
    freed: list[str] = []

    def free(line: Line) -> None:
        assert isinstance(line.library, ScriptedNvml)
        freed.append("open" if line.library.open else "too late")

    def fail(line: Line) -> None:
        raise RuntimeError("a fault of ours")

    running = start(closing_calls=(fail, free))
    running.wait_for(ALL_OK)
    assert running.sampler.pause(LONG, PATIENCE_SECONDS).released
    assert freed == ["open"]


def test_a_call_of_somebody_else_that_is_stuck_is_named_too(start: Start) -> None:
    stuck = ["nvmlEventSetWait (events)"]
    running = start(holder=lambda: list(stuck))
    running.wait_for(ALL_OK)
    running.sampler.pause(LONG, 0.0)
    wait_until(lambda: running.sampler.pauses.status.held_by == tuple(stuck))
    # Who closes now may get stuck behind it.
    assert running.nvml.count_calls("nvmlShutdown") == 0
    stuck.clear()
    wait_until(lambda: running.sampler.pauses.status.released)
    assert not running.nvml.open


def test_it_ends_in_time_while_paused(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    running.sampler.pause(LONG, PATIENCE_SECONDS)
    assert running.sampler.stop(5)
    wait_until(lambda: not nvml_threads_of(running))
    assert running.nvml.count_calls("nvmlShutdown") == 1


def test_it_ends_in_time_while_a_pause_waits_for_a_call(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    running.nvml.hang("GPU-2")
    running.wait_for({"GPU-2": State.HUNG})
    running.sampler.pause(LONG, 0.0)
    assert not running.sampler.stop(5)
    assert not running.sampler.alive


def test_resumed_while_a_call_holds_the_driver_the_others_go_on(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    running.nvml.hang("GPU-2")
    running.wait_for({"GPU-2": State.HUNG})
    running.sampler.pause(LONG, 0.0)
    wait_until(lambda: running.sampler.pauses.status.held_by)
    running.sampler.resume()
    running.wait_for({"GPU-1": State.OK, "GPU-2": State.HUNG, "GPU-3": State.OK})
    running.nvml.release("GPU-2")
    running.wait_for(ALL_OK)
    # The driver was opened twice; it is let go all the same.
    assert running.sampler.pause(LONG, PATIENCE_SECONDS).released
    assert running.nvml.calls[-2:] == [("nvmlShutdown", "")] * 2


def test_other_settings_while_paused_call_nothing(start: Start) -> None:
    running = start()
    running.wait_for(ALL_OK)
    running.sampler.pause(LONG, PATIENCE_SECONDS)
    calls = len(running.nvml.calls)
    running.sampler.reconfigure(replace(QUICK, fast_interval_seconds=0.01), 8)
    wait_until(lambda: running.sampler.latest.expected == 8)
    running.wait_for_snapshots(2)
    assert len(running.nvml.calls) == calls
    running.sampler.resume()
    running.wait_for(ALL_OK)
