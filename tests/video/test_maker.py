# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The demo's films as they come."""

from pathlib import Path

import pytest

from tests.daemon import wait_until
from veo_exporter.simulate.videos import KINDS, VideoMaker


def test_films_come_whole_and_old_ones_go(ffmpeg: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    maker = VideoMaker(folder, interval_seconds=0, most_files=3)
    maker.start()
    seen: set[str] = set()

    def enough() -> bool:
        names = {path.name for path in folder.glob("[!.]*")} if folder.exists() else set()
        seen.update(names)
        return len(seen) > len(KINDS)

    wait_until(enough)
    assert maker.stop(10)
    assert len(list(folder.glob("[!.]*"))) <= 4
    kinds = {name.partition("-")[2] for name in seen}
    assert kinds >= {"healthy.mp4", "healthy.webm", "one-frame-dropped.mp4"}


def test_it_ends_at_once_and_without_ffmpeg_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    maker = VideoMaker(tmp_path / "out")
    maker.start()
    assert maker.stop(10)
    assert not (tmp_path / "out").exists()
