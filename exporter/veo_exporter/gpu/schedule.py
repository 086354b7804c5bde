# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""When each group of signals is due."""

from collections.abc import Mapping
from typing import Final

from veo_exporter.gpu.readings import Cadence

_AT_ONCE: Final = float("-inf")


class Schedule:
    """Ticks counted from the last scheduled one, so that they do not drift; missed ones are skipped."""

    def __init__(self, interval_seconds: Mapping[Cadence, float]) -> None:
        self._intervals = dict(interval_seconds)
        self._next = dict.fromkeys(self._intervals, _AT_ONCE)

    def due(self, now_monotonic_seconds: float) -> tuple[Cadence, ...]:
        """The cadences whose time has come; each is next due an interval later."""
        due = tuple(cadence for cadence, at in self._next.items() if at <= now_monotonic_seconds)
        for cadence in due:
            interval, start = self._intervals[cadence], self._next[cadence]
            if start == _AT_ONCE:
                start = now_monotonic_seconds
            missed = (now_monotonic_seconds - start) // interval
            self._next[cadence] = start + (missed + 1) * interval
        return due

    def seconds_until_next(self, now_monotonic_seconds: float) -> float:
        """How long nothing is due."""
        return max(0.0, min(self._next.values()) - now_monotonic_seconds)
