# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Reports that others made: what a probe wrote is counted as the probe's own would be."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.video.synthetic import MILLISECOND, evenly, packets, report
from veo_exporter.exposition import Folds, TextWriter
from veo_exporter.exposition.text import Format
from veo_exporter.video import (
    BadReport,
    Origins,
    PostedFiles,
    Probe,
    ProbeRequest,
    VideoMetrics,
    VideoReport,
    as_json,
    parse_expectation,
    read_report,
)
from veo_exporter.video.report import _round_up

WANTED = parse_expectation("fps=24,duration=6.2")


def page_of(said: VideoReport) -> list[str]:
    folds = Folds()
    metrics = VideoMetrics(folds, Origins([], lambda label: None))
    metrics.fold(ProbeRequest(path=Path("film.mp4")), said)
    text = TextWriter(Format.TEXT).write(folds.families(0))
    # Of a sum the last digits depend on rounding, which is tested by itself.
    return [line for line in text.splitlines() if "_sum{" not in line]


def posted(said: VideoReport) -> VideoReport:
    """As it comes out of the body of an event."""
    return read_report(json.loads(json.dumps(as_json(said))))


def uneven() -> VideoReport:
    ticks = [round(Fraction(place * 1000, 24)) for place in range(149)]
    return report(
        [*ticks[:70], *(tick + 3 for tick in ticks[72:])], MILLISECOND, expectation=WANTED
    )


@pytest.mark.parametrize("name", ["even", "short", "uneven"])
def test_a_report_counts_alike_whoever_made_it(name: str) -> None:
    said = {
        "even": report(packets(evenly(149), keys=(0, 48, 96)), expectation=WANTED),
        "short": report(evenly(144), expectation=WANTED),
        "uneven": uneven(),
    }[name]
    assert page_of(posted(said)) == page_of(said)


@pytest.mark.parametrize(
    "name",
    [
        "healthy.mp4",
        "healthy.webm",
        "one-frame-dropped.mp4",
        "duplicate-timestamps.mp4",
        "text.mp4",
    ],
)
def test_so_do_real_films(films: dict[str, Path], probe: Probe, name: str) -> None:
    said = probe.look_at(films[name], WANTED)
    assert page_of(posted(said)) == page_of(said)


def test_a_frame_that_is_lost_counts_by_hand() -> None:
    ticks = evenly(149)
    del ticks[72]
    said = as_json(report(ticks, expectation=WANTED))
    # 146 good intervals, and one of 83.33 ms, which is 41.67 ms off: 42 in two digits.
    assert said["deviations_ms"] == [[0.0, 146], [42.0, 1]]
    found = read_report(said)
    assert found.cadence is not None
    assert found.cadence.deviations == ((Fraction(0), 146), (Fraction(42, 1000), 1))
    assert found.cadence.consistency == Fraction(146, 147)
    assert (found.verdict.value, found.cadence.gap_count) == ("defective", 1)
    assert [finding.defect.value for finding in found.findings] == ["frames_missing", "gap"]


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (Fraction(0), 0.0),
        (Fraction(1, 2), 0.5),
        (Fraction(5001, 10000), 0.51),
        (Fraction(1, 10), 0.1),
        (Fraction(1001, 10000), 0.11),
        (Fraction(1000), 1000.0),
        (Fraction(1001), 1100.0),
        (Fraction(1, 3), 0.34),
        (Fraction(1, 90000), 0.000012),
    ],
)
def test_rounding_never_crosses_a_bound(value: Fraction, rounded: float) -> None:
    assert _round_up(value) == rounded


def sound(**other: Any) -> dict[str, Any]:
    return {"file": "/out/1.mp4", "verdict": "ok", **other}


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({}, "file: Field required; verdict: Field required"),
        (
            sound(verdict="fine"),
            "verdict: Input should be 'ok', 'degraded', 'defective' or 'error'",
        ),
        (sound(verdict="error"), "verdict: is error if, and only if, there is an error"),
        (
            sound(error={"kind": "empty"}),
            "verdict: is error if, and only if, there is an error",
        ),
        (sound(frame_count=-1), "frame_count: Input should be greater than or equal to 0"),
        (sound(nominal_fps=24), 'nominal_fps: Value error, must be a fraction as "24000/1001"'),
        (sound(nominal_fps="24/0"), 'nominal_fps: Value error, must be a fraction as "24000/1001"'),
        (
            sound(consistency_ratio=1.5),
            "consistency_ratio: Input should be less than or equal to 1",
        ),
        (sound(deviations_ms=[[0.1, 1e8]]), "deviations_ms: are of more than 100000 intervals"),
        (
            sound(keyframe_interval_s=[float("inf")]),
            "keyframe_interval_s.0: Input should be a finite number",
        ),
        (sound(file="a\0b"), "file: String should match pattern"),
    ],
    ids=str,
)
def test_what_is_no_report_is_refused_in_words(said: dict[str, Any], message: str) -> None:
    with pytest.raises(BadReport) as refused:
        read_report(said)
    assert str(refused.value).startswith(message)


def test_a_report_and_its_job_meet_whichever_comes_first() -> None:
    files = PostedFiles()
    found = read_report(sound())
    assert files.report_came("a", found) is None
    assert files.job_ended("b", "/out/1.mp4", "parent-b") is None
    assert files.job_ended("a", "/out/1.mp4", "parent-a") == found
    assert files.report_came("b", found) == "parent-b"
    # Each once.
    assert files.report_came("b", found) is None


def test_what_never_meets_is_forgotten() -> None:
    files = PostedFiles(most_kept=2)
    for job in "abc":
        files.report_came(job, read_report(sound()))
        files.job_ended(job + job, "/out/1.mp4", job)
    assert files.job_ended("a", "/out/1.mp4", None) is None
    assert files.job_ended("b", "/out/1.mp4", None) is not None
    assert files.report_came("cc", read_report(sound())) == "c"
    assert files.report_came("aa", read_report(sound())) is None
