# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What events make of a job, in order and out of it."""

from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.jobs import BUDGETS, NANO, NOON, TRACEPARENT, event, moment
from veo_client.vocabulary import Outcome, Reason, Stage
from veo_exporter.jobs.budgets import Budget, Budgets
from veo_exporter.jobs.events import Event
from veo_exporter.jobs.finished import FinishedJob
from veo_exporter.jobs.job import Job
from veo_exporter.jobs.lifecycle import MAX_STAGES, advance, expire
from veo_exporter.jobs.step import Result, Step


def live(*events: Event) -> Step:
    """The last step of a job's life."""
    return reduce(lambda step, event: advance(step.after, event), events, Step(Result.APPLIED))


def ended(*events: Event) -> FinishedJob:
    finished = live(*events).finished
    assert finished is not None
    return finished


def at(seconds: float) -> int:
    return NOON * NANO + round(seconds * NANO)


def test_a_job_is_told_from_its_end() -> None:
    job = ended(
        event("submitted", "1", 0, engine="veo-engine", traceparent=TRACEPARENT, source="api"),
        event("started", "2", 2, gpus=["GPU-1"], pid=7),
        event("stage", "3", 2.5, stage="prompt", duration_s=0.5),
        event("stage", "4", 7.5, stage="render", duration_s=5),
        event("finished", "5", 8, outcome="success", outputs=[{"path": "/out/1.mp4", "bytes": 9}]),
    )
    assert (job.outcome, job.reason) == (Outcome.SUCCESS, Reason.NONE)
    assert (job.source, job.traceparent, job.gpus, job.pid) == ("api", TRACEPARENT, ("GPU-1",), 7)
    assert job.submitted_unix_nanoseconds == at(0)
    assert job.started_unix_nanoseconds == at(2)
    assert job.ended_unix_nanoseconds == at(8)
    assert job.duration_seconds == 8
    assert [
        (span.stage, span.start_unix_nanoseconds, span.end_unix_nanoseconds) for span in job.stages
    ] == [
        (Stage.QUEUE, at(0), at(2)),
        (Stage.PROMPT, at(2), at(2.5)),
        (Stage.RENDER, at(2.5), at(7.5)),
    ]
    assert [output.path for output in job.outputs] == ["/out/1.mp4"]


def test_stages_that_are_told_at_the_end_are_laid_one_after_the_other() -> None:
    job = ended(
        event("stage", "1", 10, stage="denoise", duration_s=3),
        event("stage", "2", 10, stage="vae_decode", duration_s=2),
        event("finished", "3", 10, outcome="success"),
    )
    assert [
        (span.stage.value, span.start_unix_nanoseconds, span.end_unix_nanoseconds)
        for span in job.stages
    ] == [("denoise", at(5), at(8)), ("vae_decode", at(8), at(10))]
    assert job.submitted_unix_nanoseconds == at(5)


def test_a_stage_that_does_not_fit_is_cut_and_its_time_kept() -> None:
    job = ended(
        event("submitted", "1", 0),
        event("stage", "2", 4, stage="denoise", duration_s=60),
        event("finished", "3", 5, outcome="success"),
    )
    (span,) = job.stages
    assert (span.start_unix_nanoseconds, span.end_unix_nanoseconds) == (at(0), at(4))
    assert span.seconds == 60


def test_a_stage_under_way_ends_with_its_job() -> None:
    started = event("stage", "1", 1, stage="render", start="2026-03-01T12:00:01Z")
    step = live(started, event("finished", "2", 4, outcome="aborted", reason="device_lost"))
    assert [(report.stage, report.seconds) for report in step.stages] == [(Stage.RENDER, 3)]
    assert step.finished is not None
    assert step.finished.stage_at_end is Stage.RENDER
    assert (step.finished.outcome, step.finished.reason) == (Outcome.ABORTED, Reason.DEVICE_LOST)
    assert step.finished.module == "driver"


def test_a_stage_that_a_deadline_cut_off_is_no_stage_that_ended() -> None:
    started = event("stage", "1", 1, stage="render", start="2026-03-01T12:00:01Z")
    step = live(started, event("finished", "2", 4, outcome="timeout"))
    assert step.stages == ()
    assert step.finished is not None
    assert step.finished.stage_at_end is Stage.RENDER
    assert step.finished.reason is Reason.DEADLINE_ENGINE


def test_a_stage_that_is_over_is_not_under_way_when_its_beginning_comes_late() -> None:
    over = event("stage", "2", 6, stage="render", duration_s=5)
    begun = event("stage", "1", 7, stage="render", start="2026-03-01T12:00:01Z")
    step = live(over, begun)
    assert step.result is Result.OUT_OF_ORDER
    assert step.after is not None
    assert step.after.under_way is None


