# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The way in: events from whoever sends them, through the table, to the counters and the news."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from veo_client.vocabulary import Outcome
from veo_exporter.clock import Clock
from veo_exporter.jobs.durations import LEFT_OUT
from veo_exporter.jobs.events import (
    Event,
    Moment,
    Parsed,
    parse_binary,
    parse_event,
    parse_structured,
)
from veo_exporter.jobs.faults import BadBody, BadEvent, EventFault, Refused
from veo_exporter.jobs.finished import NANOSECONDS, FinishedJob
from veo_exporter.jobs.labels import UNKNOWN
from veo_exporter.jobs.metrics import JobFolds
from veo_exporter.jobs.omissions import Flaw
from veo_exporter.jobs.step import Result, Step
from veo_exporter.jobs.table import JobTable

log = structlog.get_logger(__name__)

EVENT: Final = "event"
FIELD: Final = "event_field"
MAX_TOLD: Final = 100
"""Faults of lines that are told in the log; beyond, they are counted alone."""
MAX_NAME_CHARS: Final = 500
LABEL_VALUE: Final = "job_label"
MEMORY: Final = "job_memory"
DROPPED_SEEDS: Final = (
    *((EVENT, fault.value) for fault in EventFault),
    (EVENT, "time"),
    *((FIELD, flaw.value) for flaw in Flaw),
    *((kind, doubt.value) for kind, doubt in LEFT_OUT),
    *((LABEL_VALUE, label) for label in ("engine", "model", "variant", "profile", "set")),
    (MEMORY, "event_ids"),
    (MEMORY, "ended_jobs"),
)
"""What this room drops, as (kind, reason)."""


@dataclass(slots=True)
class Receipt:
    """What became of a body of events."""

    results: Counter[Result] = field(default_factory=Counter)
    refused: list[Refused] = field(default_factory=list)
    lacking: list[Event] = field(default_factory=list)
    """Those that were taken without a field that was bad."""

    @property
    def table_full(self) -> bool:
        return bool(self.results[Result.TABLE_FULL])


class Intake:
    """Events in; counters, finished jobs and other rooms' events out.

    `hand_on` may raise BadEvent: its event is refused like one that could not be read.
    """

    def __init__(
        self,
        table: JobTable,
        folds: JobFolds,
        clock: Clock,
        *,
        finished: Callable[[FinishedJob], None],
        dropped: Callable[[str, str], None],
        hand_on: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self._table = table
        self._folds = folds
        self._clock = clock
        self._finished = finished
        self._dropped = dropped
        self._hand_on = hand_on
        self._forgotten = Counter[str]()
        self._told: set[tuple[str, str]] = set()

    def now(self) -> Moment:
        return Moment(
            round(self._clock.unix_seconds() * NANOSECONDS), self._clock.monotonic_seconds()
        )

    def read_structured(self, body: bytes, max_events: int) -> Parsed:
        """The events of a JSON body. Raises BadBody; what is refused is counted."""
        return self._counted(lambda: parse_structured(body, self.now(), max_events))

    def read_binary(self, headers: Mapping[str, str], body: bytes) -> Parsed:
        """The event of `ce-` headers and their body. Raises BadBody; what is refused is counted."""
        return self._counted(lambda: parse_binary(headers, body, self.now()))

    def refuse_body(self, fault: EventFault) -> None:
        """A body that was not even looked at."""
        self._dropped(EVENT, fault.value)

    def take(self, events: Iterable[Event], receipt: Receipt) -> None:
        """Take events into account, each by itself."""
        for event in events:
            outcome = self._take(event)
            if isinstance(outcome, Refused):
                receipt.refused.append(outcome)
                continue
            receipt.results[outcome] += 1
            if event.omissions:
                receipt.lacking.append(event)

    def take_line(self, said: Mapping[str, Any]) -> Refused | None:
        """An event that a line of a log was read as; it need not name its job."""
        outcome = parse_event(dict(said), self.now(), anonymous=True)
        if isinstance(outcome, Refused):
            self._dropped(EVENT, outcome.fault.value)
            self._tell_of_line(said, outcome.fault.value, outcome.message)
            return outcome
        self._count_omissions(outcome)
        for omission in outcome.omissions:
            self._tell_of_line(said, omission.field, omission.message)
        result = self._take(outcome)
        return result if isinstance(result, Refused) else None

    def tick(self) -> None:
        """End the jobs whose time is over."""
        for step in self._table.expire(self.now()):
            self._follow(step, None)
        for reason, total in (
            ("event_ids", self._table.event_ids_forgotten_early),
            ("ended_jobs", self._table.ended_forgotten_early),
        ):
            for _ in range(total - self._forgotten[reason]):
                self._dropped(MEMORY, reason)
            self._forgotten[reason] = total

    def _counted(self, read: Callable[[], Parsed]) -> Parsed:
        try:
            parsed = read()
        except BadBody as error:
            self._dropped(EVENT, error.fault.value)
            raise
        for refused in parsed.refused:
            self._dropped(EVENT, refused.fault.value)
        for event in parsed.events:
            if event.omissions:
                self._count_omissions(event)
        return parsed

    def _count_omissions(self, event: Event) -> None:
        for omission in event.omissions:
            self._dropped(FIELD, omission.flaw.value)

    def _tell_of_line(self, said: Mapping[str, Any], what: str, message: str) -> None:
        """Lines have no sender to be answered. Once for each log and fault: the next line has it too."""
        told = (str(said.get("source"))[:MAX_NAME_CHARS], what)
        if told in self._told or len(self._told) >= MAX_TOLD:
            return
        self._told.add(told)
        log.warning(
            "a line of a log was not read as its rule means it: see to the rule, or to what the engine writes",
            log=told[0],
            fault=message,
        )

    def _take(self, event: Event) -> Result | Refused:
        step = self._table.apply(event)
        if event.bad_time:
            self._dropped(EVENT, "time")
        if step.result is Result.TABLE_FULL:
            self._dropped(EVENT, EventFault.TABLE_FULL.value)
        if step.result is Result.HANDED_ON:
            try:
                self._hand_on(event)
            except BadEvent as error:
                self._table.refuse(event)
                self._dropped(EVENT, error.fault.value)
                return Refused(event.index, event.event_id, error.fault, str(error))
        if step.result is Result.AMBIGUOUS:
            _report_ambiguous(event, step)
        self._follow(step, event)
        return step.result

    def _follow(self, step: Step, event: Event | None) -> None:
        for kind, doubt in self._folds.fold(step, event, self._table.budgets):
            self._dropped(kind, doubt.value)
        if step.finished is not None:
            _report(step.finished, event)
            self._finished(step.finished)


def _report(job: FinishedJob, event: Event | None) -> None:
    if job.outcome is Outcome.LOST:
        log.warning(
            "job lost: no word of it for longer than its budget"
            if event is None
            else "job lost, as its sender says",
            job=job.job_id,
            engine=job.engine or UNKNOWN,
            model=job.model or UNKNOWN,
            stage=job.stage_at_end and job.stage_at_end.value,
        )


def _report_ambiguous(event: Event, step: Step) -> None:
    # Of other lines there may be many, and nothing ends by them.
    if step.finished is not None:
        log.warning(
            "a log tells of an end that several jobs could have come to: it counts by itself, and none of "
            "them is ended; have the engine name job= or gpu= in its line, or gpus in its events",
            log=event.source,
            engine=step.finished.engine,
            outcome=step.finished.outcome.value,
            reason=step.finished.reason.value,
        )
