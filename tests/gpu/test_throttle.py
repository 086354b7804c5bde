# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Seconds of throttling out of sampled reasons."""

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veo_exporter.catalog.gpu_health import THROTTLE_REASONS_COUNTED
from veo_exporter.gpu.throttle import OTHER, REASONS, ThrottleClock, reasons_in


def test_bits_are_those_of_the_header() -> None:
    for bit, name in REASONS.items():
        # nvmlClocksEventReasonSwPowerCap, or ...ThrottleReason... for the older ones.
        spelled = "reason" + name.replace("_", "")
        assert bit in {
            value for key, value in vars(pynvml).items() if key.lower().endswith(spelled)
        }


def test_reasons_that_the_driver_counts_have_the_names_of_ours() -> None:
    assert set(THROTTLE_REASONS_COUNTED) <= set(REASONS.values())


@pytest.mark.parametrize(
    ("mask", "names"),
    [
        (0, ()),
        (0x1, ()),
        (0x4, ("sw_power_cap",)),
        (0x48, ("hw_slowdown", "hw_thermal_slowdown")),
        (0x200, (OTHER,)),
        (0x80 | 0x400 | 0x800, ("hw_power_brake_slowdown", OTHER)),
    ],
)
def test_names_of_a_mask(mask: int, names: tuple[str, ...]) -> None:
    assert reasons_in(mask) == names


def test_time_goes_to_the_reasons_that_the_later_sample_gives() -> None:
    clock = ThrottleClock(longest_step_seconds=3)
    for at, mask in ((10, 0x4), (11, 0x4), (13, 0x4 | 0x20), (14, 0)):
        clock.add(at, mask)
    # The first says nothing of the time before it: 1 s and 2 s of power cap, 2 s of them also hot.
    assert clock.seconds["sw_power_cap"] == 3.0
    assert clock.seconds["sw_thermal_slowdown"] == 2.0
    assert sum(clock.seconds.values()) == 5.0


def test_nobody_looked_in_a_gap() -> None:
    clock = ThrottleClock(longest_step_seconds=3)
    for at in (0, 100, 101):
        clock.add(at, 0x8)
    assert clock.seconds["hw_slowdown"] == 1.0


def test_an_idle_gpu_is_not_held_down() -> None:
    clock = ThrottleClock(longest_step_seconds=3)
    for at in range(10):
        clock.add(at, 0x1)
    assert set(clock.seconds.values()) == {0.0}


def test_every_reason_is_there_from_the_start() -> None:
    assert set(ThrottleClock(1).seconds) == {*REASONS.values(), OTHER}


@given(
    st.lists(st.tuples(st.floats(0, 10, allow_subnormal=False), st.integers(0, 0xFFF)), max_size=60)
)
def test_never_more_than_the_time_that_passed_and_never_backwards(
    steps: list[tuple[float, int]],
) -> None:
    clock, now = ThrottleClock(longest_step_seconds=3), 0.0
    for step, mask in steps:
        before = dict(clock.seconds)
        now += step
        clock.add(now, mask)
        for reason, seconds in clock.seconds.items():
            added = seconds - before[reason]
            assert 0 <= added <= step + 1e-9
            if added:
                assert reason in reasons_in(mask)
    assert all(seconds <= now + 1e-6 for seconds in clock.seconds.values())
