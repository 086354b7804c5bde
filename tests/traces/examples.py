# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs and reports with round numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from veo_client.vocabulary import Outcome, Reason, Stage

NOON: int = 1_790_000_000 * 10**9
"""When the jobs are submitted, in nanoseconds since 1970."""
SECOND: int = 10**9
TRACE_ID = 0x4BF92F3577B34DA6A3CE929D0E0E4736
PARENT_ID = 0x00F067AA0BA902B7
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def after(seconds: float) -> int:
    return NOON + round(seconds * SECOND)


@dataclass(frozen=True, kw_only=True)
class Run:
    stage: Stage | str
    start_unix_nanoseconds: int
    end_unix_nanoseconds: int
    seconds: float
    cache: str = ""


def run(stage: Stage | str, start: float, end: float, cache: str = "") -> Run:
    """A stage between two times in seconds after noon."""
    return Run(
        stage=stage,
        start_unix_nanoseconds=after(start),
        end_unix_nanoseconds=after(end),
        seconds=end - start,
        cache=cache,
    )


@dataclass(frozen=True)
class Again:
    unix_nanoseconds: int
    reason: Reason
    delay_seconds: float | None = None


@dataclass(frozen=True)
class File:
    path: str
    size_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Job:
    """Submitted at noon, begun 2 s later, over at 12 s."""

    job_id: str = "job-1"
    source: str = "//render-7"
    engine: str = "veo-engine"
    model: str = "wan-2.2"
    variant: str = "candidate"
    profile: str = "1080p24-6s"
    traceparent: str = ""
    tracestate: str = ""
    submitted_unix_nanoseconds: int = NOON
    started_unix_nanoseconds: int | None = after(2)
    ended_unix_nanoseconds: int = after(12)
    stages: Sequence[Run] = (
        run(Stage.QUEUE, 0, 2),
        run(Stage.WEIGHTS_LOAD, 2, 4, "cold"),
        run(Stage.RENDER, 4, 11),
    )
    retries: Sequence[Again] = ()
    outcome: Outcome | str = Outcome.SUCCESS
    reason: Reason | str = Reason.NONE
    module: str = ""
    stage_at_end: Stage | None = None
    error_code: str = ""
    outputs: Sequence[File] = ()
    filtered_count: int = 0
    gpus: Sequence[str] = ()
    frame: int | None = None
    gpu_memory_peak_bytes: int | None = None


@dataclass(frozen=True)
class Failed:
    kind: str


@dataclass(frozen=True)
class Found:
    defect: str


@dataclass(frozen=True)
class Medium:
    codec: str | None
    frame_count: int


@dataclass(frozen=True)
class Beat:
    rate: Fraction


@dataclass(frozen=True)
class Wanted:
    frames_missing: int | None


@dataclass(frozen=True, kw_only=True)
class Report:
    """A file of 24 fps that stops 5 frames early."""

    file: Path = Path("/srv/videos/out.mp4")
    verdict: str = "defective"
    failure: Failed | None = None
    findings: Sequence[Found] = field(default_factory=lambda: (Found("frames_missing"),))
    media: Medium | None = Medium("h264", 144)
    cadence: Beat | None = Beat(Fraction(24))
    duration: Fraction | None = Fraction(6)
    asked: Wanted | None = Wanted(5)


UNREADABLE = Report(
    verdict="error",
    failure=Failed("unreadable"),
    findings=(),
    media=None,
    cadence=None,
    duration=None,
    asked=None,
)
