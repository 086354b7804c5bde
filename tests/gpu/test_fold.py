# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""One signal's samples, from the driver's buffer and our own, each second counted once."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from veo_exporter.gpu.fold import SignalFold, Taking
from veo_exporter.gpu.histogram import TimeHistogram, distribution_of
from veo_exporter.gpu.readings import SampleBatch
from veo_exporter.gpu.samples import FUTURE_MICROSECONDS, REACH_MICROSECONDS, rows_between
from veo_exporter.gpu.window import TrailingWindow

LONGEST_STEP = 3.0
AHEAD = 1_700_000_000.0
"""The wall clock minus the monotonic one."""


def fold_of() -> SignalFold:
    return SignalFold(
        LONGEST_STEP, TrailingWindow(30.0, LONGEST_STEP), TimeHistogram((0.5, 0.85, 0.95))
    )


def microseconds(monotonic: float, ahead: float = AHEAD) -> int:
    return round((monotonic + ahead) * 1e6)


def batch_of(
    *samples: tuple[float, float], since: float = 0.0, ahead: float = AHEAD
) -> SampleBatch:
    """Samples by monotonic time, as the driver would name them."""
    begin = microseconds(since, ahead) if since else 0
    times = tuple(microseconds(at, ahead) for at, _ in samples)
    return SampleBatch(begin, times, tuple(value for _, value in samples))


def read(
    fold: SignalFold,
    at: float,
    *samples: tuple[float, float],
    since: float = 0.0,
    own: float | None = 0.0,
    ahead: float = AHEAD,
) -> None:
    fold.take([Taking(batch_of(*samples, since=since, ahead=ahead), own, at, at + ahead)])


def peak_of(fold: SignalFold) -> float:
    assert fold.window is not None
    found = fold.window.statistics()
    assert found is not None
    return found.peak


def figures_of(fold: SignalFold) -> tuple[float, ...]:
    assert fold.window is not None
    assert fold.histogram is not None
    found = fold.window.statistics()
    window = (found.minimum, found.mean, found.peak) if found else ()
    return *window, *fold.histogram.spread().seconds


def watched_milliseconds(fold: SignalFold) -> float:
    assert fold.histogram is not None
    return distribution_of(fold.histogram.spread()).counts[-1]


def test_a_peak_that_our_own_samples_never_meet() -> None:
    fold = fold_of()
    read(fold, 1000, (1000, 0.0))
    read(fold, 1001, (1000.5, 0.0), (1000.55, 1.0), (1000.6, 0.0), (1001, 0.0), since=1000)
    assert peak_of(fold) == 1.0
    # 50 ms at 100 %.
    assert fold.integral == pytest.approx(0.05, abs=1e-5)


def test_the_readings_own_value_is_not_counted_beside_the_buffer() -> None:
    fold = fold_of()
    read(fold, 1000, (1000, 0.2), own=1.0)
    read(fold, 1001, (1001, 0.2), since=1000, own=1.0)
    assert peak_of(fold) == 0.2
    assert fold.integral == pytest.approx(0.2)


def test_what_was_before_we_looked_is_not_counted() -> None:
    fold = fold_of()
    read(fold, 1000, (990, 1.0), (995, 1.0), (1000, 0.5))
    assert fold.integral == 0.0
    assert peak_of(fold) == 0.5


def test_an_empty_buffer_is_no_news() -> None:
    fold = fold_of()
    read(fold, 1000, (1000, 0.5))
    read(fold, 1001, own=1.0)
    assert peak_of(fold) == 0.5
    read(fold, 1002, (1001, 0.5), (1002, 0.5), since=1000)
    assert fold.integral == pytest.approx(1.0)
    assert fold.gaps == 0


