# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What the settings come to."""

from dataclasses import replace

import pytest

from veo_exporter.gpu.account import Folding
from veo_exporter.gpu.readings import Cadence
from veo_exporter.gpu.timing import Timing


def timing(fast: float, full: float, static: float) -> Timing:
    return Timing(
        fast_interval_seconds=fast,
        full_interval_seconds=full,
        static_interval_seconds=static,
        window_seconds=30,
        call_deadline_seconds=2,
        start_deadline_seconds=30,
    )


@pytest.mark.parametrize(
    ("intervals", "stale_after"),
    [
        # Three intervals, but not under five seconds.
        ((1, 5, 60), (5, 15, 180)),
        ((0.02, 1, 5), (5, 5, 15)),
        ((2, 2, 600), (6, 6, 1800)),
    ],
)
def test_stale_after_three_intervals(
    intervals: tuple[float, float, float], stale_after: tuple[float, float, float]
) -> None:
    found = timing(*intervals)
    assert found.intervals == dict(zip(Cadence, intervals, strict=True))
    assert found.stale_after_seconds == dict(zip(Cadence, stale_after, strict=True))


def test_a_sample_stands_for_three_intervals_at_most() -> None:
    assert timing(0.5, 5, 60).folding == Folding(window_seconds=30, longest_step_seconds=1.5)


@pytest.mark.parametrize(("fast", "read"), [(1, True), (0.5, True), (0.499, False), (0.02, False)])
def test_the_drivers_buffers_fill_long_intervals_only(fast: float, read: bool) -> None:
    found = timing(fast, 5, 60)
    assert found.reads_samples(Cadence.FAST) is read
    assert found.reads_samples(Cadence.FULL)


def test_the_drivers_buffers_are_left_alone_if_asked() -> None:
    found = replace(timing(1, 5, 60), driver_samples=False)
    assert not any(found.reads_samples(cadence) for cadence in Cadence)


def test_a_sample_of_the_full_sweep_stands_for_three_of_its_intervals() -> None:
    assert timing(1, 10, 60).folding.longest_full_step_seconds == 30
