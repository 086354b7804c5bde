# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Timestamps in the order in which they are shown, in whole ticks."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final

from veo_exporter.video.definitions import Keyframes, TimingSource
from veo_exporter.video.packets import ABSENT, Packets

LONGEST_TICK: Final = Fraction(1, 1000)
"""Deltas that share a larger factor do so because the rate is even, not because the clock is coarse."""

REORDERED_FRAMES: Final = 16
"""No codec shows a frame later than this after its place in the file."""


@dataclass(frozen=True, slots=True)
class Run:
    """Frames whose clock was not set back, by time of presentation."""

    ticks: tuple[int, ...]
    key: tuple[bool, ...]

    def deltas(self) -> Iterator[int]:
        return (later - earlier for earlier, later in pairwise(self.ticks))


@dataclass(frozen=True, slots=True)
class Timeline:
    """All frames of a file."""

    source: TimingSource
    time_base: Fraction
    tick: int
    """The coarsest clock that explains all deltas, in ticks of the time base: milliseconds that a
    remuxer kept in a finer time base stay milliseconds."""
    runs: tuple[Run, ...]

    @property
    def deltas(self) -> list[int]:
        return [delta for run in self.runs for delta in run.deltas()]


_Row = tuple[int, bool, int]
"""Time of presentation, whether it is a keyframe, time of decoding."""


def lay_out(packets: Packets, time_base: Fraction) -> Timeline:
    """Cut where the clock was set back, then sort: sorting alone would interleave the runs."""
    rows, source = _rows(packets, packets.pts), TimingSource.PTS
    if not rows:
        rows, source = _rows(packets, packets.dts), TimingSource.DTS
    if not rows:
        return Timeline(TimingSource.NONE, time_base, 1, ())
    runs = []
    for start, end in pairwise([0, *_set_back(rows), len(rows)]):
        shown = sorted(rows[start:end], key=lambda row: row[0])
        runs.append(Run(tuple(row[0] for row in shown), tuple(row[1] for row in shown)))
    factor = math.gcd(*(delta for run in runs for delta in run.deltas()))
    tick = factor if factor and factor * time_base <= LONGEST_TICK else 1
    return Timeline(source, time_base, tick, tuple(runs))


def _rows(packets: Packets, column: Sequence[int]) -> list[_Row]:
    return [
        (ticks, bool(key), dts)
        for ticks, key, dts in zip(column, packets.key, packets.dts, strict=True)
        if ticks != ABSENT
    ]


def _set_back(rows: Sequence[_Row]) -> Iterator[int]:
    """Where a new run starts: where decoding times go down in file order."""
    decoding = [(place, dts) for place, (_, _, dts) in enumerate(rows) if dts != ABSENT]
    if decoding:
        yield from (place for (_, before), (place, dts) in pairwise(decoding) if dts < before)
        return
    # Matroska keeps no decoding times. Presentation times go down and up with each B-frame, but
    # never by more than a codec may reorder.
    times = sorted({ticks for ticks, _, _ in rows})
    steps = sorted(later - earlier for earlier, later in pairwise(times))
    reach = REORDERED_FRAMES * steps[len(steps) // 2] if steps else 0
    newest = rows[0][0]
    for place, (ticks, _, _) in enumerate(rows):
        if ticks < newest - reach:
            yield place
            newest = ticks
        newest = max(newest, ticks)


def find_keyframes(timeline: Timeline, packets: Packets) -> Keyframes:
    """Their places, and what lies between them. A raw stream's are in file order."""
    if not timeline.runs:
        frames = tuple(place for place, key in enumerate(packets.key) if key)
        gaps = tuple(later - earlier for earlier, later in pairwise(frames))
        return Keyframes(frames, gaps, (), len(packets) - frames[-1] if frames else len(packets))
    found: list[int] = []
    interval_frames: list[int] = []
    intervals: list[Fraction] = []
    start = tail = 0
    for run in timeline.runs:
        keys = [place for place, key in enumerate(run.key) if key]
        found += [start + place for place in keys]
        for earlier, later in pairwise(keys):
            interval_frames.append(later - earlier)
            intervals.append((run.ticks[later] - run.ticks[earlier]) * timeline.time_base)
        tail = len(run.ticks) - (keys[-1] if keys else 0)
        start += len(run.ticks)
    return Keyframes(tuple(found), tuple(interval_frames), tuple(intervals), tail)