def test_a_buffer_that_stays_empty_gives_way_to_our_own_samples() -> None:
    fold = fold_of()
    read(fold, 1000, (1000, 0.5))
    for at in (1001, 1002, 1003):
        read(fold, at, own=1.0)
    assert peak_of(fold) == 0.5
    for at in (1004, 1005, 1006):
        read(fold, at, own=1.0)
    # The first comes four seconds after the buffer's last, which is too long ago to be counted.
    assert fold.integral == pytest.approx(2.0)
    # Samples of that time that the driver brings late were seen by us.
    read(fold, 1007, (1005.5, 1.0), (1006.5, 0.0), (1007, 0.0), since=1000)
    assert fold.integral == pytest.approx(2.0)
    assert watched_milliseconds(fold) == pytest.approx(3000, abs=1)


def test_a_buffer_that_never_had_anything_is_ours_from_the_start() -> None:
    fold = fold_of()
    for at in (1000, 1001, 1002):
        read(fold, at, own=0.5)
    assert fold.integral == pytest.approx(1.0)
    assert fold.gaps is None


def test_another_session_counts_the_same_buffer_once() -> None:
    fold = fold_of()
    read(fold, 1000, (1000, 1.0))
    read(fold, 1001, (1000.5, 1.0), (1001, 1.0), since=1000)
    # Nothing is remembered of what was read: the driver gives all that it has.
    read(
        fold, 1002, (999, 1.0), (1000, 1.0), (1000.5, 1.0), (1001, 1.0), (1001.5, 1.0), (1002, 1.0)
    )
    assert fold.integral == pytest.approx(2.0)
    assert watched_milliseconds(fold) == pytest.approx(2000, abs=1)
    assert fold.gaps == 0


def test_a_buffer_that_lost_samples_is_a_gap() -> None:
    fold = fold_of()
    read(fold, 1000, (1000, 1.0))
    read(fold, 1002, *((1000 + n / 10, 1.0) for n in range(1, 21)), since=1000)
    assert fold.gaps == 0
    # The oldest of these is 0.4 s after the last one read, and they are 0.1 s apart.
    read(fold, 1003, *((1002 + n / 10, 1.0) for n in range(4, 11)), since=1002)
    assert fold.gaps == 1


def test_three_of_its_own_steps_are_no_gap() -> None:
    fold = fold_of()
    read(fold, 1000, (1000, 1.0))
    read(fold, 1001, (1000.29, 1.0), (1000.39, 1.0), (1000.49, 1.0), since=1000)
    assert fold.gaps == 0


def test_a_single_sample_is_judged_by_the_steps_before() -> None:
    fold = fold_of()
    read(fold, 1000, (1000, 1.0))
    read(fold, 1001, (1000.5, 1.0), (1001, 1.0), since=1000)
    read(fold, 1002, (1001.5, 1.0), since=1001)
    assert fold.gaps == 0
    read(fold, 1004, (1003.5, 1.0), since=1001.5)
    assert fold.gaps == 1


@pytest.mark.parametrize("step", [-3600.0, -10.0, 10.0, 3600.0])
def test_a_wall_clock_that_steps_costs_a_gap_and_nothing_else(step: float) -> None:
    fold = fold_of()
    read(fold, 1000, (1000, 1.0))
    read(fold, 1001, (1000.5, 1.0), (1001, 1.0), since=1000)
    ahead = AHEAD + step
    read(fold, 1002, (1001.5, 1.0), (1002, 1.0), ahead=ahead)
    assert fold.gaps == 1
    assert fold.integral == pytest.approx(1.0)
    read(fold, 1003, (1002.5, 1.0), (1003, 1.0), since=1002, ahead=ahead)
    assert fold.gaps == 1
    assert fold.integral == pytest.approx(2.0)


def test_a_wall_clock_that_steps_while_the_buffer_is_empty() -> None:
    fold, ahead = fold_of(), AHEAD - 3600
    read(fold, 1000, (1000, 1.0))
    read(fold, 1001, ahead=ahead)
    read(fold, 1002, (1001.5, 1.0), (1002, 1.0), ahead=ahead)
    read(fold, 1003, (1002.5, 1.0), (1003, 1.0), since=1002, ahead=ahead)
    assert fold.gaps == 1
    # From the reading at which it was noticed.
    assert fold.integral == pytest.approx(2.0)


