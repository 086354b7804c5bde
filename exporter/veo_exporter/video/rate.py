# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which rate a file means to have. Containers' own statements are hints at best."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from veo_exporter.video.timeline import Timeline

STANDARD_RATES: Final = (
    Fraction(24000, 1001),
    Fraction(24),
    Fraction(25),
    Fraction(30000, 1001),
    Fraction(30),
    Fraction(48),
    Fraction(50),
    Fraction(60000, 1001),
    Fraction(60),
    Fraction(8),
    Fraction(10),
    Fraction(12),
    Fraction(15),
    Fraction(16),
    Fraction(20),
    Fraction(100),
    Fraction(120000, 1001),
    Fraction(120),
)
SAME_RATE: Final = Fraction(1, 2000)
"""Rates that differ by less are one: 24 and 23.976 differ by twice as much."""
_SLOPE: Final = Fraction(1, 20000)
HALF: Final = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Interval:
    """A rate's frame interval on a file's clock; all in ticks of the time base."""

    exact: Fraction
    shortest: int
    longest: int
    """The nearest whole steps of the clock below and above: a delta between them is only rounded."""

    @classmethod
    def of(cls, rate: Fraction, timeline: Timeline) -> "Interval":
        exact = 1 / (rate * timeline.time_base)
        steps = exact / timeline.tick
        return cls(exact, math.floor(steps) * timeline.tick, math.ceil(steps) * timeline.tick)

    def deviation(self, delta: int) -> int:
        """How far a delta is from the interval, net of rounding."""
        return max(0, delta - self.longest, self.shortest - delta)

    def count(self, delta: int) -> int:
        """How many intervals a delta is."""
        return math.floor(delta / self.exact + HALF)


@dataclass(frozen=True, slots=True)
class _Fit:
    rate: Fraction
    good: int
    slope_error: Fraction


def nominal_rate(
    timeline: Timeline,
    tolerance: Fraction,
    *,
    asked: Fraction | None = None,
    average: Fraction | None = None,
    guessed: Fraction | None = None,
) -> Fraction | None:
    """The rate that most deltas keep; None where there are no two frames at two times."""
    deltas = timeline.deltas
    if not any(deltas):
        return None

    def rank(fit: _Fit) -> tuple[object, ...]:
        return (
            -fit.good,
            fit.rate != asked,
            fit.rate != average,
            fit.rate.denominator != 1,
            fit.slope_error,
        )

    for tier in ((asked, *STANDARD_RATES), (average, guessed)):
        rates = dict.fromkeys(rate for rate in tier if rate)
        if fits := list(_fits(timeline, deltas, rates, tolerance)):
            return min(fits, key=rank).rate
    return _measured_rate(timeline, deltas)


def _fits(
    timeline: Timeline, deltas: Sequence[int], rates: Iterable[Fraction], tolerance: Fraction
) -> Iterable[_Fit]:
    counted = Counter(deltas)
    most_ticks = tolerance / timeline.time_base
    for rate in rates:
        interval = Interval.of(rate, timeline)
        good = {delta for delta in counted if interval.deviation(delta) <= most_ticks}
        number = sum(counted[delta] for delta in good)
        if not number or 2 * number < len(deltas):
            continue
        mean = Fraction(sum(delta * counted[delta] for delta in good), number)
        slope_error = abs(mean - interval.exact)
        # Over a stretch without a break the rounding of the ends is all that the mean may be off.
        stretches, inside = 0, False
        for delta in deltas:
            stretches += not inside and delta in good
            inside = delta in good
        if slope_error <= Fraction(timeline.tick * stretches, number) + interval.exact * _SLOPE:
            yield _Fit(rate, number, slope_error)


def _measured_rate(timeline: Timeline, deltas: Sequence[int]) -> Fraction:
    moving = sorted(delta for delta in deltas if delta)
    median = moving[(len(moving) - 1) // 2]
    intervals = sum((2 * delta + median) // (2 * median) for delta in deltas)
    rate = Fraction(intervals) / (sum(moving) * timeline.time_base)
    return min(
        (standard for standard in STANDARD_RATES if abs(rate / standard - 1) <= SAME_RATE),
        key=lambda standard: abs(rate / standard - 1),
        default=rate,
    )
