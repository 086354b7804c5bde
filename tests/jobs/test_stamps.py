# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Stamps of long ago and of days to come: they cost durations, never an end."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.jobs import NANO, NOON, Desk, event, series, written
from veo_client.vocabulary import Reason
from veo_exporter.exposition import Folds
from veo_exporter.jobs import DROPPED_SEEDS, Receipt, Result
from veo_exporter.logs import Follower, LogReading, load_rules

ABORTED = {"outcome": "aborted", "reason": "device_lost"}
LONG_AGO = "2025-08-13T09:30:00Z"
"""200 days and two and a half hours before the noon of these tests."""
A_WEEK = 7 * 86_400


def line(time: str | None, event_id: str = "1-1-0-1") -> dict[str, Any]:
    said = {"time": time} if time else {}
    return written(
        "finished", event_id, job="", source="/var/log/veo-engine.log", engine="veo-engine",
        outcome="aborted", reason="device lost", gpus=["3"], **said,
    )  # fmt: skip


def post(desk: Desk, *events: dict[str, Any]) -> Receipt:
    receipt = Receipt()
    desk.intake.take(desk.intake.read_structured(json.dumps(events).encode(), 100).events, receipt)
    return receipt


def histograms(desk: Desk) -> list[str]:
    return [name for name in desk.page() if "_duration_seconds_" in name]


@pytest.mark.parametrize(
    ("written_time", "happened"),
    [
        (LONG_AGO, NOON - 200 * 86_400 - 9_000),
        ("1970-01-01T00:00:01Z", 1),
        ("2026-03-01T12:00:00Z", NOON),
        # Nothing comes before it happened.
        ("2026-09-01T12:00:00Z", NOON),
        ("9999-12-31T23:59:59Z", NOON),
        (None, NOON),
    ],
)
def test_an_abort_in_a_log_counts_whatever_its_stamp(
    written_time: str | None, happened: int
) -> None:
    desk = Desk()
    assert desk.intake.take_line(line(written_time)) is None
    (job,) = desk.finished
    assert (job.reason, job.ended_unix_nanoseconds) == (Reason.DEVICE_LOST, happened * NANO)
    assert desk.page()[series("veo_jobs_finished_total", **ABORTED)] == 1
    assert desk.dropped == {}


@pytest.mark.parametrize(
    "unreadable", ["2026-13-45T99:99:99Z", "0001-01-01T00:00:00Z", "2026-03-01T12:00:00+99:99"]
)
def test_a_stamp_that_cannot_be_read_costs_the_stamp_alone(unreadable: str) -> None:
    desk = Desk()
    assert desk.intake.take_line(line(unreadable)) is None
    (job,) = desk.finished
    assert job.ended_unix_nanoseconds == NOON * NANO
    assert desk.page()[series("veo_jobs_finished_total", **ABORTED)] == 1
    assert desk.dropped == {("event", "time"): 1}


def test_an_old_line_ends_the_job_that_it_means_without_a_duration() -> None:
    desk = Desk(gpus={"3": "GPU-3"})
    post(desk, written("submitted", "1", engine="veo-engine", gpus=["GPU-3"]))
    desk.clock.seconds = 5
    assert desk.intake.take_line(line(LONG_AGO)) is None
    (job,) = desk.finished
    assert (job.job_id, job.duration_seconds) == ("job-1", 0)
    assert desk.page()[series("veo_jobs_finished_total", **ABORTED)] == 1
    assert histograms(desk) == []
    assert desk.dropped == {("job_duration", "negative"): 1}


def test_the_line_counts_once_and_is_remembered_by_when_it_came() -> None:
    desk = Desk()
    for _ in range(2):
        assert desk.intake.take_line(line(LONG_AGO)) is None
    desk.clock.seconds = 3599
    desk.intake.tick()
    assert desk.intake.take_line(line(LONG_AGO)) is None
    # Another place in the log is another line.
    assert desk.intake.take_line(line(LONG_AGO, "1-1-0-2")) is None
    assert desk.page()[series("veo_jobs_finished_total", **ABORTED)] == 2


