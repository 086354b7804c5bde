# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The ladder of frame rates and the memory's pressure: both sides of every threshold, and no flapping."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veo_exporter.gpu.advice import GIB, Advice, Ladder, MemoryReading, advance, wanted_hertz

LADDER = Ladder()
AVAILABLE = 100 * GIB
SWEEP = 5.0
PRESSURE_FROM = 3 * GIB // 2


def reading(used: int, at: float) -> MemoryReading:
    return MemoryReading(
        used_bytes=used,
        free_bytes=AVAILABLE - used,
        at_unix_seconds=at + 1e6,
        at_monotonic_seconds=at,
    )


def follow(
    used: Iterable[int], *, step: float = SWEEP, begin: float = 1000.0, before: Advice | None = None
) -> list[Advice]:
    """The advice after each reading, these seconds apart."""
    found: list[Advice] = []
    for place, amount in enumerate(used):
        before = advance(before, reading(amount, begin + place * step), LADDER)
        found.append(before)
    return found


def rates(advices: Iterable[Advice]) -> list[int | None]:
    return [advice.frame_rate_hertz for advice in advices]


def settled(hertz: int) -> Advice:
    used = {120: 10 * GIB, 60: 70 * GIB, 30: 90 * GIB}[hertz]
    advice = follow([used] * 3, begin=0.0)[-1]
    assert advice.frame_rate_hertz == hertz
    return advice


@pytest.mark.parametrize(
    ("used", "hertz"),
    [
        (0, 120),
        (60 * GIB - 1, 120),
        (60 * GIB, 60),
        (60 * GIB + 1, 60),
        (85 * GIB - 1, 60),
        (85 * GIB, 60),
        (85 * GIB + 1, 30),
        (100 * GIB, 30),
    ],
)
def test_each_step_of_the_ladder(used: int, hertz: int) -> None:
    assert rates(follow([used] * 3)) == [None, None, hertz]


@pytest.mark.parametrize(
    ("current", "used", "hertz"),
    [
        # Down at once where the threshold is; up only three hundredths below it.
        (120, 60 * GIB - 1, 120),
        (120, 60 * GIB, 60),
        (60, 57 * GIB, 60),
        (60, 57 * GIB - 1, 120),
        (60, 85 * GIB, 60),
        (60, 85 * GIB + 1, 30),
        (30, 82 * GIB + 1, 30),
        (30, 82 * GIB, 60),
        # From the lowest step past the middle one.
        (30, 57 * GIB, 60),
        (30, 57 * GIB - 1, 120),
        (120, 85 * GIB + 1, 30),
    ],
)
def test_hysteresis(current: int, used: int, hertz: int) -> None:
    assert wanted_hertz(reading(used, 0.0), current, LADDER) == hertz


def test_a_change_wants_three_sweeps_running() -> None:
    after = follow([70 * GIB] * 3, before=settled(120))
    assert rates(after) == [120, 120, 60]
    assert [advice.next_hertz for advice in after] == [60, 60, None]
    assert [advice.streak.sweeps for advice in after] == [1, 2, 0]
    assert after[-1].since_unix_seconds == 1_001_010.0
    # And then stays as it is.
    assert follow([70 * GIB] * 5, begin=2000.0, before=after[-1])[-1].since_unix_seconds == (
        1_001_010.0
    )


def test_a_sweep_counts_once_however_often_it_is_sampled() -> None:
    # At 0, 1, ... 10 s; the sweeps are at 0, 5 and 10 s.
    after = follow([70 * GIB] * 11, step=1.0, before=settled(120))
    assert rates(after) == [120] * 10 + [60]


def test_one_recovery_between_two_sweeps_begins_anew() -> None:
    used = [70 * GIB] * 9 + [10 * GIB] + [70 * GIB] * 10
    assert rates(follow(used, step=1.0, before=settled(120))) == [120] * 20


def test_a_change_that_is_larger_at_times_is_made_as_far_as_all_sweeps_ask() -> None:
    used = [90 * GIB, 70 * GIB, 90 * GIB]
    assert rates(follow(used, before=settled(120))) == [120, 120, 60]
    used = [10 * GIB, 70 * GIB, 10 * GIB]
    assert rates(follow(used, before=settled(30))) == [30, 30, 60]
    # Of the first advice the careful end.
    assert rates(follow([10 * GIB, 90 * GIB, 10 * GIB])) == [None, None, 30]


