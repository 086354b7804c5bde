# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Reports folded into what /metrics says."""

from fractions import Fraction
from pathlib import Path

import pytest

from tests.video.synthetic import evenly, packets, report
from veo_exporter.catalog import video as catalog
from veo_exporter.exposition import Folds, Format, TextWriter
from veo_exporter.video import (
    BacklogSource,
    Origins,
    ProbeRequest,
    Verdict,
    VideoMetrics,
    exemplar_of,
    parse_expectation,
)
from veo_exporter.video.backlog import Backlog
from veo_exporter.video.definitions import ErrorKind, Failure, VideoReport
from veo_exporter.video.metrics import DEFECTS
from veo_exporter.video.origins import ELSEWHERE, Origin

LABELS = 'engine="veo",profile="1080p24-6s",source="out",variant="none"'
REQUEST = ProbeRequest(path=Path("film.mp4"), source="out", engine="veo", profile="1080p24-6s")


class Folded:
    def __init__(self) -> None:
        self.folds = Folds()
        self.refused: list[str] = []
        self.metrics = VideoMetrics(self.folds, Origins([REQUEST], self.refused.append))

    def text(self, form: Format = Format.TEXT) -> str:
        return TextWriter(form).write(self.folds.families(0))

    def value(self, name: str, labels: str = LABELS) -> float | None:
        for line in self.text().splitlines():
            if line.startswith(f"{name}{{{labels}}} "):
                return float(line.rpartition(" ")[2])
        return None


@pytest.fixture
def folded() -> Folded:
    return Folded()


def labels_with(**more: str) -> str:
    return ",".join(
        sorted([*LABELS.split(","), *(f'{key}="{value}"' for key, value in more.items())])
    )


def test_what_is_known_beforehand_starts_at_zero(folded: Folded) -> None:
    for verdict in Verdict:
        assert folded.value(catalog.FILES.name, labels_with(verdict=verdict.value)) == 0
    for defect in DEFECTS:
        assert folded.value(catalog.DEFECTS.name, labels_with(defect=defect)) == 0
    assert len(DEFECTS) == int(catalog.DEFECT.bound)
    for spec in (catalog.FRAMES, catalog.DROPPED_FRAMES, catalog.DUPLICATE_FRAMES, catalog.GAPS):
        assert folded.value(spec.name) == 0
    for spec in (catalog.FRAME_DEVIATION, catalog.CONSISTENCY, catalog.DURATION_SHORTFALL):
        assert folded.value(f"{spec.name}_count") == 0


def test_a_dropped_frame_is_counted(folded: Folded) -> None:
    ticks = evenly(149)
    del ticks[72]
    said = report(
        packets(ticks, keys=(0, 47)), expectation=parse_expectation("fps=24,duration=6.2")
    )
    folded.metrics.fold(REQUEST, said)
    assert folded.value(catalog.FILES.name, labels_with(verdict="defective")) == 1
    assert folded.value(catalog.DEFECTS.name, labels_with(defect="gap")) == 1
    assert folded.value(catalog.DEFECTS.name, labels_with(defect="frames_missing")) == 1
    assert folded.value(catalog.FRAMES.name) == 148
    assert folded.value(catalog.DROPPED_FRAMES.name) == 1
    assert folded.value(catalog.GAPS.name) == 1
    deviation = catalog.FRAME_DEVIATION.name
    assert folded.value(f"{deviation}_count") == 147
    assert folded.value(f"{deviation}_bucket", labels_with(le="0.0005")) == 146
    assert folded.value(f"{deviation}_sum") == pytest.approx(1 / 24)
    assert folded.value(f"{catalog.CONSISTENCY.name}_sum") == pytest.approx(146 / 147)
    assert folded.value(f"{catalog.KEYFRAME_INTERVAL.name}_sum") == pytest.approx(47 / 24)
    assert folded.value(f"{catalog.DURATION_SHORTFALL.name}_bucket", labels_with(le="0.0")) == 1


def test_half_a_millisecond_off_is_inside_its_bucket(folded: Folded) -> None:
    folded.metrics.fold(REQUEST, report([0, 3750, 7500, 11250 + 45, 15000 + 45]))
    bucket = f"{catalog.FRAME_DEVIATION.name}_bucket"
    assert folded.value(bucket, labels_with(le="0.0001")) == 3
    assert folded.value(bucket, labels_with(le="0.0005")) == 4


