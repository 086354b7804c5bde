# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which frame rate a GPU's memory leaves room for, and whether it runs out. Pure: readings carry their time.

A sweep is the first reading in each interval of a full sweep. Three of them in a row have to agree
before anything is said, and the readings between them too.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

HIGH_HERTZ: Final = 120
MEDIUM_HERTZ: Final = 60
LOW_HERTZ: Final = 30

GIB: Final = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Where the steps are. The shares are of the memory that programs can have: used and free.

    They are exact, so that a threshold has two sides and nothing between them.
    """

    medium_from: Fraction = Fraction(60, 100)
    low_above: Fraction = Fraction(85, 100)
    hysteresis: Fraction = Fraction(3, 100)
    """A step is climbed again only so far below where it was left."""
    sweeps: int = 3
    sweep_seconds: float = 5.0
    pressure_free_bytes: int = 3 * GIB // 2


class MemoryReading(NamedTuple):
    """How full a GPU's memory was, and when."""

    used_bytes: int
    free_bytes: int
    at_unix_seconds: float
    at_monotonic_seconds: float

    @property
    def used_share(self) -> Fraction:
        """Of what programs can have, which is not nothing."""
        return Fraction(self.used_bytes, self.used_bytes + self.free_bytes)


class Streak(NamedTuple):
    """Sweeps in a row in which something held."""

    sweeps: int = 0
    swept_at_monotonic_seconds: float = 0.0

    def extended(self, now_monotonic_seconds: float, sweep_seconds: float) -> "Streak":
        """It still holds; the first reading of each interval counts."""
        passed = now_monotonic_seconds - self.swept_at_monotonic_seconds
        if self.sweeps and passed < sweep_seconds:
            return self
        return Streak(self.sweeps + 1, now_monotonic_seconds)


NONE_YET: Final = Streak()


class Advice(NamedTuple):
    """What is advised for one GPU, and what is about to be."""

    reading: MemoryReading
    """The newest."""
    frame_rate_hertz: int | None = None
    """None until enough sweeps agreed."""
    since_unix_seconds: float | None = None
    next_hertz: int | None = None
    """What will be advised if it stays so."""
    streak: Streak = NONE_YET
    """For how long it has."""
    pressure: bool = False
    pressure_since_unix_seconds: float | None = None
    pressure_streak: Streak = NONE_YET


def advance(before: Advice | None, reading: MemoryReading, ladder: Ladder) -> Advice:
    """The advice after one more reading; `before` is None if there was none that still holds."""
    advice = Advice(reading) if before is None else before._replace(reading=reading)
    return _judge_pressure(_judge_rate(advice, ladder), ladder)


def _judge_rate(advice: Advice, ladder: Ladder) -> Advice:
    reading, current = advice.reading, advice.frame_rate_hertz
    wanted = wanted_hertz(reading, current, ladder)
    if wanted == current:
        if advice.next_hertz is None:
            return advice
        return advice._replace(next_hertz=None, streak=NONE_YET)
    streak, target = advice.streak, wanted
    if advice.next_hertz is not None:
        if _same_way(current, advice.next_hertz, wanted):
            target = _nearer(current, advice.next_hertz, wanted)
        else:
            streak = NONE_YET
    streak = streak.extended(reading.at_monotonic_seconds, ladder.sweep_seconds)
    if streak.sweeps < ladder.sweeps:
        return advice._replace(next_hertz=target, streak=streak)
    return advice._replace(
        frame_rate_hertz=target,
        since_unix_seconds=reading.at_unix_seconds,
        next_hertz=None,
        streak=NONE_YET,
    )


def wanted_hertz(reading: MemoryReading, current: int | None, ladder: Ladder) -> int:
    """The step of the ladder; inside the hysteresis, the present one."""
    plain = _step(reading, ladder.medium_from, ladder.low_above)
    if current is None or plain <= current:
        return plain
    climbed = _step(
        reading, ladder.medium_from - ladder.hysteresis, ladder.low_above - ladder.hysteresis
    )
    return max(climbed, current)


def _step(reading: MemoryReading, medium_from: Fraction, low_above: Fraction) -> int:
    # As whole numbers: a fraction made for each reading takes twenty times as long.
    used, available = reading.used_bytes, reading.used_bytes + reading.free_bytes
    if used * low_above.denominator > low_above.numerator * available:
        return LOW_HERTZ
    from_there = used * medium_from.denominator >= medium_from.numerator * available
    return MEDIUM_HERTZ if from_there else HIGH_HERTZ


def _same_way(current: int | None, one: int, other: int) -> bool:
    return current is None or (one < current) == (other < current)


def _nearer(current: int | None, one: int, other: int) -> int:
    """What all readings of the streak allow: memory that is full now and then is not free, and a change
    that some of them did not ask for is not made."""
    return max(one, other) if current is not None and one < current else min(one, other)


def _judge_pressure(advice: Advice, ladder: Ladder) -> Advice:
    reading = advice.reading
    if reading.free_bytes >= ladder.pressure_free_bytes:
        if not advice.pressure and not advice.pressure_streak.sweeps:
            return advice
        return advice._replace(
            pressure=False, pressure_since_unix_seconds=None, pressure_streak=NONE_YET
        )
    streak = advice.pressure_streak.extended(reading.at_monotonic_seconds, ladder.sweep_seconds)
    if advice.pressure or streak.sweeps < ladder.sweeps:
        return advice._replace(pressure_streak=streak)
    return advice._replace(
        pressure=True,
        pressure_since_unix_seconds=reading.at_unix_seconds,
        pressure_streak=streak,
    )
