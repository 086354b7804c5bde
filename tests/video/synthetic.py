# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Packets without a file."""

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

from veo_exporter.video.definitions import Thresholds, VideoReport
from veo_exporter.video.expectation import NOTHING, Expectation
from veo_exporter.video.packets import ABSENT, Demuxed, Packets, Stream
from veo_exporter.video.probe import examine

FINE = Fraction(1, 90000)
"""A frame at 24 frames a second is 3,750 of these; half a millisecond is 45."""
MILLISECOND = Fraction(1, 1000)


def packets(
    pts: Iterable[int | None],
    dts: Iterable[int | None] | None = None,
    *,
    keys: Iterable[int] = (0,),
    hidden: int = 0,
) -> Packets:
    """In file order; without decoding times, those of presentation."""
    shown = [ABSENT if ticks is None else ticks for ticks in pts]
    decoded = shown if dts is None else [ABSENT if ticks is None else ticks for ticks in dts]
    made = Packets(hidden=hidden)
    made.pts.extend(shown)
    made.dts.extend(decoded)
    made.duration.extend(ABSENT for _ in shown)
    made.key.extend(place in set(keys) for place in range(len(shown)))
    return made


def stream(time_base: Fraction = FINE, **known: object) -> Stream:
    described: dict[str, object] = {
        "codec": "h264",
        "width": 1920,
        "height": 1080,
        "average_rate": None,
        "guessed_rate": None,
        "declared_frames": None,
    }
    return Stream(time_base=time_base, **(described | known))  # type: ignore[arg-type]


def report(
    column: Packets | Iterable[int],
    time_base: Fraction = FINE,
    *,
    expectation: Expectation = NOTHING,
    thresholds: Thresholds | None = None,
    complaints: tuple[str, ...] = (),
    **known: object,
) -> VideoReport:
    """What is said of packets; a plain column is times of presentation."""
    given = column if isinstance(column, Packets) else packets(column)
    demuxed = Demuxed("mov,mp4", 100, stream(time_base, **known), given)
    return examine(Path("film.mp4"), demuxed, complaints, expectation, thresholds or Thresholds())


def evenly(count: int, interval: Fraction | int = 3750) -> list[int]:
    """Ticks of frames at an even rate, rounded as a container would."""
    return [round(place * interval) for place in range(count)]


def defects(said: VideoReport) -> set[str]:
    return {finding.defect.value for finding in said.findings}
