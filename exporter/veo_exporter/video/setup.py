# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The room's parts as the settings say them."""

from fractions import Fraction
from pathlib import Path

from veo_exporter.config.video import Video
from veo_exporter.errors import BadConfig
from veo_exporter.video.definitions import Thresholds
from veo_exporter.video.expectation import NOTHING, BadExpectation, parse_expectation
from veo_exporter.video.ffprobe import Ffprobe, Limits
from veo_exporter.video.probe import Probe
from veo_exporter.video.watch import Folder


def probe_of(video: Video, roots: tuple[Path, ...] | None) -> Probe:
    """A probe with the configured limits and thresholds; None for roots lets it read anywhere."""
    limits = Limits(
        deadline_seconds=video.deadline,
        memory_bytes=video.memory_limit_mebibytes << 20,
        output_bytes=video.output_limit_mebibytes << 20,
        niceness=video.niceness,
        formats=video.formats,
    )
    thresholds = Thresholds(
        deviation=_exact(video.deviation),
        jitter=_exact(video.jitter),
        gap_intervals=_exact(video.gap_intervals),
        consistency=_exact(video.consistency),
    )
    return Probe(
        ffprobe=Ffprobe(limits, video.ffprobe),
        roots=roots,
        thresholds=thresholds,
        most_frames=video.frames_limit,
    )


def roots_of(video: Video) -> tuple[Path, ...]:
    """Where the daemon may read."""
    return (*video.roots, *(folder.path for folder in video.folders))


def folders_of(video: Video) -> tuple[Folder, ...]:
    """Raises BadConfig if what is expected of a folder cannot be read."""
    folders = []
    for folder in video.folders:
        try:
            expectation = parse_expectation(folder.expect) if folder.expect else NOTHING
        except BadExpectation as error:
            raise BadConfig([f"video.folders: {folder.name}: expect: {error}"]) from None
        folders.append(
            Folder(
                name=folder.name,
                path=folder.path,
                recursive=folder.recursive,
                quiet_seconds=folder.quiet,
                expectation=expectation,
                engine=folder.engine,
                variant=folder.variant,
                profile=folder.profile,
            )
        )
    return tuple(folders)


def _exact(value: float) -> Fraction:
    # 0.0005 as it was written, not as a float holds it.
    return Fraction(repr(value))
