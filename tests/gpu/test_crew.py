# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Calls that take long, and a process that stood still meanwhile."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tests.daemon import wait_until
from tests.gpu.conftest import FakeClock, ScriptedError
from veo_exporter.gpu.crew import Crew
from veo_exporter.gpu.nvml import Line
from veo_exporter.gpu.session import Closed
from veo_exporter.gpu.worker import Task

DEADLINE_SECONDS = 10.0


@pytest.fixture
def crew(clock: FakeClock) -> Iterator[Crew]:
    """One whose worker is in a call that does not return."""
    returns = threading.Event()
    crew = Crew(lambda: SimpleNamespace(NVMLError=ScriptedError), clock, threading.Event())

    def run(line: Line) -> Closed:
        line.wait_for("open", returns.wait)
        return Closed()

    crew.ask([Task("GPU-1", DEADLINE_SECONDS, run)])
    wait_until(lambda: crew.patience_seconds(99) < 99)
    yield crew
    returns.set()


def test_a_call_over_its_deadline_is_left_behind(crew: Crew, clock: FakeClock) -> None:
    clock.now += 9.5
    assert crew.leave_behind_overdue() is None
    clock.now += 0.5
    left = crew.leave_behind_overdue()
    assert left is not None
    assert left[0].subject == "GPU-1"


def test_time_in_which_nobody_could_run_is_not_held_against_it(
    crew: Crew, clock: FakeClock
) -> None:
    clock.now += 4
    clock.now += 3600
    crew.excuse(3600)
    clock.now += 5.5
    assert crew.leave_behind_overdue() is None
    # The sampler wakes up when it would be over.
    assert crew.patience_seconds(99) == pytest.approx(0.5)
    clock.now += 0.5
    assert crew.leave_behind_overdue() is not None


def test_a_machine_that_stalls_again_and_again_hides_no_hang(crew: Crew, clock: FakeClock) -> None:
    # Of each two seconds one and a half are a stall: forty seconds are ten of the call's own.
    for _ in range(19):
        clock.now += 2
        crew.excuse(1.5)
        assert crew.leave_behind_overdue() is None
    clock.now += 2
    crew.excuse(1.5)
    assert crew.leave_behind_overdue() is not None
