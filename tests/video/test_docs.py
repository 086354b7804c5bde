# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""docs/video.md: its commands print what it says, and its words are those of the code."""

import math
from fractions import Fraction
from pathlib import Path

import yaml

from tests.cli.examples import blocks, examples, metrics_that_are_not_there, run, tables, words
from tests.video.synthetic import MILLISECOND, report
from tests.video.test_report import FIELDS, REQUEST_FIELDS, REQUEST_MORE
from veo_exporter.cli.probe import STATUSES
from veo_exporter.config.video import Video
from veo_exporter.video import folders_of, parse_expectation
from veo_exporter.video.definitions import DEFECTIVE, Defect, ErrorKind, Verdict
from veo_exporter.video.ffprobe import LEAST_PATIENCE_SECONDS, SLOWEST_BYTES_PER_SECOND
from veo_exporter.video.memory import MOST_REMEMBERED
from veo_exporter.video.watch import SUFFIXES

PAGE = "video.md"


def test_the_commands_print_what_is_said(tmp_path: Path, ffmpeg: str) -> None:
    told = [(example, run(example.commands, tmp_path)) for example in examples(PAGE)]
    assert len(told) == 3
    for example, printed in told:
        assert printed
        if example.output:
            assert printed == example.output


def test_each_verdict_has_its_exit_status() -> None:
    rows = tables(PAGE)["verdict", "when", "exit status"]
    assert [(verdict, int(status)) for verdict, _, status in rows] == [
        (verdict.value, STATUSES[verdict]) for verdict in Verdict
    ]


def test_each_defect_is_told_with_its_verdict() -> None:
    rows = tables(PAGE)["defect", "verdict", "when"]
    assert {name: verdict for name, verdict, _ in rows} == {
        defect.value: "defective" if defect in DEFECTIVE else "degraded" for defect in Defect
    }
    assert len(rows) == len(Defect)


def test_each_error_is_told() -> None:
    assert [row[0] for row in tables(PAGE)["error", "when"]] == [kind.value for kind in ErrorKind]


def test_each_field_is_told() -> None:
    rows = tables(PAGE)["field", "what it is"]
    told = [name for fields, _ in rows for name in words(fields)]
    assert len(told) == len(set(told))
    assert set(told) == FIELDS
    (request,) = [said for field, said in rows if field == "request"]
    assert set(words(request)) >= REQUEST_FIELDS | REQUEST_MORE


def test_settings_are_named_as_they_are() -> None:
    (written,) = blocks(PAGE, "yaml")
    (folder,) = folders_of(Video.model_validate(yaml.safe_load(written)["video"]))
    assert folder.expectation.frames == 149
    for _, setting, _ in tables(PAGE)["limit", "setting", "beyond it"]:
        for name in words(setting):
            if name.startswith("video."):
                assert name.removeprefix("video.") in Video.model_fields


def test_figures_are_those_of_the_code() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / PAGE).read_text()
    assert f"The last {MOST_REMEMBERED} files" in text
    assert LEAST_PATIENCE_SECONDS == 5
    assert SLOWEST_BYTES_PER_SECOND == 20e6
    assert all(f"`{suffix}`" in text for suffix in SUFFIXES)


def test_the_worked_numbers() -> None:
    assert parse_expectation("fps=24,duration=6.2").frames == 149
    assert parse_expectation("fps=25,duration=2.2").frames == 55
    assert math.ceil(25 * 2.2) == 56
    # 0.01 ms are 0.9 ticks of 1/90000 s: 1,439 intervals of 3,750.9 ticks end 1,295 ticks late.
    late = report(
        [round(place * Fraction("3750.9")) for place in range(1440)],
        expectation=parse_expectation("fps=24"),
    )
    assert late.asked is not None
    assert late.asked.drift == Fraction(1295, 90000)
    assert [finding.defect for finding in late.findings] == [Defect.DRIFT]
    # In milliseconds, 41 and 42 are rounded, and 43 is 1 ms off.
    for interval, deviation in ((41, 0), (42, 0), (43, 1)):
        ticks = [round(Fraction(place * 1000, 24)) for place in range(100)]
        ticks.append(ticks[-1] + interval)
        cadence = report(ticks, MILLISECOND).cadence
        assert cadence is not None
        assert cadence.max_deviation_net == Fraction(deviation, 1000)


def test_every_metric_is_there() -> None:
    assert metrics_that_are_not_there(PAGE) == set()
