# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What is asked when, and what answers lead to."""

import pytest

from tests.gpu.conftest import EVERY, FakeClock, ScriptedNvml
from veo_exporter.gpu.crew import Tasks
from veo_exporter.gpu.ledger import DRIVER, Ledger
from veo_exporter.gpu.nvml import Flight, Line
from veo_exporter.gpu.plan import Plan
from veo_exporter.gpu.readings import Cadence
from veo_exporter.gpu.roster import subject_of
from veo_exporter.gpu.session import Closed, Counted, Found, Opened, Outcome
from veo_exporter.gpu.timing import Timing

TIMING = Timing(
    fast_interval_seconds=1,
    full_interval_seconds=5,
    static_interval_seconds=60,
    window_seconds=30,
    call_deadline_seconds=2,
    start_deadline_seconds=30,
)
ALL = tuple(Cadence)


class Driven:
    """A plan whose tasks are carried out on the spot."""

    def __init__(self, nvml: ScriptedNvml, clock: FakeClock) -> None:
        self.nvml = nvml
        self.line = Line(nvml, clock)
        self.ledger = Ledger(TIMING.folding, TIMING.stale_after_seconds)
        self.plan = Plan(self.ledger, TIMING, clock)
        self.outcomes: list[Outcome] = []

    def tasks(self, due: tuple[Cadence, ...] = ALL, *, driver_stuck: bool = False) -> Tasks:
        return self.plan.tasks_for(due, driver_stuck=driver_stuck)

    def carry_out(self, tasks: Tasks) -> Tasks:
        outcomes = [task.run(self.line) for task in tasks]
        self.outcomes += outcomes
        return [task for outcome in outcomes for task in self.plan.follow(outcome)]

    def carry_out_all(self, tasks: Tasks) -> None:
        while tasks:
            tasks = self.carry_out(tasks)

    def functions(self) -> list[str]:
        called = [function for function, _ in self.nvml.calls]
        self.nvml.calls.clear()
        return called


@pytest.fixture
def driven(clock: FakeClock) -> Driven:
    return Driven(ScriptedNvml("GPU-1", "GPU-2"), clock)


def subjects(tasks: Tasks) -> list[str]:
    return [task.subject for task in tasks]


def test_the_way_from_nothing_to_readings(driven: Driven) -> None:
    opening = driven.tasks()
    assert [(task.subject, task.deadline_seconds) for task in opening] == [(DRIVER, 30)]
    counting = driven.carry_out(opening)
    assert subjects(counting) == [DRIVER]
    finding = driven.carry_out(counting)
    assert [type(outcome) for outcome in driven.outcomes] == [Opened, Counted]
    assert [(task.subject, task.deadline_seconds) for task in finding] == [
        # A third of the time that opening the driver may take.
        (subject_of(0), 10),
        (subject_of(1), 10),
    ]
    reading = driven.carry_out(finding)
    assert subjects(reading) == ["GPU-1"] * 3 + ["GPU-2"] * 3
    assert {task.deadline_seconds for task in reading} == {2}
    assert driven.carry_out(reading) == []
    assert set(driven.ledger.records["GPU-2"].readings) == set(Cadence)


def test_without_a_session_only_opening_is_tried_and_only_at_the_full_cadence(
    driven: Driven,
) -> None:
    driven.nvml.codes["nvmlInit", ""] = 9
    assert driven.carry_out(driven.tasks()) == []
    assert driven.tasks((Cadence.FAST,)) == []
    assert subjects(driven.tasks((Cadence.FAST, Cadence.FULL))) == [DRIVER]


def test_each_cadence_asks_its_own_and_full_also_counts(driven: Driven) -> None:
    driven.carry_out_all(driven.tasks())
    driven.functions()
    assert subjects(driven.tasks((Cadence.FAST,))) == ["GPU-1", "GPU-2"]
    assert subjects(driven.tasks((Cadence.FAST, Cadence.FULL))) == [
        *("GPU-1", "GPU-2"),
        *("GPU-1", "GPU-2"),
        DRIVER,
    ]
    driven.carry_out_all(driven.tasks((Cadence.FULL,)))
    assert "nvmlDeviceGetTotalEnergyConsumption" in driven.functions()


def test_nothing_is_asked_of_a_driver_that_holds_a_lock(driven: Driven) -> None:
    driven.carry_out_all(driven.tasks())
    driven.ledger.judge_driver(hung=True)
    assert driven.tasks() == []


def test_a_count_that_has_not_returned_is_not_asked_again(driven: Driven) -> None:
    driven.carry_out_all(driven.tasks())
    assert DRIVER not in subjects(driven.tasks(driver_stuck=True))
    assert "GPU-1" in subjects(driven.tasks(driver_stuck=True))


def test_a_lost_gpu_is_looked_up_at_the_full_cadence_and_else_left_alone(driven: Driven) -> None:
    driven.carry_out_all(driven.tasks())
    driven.nvml.lose("GPU-1")
    driven.carry_out_all(driven.tasks((Cadence.FAST,)))
    assert subjects(driven.tasks((Cadence.FAST,))) == ["GPU-2"]
    driven.functions()
    driven.carry_out_all(driven.tasks((Cadence.FULL,)))
    assert driven.functions().count("nvmlDeviceGetHandleByIndex") == 1
    assert driven.ledger.records["GPU-1"].look_up_code == 15
    driven.nvml.recover("GPU-1")
    driven.carry_out_all(driven.tasks((Cadence.FULL,)))
    assert subjects(driven.tasks((Cadence.FAST,))) == ["GPU-1", "GPU-2"]


