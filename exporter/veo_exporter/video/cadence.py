# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""How a timeline keeps its rate: deltas, gaps, jitter, duration."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate
from typing import Final

from veo_exporter.video.definitions import Cadence, Gap, Thresholds
from veo_exporter.video.rate import SAME_RATE, Interval
from veo_exporter.video.timeline import Run, Timeline

MOST_GAPS_KEPT: Final = 1000
"""Places of gaps that are kept; the counts are of all."""


def measure(timeline: Timeline, rate: Fraction, thresholds: Thresholds) -> Cadence:
    """Every figure against this rate. The timeline has at least one delta."""
    interval = Interval.of(rate, timeline)
    time_base = timeline.time_base
    counted = Counter(timeline.deltas)
    tolerance = thresholds.deviation / time_base
    gaps = {
        delta: interval.count(delta) - 1
        for delta in counted
        if delta > thresholds.gap_intervals * interval.exact and delta > interval.longest
    }
    deviations: Counter[int] = Counter()
    for delta, number in counted.items():
        deviations[interval.deviation(delta)] += number
    errors = [_grid_errors(run, interval) for run in timeline.runs]
    grid = tolerance + timeline.tick
    return Cadence(
        rate=rate,
        duration=_duration(timeline, interval),
        first_pts=timeline.runs[0].ticks[0] * time_base,
        tick=timeline.tick * time_base,
        gap_count=sum(counted[delta] for delta in gaps),
        gaps=tuple(_places(timeline, gaps)),
        dropped_frames=sum(missing * counted[delta] for delta, missing in gaps.items()),
        duplicate_pts=counted[0],
        first_duplicate=_first_duplicate(timeline) if counted[0] else None,
        short_deltas=sum(
            number
            for delta, number in counted.items()
            if 0 < 2 * delta < interval.exact and delta < interval.shortest
        ),
        discontinuities=len(timeline.runs) - 1,
        max_deviation_raw=max(abs(delta - interval.exact) for delta in counted) * time_base,
        deviations=tuple(
            (deviation * time_base, number) for deviation, number in sorted(deviations.items())
        ),
        good_deltas=sum(number for off, number in deviations.items() if off <= tolerance),
        deltas=counted.total(),
        jitter=max(highest - lowest for lowest, highest in errors) * time_base,
        on_grid=all(-lowest <= grid and highest <= grid for lowest, highest in errors)
        and all(interval.count(delta) for delta in counted),
    )


def drift(timeline: Timeline, rate: Fraction) -> Fraction:
    """How far the last frame is from where this rate puts it, over all runs."""
    interval = Interval.of(rate, timeline)
    ticks = Fraction(0)
    for run in timeline.runs:
        ticks += run.ticks[-1] - run.ticks[0] - interval.exact * _intervals(run, interval)
    return ticks * timeline.time_base


def _intervals(run: Run, interval: Interval) -> int:
    return sum(interval.count(delta) * number for delta, number in Counter(run.deltas()).items())


def same_rate(rate: Fraction, other: Fraction) -> bool:
    return abs(rate / other - 1) <= SAME_RATE


def _duration(timeline: Timeline, interval: Interval) -> Fraction:
    """From each run's first frame to the end of its last."""
    ticks = sum(run.ticks[-1] - run.ticks[0] for run in timeline.runs)
    return (ticks + len(timeline.runs) * interval.exact) * timeline.time_base


def _places(timeline: Timeline, gaps: dict[int, int]) -> Iterator[Gap]:
    found = frame = 0
    for run in timeline.runs:
        for place, delta in enumerate(run.deltas() if gaps else ()):
            if delta in gaps and found < MOST_GAPS_KEPT:
                at = (run.ticks[place] - run.ticks[0]) * timeline.time_base
                yield Gap(frame + place, at, gaps[delta])
                found += 1
        frame += len(run.ticks)


def _first_duplicate(timeline: Timeline) -> int | None:
    frame = 0
    for run in timeline.runs:
        for place, delta in enumerate(run.deltas()):
            if not delta:
                return frame + place + 1
        frame += len(run.ticks)
    return None


def _grid_errors(run: Run, interval: Interval) -> tuple[Fraction, Fraction]:
    """Lowest and highest distance of a frame from the grid that starts at the run's first."""
    counts = {delta: interval.count(delta) for delta in set(run.deltas())}
    grid = accumulate((counts[delta] for delta in run.deltas()), initial=0)
    # In integers: a fraction for each frame would cost more than ffprobe.
    above, below = interval.exact.as_integer_ratio()
    start = run.ticks[0]
    errors = [
        (ticks - start) * below - above * place
        for ticks, place in zip(run.ticks, grid, strict=True)
    ]
    return Fraction(min(errors), below), Fraction(max(errors), below)