@pytest.mark.parametrize(
    ("data", "outcome", "reason"),
    [
        ({"outcome": "success"}, "success", "none"),
        ({"outcome": "success", "outputs": []}, "empty", "empty_output"),
        ({"outcome": "success", "outputs": [{"path": "/a", "bytes": 0}]}, "empty", "empty_output"),
        ({"outcome": "success", "outputs": [{"path": "/a"}]}, "success", "none"),
        (
            {"outcome": "success", "outputs": [], "filtered_count": 1},
            "filtered",
            "content_filtered",
        ),
        (
            {"outcome": "success", "outputs": [{"path": "/a"}], "filtered_count": 1},
            "success",
            "none",
        ),
        ({"outcome": "success", "reason": "quota"}, "success", "none"),
        ({"outcome": "cancelled", "reason": "quota"}, "cancelled", "cancelled"),
        ({"outcome": "failed"}, "failed", "unspecified_failure"),
        ({"outcome": "failed", "reason": "upstream_503"}, "failed", "upstream_503"),
        ({"outcome": "failed", "reason": "xid"}, "aborted", "xid"),
        ({"outcome": "failed", "error": {"code": 503}}, "failed", "upstream_503"),
        ({"outcome": "failed", "error": {"code": "grpc:8"}}, "failed", "quota"),
        ({"outcome": "failed", "error": {"code": 8}}, "failed", "unspecified_failure"),
        (
            {"outcome": "failed", "error": {"code": "DEADLINE_EXCEEDED"}},
            "timeout",
            "deadline_engine",
        ),
        (
            {
                "outcome": "failed",
                "error": {"message": "torch.OutOfMemoryError: CUDA out of memory"},
            },
            "aborted",
            "out_of_device_memory",
        ),
        ({"outcome": "aborted", "reason": "GPU has fallen off the bus"}, "aborted", "device_lost"),
        ({"outcome": "aborted", "reason": "who knows"}, "aborted", "unspecified_abort"),
        (
            {"outcome": "timeout", "error": {"message": "stream reset"}},
            "timeout",
            "deadline_engine",
        ),
        ({"outcome": "timeout", "reason": "deadline_ours"}, "timeout", "deadline_ours"),
        ({"outcome": "empty"}, "empty", "empty_output"),
        ({"outcome": "filtered"}, "filtered", "content_filtered"),
        ({"outcome": "lost"}, "lost", "no_word"),
    ],
)
def test_outcome_and_reason(data: dict[str, Any], outcome: str, reason: str) -> None:
    job = ended(event("finished", "1", 0, **data))
    assert (job.outcome.value, job.reason.value) == (outcome, reason)


@pytest.mark.parametrize(
    ("events", "result"),
    [
        ([event("submitted", "1"), event("submitted", "2")], Result.REPEATED),
        ([event("started", "1"), event("submitted", "2")], Result.OUT_OF_ORDER),
        ([event("started", "1"), event("started", "2")], Result.REPEATED),
        (
            [event("stage", "1", stage="render", duration_s=1), event("started", "2")],
            Result.OUT_OF_ORDER,
        ),
        (
            [event("stage", "1", stage="queue", duration_s=1), event("started", "2")],
            Result.APPLIED,
        ),
        ([event("stage", "1", stage="render", duration_s=1)] * 2, Result.REPEATED),
        ([event("retry", "1")] * 2, Result.REPEATED),
        ([event("heartbeat", "1")], Result.APPLIED),
        ([event("finished", "1", outcome="success"), event("started", "2")], Result.LATE),
        ([event("finished", i, outcome="success") for i in "12"], Result.LATE),
        ([event("evaluated", "1", scores={"vmaf": 90})], Result.UNKNOWN_JOB),
        ([event("started", "0"), *[event("evaluated", "1", scores={})] * 2], Result.REPEATED),
        (
            [event("finished", "1", outcome="success"), event("evaluated", "2", scores={})],
            Result.APPLIED,
        ),
        (
            [event("stage", str(i), stage="render", duration_s=1) for i in range(MAX_STAGES + 1)],
            Result.OVER_LIMIT,
        ),
    ],
)
def test_what_becomes_of_an_event_has_a_name(events: list[Event], result: Result) -> None:
    assert live(*events).result is result


def silent(seconds: float, **data: Any) -> Step | None:
    job = live(event("started", "1", 0, **data)).after
    assert job is not None
    return expire(job, moment(seconds), BUDGETS, 1000.0)


def outcome_of(step: Step | None) -> tuple[str, str] | None:
    if step is None or step.finished is None:
        return None
    return step.finished.outcome.value, step.finished.reason.value


@pytest.mark.parametrize(
    ("engine", "seconds", "expected"),
    [
        ("veo-engine", 89.9, None),
        ("veo-engine", 90, ("timeout", "deadline_ours")),
        ("other", 90, None),
        ("other", 599.9, None),
        ("other", 600, ("lost", "no_word")),
    ],
)
def test_time_ends_jobs(engine: str, seconds: float, expected: tuple[str, str] | None) -> None:
    assert outcome_of(silent(seconds, engine=engine)) == expected


