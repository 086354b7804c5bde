# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Seconds during which the clocks were held down, folded from sampled reasons."""

from typing import Final

# Bits of nvmlClocksEventReasons. 0x1 (idle) is left out: an idle GPU is not held down.
REASONS: Final[dict[int, str]] = {
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
OTHER: Final = "other"
IDLE: Final = 0x1
_KNOWN: Final = IDLE | sum(REASONS)


def reasons_in(mask: int) -> tuple[str, ...]:
    """The names of the reasons in a mask; bits newer than this table are one reason, other."""
    names = tuple(name for bit, name in REASONS.items() if mask & bit)
    return (*names, OTHER) if mask & ~_KNOWN else names


class ThrottleClock:
    """Adds the time between two samples to the reasons that the later one gives.

    Time in a gap longer than the longest step counts for no reason, since nobody looked.
    """

    def __init__(self, longest_step_seconds: float) -> None:
        self.longest_step_seconds = longest_step_seconds
        self._last: float | None = None
        self.seconds: dict[str, float] = dict.fromkeys((*REASONS.values(), OTHER), 0.0)

    def add(self, at_monotonic_seconds: float, mask: int) -> None:
        """Take a sample in."""
        step = 0.0 if self._last is None else at_monotonic_seconds - self._last
        self._last = at_monotonic_seconds
        if mask > IDLE and step <= self.longest_step_seconds:
            for name in reasons_in(mask):
                self.seconds[name] += step
