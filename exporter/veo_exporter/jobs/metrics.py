# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Steps of jobs folded into counters and histograms."""

from collections.abc import Callable
from typing import Final

from prometheus_client import Counter

from veo_client.vocabulary import OUTCOME_OF, EventType, Outcome, Stage
from veo_exporter.catalog import jobs as catalog
from veo_exporter.exposition import Folds
from veo_exporter.jobs.budgets import REQUEST, Budgets
from veo_exporter.jobs.durations import (
    JOB_DURATION,
    STAGE_DURATION,
    LeftOut,
    doubt_of,
    seconds_of,
)
from veo_exporter.jobs.events import Event
from veo_exporter.jobs.finished import FinishedJob
from veo_exporter.jobs.job import Job
from veo_exporter.jobs.labels import JobLabels, Known, LabelBook
from veo_exporter.jobs.payload import Data, Scores, profile_of
from veo_exporter.jobs.rules import RULES, broken_rules
from veo_exporter.jobs.step import Result, Step

VMAF_WEIGHT: Final = 0.6
CLIP_WEIGHT: Final = 0.4

Exemplar = dict[str, str]
RETRY_REASONS: Final = tuple(
    reason
    for reason, outcome in OUTCOME_OF.items()
    if outcome in (Outcome.FAILED, Outcome.ABORTED, Outcome.TIMEOUT)
)


