# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""From figures to defects, and from defects to a verdict."""

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

from veo_exporter.video.cadence import drift, same_rate
from veo_exporter.video.definitions import (
    DEFECTIVE,
    Asked,
    Cadence,
    Defect,
    Failure,
    Finding,
    Keyframes,
    Media,
    Thresholds,
    Verdict,
)
from veo_exporter.video.expectation import NOTHING, Expectation
from veo_exporter.video.rate import HALF
from veo_exporter.video.timeline import Timeline


def ask_only(expectation: Expectation) -> Asked | None:
    """What was asked of a file that cannot be compared; None if nothing was."""
    if expectation == NOTHING:
        return None
    return Asked(
        fps=expectation.fps,
        duration=expectation.duration,
        keyframe_interval=expectation.keyframe_interval,
        frames=expectation.frames,
    )


def compare(
    expectation: Expectation,
    timeline: Timeline,
    cadence: Cadence | None,
    *,
    frame_count: int,
    duration: Fraction | None,
    thresholds: Thresholds,
) -> Asked | None:
    """What was asked against what came; None if nothing was asked."""
    if expectation == NOTHING:
        return None
    # A duration without a rate is judged at the rate that came.
    rate = expectation.fps or (cadence.rate if cadence else None)
    asked = expectation.duration
    frames = math.ceil(rate * asked) if rate and asked else None
    duration_ok = None
    if rate and frames and duration is not None:
        duration_ok = abs(duration - frames / rate) <= HALF / rate
    off = drift(timeline, expectation.fps) if expectation.fps and cadence else None
    tick = timeline.tick * timeline.time_base
    return Asked(
        fps=expectation.fps,
        duration=asked,
        keyframe_interval=expectation.keyframe_interval,
        frames=frames,
        frames_missing=None if frames is None else frames - frame_count,
        frame_count_ok=None if frames is None else frames == frame_count,
        duration_ok=duration_ok,
        fps_ok=same_rate(cadence.rate, expectation.fps) if cadence and expectation.fps else None,
        drift=off,
        drift_ok=None if off is None else abs(off) <= max(tick, thresholds.deviation),
        shortfall=None if asked is None or duration is None else max(Fraction(0), asked - duration),
    )


def find_defects(
    media: Media,
    cadence: Cadence | None,
    keyframes: Keyframes,
    asked: Asked | None,
    *,
    declared_frames: int | None,
    packets: int,
    keyframe_interval: Fraction | None,
    thresholds: Thresholds,
) -> Iterator[Finding]:
    """One finding for each kind of defect, the worst kinds first."""
    yield from _against_request(asked)
    yield from _against_header(media, declared_frames, packets)
    if cadence:
        yield from _breaks(cadence)
        yield from _unevenness(cadence, thresholds)
    if keyframe_interval is not None:
        yield from _keyframes(keyframes, cadence, keyframe_interval)


def find_cut(failure: Failure) -> Iterator[Finding]:
    """What is known of a file that could not be read because it is cut off."""
    if failure.cut_off:
        yield Finding(
            defect=Defect.TRUNCATED,
            message="the file is cut off: what is needed to read it is not there",
            amount=Fraction(0),
            unit="frames",
        )


def judge(findings: Iterable[Finding]) -> Verdict:
    """The verdict on a file that could be read."""
    found = {finding.defect for finding in findings}
    if found & DEFECTIVE:
        return Verdict.DEFECTIVE
    return Verdict.DEGRADED if found else Verdict.OK


def _frames(count: int) -> str:
    return "1 frame" if count == 1 else f"{count} frames"


def _milliseconds(seconds: Fraction) -> str:
    return f"{float(seconds * 1000):.2f} ms"


def _against_request(asked: Asked | None) -> Iterator[Finding]:
    if asked is None:
        return
    missing = asked.frames_missing or 0
    if missing > 0:
        short = f", {float(asked.shortfall):.3f} s short" if asked.shortfall else ""
        yield Finding(
            defect=Defect.FRAMES_MISSING,
            message=f"{_frames(missing)} missing of the {asked.frames} asked for{short}",
            amount=Fraction(missing),
            unit="frames",
        )
    if asked.fps_ok is False:
        yield Finding(
            defect=Defect.WRONG_RATE,
            message=f"not at the {asked.fps} frames per second asked for",
            amount=asked.fps or Fraction(0),
            unit="hertz",
        )
    if missing < 0:
        yield Finding(
            defect=Defect.EXTRA_FRAMES,
            message=f"{_frames(-missing)} more than the {asked.frames} asked for",
            amount=Fraction(-missing),
            unit="frames",
        )
    # At a wrong rate the drift says the same once more.
    if asked.drift is not None and asked.drift_ok is False and asked.fps_ok:
        yield Finding(
            defect=Defect.DRIFT,
            message=f"the last frame is {_milliseconds(asked.drift)} from its place",
            amount=abs(asked.drift),
            unit="seconds",
        )


