# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Calls that hear events, counted and told."""

import pytest

from tests.gpu.conftest import FakeClock, ScriptedError
from veo_exporter.gpu.calls import CallTotals
from veo_exporter.gpu.event_calls import EventCalls, is_overdue
from veo_exporter.gpu.nvml import Flight, NvmlError
from veo_exporter.gpu.readings import OverdueCall

WAIT = "nvmlEventSetWait_v2"
REGISTER = "nvmlDeviceRegisterEvents"


class Answering:
    """A library whose wait and registration answer with these codes."""

    NVMLError = ScriptedError

    def __init__(self, wait: int = 0, register: int = 0) -> None:
        self.wait, self.register = wait, register

    def nvmlEventSetWait_v2(self) -> None:  # noqa: N802
        self._answer(self.wait)

    def nvmlDeviceRegisterEvents(self) -> None:  # noqa: N802
        self._answer(self.register)

    def _answer(self, code: int) -> None:
        if code:
            raise self.NVMLError(code)


@pytest.mark.parametrize(
    ("function", "seconds", "overdue"),
    [
        (REGISTER, 10.0, False),
        (REGISTER, 10.1, True),
        # 0.6 s are the wait itself.
        (WAIT, 10.5, False),
        (WAIT, 10.7, True),
    ],
)
def test_a_wait_has_its_own_time_on_top(function: str, seconds: float, overdue: bool) -> None:
    assert is_overdue(Flight(function, 1000.0), 1000.0 + seconds) is overdue


def test_the_longest_call_of_each_function_is_told() -> None:
    flights = [Flight(WAIT, 980.0), Flight(WAIT, 970.0), Flight(REGISTER, 999.0)]
    told = EventCalls(CallTotals()).told(flights, 1000.0)
    assert told.overdue == (OverdueCall(function=WAIT, seconds=30.0),)
    assert told.errors == {}


def test_calls_and_their_errors_are_counted_over_all_threads(clock: FakeClock) -> None:
    totals = CallTotals()
    calls = EventCalls(totals)
    for wait, register in ((10, 3), (15, 999), (0, 4)):
        line = calls.line(Answering(wait, register), clock)
        for function in (WAIT, REGISTER):
            try:
                line.call(function)
            except NvmlError:
                pass
        calls.retire(line)
    calls.count_overdue(Flight(WAIT, 0.0))
    assert {name: tally.calls for name, tally in totals.totals().items()} == {WAIT: 3, REGISTER: 3}
    # TIMEOUT is the normal end of a wait; NOT_SUPPORTED and NO_PERMISSION are capability rows.
    assert calls.told((), 0.0).errors == {(WAIT, 15): 1, (REGISTER, 999): 1, (WAIT, -2): 1}
