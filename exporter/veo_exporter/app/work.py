# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The second road wired: events and log lines to jobs, their files to the prober, both to a trace."""

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import structlog

import veo_exporter
from veo_exporter.catalog import traces as traces_catalog
from veo_exporter.clock import Clock
from veo_exporter.config import Jobs, Settings, Traces
from veo_exporter.errors import BadConfig
from veo_exporter.exposition import Folds, Source
from veo_exporter.jobs import DROPPED_SEEDS as JOBS_DROPPED
from veo_exporter.jobs import (
    PRESETS,
    Budgets,
    FinishedJob,
    Intake,
    JobFolds,
    JobTable,
    Known,
    Limits,
    Receipt,
    parse_budget,
)
from veo_exporter.logs import DROPPED_SEEDS as LOGS_DROPPED
from veo_exporter.logs import Follower, LogReading, load_rules
from veo_exporter.traces import Tracing, open_emitter, traces_url
from veo_exporter.video import (
    BacklogSource,
    Expectation,
    FolderWatch,
    Origins,
    Prober,
    ProbeRequest,
    Unprobed,
    VideoMetrics,
    VideoReport,
    exemplar_of,
    folders_of,
    probe_of,
    roots_of,
)

log = structlog.get_logger(__name__)

TICK_SECONDS: Final = 1.0
STOP_SECONDS: Final = 0.8
WATCH_PATIENCE_SECONDS: Final = 5.0
"""A folder that is not there cannot be watched; who waits for that waits no longer."""
_FILE: Final = "video_file"
_SPAN: Final = "span"

DROPPED_SEEDS: Final = (
    *JOBS_DROPPED,
    *LOGS_DROPPED,
    *((_FILE, reason.value) for reason in Unprobed),
    *(("video_label", label) for label in ("source", "engine", "variant", "profile", "origin")),
    (_SPAN, "queue_full"),
    (_SPAN, "shutdown"),
    ("traceparent", "broken"),
)
"""What is dropped on this road, as (kind, reason)."""