def _against_header(media: Media, declared: int | None, packets: int) -> Iterator[Finding]:
    if media.truncated:
        lost = max(0, (declared or 0) - packets)
        yield Finding(
            defect=Defect.TRUNCATED,
            message=f"the file is cut off: {_frames(lost)} of {declared} declared are not there"
            if lost
            else "the file is cut off",
            amount=Fraction(lost),
            unit="frames",
        )
    elif declared is not None and declared < packets:
        yield Finding(
            defect=Defect.HEADER_MISMATCH,
            message=f"the header declares {_frames(declared)}, and there are {packets}",
            amount=Fraction(packets - declared),
            unit="frames",
        )


def _breaks(cadence: Cadence) -> Iterator[Finding]:
    if cadence.gaps:
        first = cadence.gaps[0]
        others = cadence.gap_count - 1
        more = f", and {others} more gap{'s' * (others > 1)}" if others else ""
        lost = _frames(first.missing) + " missing" if first.missing else "a pause"
        yield Finding(
            defect=Defect.GAP,
            message=f"{lost} after frame {first.after_frame} at {float(first.at):.3f} s{more}",
            amount=Fraction(cadence.dropped_frames),
            unit="frames",
            frame=first.after_frame,
            at=first.at,
        )
    if cadence.duplicate_pts:
        yield Finding(
            defect=Defect.DUPLICATE_TIMESTAMPS,
            message=f"{_frames(cadence.duplicate_pts)} at the time of the one before, "
            f"first frame {cadence.first_duplicate}",
            amount=Fraction(cadence.duplicate_pts),
            unit="frames",
            frame=cadence.first_duplicate,
        )
    if cadence.discontinuities:
        times = "once" if cadence.discontinuities == 1 else f"{cadence.discontinuities} times"
        yield Finding(
            defect=Defect.DISCONTINUITY,
            message=f"the clock is set back {times}",
            amount=Fraction(cadence.discontinuities),
            unit="times",
        )


def _unevenness(cadence: Cadence, thresholds: Thresholds) -> Iterator[Finding]:
    off = cadence.deltas - cadence.good_deltas
    if off and cadence.on_grid and not cadence.gaps:
        yield Finding(
            defect=Defect.UNEVEN_RATE,
            message=f"{off} of {cadence.deltas} intervals are uneven, up to "
            f"{_milliseconds(cadence.max_deviation_net)}",
            amount=Fraction(off),
            unit="intervals",
        )
    if cadence.consistency < thresholds.consistency:
        yield Finding(
            defect=Defect.LOW_CONSISTENCY,
            message=f"{cadence.good_deltas} of {cadence.deltas} intervals keep the rate",
            amount=cadence.consistency,
            unit="ratio",
        )
    if cadence.jitter > thresholds.jitter:
        yield Finding(
            defect=Defect.JITTER,
            message=f"frames are up to {_milliseconds(cadence.jitter)} apart from their places",
            amount=cadence.jitter,
            unit="seconds",
        )
    if cadence.short_deltas:
        yield Finding(
            defect=Defect.SHORT_DELTAS,
            message=f"{cadence.short_deltas} intervals are shorter than half of the nominal one",
            amount=Fraction(cadence.short_deltas),
            unit="intervals",
        )


def _keyframes(
    keyframes: Keyframes, cadence: Cadence | None, stated: Fraction
) -> Iterator[Finding]:
    if cadence is None:
        return
    slack = HALF / cadence.rate
    # What follows the last keyframe may be shorter, but not longer.
    off = [abs(interval - stated) for interval in keyframes.intervals]
    off.append(keyframes.tail_frames / cadence.rate - stated)
    if (worst := max(off)) > slack:
        yield Finding(
            defect=Defect.KEYFRAME_INTERVAL,
            message=f"keyframes are up to {float(worst):.3f} s off the {float(stated):g} s stated",
            amount=worst,
            unit="seconds",
        )
