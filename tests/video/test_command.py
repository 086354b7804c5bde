# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""veo-exporter probe, as a person and a program see it."""

import json
from pathlib import Path

import pytest

from veo_exporter.cli.probe import probe
from veo_exporter.config.video import Video
from veo_exporter.errors import VeoError
from veo_exporter.simulate.videos import EXPECTATION


def test_a_table(films: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    files = [films["healthy.mp4"], films["one-frame-dropped.mp4"], films["text.mp4"]]
    assert probe(files, Video(), expect=EXPECTATION) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "VERDICT     FRAMES      FPS    SECONDS  FILE"
    assert lines[1] == f"ok             149       24      6.208  {files[0]}"
    assert lines[2] == f"defective      148       24      6.208  {files[1]}"
    assert lines[3].strip() == "1 frame missing of the 149 asked for"
    assert lines[4].strip() == "1 frame missing after frame 71 at 2.958 s"
    assert lines[5] == f"error            -        -          -  {files[2]}"


@pytest.mark.parametrize(
    ("names", "status"),
    [
        (["healthy.mp4", "healthy.webm"], 0),
        (["variable-rate.mp4"], 1),
        (["healthy.mp4", "stops-at-6-seconds.mp4"], 1),
        (["text.mp4", "healthy.mp4"], 2),
    ],
)
def test_the_worst_file_is_the_exit_status(
    films: dict[str, Path], names: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [films[name] for name in names]
    assert probe(paths, Video(), form="json", expect=EXPECTATION) == status
    said = json.loads(capsys.readouterr().out)
    assert [entry["file"] for entry in said] == [str(path) for path in paths]


def test_json_lines(films: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert probe([films["healthy.mp4"], films["healthy.webm"]], Video(), form="jsonl") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["verdict"] for line in lines] == ["ok", "ok"]


def test_an_expectation_that_cannot_be_read_is_told(films: dict[str, Path]) -> None:
    with pytest.raises(VeoError, match="write one or more of fps=24"):
        probe([films["healthy.mp4"]], Video(), expect="24")


def test_a_name_cannot_speak_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert probe([tmp_path / "\x1b[2Jgone.mp4"], Video()) == 2
    assert "\x1b" not in capsys.readouterr().out


def test_the_judge_is_that_of_the_settings(films: dict[str, Path]) -> None:
    video = Video(consistency=0, jitter="10s", deviation="10ms")
    assert probe([films["variable-rate.mp4"]], video) == 0
