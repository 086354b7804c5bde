# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""From a body of events to what is counted."""

import json
from functools import partial
from typing import Any

import pytest
import structlog.testing
from prometheus_client.parser import text_string_to_metric_families

from tests.jobs import TRACEPARENT, Desk, event, series, written
from veo_client.vocabulary import OUTCOME_OF, EventType, Outcome, Reason, Stage
from veo_exporter.catalog import MetricSpec
from veo_exporter.catalog import jobs as catalog
from veo_exporter.exposition import Format
from veo_exporter.jobs import DROPPED_SEEDS, BadBody, EventFault, Known, Limits, Receipt, Result


def post(desk: Desk, *events: dict[str, Any]) -> Receipt:
    receipt = Receipt()
    parsed = desk.intake.read_structured(json.dumps(events).encode(), 1000)
    receipt.refused += parsed.refused
    desk.intake.take(parsed.events, receipt)
    return receipt


def job_events(desk: Desk) -> dict[str, float]:
    return {
        name: value for name, value in desk.page().items() if not name.startswith("veo_exporter_")
    }


def labels_in(line: str, labels: dict[str, str]) -> bool:
    return all(f'{key}="{value}"' in line for key, value in labels.items())


def test_a_whole_job_is_counted() -> None:
    desk = Desk()
    request = {"width": 1920, "height": 1080, "fps": 24, "duration_s": 6, "prompt_chars": 40}
    post(desk, written("submitted", "1", engine="veo-engine", request=request, variant="b"))
    said = {"variant": "b", "profile": "1080p24-6s"}
    assert desk.page()[series("veo_jobs_in_flight", **said)] == 1
    desk.clock.seconds = 2
    post(desk, written("started", "2"))
    desk.clock.seconds = 9
    post(
        desk,
        written("stage", "3", stage="prompt", duration_s=0.02),
        written("stage", "4", stage="render", duration_s=6.9),
        written("retry", "5", reason="upstream_503", attempt=2),
        written("finished", "6", outcome="success", gpu_memory_peak_bytes=40 << 30),
        written("evaluated", "7", scores={"vmaf": 90, "clip": 80}),
    )
    page = job_events(desk)
    assert page.pop(series("veo_jobs_submitted_total", **said)) == 1
    assert (
        page.pop(series("veo_jobs_finished_total", **said, outcome="success", reason="none")) == 1
    )
    assert page.pop(series("veo_job_budget_breaches_total", **said, stage="render")) == 1
    assert page.pop(series("veo_job_retries_total", **said, reason="upstream_503")) == 1
    # A histogram's row: the bucket below it is empty, its own holds it, the sum is exact.
    for name, labels, value, below, bound in (
        ("veo_job_duration_seconds", {"outcome": "success"}, 9, "5.0", "10.0"),
        ("veo_job_stage_duration_seconds", {"stage": "queue"}, 2, "1.0", "2.0"),
        ("veo_job_stage_duration_seconds", {"stage": "prompt"}, 0.02, "0.015", "0.025"),
        ("veo_job_stage_duration_seconds", {"stage": "render"}, 6.9, "6.8", "10.0"),
        ("veo_job_quality_score", {"scorer": "vmaf"}, 90, "85.0", "90.0"),
        ("veo_job_quality_score", {"scorer": "clip"}, 80, "75.0", "80.0"),
        ("veo_job_quality_score", {"scorer": "fused"}, 86, "85.0", "90.0"),
        ("veo_job_gpu_memory_peak_bytes", {}, 42949672960, "3.4359738368e+10", "4.294967296e+10"),
    ):
        assert page.pop(series(name + "_sum", **said, **labels)) == pytest.approx(value)
        assert page.pop(series(name + "_count", **said, **labels)) == 1
        bucket = partial(series, name + "_bucket", **said, **labels)
        assert bucket(le=below) not in page
        assert page[bucket(le=bound)] == 1
        for le in [le for le in page if le.startswith(name + "_bucket") and labels_in(le, labels)]:
            del page[le]
    assert page == {}
    assert len(desk.finished) == 1


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_there_before_it_happens(reason: Reason) -> None:
    desk = Desk()
    labels = {"outcome": OUTCOME_OF[reason].value, "reason": reason.value}
    assert f"{series('veo_jobs_finished_total', **labels)} 0.0\n" in desk.text()
    # A set that nobody expected has its zeros with its first word.
    post(desk, written("started", engine="mine", model="m"))
    assert (
        f"{series('veo_jobs_finished_total', engine='mine', model='m', **labels)} 0.0\n"
        in desk.text()
    )


