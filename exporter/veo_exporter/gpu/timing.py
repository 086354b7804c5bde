# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""How often and how patiently GPUs are sampled."""

from dataclasses import dataclass
from typing import Final

from veo_exporter.gpu.account import Folding
from veo_exporter.gpu.readings import Cadence

LEAST_STALE_AFTER_SECONDS: Final = 5.0
INTERVALS_UNTIL_STALE: Final = 3
LEAST_LONGEST_STEP_SECONDS: Final = 1.0
PUBLISH_INTERVAL_SECONDS: Final = 1.0
"""Nobody scrapes more often; faster samples go into the windows."""
LEAST_BUFFERED_INTERVAL_SECONDS: Final = 0.5
"""Sampled more often than this, our own samples are about as fine as the driver's buffer (6 Hz for
utilization), and cheaper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What the settings of the same names say."""

    fast_interval_seconds: float
    full_interval_seconds: float
    static_interval_seconds: float
    window_seconds: float
    call_deadline_seconds: float
    start_deadline_seconds: float
    driver_samples: bool = True

    def reads_samples(self, cadence: Cadence) -> bool:
        """Whether the driver's buffers of a group's signals are read with it."""
        return self.driver_samples and self.intervals[cadence] >= LEAST_BUFFERED_INTERVAL_SECONDS

    @property
    def intervals(self) -> dict[Cadence, float]:
        return {
            Cadence.FAST: self.fast_interval_seconds,
            Cadence.FULL: self.full_interval_seconds,
            Cadence.STATIC: self.static_interval_seconds,
        }

    @property
    def intervals_of_rounds(self) -> dict[Cadence, float]:
        """Those that are asked for in rounds; the fast group has its own ticks."""
        return {
            cadence: interval
            for cadence, interval in self.intervals.items()
            if cadence is not Cadence.FAST
        }

    @property
    def stale_after_seconds(self) -> dict[Cadence, float]:
        return {
            cadence: max(INTERVALS_UNTIL_STALE * interval, LEAST_STALE_AFTER_SECONDS)
            for cadence, interval in self.intervals.items()
        }

    @property
    def folding(self) -> Folding:
        # A full sweep comes in between: at 20 ms, three intervals would be gone by then.
        step = max(INTERVALS_UNTIL_STALE * self.fast_interval_seconds, LEAST_LONGEST_STEP_SECONDS)
        full_step = INTERVALS_UNTIL_STALE * self.full_interval_seconds
        return Folding(self.window_seconds, step, full_step)
