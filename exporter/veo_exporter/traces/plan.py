# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A finished job to the spans of its trace, as data.

One span for the job, under whoever asked for it. In it the wait in the queue, the attempts if there
was more than one, the stages, and the files looked into afterwards.
"""

from collections.abc import Sequence
from typing import Final

from veo_exporter.traces import attributes as names
from veo_exporter.traces.context import Identity, identify
from veo_exporter.traces.inputs import FinishedJob, Probed
from veo_exporter.traces.parts import (
    MAX_ATTEMPTS,
    NANOSECONDS,
    error_of,
    first_retries,
    plan_attempts,
    plan_probe,
    plan_retry_event,
    plan_stages,
    told,
)
from veo_exporter.traces.spans import Attributes, AttributeValue, Kind, SpanPlan, TracePlan, word

MAX_STAGES: Final = 64
MAX_PROBES: Final = 32
"""Of one job: further ones are left out, and the job's span says how many."""

_VERDICTS: Final = ("ok", "degraded", "defective", "error")
"""From good to bad."""


def identity_of(job: FinishedJob) -> Identity:
    """The ids that the job's own span has, or will have."""
    return identify(job.source, job.job_id, job.submitted_unix_nanoseconds, job.traceparent)


def plan_trace(job: FinishedJob, probed: Sequence[Probed] = ()) -> TracePlan:
    """The trace of a finished job, with the files looked into since."""
    identity = identity_of(job)
    attempts = plan_attempts(job, identity.span_id)
    stages = sorted(job.stages, key=lambda stage: stage.start_unix_nanoseconds)
    children = [
        *(attempts if len(attempts) > 1 else ()),
        *plan_stages(job, stages[:MAX_STAGES], identity.span_id, attempts),
        *(plan_probe(one, identity.span_id, n) for n, one in enumerate(probed[:MAX_PROBES])),
    ]
    left_out = (
        max(0, len(job.retries) + 1 - MAX_ATTEMPTS)
        + max(0, len(stages) - MAX_STAGES)
        + max(0, len(probed) - MAX_PROBES)
    )
    root = SpanPlan(
        name=names.JOB_SPAN,
        span_id=identity.span_id,
        kind=Kind.CONSUMER,
        start_unix_ns=job.submitted_unix_nanoseconds,
        end_unix_ns=max(job.submitted_unix_nanoseconds, job.ended_unix_nanoseconds),
        attributes=_job_attributes(job, probed, left_out),
        error_type=error_of(job),
        events=tuple(plan_retry_event(retry) for retry in first_retries(job)),
        # Messaging conventions want the message's creation linked to, parent or not.
        linked_span_ids=(identity.parent.span_id,) if identity.parent else (),
    )
    return TracePlan(identity.trace_id, identity.parent, job.tracestate, (root, *children))


def _job_attributes(job: FinishedJob, probed: Sequence[Probed], left_out: int) -> Attributes:
    wait = None
    if job.started_unix_nanoseconds is not None:
        waited = job.started_unix_nanoseconds - job.submitted_unix_nanoseconds
        wait = max(0, waited) / NANOSECONDS
    sizes = [output.size_bytes for output in job.outputs if output.size_bytes is not None]
    verdicts = [word(one.report.verdict) for one in probed]
    attributes: dict[str, AttributeValue | None] = {
        names.GEN_AI_OPERATION_NAME: names.GENERATE_VIDEO,
        names.GEN_AI_OUTPUT_TYPE: names.VIDEO,
        names.GEN_AI_REQUEST_MODEL: job.model or None,
        names.JOB_ID: job.job_id,
        names.ENGINE: job.engine or None,
        names.VARIANT: job.variant or None,
        names.PROFILE: job.profile or None,
        names.OUTCOME: word(job.outcome),
        names.REASON: word(job.reason) or None,
        names.MODULE: job.module or None,
        names.STAGE_AT_END: word(job.stage_at_end) or None,
        names.ERROR_CODE: job.error_code or None,
        names.FRAME_AT_END: job.frame,
        names.GPUS: list(job.gpus) or None,
        names.GPU_MEMORY_PEAK: job.gpu_memory_peak_bytes,
        names.ATTEMPTS: len(job.retries) + 1,
        names.QUEUE_WAIT: wait,
        names.OUTPUT_COUNT: len(job.outputs),
        names.OUTPUT_FILTERED: job.filtered_count or None,
        names.OUTPUT_BYTES: sum(sizes) if sizes else None,
        names.OUTPUT_VERDICT: max(verdicts, key=_badness) if verdicts else None,
        names.SPANS_LEFT_OUT: left_out or None,
    }
    return told(attributes)


def _badness(verdict: str) -> int:
    return _VERDICTS.index(verdict) if verdict in _VERDICTS else len(_VERDICTS)