def test_a_wall_clock_that_is_being_corrected_is_not_a_step() -> None:
    fold = fold_of()
    read(fold, 1000, (1000, 1.0))
    read(fold, 1001, (1000.5, 1.0), (1001, 1.0), since=1000, ahead=AHEAD - 0.1)
    # What was before the last sample by then takes no time.
    assert fold.gaps == 0
    assert fold.integral == pytest.approx(1.0)


SPANS = st.lists(
    st.tuples(st.lists(st.floats(0.001, 0.4), max_size=8), st.booleans()), min_size=1, max_size=30
)


@given(SPANS, st.floats(0, 1))
def test_time_is_counted_once_whoever_samples_it(
    spans: list[tuple[list[float], bool]], value: float
) -> None:
    """Whatever comes from where: no more time is counted than has passed, and the integral is that
    of the value."""
    fold, now, since = fold_of(), 1000.0, 0.0
    everything: list[tuple[float, float]] = []
    integral = 0.0
    for steps, reopened in spans:
        fresh = []
        for step in steps:
            now += step
            fresh.append((now, value))
        now += 0.1
        everything += fresh
        given = everything if reopened else fresh
        read(fold, now, *given, since=0.0 if reopened else since, own=value)
        since = fresh[-1][0] if fresh else since
        assert fold.integral >= integral
        integral = fold.integral
    watched = watched_milliseconds(fold) / 1000
    assert watched <= now - 1000.0 + 0.01
    assert fold.integral == pytest.approx(value * watched, abs=0.002)
    assert peak_of(fold) == value


CLOCK_STEPS = st.sampled_from([0.0] * 6 + [-3600.0, -10.0, -1.5, 1.5, 10.0, 3600.0])
READINGS = st.lists(
    st.tuples(st.lists(st.floats(0.02, 0.4), max_size=6), CLOCK_STEPS), min_size=1, max_size=40
)


def takings_of(
    readings: list[tuple[list[float], float]], value_at: Callable[[float], float]
) -> Iterator[Taking]:
    """What a reader makes of a driver's buffer, beside a wall clock that steps."""
    now, since, ahead = 1000.0, 0, AHEAD
    buffer: list[tuple[int, float]] = []
    for steps, clock_step in readings:
        for step in steps:
            now += step
            buffer.append((microseconds(now, ahead), value_at(now)))
        now += 0.1
        ahead += clock_step
        wall = microseconds(now, ahead)
        # Nothing old, nothing of the future.
        since = 0 if since > wall + FUTURE_MICROSECONDS else since
        oldest = max(since, wall - REACH_MICROSECONDS)
        rows = rows_between(buffer[-100:], oldest, wall + FUTURE_MICROSECONDS)
        times, values = zip(*rows, strict=True) if rows else ((), ())
        yield Taking(SampleBatch(since, times, values), value_at(now), now, now + ahead)
        since = rows[-1][0] if rows else since


@given(READINGS)
def test_all_in_one_go_come_to_the_same_as_one_by_one(
    readings: list[tuple[list[float], float]],
) -> None:
    takings = list(takings_of(readings, lambda at: at % 1))
    singly, together = fold_of(), fold_of()
    for taking in takings:
        singly.take([taking])
    together.take(takings)
    assert together.gaps == singly.gaps
    assert together.integral == pytest.approx(singly.integral)
    assert figures_of(together) == pytest.approx(figures_of(singly))


@given(READINGS, st.floats(0, 1))
@example([([0.25], 1.5), ([0.25], 0.0)], 0.0)
def test_whatever_the_wall_clock_does(
    readings: list[tuple[list[float], float]], value: float
) -> None:
    """The driver names its samples by a clock that steps; no time is counted twice for that."""
    fold, now, integral = fold_of(), 1000.0, 0.0
    for taking in takings_of(readings, lambda _: value):
        fold.take([taking])
        now = taking.monotonic_seconds
        assert fold.integral >= integral
        integral = fold.integral
    watched = watched_milliseconds(fold) / 1000
    # A sample may be named up to a second ahead of the clock.
    assert watched <= now - 1000.0 + 1.01
    assert fold.integral == pytest.approx(value * watched, abs=0.002)
    assert peak_of(fold) == value
