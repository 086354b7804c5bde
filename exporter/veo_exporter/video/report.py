# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A report as the JSON that other programs read. Field names are fixed: see docs/video.md."""

import math
from collections import Counter
from fractions import Fraction
from typing import Any, Final

from veo_exporter.video.definitions import Asked, Cadence, Finding, Keyframes, Media, VideoReport

SCHEMA: Final = "veo.video.probe/1"


def as_json(report: VideoReport) -> dict[str, Any]:
    """Every field, null where it is not known. Exact rates and durations are "num/den"."""
    failure = report.failure
    return {
        "file": str(report.file),
        "schema": SCHEMA,
        "error": failure
        and {"kind": failure.kind.value, "message": failure.message, "crashed": failure.crashed},
        "warnings": list(report.warnings),
        **_media(report.media),
        "truncated": _truncated(report),
        "duration_s": _exact(report.duration),
        "first_pts_s": _number(report.first_pts),
        **_cadence(report.cadence),
        **_keyframes(report.keyframes),
        "request": _asked(report.asked),
        "deep": None,
        "verdict": report.verdict.value,
        "defects": [_finding(finding) for finding in report.findings],
    }


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


def _milliseconds(value: Fraction | None) -> float | None:
    return None if value is None else float(value * 1000)


def _exact(value: Fraction | None) -> str | None:
    return None if value is None else f"{value.numerator}/{value.denominator}"


def _media(media: Media | None) -> dict[str, Any]:
    return {
        "container": media and media.container,
        "codec": media and media.codec,
        "width": media and media.width,
        "height": media and media.height,
        "timing_source": media and media.timing_source.value,
        "time_base": media and _exact(media.time_base),
        "frame_count": media and media.frame_count,
    }


def _truncated(report: VideoReport) -> bool | None:
    if report.media:
        return report.media.truncated
    return True if report.failure and report.failure.cut_off else None


def _cadence(cadence: Cadence | None) -> dict[str, Any]:
    if cadence is None:
        return dict.fromkeys(_CADENCE_FIELDS)
    return {
        "effective_tick_ms": _milliseconds(cadence.tick),
        "nominal_fps": _exact(cadence.rate),
        "gap_count": cadence.gap_count,
        "gaps_at": [
            {"after_frame": gap.after_frame, "at_s": float(gap.at), "missing": gap.missing}
            for gap in cadence.gaps
        ],
        "dropped_frames": cadence.dropped_frames,
        "duplicate_pts": cadence.duplicate_pts,
        "short_deltas": cadence.short_deltas,
        "pts_discontinuities": cadence.discontinuities,
        "max_abs_dev_raw_ms": _milliseconds(cadence.max_deviation_raw),
        "max_abs_dev_net_ms": _milliseconds(cadence.max_deviation_net),
        "pts_jitter_p2p_ms": _milliseconds(cadence.jitter),
        "is_cfr": cadence.is_constant_rate,
        "on_grid": cadence.on_grid,
        "consistency_ratio": _number(cadence.consistency),
        "deviations_ms": _deviations(cadence),
    }


def _deviations(cadence: Cadence) -> list[list[float | int]]:
    """How many intervals are how far off, rounded up to two digits: no bound of a histogram is crossed."""
    counts = Counter[float]()
    for deviation, count in cadence.deviations:
        counts[_round_up(deviation * 1000)] += count
    return [[milliseconds, counts[milliseconds]] for milliseconds in sorted(counts)]


def _round_up(value: Fraction) -> float:
    if not value:
        return 0.0
    digits = 1 - math.floor(math.log10(value))
    # log10 of a fraction is a float: beside a power of ten it may be off by one, which costs a digit.
    scale = Fraction(10) ** digits
    return float(math.ceil(value * scale) / scale)


_CADENCE_FIELDS: Final = (
    "effective_tick_ms",
    "nominal_fps",
    "gap_count",
    "gaps_at",
    "dropped_frames",
    "duplicate_pts",
    "short_deltas",
    "pts_discontinuities",
    "max_abs_dev_raw_ms",
    "max_abs_dev_net_ms",
    "pts_jitter_p2p_ms",
    "is_cfr",
    "on_grid",
    "consistency_ratio",
    "deviations_ms",
)


def _keyframes(keyframes: Keyframes | None) -> dict[str, Any]:
    return {
        "keyframes": keyframes and list(keyframes.frames),
        "keyframe_interval_frames": keyframes and list(keyframes.interval_frames),
        "keyframe_interval_s": keyframes and [float(length) for length in keyframes.intervals],
        "gop_tail_frames": keyframes and keyframes.tail_frames,
    }


def _asked(asked: Asked | None) -> dict[str, Any] | None:
    if asked is None:
        return None
    return {
        "fps": _exact(asked.fps),
        "duration_s": _exact(asked.duration),
        "keyframe_interval_s": _exact(asked.keyframe_interval),
        "frames": asked.frames,
        "frames_missing": asked.frames_missing,
        "frame_count_ok": asked.frame_count_ok,
        "duration_ok": asked.duration_ok,
        "fps_ok": asked.fps_ok,
        "drift_ms": _milliseconds(asked.drift),
        "shortfall_s": _number(asked.shortfall),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.defect.value,
        "message": finding.message,
        "amount": float(finding.amount),
        "unit": finding.unit,
        "frame": finding.frame,
        "at_s": _number(finding.at),
    }