def test_a_submission_of_long_ago_gives_no_duration_of_months() -> None:
    desk = Desk()
    desk.table.apply(event("submitted", "1", engine="veo-engine", time=LONG_AGO))
    desk.clock.seconds = 4
    post(desk, written("finished", "2", engine="veo-engine", outcome="success"))
    page = desk.page()
    assert page[series("veo_jobs_finished_total", outcome="success", reason="none")] == 1
    assert histograms(desk) == []
    # 90 s were allowed; but that it took months is not believed.
    assert not any("breaches" in name for name in page)
    assert desk.dropped == {("job_duration", "too_long"): 1}


def test_two_clocks_that_are_wrong_alike_give_a_duration() -> None:
    desk = Desk()
    desk.table.apply(event("submitted", "1", engine="veo-engine", time="2025-08-13T09:30:00Z"))
    desk.intake.take_line(line("2025-08-13T09:30:07Z") | {"subject": "job-1"})
    assert (
        desk.page()[series("veo_job_duration_seconds_sum", outcome="aborted")],
        desk.dropped,
    ) == (7, {})


@pytest.mark.parametrize(("over", "told"), [(0, {}), (1, {("job_duration", "too_long"): 1})])
def test_a_week_is_believed_and_no_more(over: int, told: dict[tuple[str, str], int]) -> None:
    desk = Desk()
    post(desk, written("submitted", "1", engine="other"))
    desk.clock.seconds = A_WEEK + over
    post(desk, written("finished", "2", outcome="success"))
    durations = [name for name in desk.page() if name.startswith("veo_job_duration_seconds_count")]
    assert (len(durations), desk.dropped) == (1 - over, told)


def test_a_start_before_the_submission_is_no_wait() -> None:
    desk = Desk()
    post(
        desk,
        written("submitted", "1", engine="veo-engine", time="2026-03-01T11:59:50Z"),
        written("started", "2", time="2026-03-01T11:59:40Z"),
        written("finished", "3", time="2026-03-01T11:59:58Z", outcome="success"),
    )
    page = desk.page()
    assert page[series("veo_job_duration_seconds_sum", outcome="success")] == 8
    assert not any("_stage_duration" in name for name in page)
    assert desk.dropped == {("stage_duration", "negative"): 1}


@pytest.mark.parametrize(
    ("start", "reason"),
    [("2026-02-15T12:00:00Z", "too_long"), ("2026-03-01T11:59:59Z", "negative")],
)
def test_a_stage_under_way_that_began_at_no_possible_time(start: str, reason: str) -> None:
    desk = Desk()
    post(
        desk,
        written("started", "1", engine="veo-engine", time="2026-03-01T11:59:50Z"),
        written("stage", "2", stage="render", start=start),
        written("finished", "3", time="2026-03-01T11:59:58Z", outcome="success"),
    )
    page = desk.page()
    assert page[series("veo_jobs_finished_total", outcome="success", reason="none")] == 1
    assert not any("_stage_duration" in name or "breaches" in name for name in page)
    assert desk.dropped["stage_duration", reason] == 1
    # What a trace says of it is never below zero.
    assert [span.seconds >= 0 for span in desk.finished[0].stages] == [True]


def test_a_sender_is_told_that_its_event_is_too_old() -> None:
    desk = Desk()
    body = json.dumps([written("finished", time=LONG_AGO, outcome="success")]).encode()
    (refused,) = desk.intake.read_structured(body, 10).refused
    assert refused.message.endswith("more than 30 days back: is the sender's clock right?")
    assert desk.dropped == {("event", "not_an_event"): 1}


def test_an_event_of_a_day_to_come_happened_when_it_came() -> None:
    desk = Desk()
    receipt = post(desk, written("finished", time="2027-01-01T00:00:00Z", outcome="success"))
    assert receipt.results == {Result.APPLIED: 1}
    assert desk.finished[0].ended_unix_nanoseconds == NOON * NANO


