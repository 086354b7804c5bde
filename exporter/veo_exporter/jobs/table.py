# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""All jobs that are known: those in flight, and for a while those that are over.

This is the one place where jobs are kept; everything else is told of steps.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from veo_client.vocabulary import EventType
from veo_exporter.jobs.budgets import Budgets
from veo_exporter.jobs.events import Event, Moment
from veo_exporter.jobs.job import Job
from veo_exporter.jobs.lifecycle import advance, expire
from veo_exporter.jobs.memory import Memory, digest
from veo_exporter.jobs.payload import Data
from veo_exporter.jobs.step import Result, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much the table holds, and for how long it remembers."""

    max_in_flight: int = 10_000
    max_ended: int = 10_000
    max_event_ids: int = 100_000
    remember_seconds: float = 3600.0


class JobTable:
    """Jobs by id. `gpu_uuid` turns the GPU that a log names (an index, mostly) into its UUID."""

    def __init__(
        self,
        limits: Limits,
        budgets: Budgets,
        since_monotonic_seconds: float,
        gpu_uuid: Callable[[str], str | None] = lambda name: None,
    ) -> None:
        self.budgets = budgets
        self.ended_forgotten_early = 0
        self._limits = limits
        self._since_monotonic_seconds = since_monotonic_seconds
        self._gpu_uuid = gpu_uuid
        self._jobs: dict[str, Job] = {}
        # With the time at which each ended, oldest first.
        self._ended: OrderedDict[str, tuple[Job, float]] = OrderedDict()
        self._memory = Memory(limits.remember_seconds, limits.max_event_ids)

    @property
    def in_flight(self) -> tuple[Job, ...]:
        return tuple(self._jobs.values())

    @property
    def event_ids_forgotten_early(self) -> int:
        return self._memory.forgotten_early

    def reconfigure(self, limits: Limits, budgets: Budgets) -> None:
        """Other limits from now on; what is kept already goes in its own time."""
        self._limits, self.budgets = limits, budgets
        self._memory.seconds, self._memory.limit = limits.remember_seconds, limits.max_event_ids

    def apply(self, event: Event) -> Step:
        """Take an event into account, once."""
        key = digest(event.key)
        if self._memory.knows(key):
            return Step(Result.REPEATED)
        step = self._apply(event)
        # One that found no room may be sent again.
        if step.result is not Result.TABLE_FULL:
            self._memory.add(key, event.received.monotonic_seconds)
        return step

    def refuse(self, event: Event) -> None:
        """It was taken, and turned out to be bad: it may be sent again."""
        self._memory.discard(digest(event.key))

    def find(self, job_id: str) -> Job | None:
        """The job, in flight or remembered."""
        return self._jobs.get(job_id) or self._ended.get(job_id, (None, 0.0))[0]

    def expire(self, now: Moment) -> Iterator[Step]:
        """End those whose time is over, and forget those that were remembered long enough."""
        for job in list(self._jobs.values()):
            step = expire(job, now, self.budgets, self._since_monotonic_seconds)
            if step is not None:
                self._keep(job.job_id, step, now.monotonic_seconds)
                yield step
        self._forget(now.monotonic_seconds)

    def _apply(self, event: Event) -> Step:
        if not isinstance(event.data, Data):
            return Step(Result.HANDED_ON)
        job_id = event.job_id
        ambiguous = False
        if not job_id:
            matches = self._meant_by(event, event.data)
            ambiguous = len(matches) > 1
            if ambiguous and event.type is not EventType.JOB_FINISHED:
                return Step(Result.AMBIGUOUS)
            # Where nobody but the log speaks, each of its lines is a job of its own. So is an end that
            # several could have come to: which one is not known, but that one did is.
            job_id = matches[0] if len(matches) == 1 else f"{event.source}#{event.event_id}"
            gpus = [self._gpu_uuid(name) or name for name in event.data.gpus or ()]
            data = event.data.model_copy(update={"gpus": gpus})
            event = replace(event, job_id=job_id, data=data)
        job = self.find(job_id)
        if job is not None and _begins_anew(job, event):
            job = None
        opens = job is None and event.type not in (
            EventType.JOB_FINISHED,
            EventType.JOB_EVALUATED,
        )
        if opens and len(self._jobs) >= self._limits.max_in_flight:
            return Step(Result.TABLE_FULL)
        step = advance(job, event)
        self._keep(job_id, step, event.received.monotonic_seconds)
        return replace(step, result=Result.AMBIGUOUS) if ambiguous else step

    def _keep(self, job_id: str, step: Step, now_monotonic_seconds: float) -> None:
        if step.after is None:
            return
        if step.after.end is None:
            self._jobs[job_id] = step.after
            # Its id was used again: what it was before is forgotten.
            self._ended.pop(job_id, None)
            return
        self._jobs.pop(job_id, None)
        ended = self._ended[job_id][1] if job_id in self._ended else now_monotonic_seconds
        self._ended[job_id] = (step.after.remembered(), ended)
        while len(self._ended) > self._limits.max_ended:
            self._ended.popitem(last=False)
            self.ended_forgotten_early += 1

    def _forget(self, now_monotonic_seconds: float) -> None:
        oldest = now_monotonic_seconds - self._limits.remember_seconds
        while self._ended:
            job_id, (_, ended) = next(iter(self._ended.items()))
            if ended > oldest:
                return
            del self._ended[job_id]

    def _meant_by(self, event: Event, data: Data) -> list[str]:
        """The jobs in flight that a line of a log can be about: of its engine, and on its GPU."""
        meant = [
            job for job in self._jobs.values() if not data.engine or job.engine in ("", data.engine)
        ]
        named = {self._gpu_uuid(name) or name for name in data.gpus or ()}
        on_gpu = [job for job in meant if named.intersection(job.gpus)]
        # A job that does not say where it runs may run there; one that says otherwise does not.
        candidates = on_gpu or [job for job in meant if not named or not job.gpus]
        return [job.job_id for job in candidates]


def _begins_anew(job: Job, event: Event) -> bool:
    """Whether a job that is over was submitted once more under its id; else the event is late."""
    return (
        job.end is not None
        and event.type is EventType.JOB_SUBMITTED
        and event.unix_nanoseconds > job.end.unix_nanoseconds
    )
