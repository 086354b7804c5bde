# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The second road wired: events and log lines to jobs, their files to the prober, both to a trace."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import structlog

from veo_exporter.app.jobs import PacedTable, budgets_of, known_of, limits_of
from veo_exporter.app.logs import LogFollowing
from veo_exporter.app.loops import DROPPED_SEEDS as LOOPS_DROPPED
from veo_exporter.app.loops import Loops
from veo_exporter.app.reloading import Changeable
from veo_exporter.app.surroundings import Surroundings
from veo_exporter.app.traces import DROPPED_SEEDS as TRACES_DROPPED
from veo_exporter.app.traces import open_tracing
from veo_exporter.app.videos import DROPPED_SEEDS as VIDEOS_DROPPED
from veo_exporter.app.videos import Videos, requests_of
from veo_exporter.config import Settings
from veo_exporter.exposition import Source
from veo_exporter.jobs import DROPPED_SEEDS as JOBS_DROPPED
from veo_exporter.jobs import Event, FinishedJob, Intake, JobFolds, Receipt
from veo_exporter.logs import DROPPED_SEEDS as LOGS_DROPPED

log = structlog.get_logger(__name__)

TICK_SECONDS: Final = 1.0
STOP_SECONDS: Final = 0.8
_FOLLOW_UP_FAILED: Final = ("finished_job", "failed")

DROPPED_SEEDS: Final = (
    *JOBS_DROPPED,
    *LOGS_DROPPED,
    *VIDEOS_DROPPED,
    *TRACES_DROPPED,
    *LOOPS_DROPPED,
    _FOLLOW_UP_FAILED,
)
"""What is dropped on this road, as (kind, reason)."""


class Work:
    """Jobs, logs, files and traces. Started and stopped with the exporter."""

    def __init__(self, settings: Settings, around: Surroundings) -> None:
        self._clock = around.clock
        self._drop = around.drop
        self._tracing = open_tracing(settings.traces, around)
        self._folds = JobFolds(
            around.folds,
            known_of(settings.jobs, settings.logs),
            trace_of=self._tracing.exemplar,
            dropped=lambda label: around.drop("job_label", label, 1),
        )
        self._table = PacedTable(
            limits_of(settings.jobs),
            budgets_of(settings.jobs),
            around.clock.monotonic_seconds(),
            gpu_uuid=around.gpu_uuid,
        )
        self.intake = Intake(
            self._table,
            self._folds,
            around.clock,
            finished=self._finished,
            dropped=lambda kind, reason: around.drop(kind, reason, 1),
            hand_on=self._take_posted,
        )
        self._logs = LogFollowing(settings.logs, around, self._take_line)
        self._videos = Videos(
            settings.video,
            around,
            lambda request, report, start_unix_ns, end_unix_ns: self._tracing.probed(
                request.parent, str(request.path), report, start_unix_ns, end_unix_ns
            ),
        )
        for labels in self._folds.sets:
            self._videos.reserve(labels)
        self._folds.tell_sets(self._videos.expect)
        self._loops = Loops(around.drop)
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def sources(self) -> tuple[Source, ...]:
        """This road's side of the page that is not in the folds."""
        return (self._videos.source,)

    def start(self) -> None:
        """Begin to look at logs, folders and the time."""
        self._loop = asyncio.get_running_loop()
        self._videos.start()
        self._loops.start("jobs", self._end_jobs)
        self._loops.start("traces", self._send_overdue)
        if self._logs.wanted:
            self._loops.start("logs", self._logs.look)

    async def stop(self) -> None:
        """End within a moment; what is known of finished jobs leaves first."""
        await self._loops.stop()
        await asyncio.to_thread(self._stop_threads)
        self._logs.close()

    def _stop_threads(self) -> None:
        self._videos.stop(STOP_SECONDS / 4)
        self._tracing.stop(STOP_SECONDS)

    def unhealthy(self) -> str:
        """Empty while all is well, else what is wrong."""
        ended = self._loops.ended()
        return f"loops have ended ({', '.join(ended)}): restart the exporter" if ended else ""

    def reconfigure(self, parts: Changeable) -> None:
        """Take other settings; they hold from the next event and file on."""
        self._table.reconfigure(parts.limits, parts.budgets)
        self._videos.reconfigure(parts.probe, parts.backlog)

    def feed(self, body: bytes) -> None:
        """Take events as if they had been posted; from any thread."""
        if self._loop is not None:
            # A loop that has ended takes nothing, and nobody is left to tell.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._take_body, body)

    def _take_body(self, body: bytes) -> None:
        self.intake.take(self.intake.read_structured(body, 1).events, Receipt())

    async def _end_jobs(self) -> float:
        self.intake.tick()
        # At once, but after whoever else waits for the event loop.
        return 0.0 if self._table.more_to_end else TICK_SECONDS

    async def _send_overdue(self) -> float:
        more = self._tracing.tick(self._clock.monotonic_seconds())
        return 0.0 if more else TICK_SECONDS

    def _take_line(self, said: Mapping[str, Any]) -> None:
        # What is wrong with a line was counted, and there is nobody to answer.
        self.intake.take_line(said)

    def _finished(self, job: FinishedJob) -> None:
        # By now the job is counted: what fails here costs its trace and probes, and no other job.
        try:
            self._follow_up(job)
        except Exception:
            self._drop(*_FOLLOW_UP_FAILED, 1)
            log.exception("a finished job is neither traced nor probed", job=job.job_id)

    def _follow_up(self, job: FinishedJob) -> None:
        parent = self._tracing.parent_of(job)
        requests = (
            requests_of(job, self._folds.labels_of(job), parent) if self._videos.enabled else []
        )
        # Held before the first is handed in: a quick prober must not find nobody waiting.
        self._tracing.finished(
            job, [str(request.path) for request in requests], self._clock.monotonic_seconds()
        )
        for request in requests:
            self._videos.submit(request, job.job_id)

    def _take_posted(self, event: Event) -> None:
        # A file is another room's; of all that is handed on, it alone is taken.
        job = self._table.find(event.job_id) if event.job_id else None
        labels = self._folds.labels_of(job) if job else None
        self._videos.take_posted(event, labels)
