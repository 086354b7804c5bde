# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""From a job and its end to the job as it is told from then on."""

from dataclasses import replace

from veo_client.vocabulary import Outcome, Reason, Stage
from veo_exporter.jobs.events import Event
from veo_exporter.jobs.finished import (
    NANOSECONDS,
    FinishedJob,
    OutputFile,
    StageReport,
    lay_out,
)
from veo_exporter.jobs.job import End, Job
from veo_exporter.jobs.payload import MAX_MESSAGE_CHARS, FinishedData, profile_of
from veo_exporter.jobs.reasons import Cause, cause_of, judge_end


def end_of(data: FinishedData, event: Event) -> End:
    """The end as its event tells it."""
    error = data.error
    code = "" if error is None or error.code is None else str(error.code)[:100]
    message = "" if error is None else error.message or ""
    return End(
        _cause(data, code, message),
        event.unix_nanoseconds,
        tuple(OutputFile(output.path or "", output.bytes) for output in data.outputs or ()),
        data.filtered_count or 0,
        code,
        (message or data.reason or "")[:MAX_MESSAGE_CHARS],
        data.stage,
        data.frame,
        data.gpu_memory_peak_bytes,
    )


def _cause(data: FinishedData, code: str, message: str) -> Cause:
    # Services report success for jobs that left nothing behind.
    if data.outcome is Outcome.SUCCESS and data.outputs is not None:
        if not data.outputs and data.filtered_count:
            return cause_of(Reason.CONTENT_FILTERED)
        if all(output.bytes == 0 for output in data.outputs):
            return cause_of(Reason.EMPTY_OUTPUT)
    return judge_end(data.outcome, data.reason or "", code, message)


def finish(job: Job, end: End) -> FinishedJob:
    """The whole job, its times in order and its stages within."""
    ended = max(end.unix_nanoseconds, job.submitted_unix_nanoseconds or 0)
    reports = _all_stages(job, ended)
    stages = lay_out(reports, job.submitted_unix_nanoseconds, ended)
    begin = job.submitted_unix_nanoseconds
    if begin is None:
        begins = [span.start_unix_nanoseconds for span in stages]
        begin = min(ended, job.opened.unix_nanoseconds, *begins)
        if job.started_unix_nanoseconds is not None:
            begin = min(begin, job.started_unix_nanoseconds)
    started = job.started_unix_nanoseconds
    return FinishedJob(
        job_id=job.job_id,
        source=job.source,
        engine=job.engine,
        model=job.model,
        variant=job.variant,
        profile=profile_of(job.request),
        traceparent=job.traceparent,
        tracestate=job.tracestate,
        submitted_unix_nanoseconds=begin,
        started_unix_nanoseconds=None if started is None else min(max(started, begin), ended),
        ended_unix_nanoseconds=ended,
        stages=stages,
        retries=job.retries,
        outcome=end.cause.outcome,
        reason=end.cause.reason,
        module=end.cause.module,
        stage_at_end=_stage_at_end(job, end),
        error_code=end.error_code,
        error_message=end.error_message,
        outputs=end.outputs,
        filtered_count=end.filtered_count,
        request=job.request,
        gpus=job.gpus,
        pid=job.pid,
        frame=end.frame,
        gpu_memory_peak_bytes=end.gpu_memory_peak_bytes,
    )


def _all_stages(job: Job, ended: int) -> list[StageReport]:
    reports = list(job.stages)
    queued = waited(job)
    if queued is not None and queued.seconds > 0:
        reports.append(queued)
    if job.under_way is not None:
        reports.append(closed(job.under_way, ended))
    return reports


def closed(report: StageReport, ended: int) -> StageReport:
    """A stage that was under way, over with its job; below zero seconds if it began after that."""
    stop = max(report.start_unix_nanoseconds, ended)
    seconds = (ended - report.start_unix_nanoseconds) / NANOSECONDS
    return replace(report, end_unix_nanoseconds=stop, seconds=seconds)


def waited(job: Job) -> StageReport | None:
    """The wait between submission and start, unless the sender told it as a stage of its own.

    Below zero seconds if two clocks contradict each other.
    """
    submitted, started = job.submitted_unix_nanoseconds, job.started_unix_nanoseconds
    if submitted is None or started is None or started == submitted:
        return None
    if any(report.stage is Stage.QUEUE for report in job.stages):
        return None
    seconds = (started - submitted) / NANOSECONDS
    return StageReport(Stage.QUEUE, submitted, started, seconds, True, "", ("", "queue"))


def _stage_at_end(job: Job, end: End) -> Stage | None:
    if end.stage is not None:
        return end.stage
    if job.under_way is not None:
        return job.under_way.stage
    waiting = job.started_unix_nanoseconds is None and not job.stages
    return Stage.QUEUE if waiting and job.submitted_unix_nanoseconds is not None else None
