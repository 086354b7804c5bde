# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What an event makes of a job. Pure: a job and an event in, a job and what is new out.

Senders repeat themselves, come late and out of order. Each of these has a name, none of them is an
error, and a job ends once whatever comes.
"""

from dataclasses import replace
from typing import Final

from veo_client.vocabulary import EventType, Outcome, Reason, Stage
from veo_exporter.jobs.budgets import REQUEST, Budgets
from veo_exporter.jobs.ending import closed, end_of, finish, waited
from veo_exporter.jobs.events import Event, Moment
from veo_exporter.jobs.finished import NANOSECONDS, Retry, StageReport
from veo_exporter.jobs.job import End, Job
from veo_exporter.jobs.payload import Data, EvaluatedData, FinishedData, RetryData, StageData
from veo_exporter.jobs.reasons import cause_of, find_reason
from veo_exporter.jobs.step import Result, Step

MAX_STAGES: Final = 200
MAX_RETRIES: Final = 50
MAX_EVALUATIONS: Final = 20


def advance(job: Job | None, event: Event) -> Step:
    """Take an event into account. `job` is None if this is the first that is heard of it."""
    data = event.data
    assert isinstance(data, Data)  # noqa: S101, others are handed on before
    if isinstance(data, EvaluatedData):
        return _evaluated(job, event, data)
    if job is not None and job.end is not None:
        return Step(Result.LATE, job, job)
    heard = _hear(job, event, data)
    if isinstance(data, StageData):
        return _stage(job, heard, event, data)
    if isinstance(data, RetryData):
        return _retry(job, heard, event, data)
    if isinstance(data, FinishedData):
        return _end(job, heard, end_of(data, event))
    return _plain(job, heard, event)


def expire(job: Job, now: Moment, budgets: Budgets, since_monotonic_seconds: float) -> Step | None:
    """The job's end, if a deadline of ours or the patience with its silence has run out.

    Nothing runs out that began before `since`, when we started to listen: while we were away the
    job could not tell us anything.
    """
    if job.end is not None:
        return None
    limit = budgets.of(job.engine, job.model, REQUEST)
    opened = max(job.opened.monotonic_seconds, since_monotonic_seconds)
    deadline = None if limit is None else opened + limit
    heard = max(job.heard_monotonic_seconds, since_monotonic_seconds)
    lost = heard + budgets.lost_after(job.engine, job.model)
    if deadline is not None and deadline <= now.monotonic_seconds and deadline <= lost:
        return _end(job, job, End(cause_of(Reason.DEADLINE_OURS), now.unix_nanoseconds))
    if lost <= now.monotonic_seconds:
        return _end(job, job, End(cause_of(Reason.NO_WORD), now.unix_nanoseconds))
    return None


def _hear(job: Job | None, event: Event, data: Data) -> Job:
    if job is None:
        return Job(
            job_id=event.job_id,
            source=event.source,
            engine=data.engine or "",
            model=data.model or "",
            variant=data.variant or "",
            request=data.request,
            gpus=tuple(data.gpus or ()),
            pid=data.pid,
            traceparent=event.traceparent,
            tracestate=event.tracestate,
            opened=Moment(event.unix_nanoseconds, event.received.monotonic_seconds),
            heard_monotonic_seconds=event.received.monotonic_seconds,
        )
    # What was said first holds: the caller's context, not that of a worker further down.
    return replace(
        job,
        engine=job.engine or data.engine or "",
        model=job.model or data.model or "",
        variant=job.variant or data.variant or "",
        request=job.request or data.request,
        gpus=job.gpus or tuple(data.gpus or ()),
        pid=data.pid if job.pid is None else job.pid,
        traceparent=job.traceparent or event.traceparent,
        tracestate=job.tracestate if job.traceparent else event.tracestate,
        heard_monotonic_seconds=max(job.heard_monotonic_seconds, event.received.monotonic_seconds),
    )


def _plain(before: Job | None, job: Job, event: Event) -> Step:
    at = event.unix_nanoseconds
    if event.type is EventType.JOB_SUBMITTED:
        if job.submitted_unix_nanoseconds is not None:
            return Step(Result.REPEATED, before, job)
        result = Result.APPLIED if before is None else Result.OUT_OF_ORDER
        return Step(result, before, replace(job, submitted_unix_nanoseconds=at))
    if event.type is EventType.JOB_STARTED:
        if job.started_unix_nanoseconds is not None:
            return Step(Result.REPEATED, before, job)
        working = job.retries or any(report.stage is not Stage.QUEUE for report in job.stages)
        result = Result.OUT_OF_ORDER if working else Result.APPLIED
        return Step(result, before, replace(job, started_unix_nanoseconds=at))
    return Step(Result.APPLIED, before, job)


def _stage(before: Job | None, job: Job, event: Event, data: StageData) -> Step:
    if any(report.key == event.key for report in job.stages):
        return Step(Result.REPEATED, before, job)
    report = _report(event, data)
    if report is None:
        if job.under_way is not None and job.under_way.key == event.key:
            return Step(Result.REPEATED, before, job)
        # Over before its beginning was told: it must not be under way for ever.
        if any(
            known.stage is data.stage and known.end_unix_nanoseconds >= (data.start or 0)
            for known in job.stages
        ):
            return Step(Result.OUT_OF_ORDER, before, job)
        start = min(data.start or 0, event.received.unix_nanoseconds)
        opened = StageReport(data.stage, start, start, 0.0, True, data.cache or "", event.key)
        return Step(Result.APPLIED, before, replace(job, under_way=opened))
    if len(job.stages) >= MAX_STAGES:
        return Step(Result.OVER_LIMIT, before, job)
    closes = job.under_way is not None and job.under_way.stage is data.stage
    after = replace(
        job,
        stages=(*job.stages, report),
        under_way=None if closes else job.under_way,
    )
    return Step(Result.APPLIED, before, after, stages=(report,))


def _report(event: Event, data: StageData) -> StageReport | None:
    start, end, seconds = data.start, data.end, data.duration_s
    if seconds is None:
        if start is None or end is None:
            return None
        seconds = (end - start) / NANOSECONDS
    length = round(seconds * NANOSECONDS)
    placed = start is not None or end is not None
    if end is None:
        end = event.unix_nanoseconds if start is None else start + length
    if start is None:
        start = end - length
    return StageReport(data.stage, start, end, seconds, placed, data.cache or "", event.key)


def _retry(before: Job | None, job: Job, event: Event, data: RetryData) -> Step:
    if any(retry.key == event.key for retry in job.retries):
        return Step(Result.REPEATED, before, job)
    if len(job.retries) >= MAX_RETRIES:
        return Step(Result.OVER_LIMIT, before, job)
    retry = Retry(
        find_reason(data.reason or "") or Reason.UNSPECIFIED_FAILURE,
        data.attempt,
        data.delay_s,
        event.unix_nanoseconds,
        event.key,
    )
    after = replace(job, retries=(*job.retries, retry), under_way=None)
    return Step(Result.APPLIED, before, after, retry=retry)


def _evaluated(job: Job | None, event: Event, data: EvaluatedData) -> Step:
    if job is None:
        return Step(Result.UNKNOWN_JOB, scores=data.scores)
    if event.key in job.evaluations:
        return Step(Result.REPEATED, job, job)
    if len(job.evaluations) >= MAX_EVALUATIONS:
        return Step(Result.OVER_LIMIT, job, job)
    after = replace(job, evaluations=(*job.evaluations, event.key))
    return Step(Result.APPLIED, job, after, scores=data.scores)


def _end(before: Job | None, job: Job, end: End) -> Step:
    finished = finish(job, end)
    queued, under_way = waited(job), job.under_way
    stages = () if queued is None else (queued,)
    # What was under way took until now; but what a deadline cut off did not end.
    if under_way is not None and finished.outcome not in (Outcome.TIMEOUT, Outcome.LOST):
        stages = (*stages, closed(under_way, finished.ended_unix_nanoseconds))
    return Step(Result.APPLIED, before, replace(job, end=end), stages=stages, finished=finished)
