# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Real files through real ffprobe."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from tests.video.conftest import Film
from veo_exporter.simulate.videos import EXPECTATION
from veo_exporter.video import Probe, Verdict, as_json, parse_expectation
from veo_exporter.video.definitions import TimingSource

ASKED = parse_expectation(EXPECTATION)
SCHEMA_FIELDS = {
    "file", "schema", "error", "warnings", "container", "codec", "width", "height",
    "timing_source", "time_base", "effective_tick_ms", "frame_count", "nominal_fps", "duration_s",
    "first_pts_s", "gap_count", "gaps_at", "dropped_frames", "duplicate_pts", "short_deltas",
    "pts_discontinuities", "max_abs_dev_raw_ms", "max_abs_dev_net_ms", "pts_jitter_p2p_ms", "is_cfr",
    "on_grid", "consistency_ratio", "deviations_ms", "keyframes", "keyframe_interval_frames", "keyframe_interval_s",
    "gop_tail_frames", "truncated", "request", "deep", "verdict", "defects",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "verdict", "messages"),
    [
        ("healthy.mp4", "ok", []),
        ("healthy.webm", "ok", []),
        (
            "one-frame-dropped.mp4",
            "defective",
            [
                "1 frame missing of the 149 asked for",
                "1 frame missing after frame 71 at 2.958 s",
            ],
        ),
        (
            "stops-at-6-seconds.mp4",
            "defective",
            ["5 frames missing of the 149 asked for, 0.200 s short"],
        ),
        (
            "duplicate-timestamps.mp4",
            "defective",
            [
                "1 frame missing after frame 49 at 2.042 s",
                "1 frame at the time of the one before, first frame 51",
                "146 of 148 intervals keep the rate",
            ],
        ),
        ("variable-rate.mp4", "degraded", ["0 of 148 intervals keep the rate"]),
    ],
)
def test_the_demos_films_are_what_their_names_say(
    films: dict[str, Path], probe: Probe, name: str, verdict: str, messages: list[str]
) -> None:
    report = probe.look_at(films[name], ASKED)
    assert [finding.message for finding in report.findings] == messages
    assert report.verdict.value == verdict


def test_the_json_of_a_healthy_webm(films: dict[str, Path], probe: Probe) -> None:
    said = json.loads(json.dumps(as_json(probe.look_at(films["healthy.webm"], ASKED))))
    assert set(said) == SCHEMA_FIELDS
    assert said["error"] is None
    assert said["warnings"] == []
    assert (said["codec"], said["width"], said["height"]) == ("vp8", 320, 180)
    assert (said["time_base"], said["effective_tick_ms"]) == ("1/1000", 1.0)
    assert (said["frame_count"], said["nominal_fps"]) == (149, "24/1")
    # The last frame begins at 6.167 s and lasts 1/24 s.
    assert Fraction(said["duration_s"]) == Fraction(6167, 1000) + Fraction(1, 24)
    assert said["max_abs_dev_net_ms"] == 0
    assert said["max_abs_dev_raw_ms"] == pytest.approx(2 / 3)
    assert said["consistency_ratio"] == 1
    # 149 frames have 148 intervals between them.
    assert said["deviations_ms"] == [[0.0, 148]]
    assert said["request"]["frames"] == 149
    assert said["request"]["duration_s"] == "31/5"
    assert (said["verdict"], said["defects"], said["deep"]) == ("ok", [], None)


def test_the_json_of_a_dropped_frame(films: dict[str, Path], probe: Probe) -> None:
    said = as_json(probe.look_at(films["one-frame-dropped.mp4"]))
    assert said["gaps_at"] == [{"after_frame": 71, "at_s": 71 / 24, "missing": 1}]
    assert (said["request"], said["dropped_frames"], said["is_cfr"]) == (None, 1, False)
    assert said["on_grid"] is True
    assert said["keyframes"] == [0, 48, 96, 144]
    (defect,) = said["defects"]
    assert (defect["name"], defect["frame"], defect["amount"]) == ("gap", 71, 1)


def test_the_json_of_a_file_in_error_has_the_same_fields(
    films: dict[str, Path], probe: Probe
) -> None:
    said = as_json(probe.look_at(films["text.mp4"]))
    assert set(said) == SCHEMA_FIELDS
    assert said["error"]["kind"] == "unreadable"
    assert said["verdict"] == "error"
    assert said["frame_count"] is None


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "ts", "mov"])
def test_b_frames_in_every_container(film: Film, probe: Probe, suffix: str) -> None:
    source = ("-f", "lavfi", "-i", "testsrc2=size=160x90:rate=30000/1001", "-frames:v", "60")
    path = film(f"b-frames.{suffix}", *source, "-c:v", "libx264", "-bf", "3", "-g", "30")
    report = probe.look_at(path)
    assert report.findings == ()
    assert report.cadence is not None
    assert report.cadence.rate == Fraction(30000, 1001)
    assert report.media is not None
    assert (report.media.frame_count, report.media.width, report.media.height) == (60, 160, 90)
    assert report.media.timing_source is TimingSource.PTS


def test_chunks_glued_together_are_a_discontinuity(
    film: Film, probe: Probe, tmp_path: Path
) -> None:
    source = ("-f", "lavfi", "-i", "testsrc2=size=160x90:rate=24", "-frames:v", "48")
    chunk = film("chunk.ts", *source, "-c:v", "libx264").read_bytes()
    (tmp_path / "glued.ts").write_bytes(chunk + chunk)
    report = probe.look_at(tmp_path / "glued.ts")
    assert [finding.defect.value for finding in report.findings] == ["discontinuity"]
    assert report.duration == 4


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_a_file_cut_off_is_truncated(film: Film, probe: Probe, tmp_path: Path, suffix: str) -> None:
    source = ("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=24", "-frames:v", "149")
    whole = film(f"whole.{suffix}", *source, "-c:v", "libx264", "-movflags", "+faststart")
    (tmp_path / f"cut.{suffix}").write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    report = probe.look_at(tmp_path / f"cut.{suffix}", ASKED)
    assert report.verdict is Verdict.DEFECTIVE
    assert {"truncated", "frames_missing"} <= {finding.defect.value for finding in report.findings}


def test_sound_longer_than_the_picture_does_not_count(film: Film, probe: Probe) -> None:
    report = probe.look_at(
        film(
            "sound.mp4",
            *("-f", "lavfi", "-i", "testsrc2=size=160x90:rate=24:duration=2"),
            *("-f", "lavfi", "-i", "sine=duration=8", "-c:v", "libx264"),
        ),
        parse_expectation("fps=24,duration=8"),
    )
    assert report.duration == 2
    assert report.asked is not None
    assert report.asked.shortfall == 6


def test_a_file_of_sound_alone_has_no_video(film: Film, probe: Probe) -> None:
    report = probe.look_at(film("sound-alone.mp4", "-f", "lavfi", "-i", "sine=duration=1"))
    assert report.failure is not None
    assert report.failure.kind.value == "no_video_stream"


def test_names_mean_nothing(
    films: dict[str, Path], probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "2026-01-02T03:04:05Z.mp4",
        "-dash.mp4",
        "%03d.mp4",
        "new\nline.mp4",
        "a|b;$(x).mp4",
    ):
        Path(name).write_bytes(films["healthy.mp4"].read_bytes())
        assert probe.look_at(Path(name)).verdict is Verdict.OK, name
