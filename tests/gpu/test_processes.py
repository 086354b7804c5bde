# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Processes on a GPU, through the real bindings and a /proc of the test's own."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fake_nvml.gpu import FakeProcess, FakeProcessUtilization
from tests.gpu.conftest import FakeClock, ScriptedError
from tests.gpu.surveying import Rows, Surveyed, missing, surveying, told
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.process_names import NameLimits, ProcessNames
from veo_exporter.gpu.processes import (
    MAX_TRIES,
    ProcessSurveys,
    memory_by_pid,
    newest_by_pid,
    uses_by_name,
)
from veo_exporter.gpu.readings import Failure, Reading

COUNT = "veo_gpu_processes"
MEMORY = "veo_gpu_process_memory_used_bytes"
UTILIZATION = "veo_gpu_process_utilization_ratio"
GIB = 1 << 30


class Processes:
    """A GPU, its processes and their names; what was dropped is in `dropped`."""

    def __init__(self, surveyed: Surveyed, proc: Path) -> None:
        self.surveyed = surveyed
        self.gpu = surveyed.gpu
        self.proc = proc
        self.dropped: list[str] = []
        self.names = ProcessNames(NameLimits(proc_root=proc), self.dropped.append, surveyed.clock)
        self.surveys = ProcessSurveys(self.names, surveyed.clock).surveys
        self.gpu.set(processes=[], process_utilization=[])

    def run(self, pid: int, name: str, gib: int | None = 1, **more: Any) -> FakeProcess:
        """Start a process that has the GPU open."""
        (self.proc / str(pid)).mkdir()
        (self.proc / str(pid) / "comm").write_text(f"{name}\n")
        process = FakeProcess(pid, None if gib is None else gib * GIB, **more)
        self.gpu.set(processes=[*self.gpu.processes, process])
        return process

    def work(self, *rows: FakeProcessUtilization) -> None:
        self.gpu.set(process_utilization=list(rows))

    def read(self, **more: Any) -> Reading:
        self.surveyed.clock.now += 5
        return self.surveyed.read(*self.surveys, **more)

    def rows(self) -> Rows:
        return told(self.read(), "veo_gpu_process")

    def now_microseconds(self, seconds_ago: float = 0.0) -> int:
        """The time at which the next reading will be, or before."""
        return int((self.surveyed.clock.unix_seconds() + 5 - seconds_ago) * 1e6)

    def busy(
        self, pid: int, sm: int, seconds_ago: float = 1.0, **more: int
    ) -> FakeProcessUtilization:
        at = self.now_microseconds(seconds_ago)
        return FakeProcessUtilization(pid, sm, timestamp_microseconds=at, **more)


@pytest.fixture
def on(tmp_path: Path, clock: FakeClock) -> Iterator[Processes]:
    proc = tmp_path / "proc"
    proc.mkdir()
    with surveying(tmp_path, clock) as surveyed:
        yield Processes(surveyed, proc)


def test_an_idle_gpu_has_no_rows(on: Processes) -> None:
    assert on.rows() == {}
    assert on.read().failures == ()


def test_number_and_memory_by_name(on: Processes) -> None:
    on.run(10, "render", 30)
    on.run(11, "render", 20)
    on.run(12, "ffmpeg", 2, kind="graphics")
    assert on.rows() == {
        (COUNT, "render"): 2,
        (MEMORY, "render"): 50 * GIB,
        (UTILIZATION, "render", "sm"): 0,
        (COUNT, "ffmpeg"): 1,
        (MEMORY, "ffmpeg"): 2 * GIB,
        (UTILIZATION, "ffmpeg", "sm"): 0,
    }


def test_rows_end_with_their_processes(on: Processes) -> None:
    on.run(10, "render")
    on.work(on.busy(10, 50))
    assert (UTILIZATION, "render", "sm") in on.rows()
    on.gpu.set(processes=[])
    assert on.rows() == {}


def test_a_process_in_several_lists_counts_once(on: Processes) -> None:
    on.run(10, "render", 3)
    for kind in ("graphics", "mps"):
        on.gpu.set(processes=[*on.gpu.processes, FakeProcess(10, 3 * GIB, kind)])
    rows = on.rows()
    assert (rows[COUNT, "render"], rows[MEMORY, "render"]) == (1, 3 * GIB)


def test_a_process_on_two_gpu_instances(on: Processes) -> None:
    on.run(10, "render", 3, gpu_instance=1, compute_instance=0)
    second = FakeProcess(10, 4 * GIB, gpu_instance=2, compute_instance=0)
    on.gpu.set(processes=[*on.gpu.processes, second])
    rows = on.rows()
    assert (rows[COUNT, "render"], rows[MEMORY, "render"]) == (1, 7 * GIB)


