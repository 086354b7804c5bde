# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A bad field that may be missing costs itself alone: the event is taken, and its sender told."""

from fractions import Fraction
from typing import Any

import pytest
import structlog.testing

from tests.jobs import NANO, NOON, Desk, event, moment, series, written
from tests.jobs.test_intake import post
from veo_client.vocabulary import Outcome, Reason
from veo_exporter.jobs import DROPPED_SEEDS, Event, OutputFile, Result
from veo_exporter.jobs.events import parse_event
from veo_exporter.jobs.payload import EvaluatedData, FinishedData, StageData


def read(said: dict[str, Any]) -> Event:
    parsed = parse_event(said, moment())
    assert isinstance(parsed, Event), parsed
    return parsed


def messages(said: dict[str, Any]) -> list[str]:
    return [omission.message for omission in read(said).omissions]


NULLS = [
    (
        "finished",
        {"outcome": "success"},
        ["reason", "outputs", "filtered_count", "error", "stage", "frame"],
    ),
    (
        "finished",
        {"outcome": "failed"},
        ["gpu_memory_peak_bytes", "gpus", "engine", "request", "pid"],
    ),
    ("retry", {}, ["reason", "attempt", "delay_s"]),
    ("stage", {"stage": "render", "duration_s": 1}, ["start", "end", "cache"]),
    ("submitted", {}, ["engine", "model", "variant", "request", "gpus", "pid"]),
]


@pytest.mark.parametrize(("kind", "needed", "nulls"), NULLS)
def test_null_means_absent(kind: str, needed: dict[str, Any], nulls: list[str]) -> None:
    without = read(written(kind, **needed))
    for name in nulls:
        assert read(written(kind, **needed, **{name: None})) == without
    assert read(written(kind, **needed, **dict.fromkeys(nulls))) == without
    attributes = dict.fromkeys(["time", "traceparent", "tracestate", "data_base64"])
    assert read(written(kind, **needed) | attributes) == without


def test_null_means_absent_within_a_field_too() -> None:
    nulls: dict[str, Any] = {
        "error": {"code": None, "message": None},
        "outputs": [{"path": None, "bytes": None}, {"path": "/a.mp4"}],
        "request": {"width": None, "fps": None, "duration_s": None, "prompt_chars": None},
    }
    found = read(written("finished", outcome="failed", **nulls))
    assert found.omissions == ()
    desk = Desk()
    desk.intake.take([found], (receipt := post(desk)))
    assert receipt.results == {Result.APPLIED: 1}
    (job,) = desk.finished
    assert (job.outputs, job.error_code, job.error_message) == (
        (OutputFile("", None), OutputFile("/a.mp4", None)),
        "",
        "",
    )


def test_an_event_of_a_file_needs_no_job() -> None:
    assert read(written("veo.video.probed", file="/a") | {"subject": None}).job_id == ""


