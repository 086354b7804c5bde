# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The room of videos, wired: files of jobs and of watched folders to reports."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog

from veo_exporter.app.surroundings import Surroundings
from veo_exporter.config import Video
from veo_exporter.exposition import Source
from veo_exporter.jobs import (
    BadEvent,
    Event,
    EventFault,
    FinishedJob,
    JobLabels,
    OpaqueData,
    is_elsewhere,
    local_name,
)
from veo_exporter.video import (
    BacklogSource,
    BadReport,
    Expectation,
    FolderWatch,
    Origins,
    PostedFiles,
    Probe,
    Prober,
    ProbeRequest,
    Unprobed,
    VideoMetrics,
    VideoReport,
    exemplar_of,
    folders_of,
    probe_of,
    read_report,
    roots_of,
)

log = structlog.get_logger(__name__)

WATCH_PATIENCE_SECONDS: Final = 5.0
"""A folder that is not there cannot be watched; who waits for that waits no longer."""
_FILE: Final = "video_file"
_ELSEWHERE: Final = "elsewhere"
_LABEL: Final = "video_label"
DROPPED_SEEDS: Final = (
    *((_FILE, reason.value) for reason in Unprobed),
    (_FILE, _ELSEWHERE),
    *((_LABEL, label) for label in ("source", "engine", "variant", "profile", "origin")),
)
"""What is dropped here, as (kind, reason)."""

OnProbed = Callable[[ProbeRequest, VideoReport, int, int], None]
"""Told of each file that somebody waits for, whether it was probed for them or before."""


class Videos:
    """The prober and the folders that are watched."""

    def __init__(self, settings: Video, around: Surroundings, on_probed: OnProbed) -> None:
        self.enabled = settings.enabled
        self._watching = around.watching
        self._drop = around.drop
        self._told_of_elsewhere = False
        self._on_probed = on_probed
        self._clock = around.clock
        self._posted = PostedFiles()
        folders = folders_of(settings) if settings.enabled else ()
        self._metrics = VideoMetrics(
            around.folds,
            Origins(
                [folder.request(folder.path) for folder in folders],
                lambda label: around.drop(_LABEL, label, 1),
            ),
        )
        self._prober = Prober(
            probe_to_use(settings),
            on_report=self._report,
            on_known=on_probed,
            unprobed=lambda reason: around.drop(_FILE, reason.value, 1),
            clock=around.clock,
            workers=settings.workers,
            most_waiting=settings.backlog,
        )
        self._watches = [FolderWatch(folder, self.submit, around.clock) for folder in folders]

    @property
    def source(self) -> Source:
        """What waits, for the page."""
        return BacklogSource(self._prober.backlog)

    def start(self) -> None:
        """Begin to probe and to watch."""
        if self.enabled:
            self._prober.start()
            for watch in self._watches:
                watch.start()
        # A daemon: the end does not wait for it.
        threading.Thread(target=self._tell_of_watching, name="video-watching", daemon=True).start()

    def stop(self, timeout_seconds: float) -> None:
        """End workers and their children."""
        for watch in self._watches:
            watch.stop(0.0)
        self._prober.stop(timeout_seconds)

    def reconfigure(self, probe: Probe, backlog: int) -> None:
        """Take other settings; they hold from the next file on."""
        self._prober.reconfigure(probe, backlog)

    def reserve(self, labels: JobLabels) -> None:
        """Jobs of these labels are known beforehand: the first file of theirs must be seen."""
        if self.enabled:
            self._metrics.reserve(_request_of(labels))

    def expect(self, labels: JobLabels) -> None:
        """A job of these labels was heard of: its files' rows are there before its files are."""
        if self.enabled:
            self._metrics.expect(_request_of(labels))

    def submit(self, request: ProbeRequest, job_id: str = "") -> None:
        """Have a file probed, unless it is a job's and its report was posted."""
        self._metrics.expect(request)
        if job_id and (report := self._posted.job_ended(job_id, str(request.path), request.parent)):
            now = round(self._clock.unix_seconds() * 1e9)
            self._on_probed(request, report, now, now)
            return
        if is_elsewhere(str(request.path)):
            self._leave_elsewhere(job_id)
            return
        self._prober.submit(request)

    def _leave_elsewhere(self, job_id: str) -> None:
        self._drop(_FILE, _ELSEWHERE, 1)
        if not self._told_of_elsewhere:
            self._told_of_elsewhere = True
            log.warning(
                "an output is no file of this machine and is not probed here; further ones are counted: probe "
                "it where it lies and post the report as veo.video.probed",
                job=job_id,
            )

    def take_posted(self, event: Event, labels: JobLabels | None) -> None:
        """Count a report that somebody else made; it is part of its job's trace. Raises BadEvent."""
        assert isinstance(event.data, OpaqueData)  # noqa: S101, no other is handed on
        try:
            report = read_report(event.data.fields())
        except BadReport as error:
            raise BadEvent(EventFault.BAD_DATA, f"data.{error}") from None
        parent = self._posted.report_came(event.job_id, report) if event.job_id else None
        request = replace(_request_of(labels), path=report.file, parent=parent)
        at = event.unix_nanoseconds
        self._report(request, report, at, at)

    def _report(
        self, request: ProbeRequest, report: VideoReport, start_unix_ns: int, end_unix_ns: int
    ) -> None:
        self._metrics.fold(request, report, exemplar_of(request.parent))
        self._on_probed(request, report, start_unix_ns, end_unix_ns)

    def _tell_of_watching(self) -> None:
        for watch in self._watches if self.enabled else ():
            watch.watching.wait(WATCH_PATIENCE_SECONDS)
        self._watching()


def _request_of(labels: JobLabels | None) -> ProbeRequest:
    """What stands for files of jobs with these labels."""
    if labels is None:
        return ProbeRequest(path=Path())
    return ProbeRequest(
        path=Path(), engine=labels.engine, variant=labels.variant, profile=labels.profile
    )


def probe_to_use(settings: Video) -> Probe:
    """A probe that may read where the daemon may."""
    return probe_of(settings, roots_of(settings))


def requests_of(job: FinishedJob, labels: JobLabels, parent: str | None) -> list[ProbeRequest]:
    """What a job has written, each file once, held against what was asked of it."""
    asked = job.request
    expectation = Expectation(
        fps=asked.fps if asked else None, duration=asked.duration_s if asked else None
    )
    return [
        ProbeRequest(
            path=Path(path),
            expectation=expectation,
            engine=labels.engine,
            variant=labels.variant,
            profile=labels.profile,
            parent=parent,
        )
        for path in dict.fromkeys(local_name(output.path) for output in job.outputs if output.path)
    ]