def test_memory_that_is_not_told_is_absent_and_not_zero(on: Processes) -> None:
    on.run(10, "render", 3)
    on.run(11, "render", None)
    on.run(12, "ffmpeg", 1)
    assert on.rows() == {
        (COUNT, "render"): 2,
        (UTILIZATION, "render", "sm"): 0,
        (COUNT, "ffmpeg"): 1,
        (MEMORY, "ffmpeg"): GIB,
        (UTILIZATION, "ffmpeg", "sm"): 0,
    }


def test_a_pid_of_another_namespace_has_no_name(on: Processes) -> None:
    on.run(10, "render")
    on.gpu.set(processes=[*on.gpu.processes, FakeProcess(999, GIB), FakeProcess(998, GIB)])
    rows = on.rows()
    assert rows[COUNT, "render"] == 1
    assert (rows[COUNT, "unknown"], rows[MEMORY, "unknown"]) == (2, 2 * GIB)
    assert on.dropped == []


def test_the_names_with_the_most_memory_are_shown(on: Processes) -> None:
    for place in range(8):
        on.run(100 + place, f"job-{place}", place + 1)
    rows = on.rows()
    assert {labels[1] for labels in rows} == {"job-7", "job-6", "job-5", "other"}
    # Of 1 to 5 GiB.
    assert (rows[COUNT, "other"], rows[MEMORY, "other"]) == (5, 15 * GIB)
    assert on.dropped == ["beyond_top"] * 5
    # Counted when they become so, and not at each sweep.
    on.rows()
    assert on.dropped == ["beyond_top"] * 5


def test_no_names_at_all(on: Processes) -> None:
    on.names.limits = NameLimits(proc_root=on.proc, per_gpu=0)
    on.run(10, "render", 3)
    assert on.rows() == {
        (COUNT, "other"): 1,
        (MEMORY, "other"): 3 * GIB,
        (UTILIZATION, "other", "sm"): 0,
    }


def test_two_hundred_processes(on: Processes) -> None:
    with on.surveyed.node.changes():
        for place in range(200):
            on.run(1000 + place, f"worker-{place % 40}", 1)
        on.work(*(on.busy(1000 + place, 1) for place in range(200)))
    rows = on.rows()
    # Three names of forty, each of five processes; equal in memory, so in the order of letters.
    shown = ["worker-0", "worker-1", "worker-10"]
    expected: Rows = {
        (COUNT, "other"): 185,
        (MEMORY, "other"): 185 * GIB,
        # 185 shares of 1 %: no more than there is.
        (UTILIZATION, "other", "sm"): 1,
    }
    for name in shown:
        expected[COUNT, name] = 5
        expected[MEMORY, name] = 5 * GIB
        expected[UTILIZATION, name, "sm"] = 0.05
    assert rows == pytest.approx(expected)


def test_the_others_have_one_part(on: Processes) -> None:
    on.names.limits = NameLimits(proc_root=on.proc, per_gpu=1)
    on.run(10, "render", 3)
    on.run(11, "ffmpeg", 1)
    on.work(on.busy(10, 40, decoder=20), on.busy(11, 25, encoder=74))
    assert told(on.read(), UTILIZATION) == {
        (UTILIZATION, "render", "sm"): 0.4,
        (UTILIZATION, "render", "decoder"): 0.2,
        (UTILIZATION, "other", "sm"): 0.25,
    }


def test_lists_that_a_board_or_the_rights_do_not_give(on: Processes) -> None:
    on.run(10, "render", 3)
    on.gpu.unsupport("nvmlDeviceGetGraphicsRunningProcesses")
    on.gpu.fail("nvmlDeviceGetMPSComputeRunningProcesses", 4)
    reading = on.read()
    assert told(reading, COUNT) == {(COUNT, "render"): 1}
    assert missing(reading, "veo_gpu_process") == set()


@pytest.mark.parametrize("code", [3, 4])
def test_no_processes_told_at_all(on: Processes, code: int) -> None:
    on.run(10, "render", 3)
    on.gpu.fail("nvmlDeviceGetComputeRunningProcesses", code)
    reading = on.read()
    assert told(reading, "veo_gpu_process") == {}
    assert missing(reading, "veo_gpu_process") == {COUNT, MEMORY}
    on.read(skipped=reading.missing)
    assert on.surveyed.library.calls("nvmlDeviceGetComputeRunningProcesses") == 1


