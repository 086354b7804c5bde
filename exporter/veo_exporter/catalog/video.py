# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of finished video files. A file is probed once; what is counted here happened once."""

from typing import Final

from veo_exporter.catalog.jobs import ENGINE, PROFILE, VARIANT
from veo_exporter.catalog.spec import Kind, Label, MetricSpec
from veo_exporter.units import Unit

SOURCE: Final = Label(
    "source",
    "name of the watched folder, event for a file that a job's event named, or other",
    "watched folders + 2",
)
VERDICT: Final = Label("verdict", "ok, degraded, defective or error", "4")
DEFECT: Final = Label(
    "defect",
    "what is wrong with the file; of files in error, why they could not be read",
    "20",
)
ORIGIN: Final = (SOURCE, ENGINE, VARIANT, PROFILE)


def _counter(name: str, help: str, *labels: Label) -> MetricSpec:
    return MetricSpec(name, Kind.COUNTER, Unit.NONE, help, (*ORIGIN, *labels))


def _histogram(name: str, unit: Unit, help: str, *buckets: float) -> MetricSpec:
    return MetricSpec(name, Kind.HISTOGRAM, unit, help, ORIGIN, buckets)


FILES: Final = _counter("veo_video_files_total", "Files that were probed, by verdict.", VERDICT)
DEFECTS: Final = _counter(
    "veo_video_defects_total",
    "Files with this defect, however often it occurs in them; a file may have several.",
    DEFECT,
)
FRAMES: Final = _counter("veo_video_frames_total", "Frames in files that could be read.")
DROPPED_FRAMES: Final = _counter(
    "veo_video_dropped_frames_total", "Frames that the gaps between others leave room for."
)
DUPLICATE_FRAMES: Final = _counter(
    "veo_video_duplicate_frames_total", "Frames with the timestamp of the one before."
)
GAPS: Final = _counter(
    "veo_video_gaps_total", "Places where the next frame comes later than 1.5 frame intervals."
)
FRAME_DEVIATION: Final = _histogram(
    "veo_video_frame_deviation_seconds",
    Unit.SECONDS,
    "How far each frame interval is from the nominal one, net of the rounding of the container's clock.",
    *(0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5),
)
CONSISTENCY: Final = _histogram(
    "veo_video_consistency_ratio",
    Unit.RATIO,
    "Of each file, the share of frame intervals within 0.5 ms of the nominal one.",
    *(0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0),
)
DURATION_SHORTFALL: Final = _histogram(
    "veo_video_duration_shortfall_seconds",
    Unit.SECONDS,
    "Of each file of which a duration was asked, how much of it is missing; 0 if none is.",
    *(0.0, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0),
)
KEYFRAME_INTERVAL: Final = _histogram(
    "veo_video_keyframe_interval_seconds",
    Unit.SECONDS,
    "Time from each keyframe to the next.",
    *(0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 10.0, 20.0, 60.0),
)
BACKLOG: Final = MetricSpec(
    "veo_video_backlog_files", Kind.GAUGE, Unit.NONE, "Files that wait to be probed."
)
BACKLOG_OLDEST_AGE: Final = MetricSpec(
    "veo_video_backlog_oldest_age_seconds",
    Kind.GAUGE,
    Unit.SECONDS,
    "How long the file has waited that waits longest; 0 if none waits.",
)
