# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of how finished video files are found and probed."""

import re
from collections.abc import Callable
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from veo_exporter.config.quantities import Duration, format_duration
from veo_exporter.config.section import Section
from veo_exporter.config.written import AbsolutePath, JsonList

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
_FORMAT: Final = re.compile(r"[a-z0-9_]{1,32}")
MOST_FOLDERS: Final = 16


def _folder_name(name: str) -> str:
    if not _NAME.fullmatch(name) or name in ("event", "other"):
        raise ValueError(
            f"{name!r} is no name for a folder: write small letters, digits, '.', '_' or '-'; "
            "event and other have a meaning of their own"
        )
    return name


def _formats(formats: tuple[str, ...]) -> tuple[str, ...]:
    for name in formats:
        if not _FORMAT.fullmatch(name):
            raise ValueError(f"{name!r} is no format: see the first column of ffprobe -formats")
    if not formats:
        raise ValueError("names no format: nothing could be probed")
    return formats


def _between(least: float, most: float, write: Callable[[float], str]) -> AfterValidator:
    def check(value: float) -> float:
        if not least <= value <= most:
            raise ValueError(f"must be from {write(least)} to {write(most)}, not {write(value)}")
        return value

    return AfterValidator(check)


def _plain(value: float) -> str:
    return f"{value:g}"


def _one_name_each(folders: "tuple[WatchedFolder, ...]") -> "tuple[WatchedFolder, ...]":
    names = [folder.name for folder in folders]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two folders are named {name}: give each a name of its own")
    if len(folders) > MOST_FOLDERS:
        raise ValueError(
            f"{len(folders)} folders are more than the {MOST_FOLDERS} that can be watched"
        )
    return folders


class WatchedFolder(Section):
    """A folder in which finished files appear."""

    name: Annotated[str, AfterValidator(_folder_name)] = Field(
        description="What the label source says of its files."
    )
    path: AbsolutePath = Field(description="Where it is; it need not be there yet.")
    recursive: bool = Field(True, description="Whether folders in it are watched too.")
    quiet: Annotated[Duration, _between(0.1, 3600, format_duration)] = Field(
        2,
        description="A file that was not renamed into place is finished when nobody wrote to it for so long.",
    )
    expect: str = Field(
        "",
        description="What its files should be, as fps=24,duration=6.2; unset, nothing is expected.",
    )
    engine: str = Field("", description="What the label engine says of its files.")
    variant: str = Field("", description="What the label variant says of its files.")
    profile: str = Field("", description="What the label profile says of its files.")


class Video(Section):
    """How finished video files are found and probed."""

    enabled: bool = Field(True, description="Whether files are probed at all.")
    folders: Annotated[tuple[WatchedFolder, ...], JsonList, AfterValidator(_one_name_each)] = Field(
        (),
        description="Folders to watch: name, path, and optionally recursive, quiet, expect, engine, variant, "
        "profile. Files that are there at the start are not probed.",
    )
    roots: Annotated[tuple[AbsolutePath, ...], JsonList] = Field(
        (),
        description="Folders whose files events may name; links are followed first. Watched folders are among them.",
    )
    ffprobe: AbsolutePath | None = Field(
        None, description="The ffprobe to use. Unset: the one on PATH."
    )
    formats: Annotated[tuple[str, ...], JsonList, AfterValidator(_formats)] = Field(
        ("mov", "mp4", "m4a", "3gp", "3g2", "mj2", "matroska", "webm", "mpegts"),
        description="Container formats that are probed, by ffprobe's names; everything else is forbidden, "
        "playlists above all, since they open other files.",
    )
    workers: int = Field(2, ge=1, le=32, description="Files that are probed at one time.")
    backlog: int = Field(
        1000, ge=1, le=100_000, description="Files that may wait; more are dropped and counted."
    )
    deadline: Duration = Field(
        60,
        ge=1,
        le=3600,
        description="The longest that a file may take, in time and in CPU time; small ones are given 5 s.",
    )
    memory_limit_mebibytes: int = Field(
        1024, ge=256, le=65536, description="Address space of an ffprobe."
    )
    output_limit_mebibytes: int = Field(
        64, ge=1, le=4096, description="How much an ffprobe may write about one file."
    )
    frames_limit: int = Field(
        100_000, ge=1, le=10_000_000, description="Frames that a file may have."
    )
    niceness: int = Field(
        10, ge=0, le=19, description="How far other processes go before an ffprobe."
    )
    deviation: Duration = Field(
        0.0005,
        ge=0,
        le=1,
        description="A frame interval so far from the nominal one, net of rounding, is still good.",
    )
    jitter: Duration = Field(
        0.05, ge=0, le=10, description="Frames may be so far apart from their places, peak to peak."
    )
    gap_intervals: Annotated[float, _between(1, 100, _plain)] = Field(
        1.5, description="An interval longer than so many nominal ones is a gap."
    )
    consistency: Annotated[float, _between(0, 1, _plain)] = Field(
        0.99, description="The least share of good intervals in a file that is not degraded."
    )
