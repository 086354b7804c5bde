# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Ids that are used again, ends that several jobs could have come to, and lines of any length."""

from pathlib import Path
from typing import Any

import structlog.testing

from tests.jobs import NANO, NOON, Desk, event, series, written
from veo_client.vocabulary import EventType, Reason
from veo_exporter.exposition import Folds
from veo_exporter.jobs import BadEvent, Event, EventFault, Known, Receipt, Result
from veo_exporter.logs import Follower, LogReading, load_rules

ABORTED = {"outcome": "aborted", "reason": "device_lost"}


def abort(event_id: str = "9", **said: Any) -> dict[str, Any]:
    return written(
        "finished", event_id, job="", source="/var/log/veo-engine.log", engine="veo-engine",
        outcome="aborted", reason="device lost", **said,
    )  # fmt: skip


def test_a_job_that_is_submitted_after_its_end_begins_anew() -> None:
    desk = Desk()
    table = desk.table
    table.apply(event("submitted", "1", 0, engine="veo-engine", traceparent="first"))
    table.apply(event("finished", "2", 5, outcome="failed"))
    assert table.apply(event("heartbeat", "3", 6)).result is Result.LATE
    again = table.apply(event("submitted", "4", 7, engine="veo-engine", traceparent="second"))
    assert (again.result, again.before) == (Result.APPLIED, None)
    assert table.apply(event("started", "5", 8)).result is Result.APPLIED
    # What was taken once is known, in whichever run it was.
    assert table.apply(event("submitted", "1", 9)).result is Result.REPEATED
    end = table.apply(event("finished", "6", 10, outcome="success"))
    assert end.finished is not None
    assert end.finished.traceparent == "second"
    assert end.finished.submitted_unix_nanoseconds == (NOON + 7) * NANO
    assert table.apply(event("heartbeat", "7", 11)).result is Result.LATE


def test_both_runs_are_counted() -> None:
    desk = Desk()
    for run in range(2):
        desk.clock.seconds = 10 * run
        for number, (kind, said) in enumerate(
            [("submitted", {"engine": "veo-engine"}), ("finished", {"outcome": "success"})]
        ):
            desk.clock.seconds += 1
            outcome = event(kind, f"{run}{number}", desk.clock.seconds, **said)
            desk.intake.take([outcome], Receipt())
    page = desk.page()
    assert page[series("veo_jobs_submitted_total")] == 2
    assert page[series("veo_jobs_finished_total", outcome="success", reason="none")] == 2
    assert series("veo_jobs_in_flight") not in page


def test_a_submission_that_is_only_late_begins_nothing() -> None:
    desk = Desk()
    desk.table.apply(event("finished", "1", 5, outcome="success"))
    late = event("submitted", "2", 6, time="2026-03-01T12:00:05Z")
    assert desk.table.apply(late).result is Result.LATE
    assert desk.table.in_flight == ()


def test_only_a_submission_begins_anew() -> None:
    desk = Desk()
    desk.table.apply(event("finished", "1", 5, outcome="success"))
    for kind, said in (("started", {}), ("heartbeat", {}), ("finished", {"outcome": "failed"})):
        assert desk.table.apply(event(kind, kind, 9, **said)).result is Result.LATE


def test_an_end_that_two_jobs_could_have_come_to_counts_by_itself_and_is_told() -> None:
    desk = Desk()
    for job in "ab":
        desk.intake.take([event("started", job, job=job, engine="veo-engine")], Receipt())
    with structlog.testing.capture_logs() as logged:
        assert desk.intake.take_line(abort(frame=37)) is None
        # The same line once more is nothing new.
        assert desk.intake.take_line(abort(frame=37)) is None
    page = desk.page()
    assert page[series("veo_jobs_finished_total", **ABORTED)] == 1
    assert page[series("veo_jobs_in_flight")] == 2
    events = 'veo_exporter_events_total{result="ambiguous",type="veo.job.finished"}'
    assert page[events] == 1
    (aborted,) = desk.finished
    assert (aborted.job_id, aborted.reason, aborted.frame) == (
        "/var/log/veo-engine.log#9",
        Reason.DEVICE_LOST,
        37,
    )
    (line,) = logged
    assert (line["log_level"], line["engine"], line["reason"]) == (
        "warning",
        "veo-engine",
        "device_lost",
    )


def test_another_line_that_two_jobs_could_be_meant_by_begins_no_third_one() -> None:
    desk = Desk()
    for job in "ab":
        desk.intake.take([event("started", job, job=job, engine="veo-engine")], Receipt())
    assert desk.intake.take_line(abort() | {"type": "veo.job.heartbeat", "data": {}}) is None
    assert len(desk.table.in_flight) == 2
    assert desk.finished == []


def test_a_job_is_found_behind_a_reason_of_a_megabyte(tmp_path: Path) -> None:
    path = tmp_path / "veo-engine.log"
    path.touch()
    desk = Desk(known=Known(engines=("veo-engine",)))
    for job in "ab":
        desk.intake.take([event("started", job, job=job, engine="veo-engine")], Receipt())
    reading = LogReading(
        Follower([str(path)]),
        load_rules(["veo-engine"]),
        Folds(),
        event=desk.intake.take_line,  # type: ignore[arg-type]
        dropped=lambda kind, reason, count: None,
    )
    reading.look(0.0)
    with path.open("a") as log:
        log.write(f'RENDER_ABORT frame=1 reason="device lost {"x" * (1 << 20)}" job=a\n')
    reading.hand_on(reading.look(1.0).events)
    reading.close()
    assert [(job.job_id, job.reason) for job in desk.finished] == [("a", Reason.DEVICE_LOST)]


def test_what_another_room_refuses_is_told_counted_and_may_come_again() -> None:
    refusing = True

    def hand_on(event: Event) -> None:
        if refusing:
            raise BadEvent(EventFault.BAD_DATA, "data.verdict: is missing")

    desk = Desk(hand_on=hand_on)
    probed = event("veo.video.probed", file="/out/1.mp4")
    receipt = Receipt()
    desk.intake.take([event("started", "0"), probed], receipt)
    assert receipt.results == {Result.APPLIED: 1}
    (refused,) = receipt.refused
    assert (refused.event_id, refused.message) == ("1", "data.verdict: is missing")
    assert desk.dropped == {("event", "bad_data"): 1}
    refusing = False
    receipt = Receipt()
    desk.intake.take([probed, probed], receipt)
    assert receipt.results == {Result.HANDED_ON: 1, Result.REPEATED: 1}
    assert probed.type is EventType.VIDEO_PROBED
