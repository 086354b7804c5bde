# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A job that is over: everything that a trace, a probe or a counter needs of it."""

from collections.abc import Iterable
from dataclasses import dataclass

from veo_client.vocabulary import Outcome, Reason, Stage
from veo_exporter.jobs.payload import Request

NANOSECONDS: int = 1_000_000_000


@dataclass(frozen=True, slots=True)
class StageReport:
    """A stage that is over, as its event told it."""

    stage: Stage
    start_unix_nanoseconds: int
    end_unix_nanoseconds: int
    seconds: float
    """Below zero if two clocks contradict each other."""
    placed: bool
    """Whether the start was told; else it was reckoned from the duration."""
    cache: str
    key: tuple[str, str]


@dataclass(frozen=True, slots=True)
class StageSpan:
    """A stage within its job. Spans of one job do not overlap, nor leave it."""

    stage: Stage
    start_unix_nanoseconds: int
    end_unix_nanoseconds: int
    seconds: float
    """What the sender says it took, which may be more than there was room for."""
    cache: str = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """The job was tried once more."""

    reason: Reason
    attempt: int | None
    delay_seconds: float | None
    unix_nanoseconds: int
    key: tuple[str, str]


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file that came out, as the sender names it: not yet known to be there."""

    path: str
    """Empty if the sender did not name it."""
    size_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedJob:
    """A job, told from its end. Times are nanoseconds since 1970, and in order."""

    job_id: str
    source: str
    engine: str
    model: str
    variant: str
    profile: str
    traceparent: str
    tracestate: str
    submitted_unix_nanoseconds: int
    """When it was submitted; if nobody said so, when it was first heard of or began."""
    started_unix_nanoseconds: int | None
    ended_unix_nanoseconds: int
    stages: tuple[StageSpan, ...]
    retries: tuple[Retry, ...]
    outcome: Outcome
    reason: Reason
    module: str
    stage_at_end: Stage | None
    """The stage that was under way, if it is known."""
    error_code: str
    error_message: str
    outputs: tuple[OutputFile, ...]
    filtered_count: int
    request: Request | None
    gpus: tuple[str, ...]
    pid: int | None
    frame: int | None
    """The frame at which a render stopped."""
    gpu_memory_peak_bytes: int | None

    @property
    def duration_seconds(self) -> float:
        return (self.ended_unix_nanoseconds - self.submitted_unix_nanoseconds) / NANOSECONDS


def lay_out(reports: Iterable[StageReport], begin: int | None, end: int) -> tuple[StageSpan, ...]:
    """Reports as spans between begin and end, one after the other.

    Those that tell only how long they took end when they were reported, or when the next one
    begins; what does not fit is cut, the earlier part first. Without a begin they reach back as far
    as they need.
    """
    spans: list[StageSpan] = []
    cursor = end
    for report in sorted(reports, key=lambda report: report.end_unix_nanoseconds)[::-1]:
        stop = min(report.end_unix_nanoseconds, cursor)
        length = report.end_unix_nanoseconds - report.start_unix_nanoseconds
        start = min(stop, report.start_unix_nanoseconds) if report.placed else stop - length
        if begin is not None:
            stop = max(stop, begin)
            start = max(start, begin)
        seconds = max(0.0, report.seconds)
        spans.append(StageSpan(report.stage, start, stop, seconds, report.cache))
        cursor = start
    return tuple(spans[::-1])
