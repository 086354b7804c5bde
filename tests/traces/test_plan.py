# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which spans a finished job is told in."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.traces.examples import (
    NOON,
    PARENT_ID,
    SECOND,
    TRACE_ID,
    TRACEPARENT,
    UNREADABLE,
    Again,
    File,
    Job,
    Report,
    after,
    run,
)
from veo_client.vocabulary import Outcome, Reason, Stage
from veo_exporter.traces import Probed, identity_of, plan_trace
from veo_exporter.traces.spans import Kind, SpanPlan, TracePlan


def tree(plan: TracePlan) -> dict[str, list[str]]:
    """The names of each span's children, in order."""
    names = {span.span_id: span.name for span in plan.spans}
    found: dict[str, list[str]] = {}
    for span in plan.spans[1:]:
        assert span.parent_span_id is not None
        found.setdefault(names[span.parent_span_id], []).append(span.name)
    return found


def seconds(span: SpanPlan) -> tuple[float, float]:
    return (span.start_unix_ns - NOON) / SECOND, (span.end_unix_ns - NOON) / SECOND


def errors(plan: TracePlan) -> Mapping[str, str]:
    return {span.name: span.error_type for span in plan.spans if span.error_type is not None}


def test_a_job_is_a_span_with_its_stages_inside() -> None:
    plan = plan_trace(Job(outputs=[File("/a.mp4", 100), File("/b.mp4", 200), File("/c.mp4")]))
    assert tree(plan) == {"process video_jobs": ["queue", "weights_load", "render"]}
    assert [seconds(span) for span in plan.spans] == [(0, 12), (0, 2), (2, 4), (4, 11)]
    assert [span.kind for span in plan.spans] == [Kind.CONSUMER, *[Kind.INTERNAL] * 3]
    root, queue, weights, _ = plan.spans
    assert root.attributes == {
        "gen_ai.operation.name": "generate_video",
        "gen_ai.output.type": "video",
        "gen_ai.request.model": "wan-2.2",
        "videogen.job.id": "job-1",
        "videogen.engine": "veo-engine",
        "videogen.variant": "candidate",
        "videogen.profile": "1080p24-6s",
        "videogen.outcome": "success",
        "videogen.reason": "none",
        "videogen.attempts": 1,
        "videogen.queue.wait_s": 2.0,
        "videogen.output.count": 3,
        "videogen.output.bytes": 300,
    }
    assert queue.attributes == {"videogen.stage": "queue", "videogen.stage.duration_s": 2}
    assert weights.attributes["videogen.stage.cache"] == "cold"
    assert errors(plan) == {}


def test_it_hangs_under_whoever_asked_for_it() -> None:
    plan = plan_trace(Job(traceparent=TRACEPARENT, tracestate="vendor=1"))
    assert plan.trace_id == TRACE_ID
    assert plan.parent is not None
    assert plan.parent.span_id == PARENT_ID
    assert plan.tracestate == "vendor=1"
    assert plan.spans[0].parent_span_id is None
    assert plan.spans[0].linked_span_ids == (PARENT_ID,)


def test_without_a_parent_it_begins_a_trace() -> None:
    plan = plan_trace(Job())
    assert plan.parent is None
    assert plan.spans[0].linked_span_ids == ()


def test_the_spans_are_known_before_they_are_planned() -> None:
    job = Job(traceparent=TRACEPARENT)
    identity, plan = identity_of(job), plan_trace(job)
    assert (identity.trace_id, identity.span_id) == (plan.trace_id, plan.spans[0].span_id)
    assert plan_trace(job) == plan
    assert len({span.span_id for span in plan.spans}) == len(plan.spans)


@pytest.mark.parametrize(
    ("outcome", "reason", "error"),
    [
        (Outcome.SUCCESS, Reason.NONE, None),
        (Outcome.CANCELLED, Reason.CANCELLED, None),
        (Outcome.FAILED, Reason.QUOTA, "quota"),
        (Outcome.TIMEOUT, Reason.DEADLINE_ENGINE, "deadline_engine"),
        (Outcome.ABORTED, Reason.OUT_OF_DEVICE_MEMORY, "out_of_device_memory"),
        (Outcome.EMPTY, Reason.EMPTY_OUTPUT, "empty_output"),
        (Outcome.FILTERED, Reason.CONTENT_FILTERED, "content_filtered"),
        (Outcome.LOST, Reason.NO_WORD, "no_word"),
        ("failed", "none", "failed"),
        ("", "", "_OTHER"),
    ],
)
def test_what_counts_as_an_error(
    outcome: Outcome | str, reason: Reason | str, error: str | None
) -> None:
    assert plan_trace(Job(outcome=outcome, reason=reason)).spans[0].error_type == error