def test_whole_floats_are_whole_numbers() -> None:
    # Some languages know no other numbers, and write 1920.0.
    request = {"width": 1920.0, "height": 1080.0, "fps": 24.0, "prompt_chars": 80.0}
    found = read(
        written(
            "finished", outcome="failed", request=request, pid=7.0, frame=3.0, filtered_count=0.0,
            error={"code": 503.0}, outputs=[{"path": "/a.mp4", "bytes": 7e3}],
        )
    )  # fmt: skip
    data = found.data
    assert found.omissions == ()
    assert isinstance(data, FinishedData)
    assert data.request is not None
    assert (data.request.width, data.request.height, data.request.fps) == (1920, 1080, Fraction(24))
    assert (data.request.prompt_chars, data.pid, data.frame, data.filtered_count) == (80, 7, 3, 0)
    assert data.outputs is not None
    assert data.error is not None
    assert (data.outputs[0].bytes, data.error.code) == (7000, 503)
    assert isinstance(data.error.code, int)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"reason": 503}, "data.reason: input should be a valid string, not 503"),
        ({"pid": True}, "data.pid: input should be a valid integer, not true"),
        ({"frame": -1}, "data.frame: input should be greater than or equal to 0, not -1"),
        ({"frame": 1.5}, "data.frame: input should be a valid integer, not 1.5"),
        ({"gpus": "GPU-1"}, "data.gpus: input should be a valid list, not 'GPU-1'"),
        ({"gpus": [7, "GPU-1"]}, "data.gpus.0: input should be a valid string, not 7"),
        (
            {"gpus": [None, "GPU-1", 8, 9]},
            "data.gpus.0: input should be a valid string, not null (and 2 more)",
        ),
        ({"gpus": ["GPU-1"] * 65}, "data.gpus: 65 items, and 64 are taken"),
        ({"engine": "e" * 101}, "data.engine: string should have at most 100 characters, not '" + "e" * 56 + "..."),
        ({"model": ""}, "data.model: string should have at least 1 character, not ''"),
        ({"request": [1920]}, "data.request must be a JSON object, not a JSON array"),
        ({"request": {"width": "1920"}}, "data.request.width: input should be a valid integer, not '1920'"),
        (
            {"request": {"fps": -24}},
            "data.request.fps: -24 must be a number from 0 up to 999999999, or a fraction as 24000/1001",
        ),
        (
            {"request": {"fps": "24/0"}},
            "data.request.fps: '24/0' must be a number from 0 up to 999999999, or a fraction as 24000/1001",
        ),
        ({"error": "boom"}, "data.error must be a JSON object, not 'boom'"),
        ({"error": {"code": [1]}}, "data.error.code: a JSON array must be a whole number or a text"),
        ({"error": {"code": True}}, "data.error.code: true must be a whole number or a text"),
        ({"error": {"message": {}}}, "data.error.message: input should be a valid string, not a JSON object"),
        ({"outputs": "/a.mp4"}, "data.outputs: input should be a valid list, not '/a.mp4'"),
        (
            {"outputs": [{"path": "/a", "bytes": -1}]},
            "data.outputs.0.bytes: input should be greater than or equal to 0, not -1",
        ),
        ({"outputs": ["/a.mp4"]}, "data.outputs.0 must be a JSON object, not '/a.mp4'"),
        ({"filtered_count": "1"}, "data.filtered_count: input should be a valid integer, not '1'"),
        (
            {"gpu_memory_peak_bytes": 1e16},
            "data.gpu_memory_peak_bytes: input should be less than or equal to 9007199254740992, not 10000000000000000",
        ),
    ],
)  # fmt: skip
def test_a_bad_field_costs_itself(bad: dict[str, Any], message: str) -> None:
    desk = Desk()
    receipt = post(
        desk, written("finished", "7", outcome="aborted") | {"data": {"outcome": "aborted", **bad}}
    )
    assert receipt.results == {Result.APPLIED: 1}
    assert [job.reason for job in desk.finished] == [Reason.UNSPECIFIED_ABORT]
    (lacking,) = receipt.lacking
    assert [omission.message for omission in lacking.omissions] == [message]
    ((kind, reason),) = desk.dropped
    assert (kind, desk.dropped[kind, reason]) == ("event_field", 1)
    assert (kind, reason) in DROPPED_SEEDS


def test_neighbours_of_bad_fields_are_taken() -> None:
    found = read(
        written(
            "finished", outcome="failed", engine="veo-engine", model=7, gpus=["GPU-1", 2, "GPU-3"], reason=503,
            request={"width": 1920, "height": "x", "fps": 24}, error={"code": {}, "message": "device lost"},
            outputs=[{"path": "/a.mp4", "bytes": "1"}, {"path": 2, "bytes": 3}, 4],
        )
    )  # fmt: skip
    data = found.data
    assert isinstance(data, FinishedData)
    assert (data.engine, data.model, data.gpus, data.reason) == (
        "veo-engine",
        None,
        ["GPU-1", "GPU-3"],
        None,
    )
    assert data.request is not None
    assert (data.request.width, data.request.height, data.request.fps) == (1920, None, Fraction(24))
    assert data.error is not None
    assert (data.error.code, data.error.message) == (None, "device lost")
    assert data.outputs is not None
    assert [(output.path, output.bytes) for output in data.outputs] == [
        ("/a.mp4", None),
        (None, 3),
        (None, None),
    ]
    assert sorted(omission.field for omission in found.omissions) == [
        "data.error.code",
        "data.gpus",
        "data.model",
        "data.outputs",
        "data.outputs.bytes",
        "data.outputs.path",
        "data.reason",
        "data.request.height",
    ]


def test_what_the_sender_wrote_stays_as_it_is() -> None:
    said = written("finished", outcome="failed", request={"width": "x"}, gpus=[1], outputs=[2])
    read(said)
    assert said["data"] == {
        "outcome": "failed",
        "request": {"width": "x"},
        "gpus": [1],
        "outputs": [2],
    }


def test_lists_that_are_too_long_are_cut_and_then_looked_at() -> None:
    outputs: list[object] = [{"path": f"/{number}.mp4"} for number in range(2000)]
    outputs[3] = 3
    found = read(written("finished", outcome="success", outputs=outputs))
    assert isinstance(found.data, FinishedData)
    assert found.data.outputs is not None
    assert len(found.data.outputs) == 64
    assert [omission.message for omission in found.omissions] == [
        "data.outputs: 2000 items, and 64 are taken",
        "data.outputs.3 must be a JSON object, not 3",
    ]