def test_what_is_expected_stands_at_zero() -> None:
    desk = Desk(known=Known(engines=("e", "f"), models=("m",), variants=("a",), profiles=("p",)))
    families = {family.name: family for family in text_string_to_metric_families(desk.text())}
    in_flight = {
        tuple(sample.labels[name] for name in ("engine", "model", "variant", "profile"))
        for sample in families["veo_jobs_in_flight"].samples
    }
    assert in_flight == {
        (engine, "m", variant, profile)
        for engine in "ef"
        for variant in ("none", "a")
        for profile in ("other", "p")
    } | {(engine, "unknown", "none", "other") for engine in ("unknown", "e", "f")}
    timeouts = families["veo_job_timeouts"].samples
    assert {sample.labels["stage"] for sample in timeouts} == {stage.value for stage in Stage}
    assert {sample.value for family in families.values() for sample in family.samples} == {0.0}


def test_every_declared_metric_is_said_from_the_start() -> None:
    text = Desk().text()
    declared = {value for value in vars(catalog).values() if isinstance(value, MetricSpec)}
    logs = {catalog.LOG_LINES, catalog.LOG_RESTARTS}
    assert [spec.name for spec in declared - logs if f"# TYPE {spec.name} " not in text] == []


def test_a_trace_is_the_exemplar_of_a_duration() -> None:
    desk = Desk()
    post(desk, written("started", "1", engine="veo-engine", traceparent=TRACEPARENT))
    desk.clock.seconds = 4
    post(desk, written("finished", "2", outcome="success"))
    text = desk.text(Format.OPENMETRICS)
    (line,) = [line for line in text.splitlines() if " # {" in line]
    assert line.startswith(series("veo_job_duration_seconds_bucket", outcome="success", le="5.0"))
    assert '# {trace_id="4bf92f3577b34da6a3ce929d0e0e4736"} 4.0' in line


def test_a_job_that_is_first_heard_of_at_its_end_has_no_duration() -> None:
    desk = Desk()
    post(desk, written("finished", engine="veo-engine", outcome="success"))
    page = desk.page()
    assert page[series("veo_jobs_finished_total", outcome="success", reason="none")] == 1
    assert not any(name.startswith("veo_job_duration") for name in page)


def test_a_silent_job_is_lost_counted_and_logged() -> None:
    desk = Desk()
    post(desk, written("started", engine="other"))
    desk.clock.seconds = 599
    desk.intake.tick()
    assert desk.finished == []
    desk.clock.seconds = 600
    with structlog.testing.capture_logs() as logged:
        desk.intake.tick()
    assert [job.outcome for job in desk.finished] == [Outcome.LOST]
    assert [(line["log_level"], line["job"]) for line in logged] == [("warning", "job-1")]
    page = desk.page()
    assert (
        page[series("veo_jobs_finished_total", engine="other", outcome="lost", reason="no_word")]
        == 1
    )
    assert series("veo_jobs_in_flight", engine="other") not in page
    # It ends after all: that is known, and counted no second time.
    assert post(desk, written("finished", "2", outcome="success")).results == {Result.LATE: 1}
    assert len(desk.finished) == 1


def test_our_deadline_is_a_timeout_of_the_stage_under_way() -> None:
    desk = Desk()
    post(
        desk,
        written("started", "1", engine="veo-engine"),
        written("stage", "2", stage="render", start="2026-03-01T12:00:00Z"),
    )
    desk.clock.seconds = 90
    desk.intake.tick()
    page = desk.page()
    assert page[series("veo_job_timeouts_total", stage="render")] == 1
    labels = {"outcome": "timeout", "reason": "deadline_ours"}
    assert page[series("veo_jobs_finished_total", **labels)] == 1
    assert not any("breaches" in name for name in page)


