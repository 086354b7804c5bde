# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What all samples of one GPU come to."""

import pytest

from tests.gpu.conftest import FakeClock, reading_of
from veo_exporter.catalog import MetricSpec
from veo_exporter.catalog import gpu as catalog
from veo_exporter.catalog.gpu_samples import BUSY_FROM_RATIO
from veo_exporter.gpu.account import MAX_UNFOLDED_READINGS, Folding, SampleAccount
from veo_exporter.gpu.readings import Cadence, Raw, SampleBatch, Signal

FOLDING = Folding(window_seconds=30, longest_step_seconds=3, longest_full_step_seconds=15)
SW_POWER_CAP = 0x4


@pytest.fixture
def account() -> SampleAccount:
    return SampleAccount(FOLDING)


def batch_of(clock: FakeClock, *samples: tuple[float, float], since: float) -> SampleBatch:
    """Samples by monotonic time; the wall clock is a million seconds ahead."""
    times = tuple(round((at + 1e6) * 1e6) for at, _ in samples)
    return SampleBatch(round((since + 1e6) * 1e6), times, tuple(value for _, value in samples))


def take(
    account: SampleAccount,
    at: float,
    values: dict[Signal, float],
    cadence: Cadence = Cadence.FAST,
    samples: dict[MetricSpec, SampleBatch] | None = None,
) -> None:
    account.take(reading_of(cadence, at, values=values)._replace(samples=samples))


def test_busy_seconds_are_utilization_over_time(account: SampleAccount) -> None:
    for at, utilization in ((1000, 0.9), (1001, 0.5), (1003, 1.0)):
        take(account, at, {catalog.UTILIZATION: utilization})
    # Half a second of the first, two whole ones of the other.
    assert account.sampled().seconds[catalog.UTILIZATION] == pytest.approx(2.5)


def test_a_gap_counts_for_nothing(account: SampleAccount) -> None:
    for at in (1000, 1001, 1005, 1006):
        take(account, at, {catalog.UTILIZATION: 1.0})
    assert account.sampled().seconds[catalog.UTILIZATION] == 2.0
    # Nor is there a sample that stands for it.
    assert sum(account.sampled().spreads[catalog.UTILIZATION].seconds) == 2.0


def test_engines_are_summed_up_at_their_own_pace(account: SampleAccount) -> None:
    for at in (1000, 1005, 1010, 1030):
        values: dict[Signal, float] = {
            catalog.ENCODER_UTILIZATION: 0.5,
            catalog.DECODER_UTILIZATION: 0.2,
        }
        take(account, at, values, Cadence.FULL)
    found = account.sampled().seconds
    # Five seconds twice; twenty are more than a sample may stand for.
    assert found[catalog.ENCODER_UTILIZATION] == pytest.approx(5.0)
    assert found[catalog.DECODER_UTILIZATION] == pytest.approx(2.0)


def test_the_buffer_takes_the_place_of_the_value(account: SampleAccount, clock: FakeClock) -> None:
    at = clock.monotonic_seconds()
    for number, peak in ((0, 0.0), (1, 1.0)):
        now = at + number
        samples = {
            catalog.UTILIZATION: batch_of(
                clock, (now - 0.5, peak), (now - 0.25, 0.0), (now, 0.0), since=now - 1
            )
        }
        values: dict[Signal, float] = {catalog.UTILIZATION: 0.25, catalog.POWER: 100.0}
        take(account, now, values, samples=samples)
    found = account.statistics({catalog.UTILIZATION, catalog.POWER})
    assert (found[catalog.UTILIZATION].minimum, found[catalog.UTILIZATION].peak) == (0.0, 1.0)
    # The half second before the peak's sample.
    assert account.sampled().seconds[catalog.UTILIZATION] == pytest.approx(0.5)
    # What has no buffer is sampled as ever.
    assert found[catalog.POWER].peak == 100.0
    assert account.sampled().gaps == {catalog.UTILIZATION: 0}


def test_a_signal_that_fails_at_times(account: SampleAccount) -> None:
    take(account, 1000, {catalog.UTILIZATION: 1.0, catalog.POWER: 100.0})
    take(account, 1001, {catalog.POWER: 300.0})
    take(account, 1002, {catalog.UTILIZATION: 1.0, catalog.POWER: 200.0})
    assert account.sampled().seconds[catalog.UTILIZATION] == 2.0
    assert account.statistics({catalog.POWER})[catalog.POWER].mean == pytest.approx(250.0)


