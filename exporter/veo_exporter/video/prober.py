# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Probes what is handed in, a few files at a time, on threads of its own."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum

import structlog

from veo_exporter.clock import Clock
from veo_exporter.video.backlog import Backlog, WaitingFiles
from veo_exporter.video.definitions import Verdict, VideoReport
from veo_exporter.video.ffprobe import MissingProgram
from veo_exporter.video.gate import Identity, identify
from veo_exporter.video.memory import ProbeMemory, Told
from veo_exporter.video.probe import Probe
from veo_exporter.video.request import ProbeRequest

log = structlog.get_logger(__name__)


class Unprobed(StrEnum):
    """Why a file was handed in and no report came of it."""

    BACKLOG_FULL = "backlog_full"
    NO_FFPROBE = "no_ffprobe"
    PROBE_FAILED = "probe_failed"


OnReport = Callable[[ProbeRequest, VideoReport, int, int], None]
"""Request, report, and when probing started and ended, in nanoseconds of Unix time."""


class Prober:
    """Its workers call `on_report`, `on_known` and `unprobed`, on their own threads.

    A file gets one report, whoever hands it in and how often, until it is changed. `on_known` is
    told of events whose file has its report already; what folders show a second time is let be.
    """

    def __init__(
        self,
        probe: Probe,
        *,
        on_report: OnReport,
        unprobed: Callable[[Unprobed], None],
        clock: Clock,
        on_known: OnReport = lambda request, report, start_unix_ns, end_unix_ns: None,
        workers: int = 2,
        most_waiting: int = 1000,
    ) -> None:
        self._probe = probe
        self._at_work: list[Probe] = []
        """Those that look at a file now; a former one may be among them."""
        self._on_report = on_report
        self._unprobed = unprobed
        self._clock = clock
        self._on_known = on_known
        self._memory = ProbeMemory()
        self._waiting = WaitingFiles(most_waiting)
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
            probes = (self._probe, *self._at_work)
        for probe in probes:
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
            if taken := self._waiting.add(request, self._clock.monotonic_seconds()):
                self._changed.notify()
        if not taken:
            self._unprobed(Unprobed.BACKLOG_FULL)
        return taken

    def reconfigure(self, probe: Probe, most_waiting: int) -> None:
        """Take other settings; they hold from the next file on."""
        with self._changed:
            self._probe, self._waiting.most_waiting = probe, most_waiting

    def backlog(self) -> Backlog:
        """What waits now, without those that are being probed."""
        with self._changed:
            return self._waiting.backlog(self._clock.monotonic_seconds())

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
            while not self._stopping:
                now = self._clock.monotonic_seconds()
                if (request := self._waiting.take(now)) is not None:
                    return request
                self._changed.wait(self._waiting.seconds_to_wait(now))
            return None

    def _carry_out(self, request: ProbeRequest) -> None:
        identity = identify(request.path)
        turn = self._memory.begin(identity, request)
        if turn.told:
            self._tell_known(request, turn.told)
        if not turn.probe:
            return
        try:
            self._look(request, identity)
        finally:
            # Of no effect once it has ended well.
            self._memory.give_up(identity, request)

    def _look(self, request: ProbeRequest, identity: Identity | None) -> None:
        probe = self._begin_work()
        if probe is None:
            return
        started = self._now_nanoseconds()
        try:
            report = probe.look_at(request.path, request.expectation)
        except MissingProgram as error:
            if not self._told_of_missing:
                self._told_of_missing = True
                log.error("files are not probed", reason=str(error))
            self._unprobed(Unprobed.NO_FFPROBE)
            return
        finally:
            with self._changed:
                self._at_work.remove(probe)
        self._told_of_missing = False
        if self._stopping:
            # Its child was ended by us, which says nothing of the file.
            return
        told = Told(report, started, self._now_nanoseconds())
        followers = self._memory.end(identity, request, told)
        if followers is None:
            # An event came while the file was probed for a folder, and has it probed for itself.
            return
        _tell(request, report)
        self._on_report(request, report, told.start_unix_ns, told.end_unix_ns)
        for follower in followers:
            self._tell_known(follower, told)

    def _begin_work(self) -> Probe | None:
        """The probe to use, which `stop` knows of from now on; None if it is too late."""
        with self._changed:
            if self._stopping:
                return None
            self._at_work.append(self._probe)
            return self._probe

    def _tell_known(self, request: ProbeRequest, told: Told) -> None:
        log.debug("video is known", file=str(request.path), source=request.source)
        if request.named_by_event:
            report = replace(told.report, file=request.path)
            self._on_known(request, report, told.start_unix_ns, told.end_unix_ns)

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
        defects=[finding.defect.value for finding in report.findings],
        findings=[finding.message for finding in report.findings],
    )