def test_a_job_over_its_budget_that_ends_by_itself_is_a_breach() -> None:
    desk = Desk()
    post(desk, written("started", "1", engine="veo-engine"))
    desk.clock.seconds = 91
    post(desk, written("finished", "2", outcome="success"))
    assert desk.page()[series("veo_job_budget_breaches_total", stage="request")] == 1


@pytest.mark.parametrize(
    ("request_", "rules"),
    [
        ({"width": 1280, "height": 720, "fps": 30, "prompt_chars": 12}, set()),
        (
            {"width": 1280, "height": 720, "fps": 31, "prompt_chars": 11},
            {"fps_720p", "prompt_720p"},
        ),
        ({"width": 1080, "height": 1920, "fps": 23, "prompt_chars": 20}, {"fps_1080p"}),
        ({"width": 3840, "height": 2160, "fps": 60, "prompt_chars": 34}, {"prompt_4k"}),
        ({"prompt_tokens": 513, "batch_size": 5}, {"prompt_tokens", "batch_size"}),
        ({"prompt_tokens": 512, "batch_size": 4}, set()),
        ({"width": 640, "height": 360, "fps": 200}, set()),
        ({}, set()),
    ],
)
def test_requests_outside_of_the_rules_are_counted_once(
    request_: dict[str, int], rules: set[str]
) -> None:
    desk = Desk()
    for number, kind in enumerate(("submitted", "started")):
        post(desk, written(kind, str(number), engine="veo-engine", request=request_))
    found = {
        sample.labels["rule"]: sample.value
        for family in text_string_to_metric_families(desk.text())
        if family.name == "veo_job_request_violations"
        for sample in family.samples
        if sample.value
    }
    assert found == dict.fromkeys(rules, 1.0)


def test_bad_events_are_counted_by_fault_and_cost_nothing_else() -> None:
    desk = Desk()
    receipt = post(
        desk,
        written("started", "1"),
        written("stage", "2", stage="?", duration_s=1),
        written("veo.job.begun", "3"),
        written("started", "4", job="job-2", traceparent="garbage"),
    )
    assert receipt.results == {Result.APPLIED: 2}
    assert [refused.index for refused in receipt.refused] == [1, 2]
    with pytest.raises(BadBody):
        desk.intake.read_structured(b"not json", 10)
    desk.intake.refuse_body(EventFault.BODY_TOO_LARGE)
    assert desk.dropped == {
        ("event", "unknown_stage"): 1,
        ("event", "unknown_type"): 1,
        ("event", "not_json"): 1,
        ("event", "body_too_large"): 1,
    }
    assert set(desk.dropped) <= set(DROPPED_SEEDS)
    assert len(desk.table.in_flight) == 2


def test_a_full_table_is_told_and_counted() -> None:
    desk = Desk(Limits(max_in_flight=1))
    receipt = post(desk, written("started", "1"), written("started", "2", job="job-2"))
    assert receipt.table_full
    assert receipt.results == {Result.APPLIED: 1, Result.TABLE_FULL: 1}
    assert desk.dropped == {("event", "table_full"): 1}


def test_names_beyond_the_bound_are_other() -> None:
    desk = Desk(known=Known(engines=("a",), max_names=3, max_sets=1000))
    post(desk, *(written("started", name, engine=name, job=name) for name in "abcde"))
    engines = {
        sample.labels["engine"]: sample.value
        for family in text_string_to_metric_families(desk.text())
        if family.name == "veo_jobs_submitted"
        for sample in family.samples
    }
    assert engines == {"unknown": 0, "a": 1, "b": 1, "c": 1, "other": 2}
    assert desk.dropped == {("job_label", "engine"): 2}