class JobFolds:
    """Everything that is counted of jobs.

    `trace_of` gives the ids of a finished job's trace, which its duration carries as exemplar;
    `dropped` is told of label values beyond their bound.
    """

    def __init__(
        self,
        folds: Folds,
        known: Known,
        *,
        trace_of: Callable[[FinishedJob], Exemplar | None] = lambda finished: None,
        dropped: Callable[[str], None] = lambda label: None,
    ) -> None:
        self._trace_of = trace_of
        self._events = folds.counter(
            catalog.EVENTS,
            [(kind.value, result.value) for kind in EventType for result in _usual(kind)],
        )
        self._event_counts: dict[tuple[EventType, Result], Counter] = {}
        self._in_flight = folds.gauge(catalog.JOBS_IN_FLIGHT)
        self._submitted = folds.counter(catalog.JOBS_SUBMITTED)
        self._finished = folds.counter(catalog.JOBS_FINISHED)
        self._timeouts = folds.counter(catalog.JOB_TIMEOUTS)
        self._breaches = folds.counter(catalog.JOB_BUDGET_BREACHES)
        self._retries = folds.counter(catalog.JOB_RETRIES)
        self._violations = folds.counter(catalog.JOB_REQUEST_VIOLATIONS)
        self._duration = folds.histogram(catalog.JOB_DURATION)
        self._stage_duration = folds.histogram(catalog.JOB_STAGE_DURATION)
        self._quality = folds.histogram(catalog.JOB_QUALITY_SCORE)
        self._memory_peak = folds.histogram(catalog.JOB_GPU_MEMORY_PEAK)
        self._on_set: Callable[[JobLabels], None] = lambda labels: None
        self._book = LabelBook(known, self._open, dropped)
        for labels in self._book.expected():
            self._open_wholly(labels)
        self._book.open_unannounced()

    def labels_of(self, job: Job | FinishedJob) -> JobLabels:
        """The labels that a job's rows carry, here and in other rooms."""
        return self._book.labels_of(*_names_of(job))

    @property
    def sets(self) -> tuple[JobLabels, ...]:
        """The labels in use: of what is expected, and of every job that was heard of."""
        return self._book.sets

    def tell_sets(self, on_set: Callable[[JobLabels], None]) -> None:
        """Have somebody told of further labels as soon as the first job with them is heard of."""
        self._on_set = on_set

    def fold(self, step: Step, event: Event | None, budgets: Budgets) -> list[LeftOut]:
        """Count what a step tells, and give what was not believed of it.

        `event` is what caused it, if time alone did not.
        """
        if event is not None:
            self._count_event(event.type, step.result)
        if step.after is None:
            if step.scores is not None and event is not None and isinstance(event.data, Data):
                said = _names_said_by(event.data)
                self._book.count_dropped(*said)
                self._score(self._book.labels_of(*said), step.scores)
            return []
        labels = self.labels_of(step.after)
        self._fold_presence(step, labels)
        left_out: list[LeftOut] = []
        for report in step.stages:
            if (doubt := doubt_of(report.seconds)) is not None:
                left_out.append((STAGE_DURATION, doubt))
                continue
            self._stage_duration.labels(*labels, report.stage.value).observe(report.seconds)
            self._judge(step.after, labels, report.stage.value, report.seconds, budgets)
        if step.retry is not None:
            self._retries.labels(*labels, step.retry.reason.value).inc()
        if step.scores is not None:
            self._score(labels, step.scores)
        if step.finished is not None:
            left_out += self._finish(step.after, labels, step.finished, budgets)
        return left_out

    def restore(self, job: Job) -> None:
        """A job that was in flight before we started; it was counted then."""
        self._in_flight.labels(*self.labels_of(job)).inc()

    def _count_event(self, kind: EventType, result: Result) -> None:
        # There are few of these, and each look-up of a child costs as much as all else here.
        child = self._event_counts.get((kind, result))
        if child is None:
            child = self._events.labels(kind.value, result.value)
            self._event_counts[kind, result] = child
        child.inc()

    def _fold_presence(self, step: Step, labels: JobLabels) -> None:
        before, after = step.before, step.after
        if before is None:
            self._submitted.labels(*labels).inc()
        if after is not None and (before is None or _names_of(before) != _names_of(after)):
            self._book.count_dropped(*_names_of(after))
        if not _same_presence(before, after):
            if before is not None and before.end is None:
                self._in_flight.labels(*self.labels_of(before)).dec()
            if after is not None and after.end is None:
                self._in_flight.labels(*labels).inc()
        if (
            after is not None
            and after.request is not None
            and (before is None or before.request is None)
        ):
            for rule in broken_rules(after.engine, after.request):
                self._violations.labels(*labels, rule).inc()

    def _judge(
        self, job: Job, labels: JobLabels, part: str, seconds: float, budgets: Budgets
    ) -> None:
        limit = budgets.of(job.engine, job.model, part)
        if limit is not None and seconds > limit:
            self._breaches.labels(*labels, part).inc()

    def _finish(
        self, job: Job, labels: JobLabels, finished: FinishedJob, budgets: Budgets
    ) -> list[LeftOut]:
        doubt = doubt_of(seconds_of(job, finished))
        self._finished.labels(*labels, finished.outcome.value, finished.reason.value).inc()
        # Of a job that was first heard of at its end nobody knows how long it took.
        if finished.duration_seconds > 0 and doubt is None:
            self._duration.labels(*labels, finished.outcome.value).observe(
                finished.duration_seconds, self._trace_of(finished)
            )
        if finished.outcome is Outcome.TIMEOUT:
            stage = finished.stage_at_end or Stage.OTHER
            self._timeouts.labels(*labels, stage.value).inc()
        elif finished.outcome is not Outcome.LOST and doubt is None:
            self._judge(job, labels, REQUEST, finished.duration_seconds, budgets)
        if finished.gpu_memory_peak_bytes is not None:
            self._memory_peak.labels(*labels).observe(finished.gpu_memory_peak_bytes)
        return [] if doubt is None else [(JOB_DURATION, doubt)]

    def _score(self, labels: JobLabels, scores: Scores) -> None:
        if scores.vmaf is not None:
            self._quality.labels(*labels, "vmaf").observe(scores.vmaf)
        if scores.clip is not None:
            self._quality.labels(*labels, "clip").observe(scores.clip)
        if scores.vmaf is not None and scores.clip is not None:
            fused = VMAF_WEIGHT * scores.vmaf + CLIP_WEIGHT * scores.clip
            self._quality.labels(*labels, "fused").observe(fused)

    def _open(self, labels: JobLabels) -> None:
        """The zeros of a set of labels that was just met: its first job may end before a scrape."""
        self._in_flight.labels(*labels)
        self._submitted.labels(*labels)
        for reason, outcome in OUTCOME_OF.items():
            self._finished.labels(*labels, outcome.value, reason.value)
        self._duration.labels(*labels, Outcome.SUCCESS.value)
        self._on_set(labels)

    def _open_wholly(self, labels: JobLabels) -> None:
        """All the zeros there are, for the sets that are expected."""
        for stage in Stage:
            self._timeouts.labels(*labels, stage.value)
            self._breaches.labels(*labels, stage.value)
            self._stage_duration.labels(*labels, stage.value)
        self._breaches.labels(*labels, REQUEST)
        for reason in RETRY_REASONS:
            self._retries.labels(*labels, reason.value)
        for rule in RULES:
            if rule.engine == labels.engine:
                self._violations.labels(*labels, rule.name)
        for outcome in Outcome:
            self._duration.labels(*labels, outcome.value)
        for scorer in ("vmaf", "clip", "fused"):
            self._quality.labels(*labels, scorer)
        self._memory_peak.labels(*labels)


def _names_of(job: Job | FinishedJob) -> JobLabels:
    """The names that a job's labels are made from."""
    profile = job.profile if isinstance(job, FinishedJob) else profile_of(job.request)
    return JobLabels(job.engine, job.model, job.variant, profile)


def _names_said_by(data: Data) -> JobLabels:
    profile = profile_of(data.request)
    return JobLabels(data.engine or "", data.model or "", data.variant or "", profile)


def _same_presence(before: Job | None, after: Job | None) -> bool:
    """Whether the job is in flight, or over, under the same labels as before."""
    return (
        before is not None
        and after is not None
        and (before.end is None) is (after.end is None)
        and before.request is after.request
        and (before.engine, before.model, before.variant)
        == (after.engine, after.model, after.variant)
    )


def _usual(kind: EventType) -> tuple[Result, ...]:
    if kind is EventType.VIDEO_PROBED:
        return (Result.HANDED_ON,)
    if not kind.value.startswith("veo.job."):
        return ()
    return (Result.APPLIED, Result.REPEATED, Result.LATE, Result.TABLE_FULL)
