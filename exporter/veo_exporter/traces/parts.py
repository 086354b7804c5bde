# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What stands inside a job's span: the attempts, the stages, the files looked into."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from veo_client.vocabulary import Outcome, Reason, Stage
from veo_exporter.traces import attributes as names
from veo_exporter.traces.context import derive_span_id
from veo_exporter.traces.inputs import FinishedJob, Probed, Retry, StageSpan
from veo_exporter.traces.spans import Attributes, AttributeValue, EventPlan, SpanPlan, word

MAX_ATTEMPTS: Final = 16
"""Of one job."""

NANOSECONDS: Final = 1_000_000_000
_NO_ERRORS: Final = frozenset({Outcome.SUCCESS.value, Outcome.CANCELLED.value})
"""Whoever cancels a job has not met an error."""


def error_of(job: FinishedJob) -> str | None:
    """The type of error that the job ended with, if it did."""
    outcome = word(job.outcome)
    if outcome in _NO_ERRORS:
        return None
    reason = word(job.reason)
    return (reason if reason != Reason.NONE.value else outcome) or names.OTHER_ERROR


def first_retries(job: FinishedJob) -> list[Retry]:
    """The retries in order, as many as are shown."""
    return sorted(job.retries, key=lambda retry: retry.unix_nanoseconds)[: MAX_ATTEMPTS - 1]


def plan_attempts(job: FinishedJob, job_span_id: int) -> list[SpanPlan]:
    """The attempts in order, each linked to the one that it repeats."""
    retries = first_retries(job)
    ids = [derive_span_id(job_span_id, names.ATTEMPT_SPAN, n) for n in range(len(retries) + 1)]
    attempts = []
    begin = job.started_unix_nanoseconds
    start = job.submitted_unix_nanoseconds if begin is None else begin
    for number, span_id in enumerate(ids):
        retry = retries[number] if number < len(retries) else None
        attributes: dict[str, AttributeValue] = {names.ATTEMPT_NUMBER: number + 1}
        if retry is None:
            end, error = job.ended_unix_nanoseconds, error_of(job)
        else:
            end, error = retry.unix_nanoseconds, word(retry.reason) or names.OTHER_ERROR
            if retry.delay_seconds is not None:
                attributes[names.RETRY_DELAY] = retry.delay_seconds
        attempts.append(
            SpanPlan(
                name=names.ATTEMPT_SPAN,
                span_id=span_id,
                parent_span_id=job_span_id,
                start_unix_ns=start,
                end_unix_ns=max(start, end),
                attributes=attributes,
                error_type=error,
                linked_span_ids=(ids[number - 1],) if number else (),
            )
        )
        if retry is not None:
            resumed = retry.unix_nanoseconds + _nanoseconds(retry.delay_seconds)
            start = max(start, min(resumed, job.ended_unix_nanoseconds))
    return attempts


def plan_stages(
    job: FinishedJob, stages: Sequence[StageSpan], job_span_id: int, attempts: Sequence[SpanPlan]
) -> list[SpanPlan]:
    """The stages, each in the attempt that it was part of if there was more than one."""
    error = error_of(job)
    at_end = word(job.stage_at_end)
    last = max((n for n, one in enumerate(stages) if word(one.stage) == at_end), default=None)
    spans = []
    for place, stage in enumerate(stages):
        name = word(stage.stage)
        attributes: dict[str, AttributeValue] = {
            names.STAGE: name,
            names.STAGE_DURATION: stage.seconds,
        }
        if stage.cache:
            attributes[names.STAGE_CACHE] = word(stage.cache)
        parent = job_span_id
        if len(attempts) > 1 and name != Stage.QUEUE.value:
            # The last attempt that had begun by then; a stage before the first is the first's.
            begun = [one for one in attempts if one.start_unix_ns <= stage.start_unix_nanoseconds]
            parent = (begun or attempts[:1])[-1].span_id
        spans.append(
            SpanPlan(
                name=name,
                span_id=derive_span_id(job_span_id, name, place),
                parent_span_id=parent,
                start_unix_ns=stage.start_unix_nanoseconds,
                end_unix_ns=max(stage.start_unix_nanoseconds, stage.end_unix_nanoseconds),
                attributes=attributes,
                # The job ended in here.
                error_type=error if place == last else None,
            )
        )
    return spans


def plan_probe(probed: Probed, job_span_id: int, place: int) -> SpanPlan:
    """A file looked into; whatever was wrong with it stands in the attributes."""
    report = probed.report
    attributes: dict[str, AttributeValue | None] = {
        names.FILE_PATH: str(report.file),
        names.VIDEO_VERDICT: word(report.verdict),
        names.VIDEO_DEFECTS: [word(finding.defect) for finding in report.findings] or None,
        names.VIDEO_CODEC: report.media.codec if report.media else None,
        names.VIDEO_FRAMES: report.media.frame_count if report.media else None,
        names.VIDEO_FRAMES_MISSING: report.asked.frames_missing if report.asked else None,
        names.VIDEO_FRAME_RATE: float(report.cadence.rate) if report.cadence else None,
        names.VIDEO_DURATION: None if report.duration is None else float(report.duration),
    }
    return SpanPlan(
        name=names.PROBE_SPAN,
        span_id=derive_span_id(job_span_id, names.PROBE_SPAN, place),
        parent_span_id=job_span_id,
        start_unix_ns=probed.start_unix_nanoseconds,
        end_unix_ns=max(probed.start_unix_nanoseconds, probed.end_unix_nanoseconds),
        attributes=told(attributes),
        # Looking into a defective file is no failure to look into it.
        error_type=word(report.failure.kind) if report.failure else None,
    )


def plan_retry_event(retry: Retry) -> EventPlan:
    """The moment at which an attempt had failed."""
    attributes: dict[str, AttributeValue | None] = {
        names.RETRY_REASON: word(retry.reason) or None,
        names.RETRY_DELAY: retry.delay_seconds,
    }
    return EventPlan(names.RETRY_EVENT, retry.unix_nanoseconds, told(attributes))


def told(values: Mapping[str, AttributeValue | None]) -> Attributes:
    """What is known of these."""
    return {name: value for name, value in values.items() if value is not None}


def _nanoseconds(seconds: float | None) -> int:
    return round(seconds * NANOSECONDS) if seconds and math.isfinite(seconds) else 0