def test_the_stage_in_which_the_job_ended_bears_its_error() -> None:
    stages = [run(Stage.RENDER, 2, 3), run(Stage.RENDER, 3, 12)]
    job = Job(
        outcome=Outcome.ABORTED,
        reason=Reason.XID,
        module="render",
        stages=stages,
        stage_at_end=Stage.RENDER,
        error_code="xid-79",
        frame=118,
        gpus=["GPU-a"],
        gpu_memory_peak_bytes=70 * 2**30,
    )
    plan = plan_trace(job)
    assert [span.error_type for span in plan.spans] == ["xid", None, "xid"]
    assert (
        plan.spans[0].attributes.items()
        >= {
            "videogen.module": "render",
            "videogen.stage_at_end": "render",
            "videogen.error.code": "xid-79",
            "videogen.frame_at_end": 118,
            "videogen.gpu.memory_peak_bytes": 70 * 2**30,
        }.items()
    )
    assert plan.spans[0].attributes["videogen.gpu.uuids"] == ["GPU-a"]


def test_a_job_that_succeeds_at_last_has_failed_attempts_and_no_error() -> None:
    job = Job(
        retries=[
            Again(after(5), Reason.UPSTREAM_503, 1.0),
            Again(after(8), Reason.GRPC_RESET),
        ],
        stages=[
            run(Stage.QUEUE, 0, 2),
            run(Stage.RENDER, 2, 5),
            run(Stage.RENDER, 6, 8),
            run(Stage.RENDER, 8, 11),
            run(Stage.UPLOAD, 11, 12),
        ],
    )
    plan = plan_trace(job)
    root, first, second, third, *stages = plan.spans
    assert [seconds(span) for span in (first, second, third)] == [(2, 5), (6, 8), (8, 12)]
    assert [span.error_type for span in (first, second, third)] == [
        "upstream_503",
        "grpc_reset",
        None,
    ]
    assert [span.linked_span_ids for span in (first, second, third)] == [
        (),
        (first.span_id,),
        (second.span_id,),
    ]
    assert [span.attributes["videogen.attempt.number"] for span in (first, second, third)] == [
        1,
        2,
        3,
    ]
    assert [span.parent_span_id for span in stages] == [
        root.span_id,
        first.span_id,
        second.span_id,
        third.span_id,
        third.span_id,
    ]
    assert root.error_type is None
    assert root.attributes["videogen.attempts"] == 3
    assert [(event.name, event.at_unix_ns) for event in root.events] == [
        ("retry", after(5)),
        ("retry", after(8)),
    ]
    assert root.events[0].attributes == {
        "videogen.retry.reason": "upstream_503",
        "videogen.retry.delay_s": 1.0,
    }


def test_the_files_looked_into_are_inside() -> None:
    bad = Probed(Report(), after(12.5), after(13))
    unreadable = Probed(UNREADABLE, after(13), after(13.5))
    plan = plan_trace(Job(), [bad, unreadable])
    _, _, _, _, looked, failed = plan.spans
    assert looked.name == failed.name == "probe_video"
    assert looked.span_id != failed.span_id
    assert seconds(looked) == (12.5, 13)
    assert looked.attributes == {
        "file.path": "/srv/videos/out.mp4",
        "videogen.video.verdict": "defective",
        "videogen.video.defects": ["frames_missing"],
        "videogen.video.codec": "h264",
        "videogen.video.frames": 144,
        "videogen.video.frames_missing": 5,
        "videogen.video.frame_rate_hz": 24.0,
        "videogen.video.duration_s": 6.0,
    }
    assert looked.error_type is None
    assert failed.error_type == "unreadable"
    assert plan.spans[0].attributes["videogen.output.verdict"] == "error"
    assert plan.spans[0].error_type is None


def test_what_is_beyond_the_bounds_is_left_out_and_told() -> None:
    job = Job(
        stages=[run(Stage.DENOISE, n / 100, n / 100) for n in range(70)],
        retries=[Again(after(n / 10), Reason.QUOTA) for n in range(40)],
    )
    probed = [Probed(Report(file=Path(f"/{n}.mp4")), after(13), after(14)) for n in range(40)]
    plan = plan_trace(job, probed)
    assert len(plan.spans) == 1 + 16 + 64 + 32
    assert plan.spans[0].attributes["videogen.spans_left_out"] == (41 - 16) + (70 - 64) + (40 - 32)
    assert plan.spans[0].attributes["videogen.attempts"] == 41


def test_no_span_ends_before_it_begins() -> None:
    job = Job(
        started_unix_nanoseconds=after(20),
        ended_unix_nanoseconds=after(-5),
        stages=[replace(run(Stage.RENDER, 4, 5), end_unix_nanoseconds=after(1))],
        retries=[
            Again(after(-3), Reason.QUOTA, float("inf")),
            Again(after(50), Reason.QUOTA, -9.0),
        ],
    )
    plan = plan_trace(job, [Probed(Report(), after(3), after(2))])
    assert all(span.start_unix_ns <= span.end_unix_ns for span in plan.spans)
    assert plan.spans[0].attributes["videogen.queue.wait_s"] == 20


def test_what_was_never_told_is_no_attribute() -> None:
    job = Job(engine="", model="", variant="", profile="", started_unix_nanoseconds=None, stages=())
    plan = plan_trace(job)
    assert set(plan.spans[0].attributes) == {
        "gen_ai.operation.name",
        "gen_ai.output.type",
        "videogen.job.id",
        "videogen.outcome",
        "videogen.reason",
        "videogen.attempts",
        "videogen.output.count",
    }