@pytest.mark.parametrize(
    ("utilization", "seconds"),
    [(BUSY_FROM_RATIO, 2.0), (BUSY_FROM_RATIO - 0.01, 0.0), (None, 0.0)],
)
def test_throttled_while_busy(
    account: SampleAccount, utilization: float | None, seconds: float
) -> None:
    for at in (1000, 1001, 1002):
        values: dict[Signal, float] = {Raw.CLOCK_EVENT_REASONS: SW_POWER_CAP}
        if utilization is not None:
            values[catalog.UTILIZATION] = utilization
        take(account, at, values)
    assert account.throttle_seconds["sw_power_cap"] == 2.0
    assert account.sampled().throttle_busy_seconds["sw_power_cap"] == seconds
    assert account.sampled().throttle_busy_seconds["hw_slowdown"] == 0.0


def test_an_unknown_utilization_is_neither_busy_nor_not(account: SampleAccount) -> None:
    for at, utilization in ((1000, 1.0), (1001, None), (1002, 1.0), (1003, None), (1004, 0.0)):
        values: dict[Signal, float] = {Raw.CLOCK_EVENT_REASONS: SW_POWER_CAP}
        if utilization is not None:
            values[catalog.UTILIZATION] = utilization
        take(account, at, values)
    # The sample of 1002 stands for both seconds since the one of 1000, that of 1004 for the rest.
    assert account.sampled().throttle_busy_seconds["sw_power_cap"] == 2.0
    assert account.throttle_seconds["sw_power_cap"] == 4.0


def test_each_step_is_the_samples_own(account: SampleAccount) -> None:
    for at, utilization in ((1000, 1.0), (1001, 0.0), (1002, 1.0), (1003, 1.0)):
        values: dict[Signal, float] = {
            Raw.CLOCK_EVENT_REASONS: SW_POWER_CAP,
            catalog.UTILIZATION: utilization,
        }
        take(account, at, values)
    assert account.sampled().throttle_busy_seconds["sw_power_cap"] == 2.0


def test_what_nobody_publishes_does_not_pile_up(account: SampleAccount) -> None:
    for number in range(10 * MAX_UNFOLDED_READINGS):
        take(account, 1000 + number / 50, {catalog.UTILIZATION: 1.0})
        assert len(account._unfolded) < MAX_UNFOLDED_READINGS
    elapsed = (10 * MAX_UNFOLDED_READINGS - 1) / 50
    assert account.sampled().seconds[catalog.UTILIZATION] == pytest.approx(elapsed)


def test_folding_in_lumps_is_folding_one_by_one() -> None:
    lumps, singly = SampleAccount(FOLDING), SampleAccount(FOLDING)
    signals = (catalog.UTILIZATION, catalog.POWER, catalog.TEMPERATURE)
    for number in range(100):
        value = float(number * 37 % 101) / 100
        values: dict[Signal, float] = dict.fromkeys(signals, value)
        take(lumps, 1000 + number / 10, values)
        take(singly, 1000 + number / 10, values)
        singly.settle()
    for signal in signals:
        one, other = lumps.statistics(signals)[signal], singly.statistics(signals)[signal]
        assert (one.minimum, one.peak) == (other.minimum, other.peak)
        assert one.mean == pytest.approx(other.mean)
    one_by_one = singly.sampled().spreads[catalog.POWER]
    assert lumps.sampled().spreads[catalog.POWER].integral == pytest.approx(one_by_one.integral)


def test_reasons_in_lumps_are_reasons_one_by_one() -> None:
    lumps, singly = SampleAccount(FOLDING), SampleAccount(FOLDING)
    for number in range(90):
        # Held down from 2 s to 3 s and from 5 s to 6 s, and else idle or not held down at all.
        mask = SW_POWER_CAP if number // 10 in (2, 5) else number % 2
        values: dict[Signal, float] = {
            Raw.CLOCK_EVENT_REASONS: mask,
            catalog.UTILIZATION: 1.0 if number < 40 else 0.0,
        }
        for account in (lumps, singly):
            take(account, 1000 + number / 10, values)
        singly.settle()
        if number % 10 == 9:
            lumps.settle()
    for account in (lumps, singly):
        assert account.throttle_seconds["sw_power_cap"] == pytest.approx(2.0)
        assert account.sampled().throttle_busy_seconds["sw_power_cap"] == pytest.approx(1.0)


def test_other_folding_goes_on_counting(account: SampleAccount) -> None:
    for at in (1000, 1001):
        take(account, at, {catalog.UTILIZATION: 1.0})
    account.refold(Folding(60, 30, 60))
    take(account, 1011, {catalog.UTILIZATION: 0.5})
    assert account.sampled().seconds[catalog.UTILIZATION] == 6.0
    # The window begins anew.
    assert account.statistics({catalog.UTILIZATION})[catalog.UTILIZATION].peak == 0.5
