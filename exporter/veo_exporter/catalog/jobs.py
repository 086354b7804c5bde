# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of jobs, of the events that tell of them, and of the logs that some are read from."""

from typing import Final

from veo_exporter.catalog.spec import Kind, Label, MetricSpec
from veo_exporter.units import Unit

ENGINE: Final = Label(
    "engine",
    "what makes the video, as its events say; unknown if they do not, other beyond jobs.max_names",
    "jobs.max_names",
)
MODEL: Final = Label(
    "model",
    "the model that was asked; unknown if nobody says, other beyond jobs.max_names",
    "jobs.max_names",
)
VARIANT: Final = Label(
    "variant",
    "arm of the running experiment; none outside of one, other beyond jobs.max_names",
    "jobs.max_names",
)
PROFILE: Final = Label(
    "profile",
    "what was asked for, as 1080p24-6s; other if it is unknown or beyond jobs.max_names",
    "jobs.max_names",
)
OUTCOME: Final = Label(
    "outcome", "success, failed, timeout, aborted, empty, filtered, cancelled or lost", "8"
)
REASON: Final = Label(
    "reason", "why the job ended so; each reason belongs to one outcome, none to success", "23"
)
STAGE: Final = Label(
    "stage",
    "part of the work, as queue, prompt, denoise or render; request for the whole",
    "14",
)
RULE: Final = Label("rule", "name of the limit that a request is outside of", "8")
SCORER: Final = Label("scorer", "vmaf, clip or fused (0.6 vmaf + 0.4 clip)", "3")

JOB: Final = (ENGINE, MODEL, VARIANT, PROFILE)

JOBS_IN_FLIGHT: Final = MetricSpec(
    "veo_jobs_in_flight",
    Kind.GAUGE,
    Unit.NONE,
    "Jobs that were heard of and are not over.",
    JOB,
)
JOBS_SUBMITTED: Final = MetricSpec(
    "veo_jobs_submitted_total",
    Kind.COUNTER,
    Unit.NONE,
    "Jobs that were heard of, whatever their first event was.",
    JOB,
)
JOBS_FINISHED: Final = MetricSpec(
    "veo_jobs_finished_total",
    Kind.COUNTER,
    Unit.NONE,
    "Jobs that are over, each once. lost: no word for longer than its budget.",
    (*JOB, OUTCOME, REASON),
)
JOB_TIMEOUTS: Final = MetricSpec(
    "veo_job_timeouts_total",
    Kind.COUNTER,
    Unit.NONE,
    "Jobs ended by a deadline, the engine's or ours, by the stage that was under way (other if unknown).",
    (*JOB, STAGE),
)
JOB_BUDGET_BREACHES: Final = MetricSpec(
    "veo_job_budget_breaches_total",
    Kind.COUNTER,
    Unit.NONE,
    "Stages that took longer than their budget without ending the job; request: the whole job did.",
    (*JOB, STAGE),
)
JOB_RETRIES: Final = MetricSpec(
    "veo_job_retries_total",
    Kind.COUNTER,
    Unit.NONE,
    "Times that a job was tried once more, by the reason of the failure before.",
    (*JOB, Label("reason", "a reason of jobs that ended", "23")),
)
JOB_REQUEST_VIOLATIONS: Final = MetricSpec(
    "veo_job_request_violations_total",
    Kind.COUNTER,
    Unit.NONE,
    "Requests outside of what their engine is made for; nothing is turned away for it.",
    (*JOB, RULE),
)
JOB_DURATION: Final = MetricSpec(
    "veo_job_duration_seconds",
    Kind.HISTOGRAM,
    Unit.SECONDS,
    "From submission to end.",
    (*JOB, OUTCOME),
    (5, 10, 20, 30, 45, 60, 90, 120, 180, 240, 300, 450, 600, 900, 1200, 1800, 3600),
)
JOB_STAGE_DURATION: Final = MetricSpec(
    "veo_job_stage_duration_seconds",
    Kind.HISTOGRAM,
    Unit.SECONDS,
    "How long each stage of a job took, as its sender says.",
    (*JOB, STAGE),
    # 15 ms, 25 ms and 6.8 s are budgets: a share above them is exact only if they are bounds.
    (0.005, 0.015, 0.025, 0.1, 0.5, 1, 2, 5, 6.8, 10, 20, 30, 60, 90, 120, 300, 600, 1200),
)
JOB_QUALITY_SCORE: Final = MetricSpec(
    "veo_job_quality_score",
    Kind.HISTOGRAM,
    Unit.NONE,
    "Quality of what came out, from 0 to 100.",
    (*JOB, SCORER),
    (10, 20, 30, 40, 50, 60, 70, 75, 80, 85, 90, 95, 100),
)
JOB_GPU_MEMORY_PEAK: Final = MetricSpec(
    "veo_job_gpu_memory_peak_bytes",
    Kind.HISTOGRAM,
    Unit.BYTES,
    "Most device memory that a job used, as its sender says.",
    JOB,
    tuple(float(gib << 30) for gib in (4, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 128, 141, 192)),
)

EVENTS: Final = MetricSpec(
    "veo_exporter_events_total",
    Kind.COUNTER,
    Unit.NONE,
    "Events that could be read, by what became of them; those that could not are in "
    "veo_exporter_dropped_total.",
    (
        Label("type", "type of the event, as veo.job.finished", "10"),
        Label(
            "result",
            "applied, repeated, out_of_order, late, unknown_job, ambiguous, over_limit, table_full or handed_on",
            "9",
        ),
    ),
)
LOG_LINES: Final = MetricSpec(
    "veo_exporter_log_lines_total",
    Kind.COUNTER,
    Unit.NONE,
    "Lines read from followed logs.",
    (Label("log_rule", "name of the rule that the line fits, else none", "log rules in force"),),
)
LOG_RESTARTS: Final = MetricSpec(
    "veo_exporter_log_restarts_total",
    Kind.COUNTER,
    Unit.NONE,
    "Times that a followed log began anew.",
    (
        Label(
            "cause", "truncated, replaced (renamed or deleted), or rewritten (other content)", "3"
        ),
    ),
)