@pytest.mark.parametrize(
    ("outputs", "outcome"),
    [
        # Something came out that nobody can name: the job is not empty.
        ([7], Outcome.SUCCESS),
        ([{"path": "/a", "bytes": 0}, 7], Outcome.SUCCESS),
        ([{"path": "/a", "bytes": 0}, {"path": 7, "bytes": 9}], Outcome.SUCCESS),
        ([{"path": "/a", "bytes": "9"}], Outcome.SUCCESS),
        ([{"path": "/a", "bytes": 0}], Outcome.EMPTY),
        ([], Outcome.EMPTY),
    ],
)
def test_what_is_left_out_makes_no_success_empty(outputs: list[object], outcome: Outcome) -> None:
    desk = Desk()
    post(desk, written("finished", outcome="success", outputs=outputs))
    assert [job.outcome for job in desk.finished] == [outcome]


def test_of_a_text_without_end_the_beginning_is_taken() -> None:
    found = read(written("finished", outcome="failed", reason="CUDA out of memory" + "x" * 3000))
    assert isinstance(found.data, FinishedData)
    assert found.data.reason == "CUDA out of memory" + "x" * 1982
    assert [omission.message for omission in found.omissions] == [
        "data.reason: 3018 characters, and 2000 are taken"
    ]


@pytest.mark.parametrize(
    ("said", "seconds", "message"),
    [
        ({"duration_s": 5, "start": "yesterday"}, 5, "data.start: 'yesterday' is no RFC 3339 time"),
        ({"duration_s": 5, "end": 7}, 5, "data.end: 7 is no RFC 3339 time"),
        ({"duration_s": 5, "cache": "tepid"}, 5, "data.cache: string should match pattern"),
        (
            {"duration_s": "5", "start": "2026-03-01T11:59:50Z", "end": "2026-03-01T11:59:56Z"},
            6,
            "data.duration_s: input should be a valid number, not '5'",
        ),
    ],
)
def test_a_stage_that_still_tells_its_length_is_taken(
    said: dict[str, Any], seconds: int, message: str
) -> None:
    found = read(written("stage", stage="render", **said))
    assert [omission.message[: len(message)] for omission in found.omissions] == [message]
    assert isinstance(found.data, StageData)
    desk = Desk()
    post(desk, written("stage", stage="render", **said) | {"subject": "j"})
    total = series("veo_job_stage_duration_seconds_sum", engine="unknown", stage="render")
    assert desk.page()[total] == seconds


def test_one_score_costs_no_other() -> None:
    found = read(written("evaluated", scores={"vmaf": 101, "clip": 80}))
    assert isinstance(found.data, EvaluatedData)
    assert (found.data.scores.vmaf, found.data.scores.clip) == (None, 80)
    assert messages(written("evaluated", scores={}, pid="x")) == [
        "data.pid: input should be a valid integer, not 'x'"
    ]


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        (
            {"time": "yesterday"},
            "time: 'yesterday' is no RFC 3339 time with an offset, such as 2026-03-01T12:00:00.250Z",
        ),
        ({"time": "2026-02-31T00:00:00Z"}, "time: '2026-02-31T00:00:00Z' day is out of range for month"),
        ({"time": 1772366400}, "time: input should be a valid string, not 1772366400"),
        ({"traceparent": 7}, "traceparent: input should be a valid string, not 7"),
    ],
)  # fmt: skip
def test_an_attribute_that_says_not_whose_it_is_costs_itself(
    attribute: dict[str, Any], message: str
) -> None:
    said = written("finished", outcome="success") | attribute
    assert messages(said) == [message]
    # It happened when it came.
    assert read(said).unix_nanoseconds == NOON * NANO
    assert not read(said).bad_time


def test_what_a_line_lacks_is_told_once_and_counted_each_time() -> None:
    desk = Desk()
    said = written("finished", job="", source="/var/log/a.log", outcome="aborted", frame="many")
    with structlog.testing.capture_logs() as logged:
        for number in range(3):
            assert desk.intake.take_line(said | {"id": str(number)}) is None
            assert desk.intake.take_line(said | {"type": "veo.job.begun"}) is not None
    assert len(desk.finished) == 3
    assert desk.dropped == {("event_field", "bad_value"): 3, ("event", "unknown_type"): 3}
    assert [(line["log"], line["fault"][:40]) for line in logged] == [
        ("/var/log/a.log", "data.frame: input should be a valid inte"),
        ("/var/log/a.log", "type: 'veo.job.begun' is none of veo.job"),
    ]


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (True, "job lost, as its sender says"),
        (False, "job lost: no word of it for longer than its budget"),
    ],
)
def test_who_says_that_a_job_is_lost_is_told(told: bool, sentence: str) -> None:
    desk = Desk()
    with structlog.testing.capture_logs() as logged:
        if told:
            post(desk, written("finished", outcome="lost"))
        else:
            post(desk, written("started"))
            desk.clock.seconds = 601
            desk.intake.tick()
    (line,) = logged
    assert (line["event"], line["engine"], line["model"]) == (sentence, "unknown", "unknown")
    assert event("heartbeat").omissions == ()