def test_from_a_followed_file_to_what_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "veo-engine.log"
    path.write_text('2025-01-01T00:00:00Z RENDER_ABORT frame=1 gpu=0 reason="before us"\n')
    desk = Desk()

    def take(said: Mapping[str, Any]) -> None:
        assert desk.intake.take_line(said) is None

    reading = LogReading(
        Follower([str(path)]),
        load_rules(["veo-engine"]),
        Folds(),
        event=take,
        dropped=lambda kind, reason, count: None,
    )
    reading.look(0.0)
    with path.open("a") as log:
        log.write('2025-08-13T09:30:00Z ERROR RENDER_ABORT frame=37 gpu=3 reason="device lost"\n')
        log.write('2031-01-01T00:00:00Z ERROR RENDER_ABORT frame=38 gpu=3 reason="device lost"\n')
        log.write('2026-02-31T00:00:00Z ERROR RENDER_ABORT frame=39 gpu=3 reason="device lost"\n')
    reading.hand_on(reading.look(1.0).events)
    reading.close()
    assert [job.frame for job in desk.finished] == [37, 38, 39]
    assert desk.page()[series("veo_jobs_finished_total", **ABORTED)] == 3
    assert desk.dropped == {("event", "time"): 1}
    assert set(desk.dropped) <= set(DROPPED_SEEDS)


def stage(event_id: str, **said: Any) -> dict[str, Any]:
    return written("stage", event_id, engine="veo-engine", stage="render", **said)


@pytest.mark.parametrize("stamps", [{}, {"duration_s": 1}])
def test_a_stage_of_long_ago_is_refused_as_its_event_would_be(stamps: dict[str, int]) -> None:
    desk = Desk()
    body = json.dumps([stage("1", start="1971-01-01T00:00:00Z", **stamps)]).encode()
    (refused,) = desk.intake.read_structured(body, 10).refused
    assert refused.message == (
        "data.start: lies more than 30 days back: is the sender's clock right?"
    )
    assert desk.dropped == {("event", "bad_data"): 1}
    # Its job is not known by it, and nothing of it is in a histogram or a trace.
    post(desk, written("finished", "2", outcome="success", engine="veo-engine"))
    assert histograms(desk) == []
    assert desk.finished[0].submitted_unix_nanoseconds == NOON * NANO
    assert desk.finished[0].stages == ()


@pytest.mark.parametrize(("days", "refused"), [(30, 0), (31, 1)])
def test_both_sides_of_how_old_a_stage_may_be(days: int, refused: int) -> None:
    start = datetime.fromtimestamp(NOON - days * 86_400, UTC).isoformat()
    body = json.dumps([stage("1", start=start, duration_s=1)]).encode()
    assert len(Desk().intake.read_structured(body, 10).refused) == refused


def test_a_stage_in_a_log_keeps_its_length_whatever_its_stamp() -> None:
    desk = Desk()
    said = stage("1", job="job-1", start="1971-01-01T00:00:00Z", duration_s=2)
    assert desk.intake.take_line(said) is None
    desk.clock.seconds = 5
    assert desk.intake.take_line(stage("2", job="job-1", start="1971-01-01T00:00:00Z")) is None
    desk.clock.seconds = 9
    post(desk, written("finished", "3", outcome="success"))
    page = desk.page()
    # Two seconds as they were told, and four from when it was told of the second one to the end.
    assert page[series("veo_job_stage_duration_seconds_sum", stage="render")] == 6
    assert page[series("veo_job_duration_seconds_sum", outcome="success")] == 11
    assert desk.finished[0].submitted_unix_nanoseconds == (NOON - 2) * NANO
    assert desk.dropped == {("event", "time"): 2}


def test_a_stage_of_a_clock_that_is_ahead_keeps_its_length() -> None:
    desk = Desk()
    post(desk, written("submitted", "1", engine="veo-engine"))
    desk.clock.seconds = 10
    said = stage("2", start="2026-03-01T12:01:00Z", end="2026-03-01T12:01:04Z")
    post(desk, said, written("finished", "3", outcome="success"))
    (span,) = desk.finished[0].stages
    assert (span.start_unix_nanoseconds, span.end_unix_nanoseconds, span.seconds) == (
        (NOON + 6) * NANO,
        (NOON + 10) * NANO,
        4,
    )