def test_a_word_is_a_sign_of_life() -> None:
    job = live(event("started", "1", 0), event("heartbeat", "2", 599)).after
    assert job is not None
    assert expire(job, moment(1198), BUDGETS, 1000.0) is None
    assert outcome_of(expire(job, moment(1199), BUDGETS, 1000.0)) == ("lost", "no_word")


@pytest.mark.parametrize("engine", ["veo-engine", "other"])
def test_nothing_runs_out_that_began_before_we_listened(engine: str) -> None:
    job = live(event("started", "1", 0, engine=engine)).after
    assert job is not None
    limit = 90 if engine == "veo-engine" else 600
    assert expire(job, moment(5000 + limit - 1), BUDGETS, 6000.0) is None
    assert expire(job, moment(5000 + limit), BUDGETS, 6000.0) is not None


def test_a_job_that_ended_does_not_end_again() -> None:
    job = live(event("finished", "1", 0, outcome="success")).after
    assert job is not None
    assert expire(job, moment(10_000), BUDGETS, 1000.0) is None


def test_the_shorter_patience_wins() -> None:
    budgets = Budgets([Budget("*", "*", "request", 900), Budget("e", "*", "lost", 30)], 600)
    job = live(event("started", "1", 0, engine="e")).after
    assert job is not None
    assert outcome_of(expire(job, moment(2000), budgets, 1000.0)) == ("lost", "no_word")


STAGES = st.builds(
    lambda stage, seconds, times: (
        {"stage": stage.value, "duration_s": seconds}
        if times is None
        else {
            "stage": stage.value,
            "start": f"2026-03-01T12:00:{times[0]:02}Z",
            **({} if times[1] is None else {"end": f"2026-03-01T12:00:{times[0] + times[1]:02}Z"}),
        }
    ),
    st.sampled_from(Stage),
    st.floats(0, 100),
    st.none() | st.tuples(st.integers(0, 29), st.none() | st.integers(0, 29)),
)
KINDS: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.one_of(
    st.tuples(st.sampled_from(["submitted", "started", "heartbeat", "retry"]), st.just({})),
    st.tuples(st.just("stage"), STAGES),
    st.tuples(st.just("evaluated"), st.just({"scores": {"vmaf": 50}})),
    st.tuples(
        st.just("finished"),
        st.builds(lambda outcome: {"outcome": outcome.value}, st.sampled_from(Outcome)),
    ),
)


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Events of one job in any order, at any times, some of them more than once."""
    told = [
        event(kind, str(number), draw(st.integers(0, 120)), **data)
        for number, (kind, data) in enumerate(draw(st.lists(KINDS, max_size=12)))
    ]
    again = draw(st.lists(st.sampled_from(told), max_size=4)) if told else []
    return draw(st.permutations([*told, *again]))


def play(events: list[Event]) -> tuple[Job | None, list[FinishedJob]]:
    job: Job | None = None
    finished = []
    for one in events:
        step = advance(job, one)
        job = step.after or job
        finished += [step.finished] if step.finished is not None else []
    return job, finished


@given(histories())
def test_a_job_ends_exactly_once_whatever_comes(events: list[Event]) -> None:
    job, finished = play(events)
    if job is not None and job.end is None:
        assert finished == []
        step = expire(job, moment(100_000), BUDGETS, 1000.0)
        assert step is not None
        assert step.finished is not None
        finished.append(step.finished)
    assert len(finished) == (0 if job is None else 1)


@given(histories())
def test_an_event_that_comes_twice_changes_nothing(events: list[Event]) -> None:
    job: Job | None = None
    for one in events:
        job = advance(job, one).after or job
        again = advance(job, one)
        assert again.after == job
        assert again.finished is None
        assert again.retry is None
        assert again.scores is None or job is None
        assert again.stages == ()


@given(histories())
def test_stages_lie_within_their_job_one_after_the_other(events: list[Event]) -> None:
    _, finished = play([*events, event("finished", "end", 60, outcome="success")])
    (job,) = finished
    assert job.submitted_unix_nanoseconds <= job.ended_unix_nanoseconds
    if job.started_unix_nanoseconds is not None:
        assert job.started_unix_nanoseconds >= job.submitted_unix_nanoseconds
        assert job.started_unix_nanoseconds <= job.ended_unix_nanoseconds
    before = job.submitted_unix_nanoseconds
    for span in job.stages:
        assert before <= span.start_unix_nanoseconds <= span.end_unix_nanoseconds
        before = span.end_unix_nanoseconds
    assert before <= job.ended_unix_nanoseconds
    total = sum(span.end_unix_nanoseconds - span.start_unix_nanoseconds for span in job.stages)
    assert total <= job.ended_unix_nanoseconds - job.submitted_unix_nanoseconds
