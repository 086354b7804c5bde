# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The films that the demo's jobs name."""

from pathlib import Path

import pytest

from veo_exporter.simulate.videos import KINDS, Films


def test_each_kind_comes_once_first_and_old_ones_go(tmp_path: Path) -> None:
    films = Films(tmp_path / "out", most_files=3)
    made = [films.make(f"job-{number}") for number in range(len(KINDS) + 1)]
    names = [f"job-{number}-{kind.name}{kind.suffix}" for number, kind in enumerate(KINDS)]
    assert [path and path.name for path in made[:-1]] == names
    # No drafts are left, and three films.
    assert {*(tmp_path / "out").iterdir()} == {*made[-3:]}
    assert all(path and path.stat().st_size > 0 for path in made[-3:])


def test_nothing_is_made_once_it_was_stopped(tmp_path: Path) -> None:
    films = Films(tmp_path)
    films.stop()
    assert films.make("job-1") is None
    assert list(tmp_path.glob("[!.]*")) == []


def test_without_ffmpeg_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    films = Films(tmp_path / "out")
    assert films.make("job-1") is None
    assert not (tmp_path / "out").exists()