def test_a_shortfall_is_observed_where_a_duration_was_asked(folded: Folded) -> None:
    folded.metrics.fold(REQUEST, report(evenly(144)))
    name = catalog.DURATION_SHORTFALL.name
    assert folded.value(f"{name}_count") == 0
    said = report(evenly(144), expectation=parse_expectation("fps=24,duration=6.2"))
    folded.metrics.fold(REQUEST, said)
    assert folded.value(f"{name}_sum") == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("failure", "defect"),
    [
        (Failure(ErrorKind.UNREADABLE, "is text"), "unreadable"),
        (Failure(ErrorKind.UNREADABLE, "crashed", crashed=True), "probe_crashed"),
        (Failure(ErrorKind.FORBIDDEN, "is a playlist"), "forbidden"),
    ],
)
def test_why_a_file_could_not_be_read_is_counted(
    folded: Folded, failure: Failure, defect: str
) -> None:
    said = VideoReport(file=Path("film.mp4"), verdict=Verdict.ERROR, failure=failure)
    folded.metrics.fold(REQUEST, said)
    assert folded.value(catalog.FILES.name, labels_with(verdict="error")) == 1
    assert folded.value(catalog.DEFECTS.name, labels_with(defect=defect)) == 1
    assert folded.value(catalog.FRAMES.name) == 0


def request(source: str = "event", engine: str = "") -> ProbeRequest:
    return ProbeRequest(path=Path("film.mp4"), source=source, engine=engine)


def test_names_are_taken_as_they_come_until_there_are_too_many() -> None:
    refused: list[str] = []
    origins = Origins([REQUEST], refused.append, most_names=3, most_origins=50)
    assert origins.place(request(engine="a")) == Origin("event", "a")
    # With other, unknown and veo there are four already.
    assert origins.place(request(engine="b")) == Origin("event", "other")
    assert origins.place(request(engine="a")) == Origin("event", "a")
    assert origins.place(REQUEST) == Origin("out", "veo", "none", "1080p24-6s")
    assert origins.place(request(source="made-up")).source == "other"
    assert refused == ["engine"]


def test_combinations_of_names_are_bounded() -> None:
    refused: list[str] = []
    origins = Origins([REQUEST], refused.append, most_origins=3)
    assert origins.place(request(engine="a")) == Origin("event", "a")
    assert origins.place(request(engine="b")) == ELSEWHERE
    assert refused == ["origin"]


def test_what_is_beyond_a_bound_is_counted_once_for_each_file() -> None:
    refused: list[str] = []
    metrics = VideoMetrics(Folds(), Origins([REQUEST], refused.append, most_origins=2))
    for _ in range(3):
        metrics.expect(request(engine="a"))
    assert refused == []
    metrics.fold(request(engine="a"), report(evenly(48)))
    metrics.fold(request(engine="a"), report(evenly(48)))
    assert refused == ["origin", "origin"]


def test_what_is_known_to_come_is_admitted_whatever_the_bounds() -> None:
    refused: list[str] = []
    origins = Origins([REQUEST], refused.append, most_names=3, most_origins=2)
    for engine in "abcde":
        assert origins.reserve(request(engine=engine)) == Origin("event", engine)
    assert origins.place(request(engine="c")) == Origin("event", "c")
    assert refused == []
    assert origins.place(request(engine="f")) == ELSEWHERE
    assert refused == ["engine", "origin"]


def test_the_rows_of_what_is_known_to_come_stand_at_zero(folded: Folded) -> None:
    folded.metrics.reserve(request(engine="new"))
    labels = 'defect="truncated",engine="new",profile="other",source="event",variant="none"'
    assert folded.value(catalog.DEFECTS.name, labels) == 0


def test_a_new_origin_starts_at_zero_when_its_file_is_awaited(folded: Folded) -> None:
    folded.metrics.expect(request(engine="new"))
    labels = 'engine="new",profile="other",source="event",variant="none"'
    assert folded.value(catalog.FRAMES.name, labels) == 0
    folded.metrics.fold(request(engine="new"), report(evenly(48)))
    assert folded.value(catalog.FRAMES.name, labels) == 48


def test_exemplars_lead_to_the_trace(folded: Folded) -> None:
    exemplar = exemplar_of("00-" + "a" * 32 + "-" + "b" * 16 + "-01")
    assert exemplar == {"trace_id": "a" * 32, "span_id": "b" * 16}
    folded.metrics.fold(REQUEST, report(evenly(48)), exemplar)
    assert 'trace_id="' + "a" * 32 in folded.text(Format.OPENMETRICS)
    assert exemplar_of(None) is None
    assert exemplar_of("00-short-span-01") is None


def test_the_backlogs_page() -> None:
    backlog = Backlog(0, 0.0)
    source = BacklogSource(lambda: backlog)
    empty = source.revision(0)
    assert source.revision(1) == empty
    backlog = Backlog(3, 12.5)
    assert source.revision(2) != empty
    families = {family.spec: family.rows for family in source.families(2)}
    assert families == {
        catalog.BACKLOG: [((), 3)],
        catalog.BACKLOG_OLDEST_AGE: [((), 12.5)],
    }
    assert Fraction(catalog.FRAME_DEVIATION.buckets[1]).limit_denominator(10**6) == Fraction(
        1, 2000
    )
