# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""When each group of signals is due."""

from collections.abc import Mapping

from veo_exporter.gpu.readings import Cadence


class Schedule:
    """Ticks counted from the last scheduled one, so that they do not drift; missed ones are skipped."""

    def __init__(self, interval_seconds: Mapping[Cadence, float]) -> None:
        self._intervals = dict(interval_seconds)
        self._next = dict.fromkeys(self._intervals, 0.0)

    def due(self, now_monotonic_seconds: float) -> tuple[Cadence, ...]:
        """The cadences whose time has come; each is next due an interval later."""
        due = tuple(cadence for cadence, at in self._next.items() if at <= now_monotonic_seconds)
        for cadence in due:
            following = self._next[cadence] + self._intervals[cadence]
            if following <= now_monotonic_seconds:
                following = now_monotonic_seconds + self._intervals[cadence]
            self._next[cadence] = following
        return due

    def seconds_until_next(self, now_monotonic_seconds: float) -> float:
        """How long nothing is due."""
        return max(0.0, min(self._next.values()) - now_monotonic_seconds)
