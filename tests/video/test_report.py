# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The JSON of a probe: every field in every object, and what was asked is told whatever came."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.video.conftest import Film
from veo_exporter.cli.probe import probe
from veo_exporter.config.video import Video
from veo_exporter.simulate.videos import EXPECTATION, KINDS

FIELDS = {
    "file", "schema", "error", "warnings", "container", "codec", "width", "height",
    "timing_source", "time_base", "effective_tick_ms", "frame_count", "nominal_fps", "duration_s",
    "first_pts_s", "gap_count", "gaps_at", "dropped_frames", "duplicate_pts", "short_deltas",
    "pts_discontinuities", "max_abs_dev_raw_ms", "max_abs_dev_net_ms", "pts_jitter_p2p_ms", "is_cfr",
    "on_grid", "consistency_ratio", "deviations_ms", "keyframes", "keyframe_interval_frames", "keyframe_interval_s",
    "gop_tail_frames", "truncated", "request", "deep", "verdict", "defects",
}  # fmt: skip
REQUEST_FIELDS = {
    "fps", "duration_s", "frames", "frames_missing", "frame_count_ok", "duration_ok", "fps_ok",
    "drift_ms",
}  # fmt: skip
REQUEST_MORE = {"keyframe_interval_s", "shortfall_s"}


def said(
    paths: list[Path], capsys: pytest.CaptureFixture[str], expect: str | None = None
) -> list[dict[str, Any]]:
    probe(paths, Video(), form="json", expect=expect)
    entries: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return entries


@pytest.fixture
def bad_files(tmp_path: Path, film: Film) -> dict[str, Path]:
    """A file for each kind of error that a file can give by itself."""
    (tmp_path / "empty.mp4").touch()
    (tmp_path / "noise.mp4").write_bytes(bytes(range(256)) * 64)
    (tmp_path / "folder.mp4").mkdir()
    return {
        "empty": tmp_path / "empty.mp4",
        "unreadable": tmp_path / "noise.mp4",
        "forbidden": tmp_path / "folder.mp4",
        "no_video_stream": film("sine.m4a", "-f", "lavfi", "-i", "sine=duration=1"),
    }


@pytest.mark.parametrize("expect", [None, EXPECTATION])
def test_every_object_has_every_field(
    films: dict[str, Path],
    bad_files: dict[str, Path],
    expect: str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    entries = said([*films.values(), *bad_files.values()], capsys, expect)
    assert len(entries) == len(KINDS) + 4
    assert [set(entry) for entry in entries] == [FIELDS] * len(entries)
    requests = [entry["request"] for entry in entries]
    if expect is None:
        assert requests == [None] * len(entries)
    else:
        wanted = [REQUEST_FIELDS | REQUEST_MORE] * len(entries)
        assert [set(request) for request in requests] == wanted


@pytest.mark.parametrize("kind", ["empty", "unreadable", "forbidden", "no_video_stream"])
def test_an_error_leaves_told_what_was_asked(
    bad_files: dict[str, Path], kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    [entry] = said([bad_files[kind]], capsys, "fps=24,duration=6.2,keyframe_interval=2")
    assert (entry["verdict"], entry["error"]["kind"]) == ("error", kind)
    # 24 x 6.2 is 148.8: the last frame is shown in part. What came cannot be told.
    assert entry["request"] == {
        "fps": "24/1",
        "duration_s": "31/5",
        "keyframe_interval_s": "2/1",
        "frames": 149,
        "frames_missing": None,
        "frame_count_ok": None,
        "duration_ok": None,
        "fps_ok": None,
        "drift_ms": None,
        "shortfall_s": None,
    }


def test_half_an_expectation_stays_half(
    bad_files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    [entry] = said([bad_files["empty"]], capsys, "duration=6.2")
    assert (entry["request"]["fps"], entry["request"]["duration_s"]) == (None, "31/5")
    assert entry["request"]["frames"] is None


def test_a_keyframe_interval_alone_is_asked_too(
    films: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    [entry] = said([films["healthy.mp4"]], capsys, "keyframe_interval=2")
    assert entry["request"]["keyframe_interval_s"] == "2/1"
    assert entry["request"]["frames"] is None
