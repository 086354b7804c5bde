# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Reports that somebody else made and posted: the probe JSON, read back as far as it is counted."""

import re
from collections import OrderedDict
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from veo_exporter.errors import VeoError
from veo_exporter.video.definitions import (
    Asked,
    Cadence,
    Defect,
    ErrorKind,
    Failure,
    Finding,
    Keyframes,
    Media,
    TimingSource,
    Verdict,
    VideoReport,
)
from veo_exporter.video.memory import slim

MOST_FRAMES: Final = 10_000_000
MOST_INTERVALS: Final = 100_000
"""Of a report that are observed one by one; more than an hour of frames."""
MOST_KEPT: Final = 500
MOST_FAULTS: Final = 3
_LARGEST_RATIO: Final = 1_000_000
_EXACT: Final = re.compile(r"[0-9]{1,18}/[1-9][0-9]{0,17}")


class BadReport(VeoError):
    """What was posted is no report of a probe; the message says which field is wrong."""


def _exact(written: object) -> Fraction:
    if not isinstance(written, str) or not _EXACT.fullmatch(written):
        raise ValueError('must be a fraction as "24000/1001"')
    return Fraction(written)


_Count = Annotated[int, Field(ge=0, le=MOST_FRAMES)]
_Number = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
_Fraction = Annotated[Fraction, BeforeValidator(_exact)]
_Text = Annotated[str, Field(max_length=2000)]


class _Said(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="ignore", strict=True, arbitrary_types_allowed=True
    )


class _Error(_Said):
    kind: Annotated[ErrorKind, Field(strict=False)]
    message: _Text = ""
    crashed: bool = False


class _Defect(_Said):
    name: Annotated[Defect, Field(strict=False)]
    message: _Text = ""


class _Request(_Said):
    frames_missing: Annotated[int, Field(ge=-MOST_FRAMES, le=MOST_FRAMES)] | None = None
    shortfall_s: _Number | None = None


class _Report(_Said):
    file: Annotated[str, Field(min_length=1, max_length=4096, pattern="^[^\0]+$")]
    verdict: Annotated[Verdict, Field(strict=False)]
    error: _Error | None = None
    container: _Text | None = None
    codec: _Text | None = None
    width: _Count | None = None
    height: _Count | None = None
    frame_count: _Count | None = None
    truncated: bool | None = None
    nominal_fps: _Fraction | None = None
    duration_s: _Fraction | None = None
    gap_count: _Count | None = None
    dropped_frames: _Count | None = None
    duplicate_pts: _Count | None = None
    consistency_ratio: Annotated[_Number, Field(le=1)] | None = None
    deviations_ms: (
        Annotated[
            list[Annotated[list[_Number], Field(min_length=2, max_length=2)]],
            Field(max_length=MOST_INTERVALS),
        ]
        | None
    ) = None
    keyframe_interval_s: Annotated[list[_Number], Field(max_length=MOST_INTERVALS)] | None = None
    request: _Request | None = None
    defects: Annotated[list[_Defect], Field(max_length=100)] = Field(default_factory=list)


def read_report(said: dict[str, Any]) -> VideoReport:
    """The report in a probe's JSON. Raises BadReport."""
    try:
        report = _Report.model_validate(said)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        told = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in faults[:MOST_FAULTS]]
        if len(faults) > MOST_FAULTS:
            told.append(f"and {len(faults) - MOST_FAULTS} more")
        raise BadReport("; ".join(told)) from None
    if (report.error is None) is (report.verdict is Verdict.ERROR):
        raise BadReport("verdict: is error if, and only if, there is an error")
    if sum(count for _, count in report.deviations_ms or ()) > MOST_INTERVALS:
        raise BadReport(f"deviations_ms: are of more than {MOST_INTERVALS} intervals")
    return VideoReport(
        file=Path(report.file),
        verdict=report.verdict,
        failure=_failure(report),
        media=_media(report),
        duration=report.duration_s,
        cadence=_cadence(report),
        keyframes=_keyframes(report.keyframe_interval_s),
        asked=_asked(report.request),
        findings=tuple(
            Finding(defect=found.name, message=found.message, amount=Fraction(0), unit="")
            # A file has a defect or it has not, however often somebody lists it.
            for found in {defect.name: defect for defect in report.defects}.values()
        ),
    )


def _failure(report: _Report) -> Failure | None:
    error = report.error
    if error is None:
        return None
    return Failure(error.kind, error.message, error.crashed, cut_off=bool(report.truncated))


def _asked(request: _Request | None) -> Asked | None:
    if request is None:
        return None
    missing = None if request.shortfall_s is None else _decimal(request.shortfall_s)
    return Asked(frames_missing=request.frames_missing, shortfall=missing)


def _media(report: _Report) -> Media | None:
    if report.frame_count is None:
        return None
    return Media(
        container=report.container or "",
        codec=report.codec,
        width=report.width,
        height=report.height,
        timing_source=TimingSource.NONE,
        time_base=Fraction(0),
        frame_count=report.frame_count,
        truncated=bool(report.truncated),
    )


def _cadence(report: _Report) -> Cadence | None:
    if report.nominal_fps is None or report.consistency_ratio is None:
        return None
    ratio = Fraction(report.consistency_ratio).limit_denominator(_LARGEST_RATIO)
    return Cadence(
        rate=report.nominal_fps,
        duration=report.duration_s or Fraction(0),
        first_pts=Fraction(0),
        tick=Fraction(0),
        gap_count=report.gap_count or 0,
        gaps=(),
        dropped_frames=report.dropped_frames or 0,
        duplicate_pts=report.duplicate_pts or 0,
        first_duplicate=None,
        short_deltas=0,
        discontinuities=0,
        max_deviation_raw=Fraction(0),
        deviations=tuple(
            (_decimal(deviation) / 1000, int(count))
            for deviation, count in report.deviations_ms or ()
        ),
        good_deltas=ratio.numerator,
        deltas=ratio.denominator,
        jitter=Fraction(0),
        on_grid=True,
    )


def _keyframes(intervals: list[float] | None) -> Keyframes | None:
    if intervals is None:
        return None
    return Keyframes((), (), tuple(_decimal(seconds) for seconds in intervals), 0)


def _decimal(value: float) -> Fraction:
    # As it was written, not as a float holds it: 0.5 ms is a bound.
    return Fraction(repr(value))


class PostedFiles:
    """Brings a job's files and the reports on them together, whichever is told first. Bounded."""

    def __init__(self, most_kept: int = MOST_KEPT) -> None:
        self._most_kept = most_kept
        self._reports: OrderedDict[tuple[str, str], VideoReport] = OrderedDict()
        self._parents: OrderedDict[tuple[str, str], str | None] = OrderedDict()

    def report_came(self, job_id: str, report: VideoReport) -> str | None:
        """Keep a report for its job; the traceparent under which it belongs, if the job was first."""
        key = (job_id, str(report.file))
        if key in self._parents:
            return self._parents.pop(key)
        self._reports[key] = slim(report)
        while len(self._reports) > self._most_kept:
            self._reports.popitem(last=False)
        return None

    def job_ended(self, job_id: str, path: str, parent: str | None) -> VideoReport | None:
        """The report on a job's file, if it came before; else it may still."""
        key = (job_id, path)
        if (report := self._reports.pop(key, None)) is not None:
            return report
        self._parents[key] = parent
        while len(self._parents) > self._most_kept:
            self._parents.popitem(last=False)
        return None