def test_turning_round_begins_anew() -> None:
    used = [90 * GIB, 10 * GIB, 90 * GIB, 10 * GIB] * 3
    assert rates(follow(used, before=settled(60))) == [60] * 12


@pytest.mark.parametrize(
    ("free", "pressed"), [(PRESSURE_FROM - 1, True), (PRESSURE_FROM, False), (0, True)]
)
def test_pressure_on_both_sides_of_its_threshold(free: int, pressed: bool) -> None:
    after = follow([AVAILABLE - free] * 3)
    assert [advice.pressure for advice in after] == [False, False, pressed]
    assert after[-1].pressure_since_unix_seconds == (1_001_010.0 if pressed else None)


def test_pressure_is_over_with_the_first_recovery_and_begins_after_three_sweeps_again() -> None:
    full, free = AVAILABLE, 50 * GIB
    used = [full, full, full, full, free, full, full, free, full, full, full]
    assert [advice.pressure for advice in follow(used)] == [
        *(False, False, True, True, False),
        *(False, False, False),
        *(False, False, True),
    ]


def test_pressure_is_told_since_when_it_began() -> None:
    assert [advice.pressure_since_unix_seconds for advice in follow([AVAILABLE] * 5)] == [
        *(None, None, 1_001_010.0, 1_001_010.0, 1_001_010.0)
    ]


SHARES = st.integers(0, 100 * 1024).map(lambda share: share * GIB // 1024)
HISTORIES = st.lists(SHARES, max_size=40)


@given(HISTORIES)
def test_advice_changes_only_after_as_many_sweeps_that_ask_for_it(history: list[int]) -> None:
    advices = follow(history)
    changes = [
        place
        for place in range(len(advices))
        if advices[place].frame_rate_hertz
        != (advices[place - 1].frame_rate_hertz if place else None)
    ]
    for earlier, later in zip([-1, *changes], changes, strict=False):
        assert later - earlier >= LADDER.sweeps
        was, new = advices[later - 1].frame_rate_hertz, advices[later].frame_rate_hertz
        assert new is not None
        for used in history[later - LADDER.sweeps + 1 : later + 1]:
            wanted = wanted_hertz(reading(used, 0.0), was, LADDER)
            # Each of them allowed at least this step from what it was.
            assert wanted >= new if was is None or new > was else wanted <= new


@pytest.mark.parametrize(
    ("low", "high"),
    [
        # Within the hysteresis of one threshold, and between the two.
        (57 * GIB, 60 * GIB),
        (82 * GIB + 1, 85 * GIB + 1),
        (60 * GIB, 82 * GIB),
    ],
)
@pytest.mark.parametrize("hertz", [120, 60, 30])
@given(data=st.data())
def test_nothing_flaps_inside_the_hysteresis(
    low: int, high: int, hertz: int, data: st.DataObject
) -> None:
    history: Sequence[int] = data.draw(st.lists(st.integers(low, high), min_size=1, max_size=40))
    found = [hertz, *rates(follow(history, before=settled(hertz)))]
    changes = sum(one != other for one, other in pairwise(found))
    # To the step that belongs there, and never back.
    assert changes <= 1


@given(st.lists(SHARES | st.integers(AVAILABLE - 2 * GIB, AVAILABLE), max_size=40))
def test_pressure_holds_exactly_after_three_sweeps_without_recovery(history: list[int]) -> None:
    for place, advice in enumerate(follow(history)):
        newest = history[max(place - 2, 0) : place + 1]
        low = [AVAILABLE - used < PRESSURE_FROM for used in newest]
        assert advice.pressure == (len(low) == 3 and all(low))


@given(HISTORIES, st.floats(0.1, 30.0))
def test_how_often_it_is_sampled_never_makes_it_quicker(history: list[int], step: float) -> None:
    advices = follow(history, step=step)
    changed_at = 1000.0
    for place, advice in enumerate(advices):
        before = advices[place - 1].frame_rate_hertz if place else None
        if advice.frame_rate_hertz != before:
            at = advice.reading.at_monotonic_seconds
            assert at - changed_at >= (LADDER.sweeps - 1) * LADDER.sweep_seconds
            changed_at = at
