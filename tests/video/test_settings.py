# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""From settings to the room's parts."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from veo_exporter.config.video import Video
from veo_exporter.errors import BadConfig
from veo_exporter.video import folders_of, parse_expectation, probe_of, roots_of
from veo_exporter.video.definitions import Thresholds
from veo_exporter.video.ffprobe import Limits
from veo_exporter.video.probe import MOST_FRAMES


def refusal(**values: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        Video.model_validate(values)
    return str(refused.value.errors()[0].get("ctx", {}).get("error", ""))


def test_defaults_are_those_of_the_room() -> None:
    probe = probe_of(Video(), None)
    assert probe.thresholds == Thresholds()
    assert probe.thresholds.deviation == Fraction(1, 2000)
    assert probe.ffprobe.limits == Limits()
    assert probe.most_frames == MOST_FRAMES
    assert folders_of(Video()) == ()


def test_a_folder_in_json_as_a_flag_has_it() -> None:
    video = Video.model_validate(
        {
            "folders": '[{"name": "out", "path": "/srv/out", "quiet": "500ms", '
            '"expect": "fps=24,duration=6.2", "engine": "veo"}]',
            "roots": '["/srv/more"]',
        }
    )
    (folder,) = folders_of(video)
    assert (folder.name, folder.path, folder.quiet_seconds) == ("out", Path("/srv/out"), 0.5)
    assert folder.expectation == parse_expectation("fps=24,duration=6.2")
    assert folder.engine == "veo"
    assert roots_of(video) == (Path("/srv/more"), Path("/srv/out"))
    assert Video.model_validate(video.model_dump(mode="json")) == video


def test_an_expectation_that_cannot_be_read_is_refused() -> None:
    video = Video.model_validate({"folders": [{"name": "out", "path": "/out", "expect": "fast"}]})
    with pytest.raises(BadConfig, match=r"^video.folders: out: expect: 'fast' is no expectation"):
        folders_of(video)


def folder(**values: Any) -> dict[str, Any]:
    return {"folders": [{"name": "out", "path": "/out", **values}]}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"folders": "out=/out"}, "'out=/out' is no list: in variables and flags write it as JSON"),
        (folder(path="out"), "'out' is not an absolute path"),
        (folder(name="event"), "'event' is no name for a folder"),
        (folder(name="Out put"), "'Out put' is no name for a folder"),
        (folder(quiet="10ms"), "must be from 100ms to 1h, not 10ms"),
        (folder(quiet=2), "2 has no unit"),
        ({"folders": [{"name": "a", "path": "/a"}, {"name": "a", "path": "/b"}]}, "two folders are named a"),
        ({"folders": [{"name": f"f{n}", "path": "/a"} for n in range(17)]}, "17 folders are more than the 16"),
        ({"roots": ["out"]}, "'out' is not an absolute path"),
        ({"formats": []}, "names no format"),
        ({"formats": ["mov,hls"]}, "'mov,hls' is no format"),
        ({"consistency": 1.1}, "must be from 0 to 1, not 1.1"),
        ({"gap_intervals": 0.5}, "must be from 1 to 100, not 0.5"),
        ({"ffprobe": "bin/ffprobe"}, "'bin/ffprobe' is not an absolute path"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(values: dict[str, Any], sentence: str) -> None:
    assert sentence in refusal(**values)


def test_every_setting_says_what_it_does() -> None:
    for name, field in Video.model_fields.items():
        assert (field.description or "").endswith("."), name