def test_sets_of_labels_beyond_the_bound_are_counted_elsewhere() -> None:
    desk = Desk(known=Known(engines=("a",), max_names=1000, max_sets=5))
    said = [written("started", str(n), engine=f"e{n}", job=f"j{n}") for n in range(300)]
    post(desk, *said)
    said = [written("finished", f"f{n}", job=f"j{n}", outcome="success") for n in range(300)]
    post(desk, *said)
    page = desk.page()
    sets = [name for name in page if name.startswith("veo_jobs_submitted_total")]
    assert len(sets) == 5
    elsewhere = dict.fromkeys(("engine", "model", "variant", "profile"), "other")
    assert page[series("veo_jobs_submitted_total", **elsewhere)] == 296
    assert not any(name.startswith("veo_jobs_in_flight") for name in page)
    # Once for each job, however often its labels are looked up.
    assert desk.dropped == {("job_label", "set"): 296}


def test_what_was_forgotten_early_is_counted() -> None:
    desk = Desk(Limits(max_event_ids=4, max_ended=2))
    for number in range(10):
        post(desk, written("finished", str(number), job=f"j{number}", outcome="success"))
    for _ in range(2):
        desk.intake.tick()
    assert desk.dropped == {("job_memory", "event_ids"): 6, ("job_memory", "ended_jobs"): 8}


def test_a_score_of_a_job_that_nobody_knows_counts_all_the_same() -> None:
    desk = Desk()
    receipt = post(desk, written("evaluated", engine="veo-engine", scores={"vmaf": 84.5}))
    assert receipt.results == {Result.UNKNOWN_JOB: 1}
    assert desk.page()[series("veo_job_quality_score_sum", scorer="vmaf")] == 84.5
    assert desk.table.in_flight == ()


def test_events_of_other_rooms_are_handed_on() -> None:
    desk = Desk()
    receipt = post(desk, written("veo.video.probed", file="/out/1.mp4", verdict="ok"))
    assert receipt.results == {Result.HANDED_ON: 1}
    (handed,) = desk.handed_on
    assert handed.type is EventType.VIDEO_PROBED
    assert handed.data.fields() == {"file": "/out/1.mp4", "verdict": "ok"}  # type: ignore[union-attr]


def test_a_line_of_a_log_ends_the_job_that_it_means() -> None:
    desk = Desk(gpus={"3": "GPU-3"})
    post(desk, written("started", engine="veo-engine", gpus=["GPU-3"]))
    said = written(
        "finished", "1-1-0-1", job="", source="/var/log/veo-engine.log", engine="veo-engine",
        outcome="aborted", reason="device lost", frame=37, gpus=["3"],
    )  # fmt: skip
    assert desk.intake.take_line(said) is None
    (job,) = desk.finished
    assert (job.job_id, job.reason, job.frame) == ("job-1", Reason.DEVICE_LOST, 37)
    assert job.gpus == ("GPU-3",)
    labels = {"outcome": "aborted", "reason": "device_lost"}
    assert desk.page()[series("veo_jobs_finished_total", **labels)] == 1
    assert desk.intake.take_line(said | {"type": "nonsense"}) is not None
    assert desk.dropped == {("event", "unknown_type"): 1}


def test_in_flight_returns_to_zero_whatever_labels_change() -> None:
    desk = Desk()
    request = {"width": 1280, "height": 720, "fps": 24, "duration_s": 8}
    post(
        desk,
        written("heartbeat", "1"),
        written("started", "2", engine="veo-engine"),
        written("submitted", "3", request=request, model="veo-3"),
    )
    in_flight = {k: v for k, v in desk.page().items() if k.startswith("veo_jobs_in_flight")}
    assert in_flight == {series("veo_jobs_in_flight", model="veo-3", profile="720p24-8s"): 1}
    post(desk, written("finished", "4", outcome="cancelled"))
    assert not any(name.startswith("veo_jobs_in_flight") for name in desk.page())


def test_an_event_outlives_its_clock() -> None:
    # The finish is dated before the submission: the sender's two clocks do not agree.
    desk = Desk()
    post(desk, written("submitted", "1", time="2026-03-01T11:59:59Z"))
    post(desk, written("finished", "2", time="2026-03-01T11:59:00Z", outcome="success"))
    assert desk.finished[0].duration_seconds == 0
    assert event("heartbeat").job_id == "job-1"
