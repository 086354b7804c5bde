# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""One file, from its path to its report."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Final

from veo_exporter.video.cadence import measure
from veo_exporter.video.definitions import (
    ErrorKind,
    Failure,
    Media,
    Thresholds,
    Verdict,
    VideoReport,
)
from veo_exporter.video.expectation import NOTHING, Expectation
from veo_exporter.video.ffprobe import Ffprobe, is_cut_off
from veo_exporter.video.gate import Entry, Refused, admit
from veo_exporter.video.judge import ask_only, compare, find_cut, find_defects, judge
from veo_exporter.video.packets import ABSENT, Demuxed, OutputReader, Packets, UnreadableOutput
from veo_exporter.video.rate import nominal_rate
from veo_exporter.video.timeline import Timeline, find_keyframes, lay_out

LEAST_PROBE_SCORE: Final = 25
"""Below this, libavformat only guessed the format."""
MOST_FRAMES: Final = 100_000
"""Over an hour at 24 frames a second. While one is judged, each frame takes some 300 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Looks at files, one after the other."""

    ffprobe: Ffprobe
    roots: tuple[Path, ...] | None = None
    thresholds: Thresholds = field(default_factory=Thresholds)
    most_frames: int = MOST_FRAMES

    def look_at(self, path: Path, expectation: Expectation = NOTHING) -> VideoReport:
        """Never fails for the file's sake. Raises MissingProgram."""
        try:
            with admit(path, self.roots) as entry:
                demuxed, complaints = self._demux(entry)
                warnings = complaints
                if entry.changed():
                    warnings += ("it was written to while it was probed",)
            return examine(path, demuxed, warnings, expectation, self.thresholds)
        except Refused as refused:
            return _failed(path, refused.failure, expectation)

    def _demux(self, entry: Entry) -> tuple[Demuxed, tuple[str, ...]]:
        demuxed, complaints = self._read(entry, thorough=False)
        stream = demuxed.stream
        if stream and not (stream.codec and stream.width and stream.height):
            # MPEG-TS says these in its frames alone.
            demuxed, complaints = self._read(entry, thorough=True)
        return demuxed, complaints

    def _read(self, entry: Entry, *, thorough: bool) -> tuple[Demuxed, tuple[str, ...]]:
        reader = OutputReader(self.most_frames)
        try:
            ended = self.ffprobe.run(entry, reader.feed, thorough=thorough)
            return reader.finish(), ended.complaints
        except UnreadableOutput as error:
            raise Refused(
                ErrorKind.UNREADABLE, f"what ffprobe says of it cannot be used: {error}"
            ) from None


def examine(
    path: Path,
    demuxed: Demuxed,
    complaints: tuple[str, ...],
    expectation: Expectation,
    thresholds: Thresholds,
) -> VideoReport:
    """The report on a file that was read. Pure."""
    stream, packets = demuxed.stream, demuxed.packets
    if failure := _failure(demuxed):
        return _failed(path, failure, expectation, complaints)
    assert stream is not None  # noqa: S101, or it had been a failure
    timeline = lay_out(packets, stream.time_base)
    rate = nominal_rate(
        timeline,
        thresholds.deviation,
        asked=expectation.fps,
        average=stream.average_rate,
        guessed=stream.guessed_rate,
    )
    cadence = measure(timeline, rate, thresholds) if rate else None
    frame_count = sum(len(run.ticks) for run in timeline.runs) or len(packets)
    duration = cadence.duration if cadence else _lone_duration(packets, timeline)
    first_pts = timeline.runs[0].ticks[0] * stream.time_base if timeline.runs else None
    # A header counts the packets that an edit list hides.
    counted = len(packets) + packets.hidden
    media = Media(
        container=demuxed.container,
        codec=stream.codec,
        width=stream.width,
        height=stream.height,
        timing_source=timeline.source,
        time_base=stream.time_base,
        frame_count=frame_count,
        truncated=(stream.declared_frames or 0) > counted or is_cut_off(complaints),
    )
    asked = compare(
        expectation,
        timeline,
        cadence,
        frame_count=frame_count,
        duration=duration,
        thresholds=thresholds,
    )
    keyframes = find_keyframes(timeline, packets)
    findings = tuple(
        find_defects(
            media,
            cadence,
            keyframes,
            asked,
            declared_frames=stream.declared_frames,
            packets=counted,
            keyframe_interval=expectation.keyframe_interval,
            thresholds=thresholds,
        )
    )
    warnings = complaints
    if not timeline.runs:
        warnings += ("it has no timestamps: frames were counted and nothing else",)
    if cadence and len(cadence.gaps) < cadence.gap_count:
        warnings += (f"only the first {len(cadence.gaps)} gaps are listed",)
    return VideoReport(
        file=path,
        verdict=judge(findings),
        warnings=warnings,
        media=media,
        first_pts=first_pts,
        duration=duration,
        cadence=cadence,
        keyframes=keyframes,
        asked=asked,
        findings=findings,
    )


def _failed(
    path: Path, failure: Failure, expectation: Expectation, warnings: tuple[str, ...] = ()
) -> VideoReport:
    """The report on a file without figures; that its end is missing can be told all the same."""
    if is_cut_off(warnings):
        failure = replace(failure, cut_off=True)
    return VideoReport(
        file=path,
        verdict=Verdict.ERROR,
        failure=failure,
        warnings=warnings,
        asked=ask_only(expectation),
        findings=tuple(find_cut(failure)),
    )


def _failure(demuxed: Demuxed) -> Failure | None:
    if demuxed.probe_score < LEAST_PROBE_SCORE:
        return Failure(
            ErrorKind.UNREADABLE, f"is hardly a video: ffprobe guesses {demuxed.container}"
        )
    if demuxed.stream is None:
        return Failure(ErrorKind.NO_VIDEO_STREAM, "has no video in it")
    if not len(demuxed.packets):
        return Failure(ErrorKind.EMPTY, "has a video stream without a frame")
    return None


def _lone_duration(packets: Packets, timeline: Timeline) -> Fraction | None:
    """What the frames of a still claim to last; nothing better is known."""
    if not timeline.runs or len(packets) != 1 or packets.duration[0] == ABSENT:
        return None
    return packets.duration[0] * timeline.time_base
