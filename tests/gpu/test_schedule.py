# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""When groups are due."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veo_exporter.gpu.readings import Cadence
from veo_exporter.gpu.schedule import Schedule

INTERVALS = {Cadence.FAST: 1.0, Cadence.FULL: 5.0, Cadence.STATIC: 60.0}


def test_everything_is_due_at_once() -> None:
    schedule = Schedule(INTERVALS)
    assert schedule.seconds_until_next(1000.25) == 0
    assert schedule.due(1000.25) == (Cadence.FAST, Cadence.FULL, Cadence.STATIC)


def test_also_right_after_the_machine_has_started() -> None:
    # The monotonic clock may read less than an interval.
    schedule = Schedule(INTERVALS)
    assert len(schedule.due(0.5)) == 3
    assert schedule.due(1.0) == ()


def test_each_at_its_own_interval() -> None:
    schedule = Schedule(INTERVALS)
    due = {at: schedule.due(1000.0 + at) for at in range(121)}
    assert [at for at in due if Cadence.FAST in due[at]] == [*range(121)]
    assert [at for at in due if Cadence.FULL in due[at]] == [*range(0, 121, 5)]
    assert [at for at in due if Cadence.STATIC in due[at]] == [0, 60, 120]


def test_seconds_until_next() -> None:
    schedule = Schedule(INTERVALS)
    schedule.due(1000.0)
    assert schedule.seconds_until_next(1000.0) == 1.0
    assert schedule.seconds_until_next(1000.75) == 0.25
    assert schedule.seconds_until_next(1007.0) == 0.0


def test_missed_ticks_are_skipped_and_the_beat_stays() -> None:
    schedule = Schedule({Cadence.FAST: 1.0})
    schedule.due(1000.0)
    assert schedule.due(1003.75) == (Cadence.FAST,)
    assert schedule.due(1003.75) == ()
    # Not 1004.75: the beat is that of the whole seconds after the first tick.
    assert schedule.seconds_until_next(1003.75) == pytest.approx(0.25)


@given(
    interval=st.floats(0.02, 60),
    delays=st.lists(st.floats(0, 4), min_size=1, max_size=100),
)
def test_never_drifts(interval: float, delays: list[float]) -> None:
    """However late each look is, due times stay whole intervals away from the first."""
    start = 1000.0
    schedule, now = Schedule({Cadence.FAST: interval}), start
    schedule.due(now)
    for delay in delays:
        now += schedule.seconds_until_next(now) + delay * interval
        schedule.due(now)
        following = now + schedule.seconds_until_next(now)
        ticks = (following - start) / interval
        assert ticks == pytest.approx(round(ticks), abs=1e-6)
        assert following - now <= interval * (1 + 1e-6)


@given(st.lists(st.floats(0.001, 0.5), min_size=1, max_size=200))
def test_never_more_often_than_the_interval_says(steps: list[float]) -> None:
    schedule, now, times = Schedule({Cadence.FAST: 1.0}), 1000.0, 0
    schedule.due(now)
    for step in steps:
        now += step
        times += len(schedule.due(now))
    assert now - 1000.0 - 1 - 1e-6 <= times <= now - 1000.0 + 1e-6
