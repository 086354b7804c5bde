# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The thread that may be left behind."""

import threading

import structlog
from structlog.testing import capture_logs

from tests.gpu.conftest import FakeClock, ScriptedNvml, wait_until
from veo_exporter.clock import SystemClock
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.worker import Round, Standing, Task, Worker


def standing(*tasks: Task[str], interval_seconds: float = 0.01) -> Standing[str]:
    return Standing(tasks=tasks, interval_seconds=interval_seconds, tell_seconds=0.05)


def worker_on(nvml: ScriptedNvml, clock: FakeClock) -> tuple[Worker[str], threading.Event]:
    wake = threading.Event()
    return Worker(nvml, clock, wake, "test-nvml"), wake


def saying(word: str, subject: str = "GPU-1") -> Task[str]:
    return Task(subject, 1.0, lambda _line: word)


def raising(error: Exception, subject: str = "GPU-1") -> Task[str]:
    def run(_line: Line) -> str:
        raise error

    return Task(subject, 1.0, run)


def asking(function: str, subject: str = "driver") -> Task[str]:
    return Task(subject, 1.0, lambda line: str(line.call(function)))


def test_results_come_in_order_and_wake_the_watcher(nvml: ScriptedNvml, clock: FakeClock) -> None:
    worker, wake = worker_on(nvml, clock)
    round = Round((saying("one"), saying("two"), asking("nvmlDeviceGetCount")))
    worker.submit(round)
    assert wake.wait(10)
    assert round.finished
    assert list(worker.answers) == ["one", "two", "2"]
    worker.dismiss()
    wait_until(lambda: worker.ended)


def test_it_is_a_daemon_and_bears_its_name(nvml: ScriptedNvml, clock: FakeClock) -> None:
    worker, _ = worker_on(nvml, clock)
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "test-nvml"]
    assert thread.daemon
    worker.dismiss()


def test_a_fault_of_ours_costs_one_result_and_is_logged_once(
    nvml: ScriptedNvml, clock: FakeClock
) -> None:
    structlog.reset_defaults()
    with capture_logs() as lines:
        worker, wake = worker_on(nvml, clock)
        for _ in range(3):
            wake.clear()
            round = Round((saying("one"), raising(TypeError("ours")), saying("three")))
            worker.submit(round)
            assert wake.wait(10)
            assert list(worker.answers) == ["one", "three"]
            worker.answers.clear()
        round = Round((raising(TypeError("ours"), "GPU-2"),))
        worker.submit(round)
        wait_until(lambda: round.finished)
    assert [line["subject"] for line in lines] == ["GPU-1", "GPU-2"]
    assert {line["log_level"] for line in lines} == {"error"}
    worker.dismiss()


def test_a_round_that_was_abandoned_ends_the_thread_and_gives_nothing(
    nvml: ScriptedNvml, clock: FakeClock
) -> None:
    worker, wake = worker_on(nvml, clock)
    nvml.hang(function="nvmlDeviceGetCount")
    round = Round((saying("one"), asking("nvmlDeviceGetCount", "GPU-2"), saying("three")))
    worker.submit(round)
    wait_until(lambda: nvml.waiting)
    assert worker.task is round.tasks[1]
    assert worker.line.flight is not None
    assert worker.line.flight.function == "nvmlDeviceGetCount"
    worker.abandoned = True
    assert not worker.ended
    nvml.release(function="nvmlDeviceGetCount")
    wait_until(lambda: worker.ended)
    assert wake.is_set()
    assert list(worker.answers) == ["one"]
    assert not round.finished


def test_dismissed_it_first_ends_what_it_was_given(nvml: ScriptedNvml, clock: FakeClock) -> None:
    worker, _ = worker_on(nvml, clock)
    round = Round((saying("one"),))
    worker.submit(round)
    worker.dismiss()
    wait_until(lambda: worker.ended)
    assert list(worker.answers) == ["one"]


def test_standing_tasks_are_asked_again_and_again_and_told_of_now_and_then(
    nvml: ScriptedNvml,
) -> None:
    wake = threading.Event()
    worker: Worker[str] = Worker(nvml, SystemClock(), wake, "test-nvml")
    worker.keep_asking(standing(saying("one"), saying("two")))
    assert wake.wait(10)
    wait_until(lambda: len(worker.answers) >= 10)
    assert list(worker.answers)[:4] == ["one", "two", "one", "two"]
    # Five ticks of 10 ms are told of at once.
    assert wake.is_set()
    round = Round((saying("between"),))
    worker.submit(round)
    wait_until(lambda: round.finished)
    assert "between" in worker.answers
    worker.dismiss()
    wait_until(lambda: worker.ended)


def test_standing_tasks_come_between_those_of_a_round(nvml: ScriptedNvml, clock: FakeClock) -> None:
    """A round that takes long must not keep them from their time."""
    worker, wake = worker_on(nvml, clock)

    def slow(word: str) -> Task[str]:
        def run(_line: Line) -> str:
            clock.now += 0.625
            return word

        return Task("GPU-1", 1.0, run)

    # 0.625 s each, with a tick due each second: at 0, 1, 2 and 3 s.
    worker.keep_asking(standing(saying("tick"), interval_seconds=1.0))
    wait_until(lambda: list(worker.answers) == ["tick"])
    round = Round(tuple(slow(word) for word in "abcde"))
    worker.submit(round)
    wait_until(lambda: round.finished and len(worker.answers) == 9)
    assert wake.is_set()
    assert list(worker.answers) == ["tick", *"ab", "tick", *"cd", "tick", "e", "tick"]
    worker.keep_asking(Standing())
    worker.dismiss()
    wait_until(lambda: worker.ended)


def test_other_standing_tasks_hold_at_once_whatever_the_old_interval(nvml: ScriptedNvml) -> None:
    wake = threading.Event()
    worker: Worker[str] = Worker(nvml, SystemClock(), wake, "test-nvml")
    worker.keep_asking(standing(saying("rare"), interval_seconds=3600))
    wait_until(lambda: list(worker.answers) == ["rare"])
    worker.keep_asking(standing(saying("often")))
    wait_until(lambda: worker.answers.count("often") > 2)
    worker.keep_asking(Standing())
    worker.dismiss()
    wait_until(lambda: worker.ended)


def test_standing_tasks_end_in_the_middle_when_others_take_their_place(
    nvml: ScriptedNvml,
) -> None:
    wake = threading.Event()
    worker: Worker[str] = Worker(nvml, SystemClock(), wake, "test-nvml")
    nvml.hang(function="nvmlDeviceGetCount")
    worker.keep_asking(standing(asking("nvmlDeviceGetCount"), saying("dead handle")))
    wait_until(lambda: nvml.waiting)
    worker.keep_asking(Standing())
    nvml.release(function="nvmlDeviceGetCount")
    worker.dismiss()
    wait_until(lambda: worker.ended)
    assert list(worker.answers) == ["2"]
