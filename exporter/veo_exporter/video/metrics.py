# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Reports folded into counters and histograms."""

from collections.abc import Callable, Hashable, Iterable
from typing import Final

from veo_exporter.catalog import video as catalog
from veo_exporter.exposition import Family, Folds
from veo_exporter.video.backlog import Backlog
from veo_exporter.video.definitions import PROBE_CRASHED, Defect, ErrorKind, Verdict, VideoReport
from veo_exporter.video.origins import Origin, Origins
from veo_exporter.video.request import ProbeRequest

DEFECTS: Final = (
    *(defect.value for defect in Defect),
    *(kind.value for kind in ErrorKind),
    PROBE_CRASHED,
)
"""Everything that is counted as a defect."""


class VideoMetrics:
    """Folds each report once. May be called from several threads."""

    def __init__(self, folds: Folds, origins: Origins) -> None:
        self._origins = origins
        self._files = folds.counter(catalog.FILES)
        self._defects = folds.counter(catalog.DEFECTS)
        self._plain = (
            self._frames,
            self._dropped,
            self._duplicates,
            self._gaps,
            self._deviation,
            self._consistency,
            self._shortfall,
            self._keyframe_interval,
        ) = (
            folds.counter(catalog.FRAMES),
            folds.counter(catalog.DROPPED_FRAMES),
            folds.counter(catalog.DUPLICATE_FRAMES),
            folds.counter(catalog.GAPS),
            folds.histogram(catalog.FRAME_DEVIATION),
            folds.histogram(catalog.CONSISTENCY),
            folds.histogram(catalog.DURATION_SHORTFALL),
            folds.histogram(catalog.KEYFRAME_INTERVAL),
        )
        for origin in origins.expected:
            self._open(origin)

    def expect(self, request: ProbeRequest) -> None:
        """A file of this origin will follow; its rows start at zero, so that `increase` sees it."""
        self._open(self._origins.place(request, silently=True))

    def reserve(self, request: ProbeRequest) -> None:
        """Files of this origin are known to come sooner or later; no bound keeps them out."""
        self._open(self._origins.reserve(request))

    def _open(self, origin: Origin) -> None:
        for verdict in Verdict:
            self._files.labels(*origin, verdict.value)
        for defect in DEFECTS:
            self._defects.labels(*origin, defect)
        for instrument in self._plain:
            instrument.labels(*origin)

    def fold(
        self, request: ProbeRequest, report: VideoReport, exemplar: dict[str, str] | None = None
    ) -> None:
        """Count a report; `exemplar` leads from a bucket to the trace of the job."""
        origin = self._origins.place(request)
        self._open(origin)
        self._files.labels(*origin, report.verdict.value).inc(exemplar=exemplar)
        for defect in _defects(report):
            self._defects.labels(*origin, defect).inc(exemplar=exemplar)
        if report.media:
            self._frames.labels(*origin).inc(report.media.frame_count)
        if cadence := report.cadence:
            self._dropped.labels(*origin).inc(cadence.dropped_frames)
            self._duplicates.labels(*origin).inc(cadence.duplicate_pts)
            self._gaps.labels(*origin).inc(cadence.gap_count)
            self._consistency.labels(*origin).observe(float(cadence.consistency), exemplar)
            deviation_row = self._deviation.labels(*origin)
            for deviation, count in cadence.deviations:
                for _ in range(count):
                    deviation_row.observe(float(deviation), exemplar)
        if report.keyframes:
            interval_row = self._keyframe_interval.labels(*origin)
            for interval in report.keyframes.intervals:
                interval_row.observe(float(interval), exemplar)
        if report.asked and report.asked.shortfall is not None:
            self._shortfall.labels(*origin).observe(float(report.asked.shortfall), exemplar)


def exemplar_of(parent: str | None) -> dict[str, str] | None:
    """Trace and span of a W3C traceparent, as an exemplar carries them."""
    parts = (parent or "").split("-")
    if len(parts) < 4 or (len(parts[1]), len(parts[2])) != (32, 16):
        return None
    return {"trace_id": parts[1], "span_id": parts[2]}


def _defects(report: VideoReport) -> Iterable[str]:
    if report.failure:
        yield PROBE_CRASHED if report.failure.crashed else report.failure.kind.value
    for finding in report.findings:
        yield finding.defect.value


class BacklogSource:
    """The backlog's side of the page."""

    def __init__(self, backlog: Callable[[], Backlog]) -> None:
        self._backlog = backlog

    def revision(self, now_monotonic_seconds: float) -> Hashable:
        # An empty backlog stays as it is; the age of a full one goes on.
        backlog = self._backlog()
        return (0, 0) if not backlog.files else (backlog.files, round(backlog.oldest_age_seconds))

    def families(self, now_monotonic_seconds: float) -> Iterable[Family]:
        backlog = self._backlog()
        yield Family(catalog.BACKLOG, [((), backlog.files)])
        yield Family(catalog.BACKLOG_OLDEST_AGE, [((), backlog.oldest_age_seconds)])