Drop = Callable[[str, str, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What this road needs of the rest of the exporter."""

    folds: Folds
    drop: Drop
    clock: Clock
    simulated: bool
    gpu_uuid: Callable[[str], str | None]
    watching: Callable[[], None]
    """Told once changes in the watched folders are seen."""


class Work:
    """Jobs, logs, files and traces. Started and stopped with the exporter."""

    def __init__(self, settings: Settings, around: Surroundings) -> None:
        self._clock = around.clock
        self._watching = around.watching
        self._tracing = _tracing_of(settings.traces, around)
        self._folds = JobFolds(
            around.folds,
            known_of(settings.jobs),
            trace_of=self._tracing.exemplar,
            dropped=lambda label: around.drop("job_label", label, 1),
        )
        self._table = JobTable(
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
        )
        self._logs = LogReading(
            Follower(
                settings.logs.files,
                max_files=settings.logs.max_files,
                max_line_bytes=settings.logs.max_line_bytes,
                max_read_bytes=settings.logs.max_read_bytes,
            ),
            load_rules(settings.logs.rules),
            around.folds,
            event=self._take_line,
            dropped=around.drop,
        )
        self._logs_followed = bool(settings.logs.files)
        self._log_interval_seconds = settings.logs.interval
        self._video = settings.video
        folders = folders_of(settings.video) if settings.video.enabled else ()
        self._metrics = VideoMetrics(
            around.folds,
            Origins(
                [folder.request(folder.path) for folder in folders],
                lambda label: around.drop("video_label", label, 1),
            ),
        )
        self._prober = Prober(
            probe_of(settings.video, roots_of(settings.video)),
            on_report=self._probed,
            unprobed=lambda reason: around.drop(_FILE, reason.value, 1),
            clock=around.clock,
            workers=settings.video.workers,
            most_waiting=settings.video.backlog,
        )
        self._watches = [FolderWatch(folder, self._submit, around.clock) for folder in folders]
        self._tasks: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def sources(self) -> tuple[Source, ...]:
        """This road's side of the page that is not in the folds."""
        return (BacklogSource(self._prober.backlog),)

    def start(self) -> None:
        """Begin to look at logs, folders and the time."""
        self._loop = asyncio.get_running_loop()
        if self._video.enabled:
            self._prober.start()
            for watch in self._watches:
                watch.start()
        # A daemon: the end does not wait for it.
        threading.Thread(target=self._tell_of_watching, name="video-watching", daemon=True).start()
        self._tasks = [
            asyncio.create_task(self._tick()),
            *([asyncio.create_task(self._follow_logs())] if self._logs_followed else []),
        ]

    async def stop(self) -> None:
        """End within a moment; what is known of finished jobs leaves first."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._stop_threads)
        self._logs.close()

    def _stop_threads(self) -> None:
        for watch in self._watches:
            watch.stop(0.0)
        self._prober.stop(STOP_SECONDS / 4)
        self._tracing.stop(STOP_SECONDS)

    def reconfigure(self, settings: Settings) -> None:
        """Take other settings; they hold from the next event and file on."""
        self._table.reconfigure(limits_of(settings.jobs), budgets_of(settings.jobs))
        self._prober.reconfigure(
            probe_of(settings.video, roots_of(settings.video)), settings.video.backlog
        )

    def feed(self, body: bytes) -> None:
        """Take events as if they had been posted; from any thread."""
        if self._loop is not None:
            # A loop that has ended takes nothing, and nobody is left to tell.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._take_body, body)

    def _take_body(self, body: bytes) -> None:
        self.intake.take(self.intake.read_structured(body, 1).events, Receipt())

    def _tell_of_watching(self) -> None:
        for watch in self._watches if self._video.enabled else ():
            watch.watching.wait(WATCH_PATIENCE_SECONDS)
        self._watching()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.intake.tick()
            self._tracing.tick(self._clock.monotonic_seconds())

    async def _follow_logs(self) -> None:
        while True:
            now = self._clock.monotonic_seconds()
            self._logs.fold(await asyncio.to_thread(self._logs.look, now))
            await asyncio.sleep(self._log_interval_seconds)

    def _take_line(self, said: dict[str, Any]) -> None:
        # What is wrong with a line was counted, and there is nobody to answer.
        self.intake.take_line(said)

    def _submit(self, request: ProbeRequest) -> None:
        self._metrics.expect(request)
        self._prober.submit(request)

    def _finished(self, job: FinishedJob) -> None:
        requests = self._requests_of(job) if self._video.enabled else []
        # Held before the first is handed in: a quick prober must not find nobody waiting.
        self._tracing.finished(
            job, [str(request.path) for request in requests], self._clock.monotonic_seconds()
        )
        for request in requests:
            self._submit(request)

    def _requests_of(self, job: FinishedJob) -> list[ProbeRequest]:
        labels = self._folds.labels_of(job)
        asked = job.request
        expectation = Expectation(
            fps=asked.fps if asked else None, duration=asked.duration_s if asked else None
        )
        exemplar = self._tracing.exemplar(job)
        parent = (
            f"00-{exemplar['trace_id']}-{exemplar['span_id']}-01" if exemplar else job.traceparent
        )
        return [
            ProbeRequest(
                path=Path(output.path),
                expectation=expectation,
                engine=labels.engine,
                variant=labels.variant,
                profile=labels.profile,
                parent=parent or None,
            )
            for output in job.outputs
            if output.path
        ]

    def _probed(
        self, request: ProbeRequest, report: VideoReport, start_unix_ns: int, end_unix_ns: int
    ) -> None:
        self._metrics.fold(request, report, exemplar_of(request.parent))
        self._tracing.probed(str(request.path), report, start_unix_ns, end_unix_ns)


def _tracing_of(settings: Traces, around: Surroundings) -> Tracing:
    exported = around.folds.counter(traces_catalog.SPANS_EXPORTED)
    failed = around.folds.counter(traces_catalog.SPANS_FAILED)
    try:
        emitter = open_emitter(
            traces_url(settings.endpoint, os.environ),
            node=socket.gethostname(),
            version=veo_exporter.__version__,
            simulated=around.simulated,
            queue_limit=settings.queue_limit,
            exported=exported.inc,
            failed=failed.inc,
            dropped=lambda reason, spans: around.drop(_SPAN, reason, spans),
        )
    except (ValueError, RuntimeError) as error:
        raise BadConfig(
            [f"traces: the SDK's variables (OTEL_…) do not go together: {error}"]
        ) from None
    return Tracing(
        emitter,
        patience_seconds=settings.probe_patience,
        waiting_limit=settings.waiting_limit,
        keep_unsampled=settings.keep_unsampled,
        context_broken=lambda: around.drop("traceparent", "broken", 1),
    )


def budgets_of(jobs: Jobs) -> Budgets:
    """Presets, and what is set beside them."""
    presets = [budget for name in jobs.budget_presets for budget in PRESETS[name]]
    return Budgets([*presets, *(parse_budget(*row) for row in jobs.budget_rows())], jobs.lost_after)


def limits_of(jobs: Jobs) -> Limits:
    """How much is kept of jobs."""
    return Limits(
        max_in_flight=jobs.max_in_flight,
        max_ended=jobs.max_in_flight,
        max_event_ids=jobs.max_event_ids,
        remember_seconds=jobs.remember,
    )


def known_of(jobs: Jobs) -> Known:
    """The label values that are expected."""
    return Known(
        engines=jobs.engines,
        models=jobs.models,
        variants=jobs.variants,
        profiles=jobs.profiles,
        max_names=jobs.max_names,
        max_sets=jobs.max_label_sets,
    )
