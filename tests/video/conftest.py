# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Real films, each made once."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from veo_exporter.simulate.videos import KINDS, make_healthy, make_kind
from veo_exporter.video.ffprobe import Ffprobe, Limits
from veo_exporter.video.probe import Probe

Film = Callable[..., Path]


@pytest.fixture(scope="session")
def ffmpeg() -> str:
    found = shutil.which("ffmpeg")
    assert found, "the tests of video files need ffmpeg: apt-get install ffmpeg"
    return found


def call(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="session")
def films(ffmpeg: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The demo's films by name: 149 frames of 320x180 at 24 a second, and what became of them."""
    folder = tmp_path_factory.mktemp("films")
    healthy = folder / "origin.mp4"
    make_healthy(ffmpeg, healthy, call)
    made = {}
    for kind in KINDS:
        path = made[kind.name + kind.suffix] = folder / (kind.name + kind.suffix)
        make_kind(ffmpeg, kind, healthy, path, call)
    return made


@pytest.fixture(scope="session")
def film(ffmpeg: str, tmp_path_factory: pytest.TempPathFactory) -> Film:
    """Makes a film with ffmpeg's own arguments, once for each."""
    folder = tmp_path_factory.mktemp("more-films")

    def make(name: str, *arguments: str) -> Path:
        path = folder / name
        if not path.exists():
            call([ffmpeg, "-nostdin", "-v", "error", "-y", *arguments, str(path)])
        return path

    return make


@pytest.fixture
def probe() -> Probe:
    return Probe(ffprobe=Ffprobe(Limits()))
