# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The thread that may be left behind."""

import threading

import structlog
from structlog.testing import capture_logs

from tests.gpu.conftest import FakeClock, ScriptedNvml, wait_until
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.worker import Round, Task, Worker


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
    assert round.results == ["one", "two", "2"]
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
            assert round.results == ["one", "three"]
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
    assert round.current.subject == "GPU-2"
    assert worker.line.flight is not None
    assert worker.line.flight.function == "nvmlDeviceGetCount"
    round.abandoned = True
    assert not worker.ended
    nvml.release(function="nvmlDeviceGetCount")
    wait_until(lambda: worker.ended)
    assert wake.is_set()
    assert round.results == ["one"]
    assert not round.finished


def test_dismissed_it_first_ends_what_it_was_given(nvml: ScriptedNvml, clock: FakeClock) -> None:
    worker, _ = worker_on(nvml, clock)
    round = Round((saying("one"),))
    worker.submit(round)
    worker.dismiss()
    wait_until(lambda: worker.ended)
    assert round.results == ["one"]