@pytest.mark.parametrize(
    ("function", "code"),
    [
        ("nvmlDeviceGetGraphicsRunningProcesses", 999),
        ("nvmlDeviceGetMPSComputeRunningProcesses", 6),
        ("nvmlDeviceGetMPSComputeRunningProcesses", 7),
    ],
)
def test_a_further_list_that_fails_costs_that_list(on: Processes, function: str, code: int) -> None:
    on.run(10, "render", 3)
    on.gpu.fail(function, code)
    reading = on.read()
    assert told(reading, COUNT) == {(COUNT, "render"): 1}
    assert told(reading, MEMORY) == {(MEMORY, "render"): 3 * GIB}
    assert reading.failures == (Failure(function=function, code=code),)
    assert missing(reading, "veo_gpu_process") == set()


def test_without_the_list_of_computing_processes_nothing_is_told(on: Processes) -> None:
    on.run(10, "render", 3)
    on.gpu.fail("nvmlDeviceGetComputeRunningProcesses", 999)
    reading = on.read()
    assert told(reading, "veo_gpu_process") == {}
    assert reading.failures == (Failure(function="nvmlDeviceGetComputeRunningProcesses", code=999),)


def test_a_list_that_grows_meanwhile_is_asked_for_again(on: Processes) -> None:
    function = "nvmlDeviceGetComputeRunningProcesses"
    on.run(10, "render", 3)
    on.read()
    # The bindings make two for each: for the number, and for the list.
    calls = on.surveyed.library.calls(function)
    on.gpu.fail(function, 7)
    reading = on.read()
    assert told(reading, COUNT) == {}
    assert reading.failures == (Failure(function=function, code=7),)
    assert on.surveyed.library.calls(function) == calls + 2 * MAX_TRIES


def test_a_further_list_that_says_that_the_gpu_is_lost_ends_the_round(on: Processes) -> None:
    on.run(10, "render", 3)
    on.gpu.fail("nvmlDeviceGetGraphicsRunningProcesses", 15)
    reading = on.read()
    assert reading.code == 15
    assert told(reading, "veo_gpu_process") == {}


def test_utilization_by_name(on: Processes) -> None:
    on.run(10, "render")
    on.run(11, "render")
    on.run(12, "ffmpeg")
    on.work(on.busy(10, 40), on.busy(11, 25), on.busy(12, 0, encoder=74, decoder=31, jpeg=5))
    assert told(on.read(), UTILIZATION) == {
        (UTILIZATION, "render", "sm"): pytest.approx(0.65),
        (UTILIZATION, "ffmpeg", "sm"): 0,
        (UTILIZATION, "ffmpeg", "encoder"): 0.74,
        (UTILIZATION, "ffmpeg", "decoder"): 0.31,
        (UTILIZATION, "ffmpeg", "jpeg"): 0.05,
    }
    # A part that was used once keeps its row while the process lives.
    on.work()
    rows = told(on.read(), UTILIZATION)
    assert rows[UTILIZATION, "ffmpeg", "encoder"] == rows[UTILIZATION, "render", "sm"] == 0
    assert len(rows) == 5


def test_the_older_question_where_the_newer_is_not_supported(on: Processes) -> None:
    on.run(10, "render")
    on.gpu.unsupport("nvmlDeviceGetProcessesUtilizationInfo")
    for _ in range(2):
        on.work(on.busy(10, 40, jpeg=9))
        assert told(on.read(), UTILIZATION) == {(UTILIZATION, "render", "sm"): 0.4}
    assert on.surveyed.library.calls("nvmlDeviceGetProcessesUtilizationInfo") == 1


def test_neither_question_is_supported(on: Processes) -> None:
    """As on a GPU that is divided."""
    on.run(10, "render")
    on.gpu.unsupport("nvmlDeviceGetProcessesUtilizationInfo")
    on.gpu.unsupport("nvmlDeviceGetProcessUtilization")
    reading = on.read()
    assert missing(reading, "veo_gpu_process") == {UTILIZATION}
    assert told(reading, COUNT) == {(COUNT, "render"): 1}


def test_rows_that_were_read_before_do_not_count_again(on: Processes) -> None:
    """Even if the driver gives them again and again."""
    on.run(10, "render")
    on.gpu.set(ignore_last_seen=1)
    on.work(on.busy(10, 40))
    assert told(on.read(), UTILIZATION) == {(UTILIZATION, "render", "sm"): 0.4}
    assert told(on.read(), UTILIZATION) == {(UTILIZATION, "render", "sm"): 0}


def test_the_first_answer_is_of_now(on: Processes) -> None:
    """The driver remembers longer than that."""
    on.run(10, "render")
    on.gpu.set(ignore_last_seen=1)
    on.work(on.busy(10, 90, seconds_ago=11))
    assert told(on.read(), UTILIZATION) == {(UTILIZATION, "render", "sm"): 0}


