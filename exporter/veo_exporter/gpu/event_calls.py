# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What became of the calls that hear events: counted, and told when they do not return."""

import threading
from collections.abc import Iterable
from typing import Any, Final

from veo_exporter.clock import Clock
from veo_exporter.gpu.calls import CallTotals
from veo_exporter.gpu.codes import OVERDUE, Meaning, ReturnCode, meaning_of
from veo_exporter.gpu.event_set import WAIT_FUNCTION
from veo_exporter.gpu.nvml import Flight, Line, NvmlError
from veo_exporter.gpu.readings import CallsElsewhere, OverdueCall

CALL_DEADLINE_SECONDS: Final = 10.0
WAIT_MILLISECONDS: Final = 600
"""So long the sampler may have to wait for the set to be given back, less than it has for
that; and so often the process wakes up for nothing."""


def is_overdue(flight: Flight, now_monotonic_seconds: float) -> bool:
    """Whether a call should have returned; a wait for events has its own time on top."""
    limit_seconds = CALL_DEADLINE_SECONDS
    if flight.function == WAIT_FUNCTION:
        limit_seconds += WAIT_MILLISECONDS / 1000
    return now_monotonic_seconds - flight.started_monotonic_seconds > limit_seconds


class EventCalls:
    """The lines of all threads that ever heard events."""

    def __init__(self, totals: CallTotals) -> None:
        self._totals = totals
        self._lock = threading.Lock()
        self._errors: dict[tuple[str, int], int] = {}

    def line(self, library: Any, clock: Clock) -> Line:
        """A line for another thread, whose calls count from now on."""
        line = _CountingLine(library, clock, self)
        self._totals.watch(line)
        return line

    def retire(self, line: Line) -> None:
        """The line's thread has ended."""
        self._totals.retire(line)

    def count_error(self, function: str, code: int) -> None:
        with self._lock:
            self._errors[function, code] = self._errors.get((function, code), 0) + 1

    def count_overdue(self, flight: Flight) -> None:
        """A thread is left behind with this call."""
        self.count_error(flight.function, OVERDUE)

    def told(self, flights: Iterable[Flight], now_monotonic_seconds: float) -> CallsElsewhere:
        """The errors so far, and which of the calls under way are overdue: the longest of each function."""
        longest: dict[str, float] = {}
        for flight in flights:
            if is_overdue(flight, now_monotonic_seconds):
                seconds = now_monotonic_seconds - flight.started_monotonic_seconds
                longest[flight.function] = max(seconds, longest.get(flight.function, 0.0))
        with self._lock:
            errors = dict(self._errors)
        return CallsElsewhere(
            errors=errors,
            overdue=tuple(OverdueCall(function=one, seconds=longest[one]) for one in longest),
        )


class _CountingLine(Line):
    def __init__(self, library: Any, clock: Clock, calls: EventCalls) -> None:
        super().__init__(library, clock)
        self._calls = calls

    def call(self, function: str, *arguments: Any) -> Any:
        try:
            return super().call(function, *arguments)
        except NvmlError as error:
            # The end of a wait in which nothing happened; and what a capability row tells of.
            quiet = function == WAIT_FUNCTION and error.code == ReturnCode.TIMEOUT
            if not quiet and meaning_of(error.code) not in (Meaning.UNSUPPORTED, Meaning.FORBIDDEN):
                self._calls.count_error(function, error.code)
            raise
