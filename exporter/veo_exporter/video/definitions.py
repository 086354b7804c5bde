# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What is said of a video file. Times are exact fractions of seconds unless a name says otherwise."""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Final


class Verdict(StrEnum):
    """What a file is worth, from best to worst."""

    OK = "ok"
    DEGRADED = "degraded"
    DEFECTIVE = "defective"
    ERROR = "error"


class ErrorKind(StrEnum):
    """Why nothing could be said of a file's timing."""

    FORBIDDEN = "forbidden"
    EMPTY = "empty"
    TIMEOUT = "timeout"
    UNREADABLE = "unreadable"
    NO_VIDEO_STREAM = "no_video_stream"


class TimingSource(StrEnum):
    """Which timestamps were judged; a raw stream has none."""

    PTS = "pts"
    DTS = "dts"
    NONE = "none"


class Defect(StrEnum):
    """What is wrong with a file that could be read."""

    UNEVEN_RATE = "uneven_rate"
    JITTER = "jitter"
    DRIFT = "drift"
    LOW_CONSISTENCY = "low_consistency"
    SHORT_DELTAS = "short_deltas"
    KEYFRAME_INTERVAL = "keyframe_interval"
    HEADER_MISMATCH = "header_mismatch"
    EXTRA_FRAMES = "extra_frames"
    FRAMES_MISSING = "frames_missing"
    TRUNCATED = "truncated"
    GAP = "gap"
    DUPLICATE_TIMESTAMPS = "duplicate_timestamps"
    DISCONTINUITY = "discontinuity"
    WRONG_RATE = "wrong_rate"


DEFECTIVE: Final = frozenset(
    {
        Defect.FRAMES_MISSING,
        Defect.TRUNCATED,
        Defect.GAP,
        Defect.DUPLICATE_TIMESTAMPS,
        Defect.DISCONTINUITY,
        Defect.WRONG_RATE,
    }
)
"""These make a file defective; every other one makes it degraded."""

PROBE_CRASHED: Final = "probe_crashed"
"""Counted apart from unreadable files: it is the probe that died, and says little of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Where the judge draws its lines. A value at the line is on the good side."""

    deviation: Fraction = Fraction(1, 2000)
    jitter: Fraction = Fraction(1, 20)
    gap_intervals: Fraction = Fraction(3, 2)
    consistency: Fraction = Fraction(99, 100)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a file has no figures."""

    kind: ErrorKind
    message: str
    crashed: bool = False
    cut_off: bool = False
    """What is missing is the file's end: that is why nothing could be read."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Frames that should stand between two neighbours. Frames are counted from 0, `at` from the first."""

    after_frame: int
    at: Fraction
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A defect: how much of it, and where it is first seen."""

    defect: Defect
    message: str
    amount: Fraction
    unit: str
    frame: int | None = None
    at: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """What the file is, without its timing."""

    container: str
    codec: str | None
    width: int | None
    height: int | None
    timing_source: TimingSource
    time_base: Fraction
    frame_count: int
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cadence:
    """How evenly the frames follow each other, measured against the nominal rate."""

    rate: Fraction
    duration: Fraction
    first_pts: Fraction
    tick: Fraction
    gap_count: int
    gaps: tuple[Gap, ...]
    """Where they are; of very many only the first."""
    dropped_frames: int
    duplicate_pts: int
    first_duplicate: int | None
    short_deltas: int
    discontinuities: int
    max_deviation_raw: Fraction
    deviations: tuple[tuple[Fraction, int], ...]
    """Each distance from the nominal interval, net of tick rounding, and how many deltas have it."""
    good_deltas: int
    deltas: int
    jitter: Fraction
    on_grid: bool

    @property
    def max_deviation_net(self) -> Fraction:
        return max((deviation for deviation, _ in self.deviations), default=Fraction(0))

    @property
    def is_constant_rate(self) -> bool:
        return self.good_deltas == self.deltas

    @property
    def consistency(self) -> Fraction:
        return Fraction(self.good_deltas, self.deltas)


@dataclass(frozen=True, slots=True)
class Keyframes:
    """Where the keyframes are, in order of presentation."""

    frames: tuple[int, ...]
    interval_frames: tuple[int, ...]
    intervals: tuple[Fraction, ...]
    tail_frames: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked for against what came; None where it was not asked or cannot be told."""

    fps: Fraction | None = None
    duration: Fraction | None = None
    keyframe_interval: Fraction | None = None
    frames: int | None = None
    frames_missing: int | None = None
    frame_count_ok: bool | None = None
    duration_ok: bool | None = None
    fps_ok: bool | None = None
    drift: Fraction | None = None
    drift_ok: bool | None = None
    shortfall: Fraction | None = None
    """Seconds asked for less seconds delivered, never under zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoReport:
    """Everything that is known of one file."""

    file: Path
    verdict: Verdict
    failure: Failure | None = None
    warnings: tuple[str, ...] = ()
    media: Media | None = None
    first_pts: Fraction | None = None
    duration: Fraction | None = None
    cadence: Cadence | None = None
    keyframes: Keyframes | None = None
    asked: Asked | None = None
    findings: tuple[Finding, ...] = ()