def test_the_newest_row_of_a_process_counts(on: Processes) -> None:
    on.run(10, "render")
    on.work(on.busy(10, 40, 2.0), on.busy(10, 60, 1.0), on.busy(10, 20, 3.0))
    assert told(on.read(), UTILIZATION) == {(UTILIZATION, "render", "sm"): 0.6}


def test_garbage_in_unused_rows(on: Processes) -> None:
    on.run(10, "render")
    on.work(
        on.busy(10, 40),
        on.busy(10, 0xDEAD),
        on.busy(0, 50),
        FakeProcessUtilization(10, 90, timestamp_microseconds=0),
        on.busy(10, 90, seconds_ago=-3600),
        on.busy(4242, 50),
    )
    assert told(on.read(), UTILIZATION) == {(UTILIZATION, "render", "sm"): 0.4}


def test_a_wall_clock_that_was_set_back(on: Processes) -> None:
    on.run(10, "render")
    on.work(on.busy(10, 40))
    on.read()
    on.surveyed.clock.now -= 3600
    on.work(on.busy(10, 70))
    assert told(on.read(), UTILIZATION) == {(UTILIZATION, "render", "sm"): 0.7}


class Race:
    """Bindings whose answer about processes fails so many times, because one more came in between."""

    NVMLError = ScriptedError

    def __init__(self, failures: int, code: int = 7) -> None:
        self.failures = failures
        self.code = code
        self.asked = 0

    def nvmlDeviceGetProcessesUtilizationInfo(self, _gpu: Any, since: int) -> list[Any]:  # noqa: N802, as the bindings
        self.asked += 1
        if self.asked <= self.failures:
            raise ScriptedError(self.code)
        row = {"pid": 10, "timeStamp": since + 1, "smUtil": 40, "encUtil": 0, "decUtil": 0}
        return [SimpleNamespace(**row)]


def utilization_of(on: Processes, bindings: Race) -> tuple[Rows, tuple[Failure, ...]]:
    line = on.surveyed.line
    on.surveyed.device.bookmarks.processes.names = {10: "render"}
    on.surveyed.line = Line(bindings, on.surveyed.clock)
    on.surveyed.clock.now += 5
    reading = on.surveyed.read(on.surveys[1])
    on.surveyed.line = line
    ours = [one for one in reading.failures if "Process" in one.function]
    return told(reading, UTILIZATION), tuple(ours)


def test_a_process_that_starts_between_two_calls(on: Processes) -> None:
    race = Race(failures=2)
    assert utilization_of(on, race) == ({(UTILIZATION, "render", "sm"): 0.4}, ())
    assert race.asked == 3


def test_processes_that_start_all_the_time(on: Processes) -> None:
    race = Race(failures=1000)
    failure = Failure(function="nvmlDeviceGetProcessesUtilizationInfo", code=7)
    assert utilization_of(on, race) == ({}, (failure,))
    assert race.asked == 3


@pytest.mark.parametrize("code", [0, 6])
def test_both_answers_of_no_activity(on: Processes, code: int) -> None:
    race = Race(failures=1, code=code)
    assert utilization_of(on, race) == ({(UTILIZATION, "render", "sm"): 0}, ())
    assert race.asked == 1


ROWS = st.builds(
    lambda pid, at, percent: SimpleNamespace(pid=pid, timeStamp=at, smUtil=percent),
    st.integers(0, 3),
    st.integers(0, 20),
    st.integers(0, 200),
)


@given(st.lists(ROWS), st.integers(0, 20), st.integers(0, 20))
def test_believable_rows(rows: list[Any], after: int, until: int) -> None:
    newest = newest_by_pid(rows, after, until)
    for pid, row in newest.items():
        assert pid == row.pid > 0
        assert after < row.timeStamp <= until
        assert row.smUtil <= 100
    for row in rows:
        if row.pid and after < row.timeStamp <= until and row.smUtil <= 100:
            assert newest[row.pid].timeStamp >= row.timeStamp


@given(st.lists(st.tuples(st.integers(1, 5), st.one_of(st.none(), st.integers(0, 9)))))
def test_every_process_is_counted_once(entries: list[tuple[int, int | None]]) -> None:
    running = [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in entries]
    memory = memory_by_pid(running)
    assert set(memory) == {pid for pid, _ in entries}
    uses = uses_by_name(memory, {pid: f"name-{pid % 2}" for pid in memory})
    assert sum(use.processes for use in uses.values()) == len(memory)
    if None not in memory.values():
        total = sum(size for size in memory.values() if size is not None)
        assert sum(use.memory_bytes or 0 for use in uses.values()) == total