def test_a_gpu_that_hung_before_is_asked_last(driven: Driven) -> None:
    driven.carry_out_all(driven.tasks())
    driven.ledger.records["GPU-1"].hangs = 1
    assert subjects(driven.tasks((Cadence.FAST,))) == ["GPU-2", "GPU-1"]


def test_a_hung_gpu_is_not_asked(driven: Driven) -> None:
    driven.carry_out_all(driven.tasks())
    driven.ledger.overdue("GPU-1", Flight("nvmlDeviceGetPowerUsage", 990.0), 1005.0)
    assert subjects(driven.tasks((Cadence.FAST,))) == ["GPU-2"]
    driven.functions()
    driven.carry_out_all(driven.tasks((Cadence.FULL,)))
    assert "nvmlDeviceGetHandleByIndex" not in driven.functions()


@pytest.mark.parametrize("code", [1, 9, 18])
def test_a_session_that_ended_is_closed_and_opened_once(driven: Driven, code: int) -> None:
    driven.carry_out_all(driven.tasks())
    for uuid in ("GPU-1", "GPU-2"):
        driven.nvml.codes[EVERY, uuid] = code
    # Both GPUs tell of the same end.
    following = driven.carry_out(driven.tasks((Cadence.FAST,)))
    assert subjects(following) == [DRIVER, DRIVER]
    assert not driven.ledger.session_open
    driven.nvml.codes.clear()
    driven.functions()
    driven.carry_out_all(following)
    assert driven.functions()[:2] == ["nvmlShutdown", "nvmlInit"]
    assert driven.ledger.session_open


@pytest.mark.parametrize("function", ["nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"])
def test_counting_and_look_ups_tell_of_the_end_too(driven: Driven, function: str) -> None:
    driven.carry_out_all(driven.tasks())
    driven.nvml.lose("GPU-1")
    driven.carry_out_all(driven.tasks((Cadence.FAST,)))
    driven.nvml.recover("GPU-1")
    driven.nvml.end_session()
    tasks = driven.tasks((Cadence.FULL,))
    outcome: Outcome = Counted(code=1)
    if function == "nvmlDeviceGetHandleByIndex":
        outcome = Found(index=0, code=1, function=function)
    assert subjects(driven.plan.follow(outcome)) == [DRIVER, DRIVER]
    # What the same round asked before the end is known is of no use.
    assert driven.carry_out([task for task in tasks if task.subject != DRIVER]) == []


def test_not_supported_is_asked_again_with_the_static_sweep(driven: Driven) -> None:
    driven.nvml.codes["nvmlDeviceGetPowerUsage", "GPU-1"] = 3
    driven.carry_out_all(driven.tasks())
    asked = driven.nvml.count_calls("nvmlDeviceGetPowerUsage", "GPU-1")
    assert asked == 1
    for _ in range(5):
        driven.carry_out_all(driven.tasks((Cadence.FAST, Cadence.FULL)))
    assert driven.nvml.count_calls("nvmlDeviceGetPowerUsage", "GPU-1") == asked
    assert driven.nvml.count_calls("nvmlDeviceGetPowerUsage", "GPU-2") == 6
    driven.carry_out_all(driven.tasks(ALL))
    assert driven.nvml.count_calls("nvmlDeviceGetPowerUsage", "GPU-1") == asked + 1
    # MIG was switched off, say: it is there now.
    del driven.nvml.codes["nvmlDeviceGetPowerUsage", "GPU-1"]
    driven.carry_out_all(driven.tasks(ALL))
    assert driven.ledger.records["GPU-1"].skipped(Cadence.FAST) == {}


def test_times(driven: Driven, clock: FakeClock) -> None:
    assert driven.plan.due() == (Cadence.FULL, Cadence.STATIC)
    assert driven.plan.seconds_until_next() == 5.0
    clock.now += 5
    assert driven.plan.due() == (Cadence.FULL,)


def test_other_times_hold_at_once(driven: Driven, clock: FakeClock) -> None:
    driven.plan.due()
    driven.plan.retime(
        Timing(
            fast_interval_seconds=0.1,
            full_interval_seconds=1,
            static_interval_seconds=5,
            window_seconds=30,
            call_deadline_seconds=0.5,
            start_deadline_seconds=3,
        )
    )
    assert driven.plan.seconds_until_next() == 0
    assert driven.plan.due() == (Cadence.FULL, Cadence.STATIC)
    assert driven.plan.seconds_until_next() == pytest.approx(1)
    assert driven.tasks()[0].deadline_seconds == 3


def test_closing(driven: Driven) -> None:
    driven.carry_out_all(driven.tasks())
    task = driven.plan.closing_task(0.5)
    assert (task.subject, task.deadline_seconds) == (DRIVER, 0.5)
    assert driven.carry_out([task]) == []
    assert driven.outcomes[-1] == Closed()
    assert not driven.nvml.open
