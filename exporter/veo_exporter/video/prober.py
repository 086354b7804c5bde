# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Probes what is handed in, a few files at a time, on threads of its own."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import structlog

from veo_exporter.clock import Clock
from veo_exporter.video.definitions import Verdict, VideoReport
from veo_exporter.video.expectation import NOTHING, Expectation
from veo_exporter.video.ffprobe import MissingProgram
from veo_exporter.video.probe import Probe

log = structlog.get_logger(__name__)

EVENT_SOURCE = "event"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRequest:
    """A finished file, and what is known of it. `parent` is a W3C traceparent."""

    path: Path
    source: str = EVENT_SOURCE
    expectation: Expectation = NOTHING
    engine: str = ""
    variant: str = ""
    profile: str = ""
    parent: str | None = None


class Unprobed(StrEnum):
    """Why a file was handed in and no report came of it."""

    BACKLOG_FULL = "backlog_full"
    NO_FFPROBE = "no_ffprobe"
    PROBE_FAILED = "probe_failed"


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits."""

    files: int
    oldest_age_seconds: float


OnReport = Callable[[ProbeRequest, VideoReport, int, int], None]
"""Request, report, and when probing started and ended, in nanoseconds of Unix time."""


class Prober:
    """Its workers call `on_report` and `unprobed`, on their own threads."""

    def __init__(
        self,
        probe: Probe,
        *,
        on_report: OnReport,
        unprobed: Callable[[Unprobed], None],
        clock: Clock,
        workers: int = 2,
        most_waiting: int = 1000,
    ) -> None:
        self._probe = probe
        self._former_probes: list[Probe] = []
        self._on_report = on_report
        self._unprobed = unprobed
        self._clock = clock
        self._most_waiting = most_waiting
        self._waiting: deque[tuple[ProbeRequest, float]] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        self._told_of_missing = False
        self._threads = [
            threading.Thread(target=self._work, name=f"video-prober-{number}", daemon=True)
            for number in range(workers)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_seconds: float) -> bool:
        """End children and workers; what still waits is given up. False if a worker did not end."""
        with self._changed:
            self._stopping = True
            self._waiting.clear()
            self._changed.notify_all()
        for probe in (self._probe, *self._former_probes):
            probe.ffprobe.abort()
        deadline = time.monotonic() + timeout_seconds
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def submit(self, request: ProbeRequest) -> bool:
        """Hand a file in. False, and counted, if too many wait already."""
        with self._changed:
            if self._stopping:
                return False
            if taken := len(self._waiting) < self._most_waiting:
                self._waiting.append((request, self._clock.monotonic_seconds()))
                self._changed.notify()
        if not taken:
            self._unprobed(Unprobed.BACKLOG_FULL)
        return taken

    def reconfigure(self, probe: Probe, most_waiting: int) -> None:
        """Take other settings; they hold from the next file on."""
        with self._changed:
            self._former_probes.append(self._probe)
            self._probe, self._most_waiting = probe, most_waiting

    def backlog(self) -> Backlog:
        """What waits now, without those that are being probed."""
        with self._changed:
            if not self._waiting:
                return Backlog(0, 0.0)
            oldest = self._waiting[0][1]
            return Backlog(len(self._waiting), self._clock.monotonic_seconds() - oldest)

    def _work(self) -> None:
        while (request := self._next()) is not None:
            try:
                self._carry_out(request)
            except Exception:
                # A fault of ours: it costs this file's report and no other.
                log.exception("probing failed", file=str(request.path))
                self._unprobed(Unprobed.PROBE_FAILED)

    def _next(self) -> ProbeRequest | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping)
            return None if self._stopping else self._waiting.popleft()[0]

    def _carry_out(self, request: ProbeRequest) -> None:
        started = self._now_nanoseconds()
        try:
            report = self._probe.look_at(request.path, request.expectation)
        except MissingProgram as error:
            if not self._told_of_missing:
                self._told_of_missing = True
                log.error("files are not probed", reason=str(error))
            self._unprobed(Unprobed.NO_FFPROBE)
            return
        self._told_of_missing = False
        if self._stopping:
            # Its child was ended by us, which says nothing of the file.
            return
        _tell(request, report)
        self._on_report(request, report, started, self._now_nanoseconds())

    def _now_nanoseconds(self) -> int:
        return round(self._clock.unix_seconds() * 1e9)


def _tell(request: ProbeRequest, report: VideoReport) -> None:
    say = log.debug if report.verdict is Verdict.OK else log.warning
    say(
        "video probed",
        file=str(report.file),
        source=request.source,
        verdict=report.verdict.value,
        error=report.failure and report.failure.message,
        defects=[finding.message for finding in report.findings],
    )
