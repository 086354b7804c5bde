# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The trailing window against a model that keeps every sample."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veo_exporter.gpu.window import PARTS, TrailingWindow

LENGTH = 30.0
PART = LENGTH / PARTS

STEPS = st.one_of(
    st.just(0.02),
    st.just(1.0),
    st.floats(0.001, 3.0),
    st.floats(3.0, 100.0),
)
SAMPLES = st.lists(st.tuples(STEPS, st.floats(0, 1000)), min_size=1, max_size=80)
LONGEST_STEP = 3.0
TOLERANCE = 1e-6

Sample = tuple[float, float, float]
"""Time, value, and for how long it stands."""


def at_times(steps: list[tuple[float, float]]) -> list[Sample]:
    now, samples = 1000.0, list[Sample]()
    for step, value in steps:
        stands_for = min(step, LONGEST_STEP) if samples else 0.0
        now += step
        samples.append((now, value, stands_for))
    return samples


def weighted_mean(samples: list[Sample]) -> float | None:
    weight = sum(stands_for for _, _, stands_for in samples)
    if weight <= 0:
        return None
    return sum(value * stands_for for _, value, stands_for in samples) / weight


@given(SAMPLES)
def test_is_the_length_and_at_most_one_part_more(steps: list[tuple[float, float]]) -> None:
    window, samples = TrailingWindow(LENGTH, LONGEST_STEP), at_times(steps)
    for end, (now, value, _) in enumerate(samples, start=1):
        window.add(now, value)
        if end % 7 == 0 or end == len(samples):
            compare_with_all(window, samples[:end])


def test_the_same_at_50_hertz() -> None:
    # A part is full of samples then, and goes as soon as its newest is too old.
    window = TrailingWindow(LENGTH, LONGEST_STEP)
    samples = at_times([(0.02, float(n)) for n in range(1700)])
    for end, (now, value, _) in enumerate(samples, start=1):
        window.add(now, value)
        if end > 1500 and end % 7 == 0:
            compare_with_all(window, samples[:end])


def compare_with_all(window: TrailingWindow, samples: list[Sample]) -> None:
    """The model: every sample is kept, and the window may begin anywhere in its last part."""
    now = samples[-1][0]
    must = [s for s in samples if s[0] >= now - LENGTH + TOLERANCE]
    may = [s for s in samples if s[0] >= now - LENGTH - PART - TOLERANCE]
    found = window.statistics()
    assert found is not None
    assert found.peak in {value for _, value, _ in may}
    assert found.minimum in {value for _, value, _ in may}
    assert found.peak >= max(value for _, value, _ in must)
    assert found.minimum <= min(value for _, value, _ in must)
    assert found.minimum <= found.mean <= found.peak
    begins = range(len(samples) - len(may), len(samples) - len(must) + 1)
    means = [mean for begin in begins if (mean := weighted_mean(samples[begin:])) is not None]
    if means:
        nearest = min(means, key=lambda mean: abs(mean - found.mean))
        assert found.mean == pytest.approx(nearest, rel=1e-6, abs=1e-6)


def test_nothing_before_the_first_sample() -> None:
    assert TrailingWindow(LENGTH, LONGEST_STEP).statistics() is None


def test_the_mean_is_weighted_by_time() -> None:
    window = TrailingWindow(LENGTH, LONGEST_STEP)
    for at, value in ((0, 0.5), (1, 1.0), (4, 0.0)):
        window.add(at, value)
    found = window.statistics()
    assert found is not None
    # 1.0 stands for one second and 0.0 for three; of 0.5 it is not known for how long it was.
    assert (found.minimum, found.mean, found.peak) == (0.0, 0.25, 1.0)


def test_a_gap_is_not_filled() -> None:
    window = TrailingWindow(LENGTH, LONGEST_STEP)
    for at, value in ((0, 1.0), (1, 1.0), (21, 0.0)):
        window.add(at, value)
    found = window.statistics()
    assert found is not None
    # The last sample stands for three of the twenty seconds before it: 1 of 1 + 3.
    assert found.mean == 0.25


def test_a_peak_between_two_scrapes_is_seen_by_both_and_then_forgotten() -> None:
    window = TrailingWindow(LENGTH, LONGEST_STEP)
    peaks = {}
    for at in range(100):
        window.add(at, 1.0 if at == 20 else 0.1)
        found = window.statistics()
        assert found is not None
        peaks[at] = found.peak
    assert {peaks[at] for at in range(20, 51)} == {1.0}
    # One part is one second here: from 52 on it is too long ago.
    assert {peak for at, peak in peaks.items() if at < 20 or at > 51} == {0.1}


def test_after_a_long_silence_only_the_newest_counts() -> None:
    window = TrailingWindow(LENGTH, LONGEST_STEP)
    for at in (0, 1, 2, 1000):
        window.add(at, float(at))
    found = window.statistics()
    assert found is not None
    assert (found.minimum, found.mean, found.peak) == (1000.0, 1000.0, 1000.0)


@given(SAMPLES, st.integers(1, 40))
def test_lumps_are_as_good_as_samples_one_by_one(
    steps: list[tuple[float, float]], lump: int
) -> None:
    lumps, singly = TrailingWindow(LENGTH, LONGEST_STEP), TrailingWindow(LENGTH, LONGEST_STEP)
    samples = at_times(steps)
    for now, value, _ in samples:
        singly.add(now, value)
    for begin in range(0, len(samples), lump):
        times, values, weights = zip(*samples[begin : begin + lump], strict=True)
        lumps.add_all(times, values, weights)
    one, other = lumps.statistics(), singly.statistics()
    assert one is not None
    assert other is not None
    assert (one.minimum, one.peak) == (other.minimum, other.peak)
    assert one.mean == pytest.approx(other.mean, rel=1e-9, abs=1e-9)


@given(SAMPLES)
def test_memory_is_bounded_by_the_parts(steps: list[tuple[float, float]]) -> None:
    window = TrailingWindow(LENGTH, LONGEST_STEP)
    for now, value, _ in at_times(steps):
        window.add(now, value)
        assert len(window) <= PARTS + 2
