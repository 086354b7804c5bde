# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes to events: what is read, and what is said of the rest."""

import base64
import json
from contextlib import suppress
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.jobs import NANO, NOON, TRACEPARENT, moment, written
from veo_client.vocabulary import EventType, Outcome, Stage
from veo_exporter.jobs.events import (
    MAX_TRACE_CONTEXT_CHARS,
    Event,
    parse_binary,
    parse_event,
    parse_structured,
)
from veo_exporter.jobs.faults import BadBody, EventFault, Refused
from veo_exporter.jobs.payload import Data, FinishedData, StageData, unix_nanoseconds
from veo_exporter.traces.context import parse_traceparent

TYPES = [
    "veo.job.submitted",
    "veo.job.started",
    "veo.job.stage",
    "veo.job.heartbeat",
    "veo.job.retry",
    "veo.job.finished",
    "veo.job.evaluated",
    "veo.video.probed",
    "veo.queue.reading",
    "veo.engine.reading",
]
STAGES = [
    "queue",
    "prompt",
    "text_encode",
    "image_encode",
    "weights_load",
    "denoise",
    "render",
    "vae_encode",
    "vae_decode",
    "postprocess",
    "encode_mux",
    "upload",
    "other",
]


def one(said: object) -> Event | Refused:
    parsed = parse_structured(json.dumps(said).encode(), moment(), 10)
    return parsed.events[0] if parsed.events else parsed.refused[0]


def read(said: object) -> Event:
    event = one(said)
    assert isinstance(event, Event), event
    return event


def test_everything_that_an_event_says_is_read() -> None:
    event = read(
        written(
            "finished",
            "e-7",
            job="job-7",
            source="gateway",
            time="2026-03-01T11:59:58.25+00:00",
            traceparent=TRACEPARENT,
            engine="veo-engine",
            request={"width": 1920, "height": 1080, "fps": "24000/1001", "duration_s": 6.2},
            gpus=["GPU-1"],
            outcome="success",
            outputs=[{"path": "/out/7.mp4", "bytes": 10}],
            something_new={"a": 1},
        )
    )
    assert (event.source, event.event_id, event.job_id) == ("gateway", "e-7", "job-7")
    assert event.type is EventType.JOB_FINISHED
    assert event.unix_nanoseconds == NOON * NANO - 1_750_000_000
    assert event.traceparent == TRACEPARENT
    data = event.data
    assert isinstance(data, FinishedData)
    assert data.outcome is Outcome.SUCCESS
    assert data.outputs is not None
    assert data.outputs[0].path == "/out/7.mp4"
    assert data.request is not None
    assert data.request.fps == Fraction(24000, 1001)
    # 24 frames a second for 6.2 s are 148.8 frames; the float next to 6.2 would make it 148.80000000000001.
    assert data.request.duration_s == Fraction(31, 5)


@pytest.mark.parametrize(
    ("said", "fault", "message"),
    [
        ([1], "not_an_event", "the event must be a JSON object, not 1"),
        ("x", "not_an_event", "the event must be a JSON object, not 'x'"),
        (
            {"specversion": "1.0"},
            "not_an_event",
            "id is missing; source is missing; type is missing",
        ),
        (
            written("started") | {"specversion": "0.3"},
            "not_an_event",
            "specversion: input should be '1.0', not '0.3'",
        ),
        (
            written("started") | {"id": 7},
            "not_an_event",
            "id: input should be a valid string, not 7",
        ),
        (
            written("started", time="1969-12-31T23:59:59Z"),
            "not_an_event",
            "time: '1969-12-31T23:59:59Z' lies before 1970",
        ),
        (
            written("started") | {"id": None},
            "not_an_event",
            "id: input should be a valid string, not null",
        ),
        (
            written("started", time="2025-01-01T00:00:00Z"),
            "not_an_event",
            "time: '2025-01-01T00:00:00Z' lies more than 30 days back: is the sender's clock right?",
        ),
        (
            written("veo.job.begun"),
            "unknown_type",
            f"type: 'veo.job.begun' is none of {', '.join(TYPES)}",
        ),
        (written("started", job=""), "no_job", "subject: wants the job's id"),
        (
            written("stage", stage="rendering", duration_s=1),
            "unknown_stage",
            f"data.stage: 'rendering' is none of {', '.join(STAGES)}",
        ),
        (written("stage", duration_s=1), "unknown_stage", "data.stage is missing"),
        (
            written("finished", outcome="ok"),
            "unknown_outcome",
            "data.outcome: 'ok' is none of success, failed, timeout, aborted, empty, filtered, cancelled, lost",
        ),
        (
            written("stage", stage="render"),
            "bad_data",
            "data: wants duration_s, or start and end; start alone means under way",
        ),
        (
            written("stage", stage="render", duration_s=-1),
            "bad_data",
            "data.duration_s: input should be greater than or equal to 0, not -1",
        ),
        (
            written("stage", stage="render", duration_s="5"),
            "bad_data",
            "data.duration_s: input should be a valid number, not '5'",
        ),
        (
            written(
                "stage", stage="render", start="2026-03-01T12:00:01Z", end="2026-03-01T12:00:00Z"
            ),
            "bad_data",
            "data: ends before it starts",
        ),
        (
            # What it was about cannot be said, whatever else is wrong; and that is not told.
            written("finished", outcome=None, pid=True, reason=503, gpus="GPU-1"),
            "unknown_outcome",
            "data.outcome: null is none of success, failed, timeout, aborted, empty, filtered, cancelled, lost",
        ),
        (
            # A start alone would mean that it is under way.
            written("stage", stage="render", start="2026-03-01T11:59:55Z", duration_s="5"),
            "bad_data",
            "data.duration_s: input should be a valid number, not '5'",
        ),
        (
            written("evaluated", scores={"vmaf": 101}),
            "bad_data",
            "data.scores.vmaf: input should be less than or equal to 100, not 101",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_what_is_wrong_is_said_in_words(said: object, fault: str, message: str) -> None:
    said = said[0] if isinstance(said, list) else said
    refused = one(said)
    assert isinstance(refused, Refused)
    assert (refused.fault.value, refused.message) == (fault, message)


def test_one_bad_event_costs_no_other() -> None:
    body = [written("started", "1"), written("stage", "2", stage="?", duration_s=1), 7]
    body.append(written("heartbeat", "4"))
    parsed = parse_structured(json.dumps(body).encode(), moment(), 10)
    assert [event.event_id for event in parsed.events] == ["1", "4"]
    assert [(refused.index, refused.event_id) for refused in parsed.refused] == [(1, "2"), (2, "")]


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", EventFault.NOT_JSON),
        (b"hello", EventFault.NOT_JSON),
        (b'{"a": NaN}', EventFault.NOT_JSON),
        (b"\xff\xfe", EventFault.NOT_JSON),
        (b'"\\ud800"', EventFault.NOT_JSON),
        (b"[" * 100_000, EventFault.NOT_JSON),
        (b"9" * 100_000, EventFault.NOT_JSON),
        (b"[" + b",".join([b"{}"] * 11) + b"]", EventFault.TOO_MANY),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_whole(body: bytes, fault: EventFault) -> None:
    with pytest.raises(BadBody) as refused:
        parse_structured(body, moment(), 10)
    assert refused.value.fault is fault


def test_binary_mode_has_its_attributes_in_headers() -> None:
    headers = {
        "Content-Type": "application/json",
        "Ce-Specversion": "1.0",
        "ce-id": "1",
        "ce-source": "worker/1",
        "ce-type": "veo.job.stage",
        "ce-subject": "job-1",
    }
    parsed = parse_binary(headers, b'{"stage": "render", "duration_s": 5}', moment())
    data = parsed.events[0].data
    assert isinstance(data, StageData)
    assert (data.stage, data.duration_s) == (Stage.RENDER, 5)
    assert parse_binary(headers, b"[1]", moment()).refused[0].fault is EventFault.NOT_AN_EVENT


@pytest.mark.parametrize(
    "traceparent",
    [
        TRACEPARENT,
        "garbage",
        TRACEPARENT.upper(),
        "00-" + "0" * 32 + "-00f067aa0ba902b7-01",
        "ff" + TRACEPARENT[2:],
        TRACEPARENT + "-more",
    ],
)
def test_a_traceparent_is_handed_on_as_it_was_sent(traceparent: str) -> None:
    # Whether it can be read is for one place to say, which is where traces are made.
    event = read(written("started", traceparent=traceparent) | {"tracestate": "vendor=1"})
    assert (event.traceparent, event.tracestate) == (traceparent, "vendor=1")


def test_a_traceparent_without_end_costs_its_trace_and_not_its_event() -> None:
    event = read(written("started", traceparent=TRACEPARENT + "-" * 100_000))
    assert len(event.traceparent) == MAX_TRACE_CONTEXT_CHARS
    assert parse_traceparent(event.traceparent) is None


NO_NUMBER = "not JSON: {} is no JSON number"
NO_TEXT = "not JSON: a text holds half a surrogate pair, or bytes that are no UTF-8"


@pytest.mark.parametrize(
    ("spoilt", "message"),
    [
        (b'{"id": "2", "data": {"duration_s": NaN}}', NO_NUMBER.format("NaN")),
        (b'{"id": "2", "data": [[-Infinity]]}', NO_NUMBER.format("-Infinity")),
        (b'{"id": "2", "data": {"reason": "\\ud800"}}', NO_TEXT),
        (b'{"id": "2", "\\udfff": 1}', NO_TEXT),
        (b'{"id": "2", "source": "caf\xe9"}', NO_TEXT),
        (b'{"id": "2", "data": ' + b"9" * 10_000 + b"}", "not JSON: a number has no end"),
        (b"[" * 150 + b"NaN" + b"]" * 150, NO_NUMBER.format("NaN")),
    ],
    ids=range(7),
)
def test_what_is_no_json_in_one_event_costs_that_one(spoilt: bytes, message: str) -> None:
    good = [json.dumps(written("started", name)).encode() for name in "13"]
    parsed = parse_structured(b"[" + b",".join([good[0], spoilt, good[1]]) + b"]", moment(), 10)
    assert [event.event_id for event in parsed.events] == ["1", "3"]
    assert [event.index for event in parsed.events] == [0, 2]
    [refused] = parsed.refused
    assert (refused.index, refused.fault, refused.message) == (1, EventFault.NOT_JSON, message)
    assert refused.event_id == ("2" if spoilt.startswith(b"{") else "")


@pytest.mark.parametrize(
    ("spoilt", "message", "event_id"),
    [
        (b'{"id": "2", "b": 01}', "expecting ',' delimiter, at character 19 of it", "2"),
        (b'{"id": "2", "b": "\\x"}', "invalid \\escape, at character 19 of it", "2"),
        # The id of a part of it is not its own.
        (b'{"a": {"id": "9"}, "b": "\n"}', "invalid control character at, at character 26 of it", ""),
        (b'{"b": [1, {}, "]"], "id" : "2",}', "expecting property name", "2"),
        (b'{"id": "2", "b": yes}', "expecting value, at character 18 of it", "2"),
        (b"{'id': '2'}", "expecting property name", ""),
        (b"yes", "expecting value, at character 1 of it", ""),
        (b"", "expecting value, at character 1 of it", ""),
        (b'{"id": "2"} 7', "something stands behind its end, at character 13 of it", ""),
        (b"[" * 5_000 + b"]" * 5_000, "it is nested too deeply", ""),
    ],
    ids=range(10),
)  # fmt: skip
def test_an_event_that_is_not_quite_json_costs_that_one(
    spoilt: bytes, message: str, event_id: str
) -> None:
    good = [json.dumps(written("started", name, model="}, {")).encode() for name in "13"]
    for parts, ids, index in (
        ([good[0], spoilt, good[1]], ["1", "3"], 1),
        ([spoilt, *good], ["1", "3"], 0),
        ([*good, spoilt], ["1", "3"], 2),
    ):
        parsed = parse_structured(b" [" + b",\n".join(parts) + b" ] ", moment(), 10)
        assert [event.event_id for event in parsed.events] == ids
        [refused] = parsed.refused
        assert (refused.index, refused.fault) == (index, EventFault.NOT_JSON)
        assert refused.message.startswith("not JSON: " + message)
        assert refused.event_id == (event_id or ("2" if message.startswith("something") else ""))


@pytest.mark.parametrize(
    "spoilt",
    [
        # Where it ends, or what comes next, is anybody's guess.
        b'{"b": 01',
        b'{"b": 01]}',
        b'{"b": "01}',
        b'{"b": "x"y"}',
        b'{"b": [1}',
        b'{"b": 01}}',
    ],
)
def test_a_batch_whose_brackets_or_quotes_do_not_match_is_refused_whole(spoilt: bytes) -> None:
    good = [json.dumps(written("started", name)).encode() for name in "13"]
    with pytest.raises(BadBody) as refused:
        parse_structured(b"[" + b",".join([good[0], spoilt, good[1]]) + b"]", moment(), 10)
    assert refused.value.fault is EventFault.NOT_JSON


def test_what_stands_between_two_quotes_too_many_is_not_swallowed() -> None:
    # Each of the outer ones has a quote too many: what lies between would be taken for a text.
    body = b'[{"a": "x"y"}, {"id": "2"}, {"b": "q"r"}]'
    with pytest.raises(BadBody):
        parse_structured(body, moment(), 10)


def test_a_batch_that_would_take_long_to_look_at_is_refused_whole() -> None:
    with pytest.raises(BadBody) as refused:
        parse_structured(b'[{"b": 01, "c": [' + b'"",' * 200_000 + b"1]}]", moment(), 10)
    assert refused.value.fault is EventFault.NOT_JSON


def test_what_is_left_of_a_batch_is_bounded_all_the_same() -> None:
    with pytest.raises(BadBody) as refused:
        parse_structured(b"[" + b",".join([b"NaN"] * 11) + b"]", moment(), 10)
    assert refused.value.fault is EventFault.TOO_MANY


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("job-1", "job-1"),
        ("Eug%C3%A8ne%20%22x%22", 'Eug\u00e8ne "x"'),
        ("100%25", "100%"),
        # Not an encoding: two digits have to follow.
        ("50%", "50%"),
        ('"a \\"b\\" c"', 'a "b" c'),
        ("a+b", "a+b"),
    ],
)
def test_headers_are_percent_encoded(sent: str, meant: str) -> None:
    headers = {
        "ce-specversion": "1.0",
        "ce-id": "1",
        "ce-source": "worker/1",
        "ce-type": "veo.job.started",
        "ce-subject": sent,
    }
    assert parse_binary(headers, b"", moment()).events[0].job_id == meant


def test_a_header_that_is_no_utf8_is_told() -> None:
    headers = {"ce-specversion": "1.0", "ce-id": "1", "Ce-Source": "caf%E9", "ce-type": "x"}
    [refused] = parse_binary(headers, b"", moment()).refused
    assert (refused.fault, refused.message) == (
        EventFault.NOT_AN_EVENT,
        "ce-source: its percent-encoding is no UTF-8",
    )


def test_data_may_come_as_base64() -> None:
    encoded = base64.b64encode(b'{"stage": "render", "duration_s": 5}').decode()
    said = written("stage") | {"data_base64": encoded}
    del said["data"]
    data = read(said).data
    assert isinstance(data, StageData)
    assert (data.stage, data.duration_s) == (Stage.RENDER, 5)


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        (
            base64.b64encode(b"[1]").decode(),
            "data_base64: is not the base64 of a JSON object: send it as data",
        ),
        (
            base64.b64encode(b"\xff").decode(),
            "data_base64: is not the base64 of a JSON object: send it as data",
        ),
        ("*", "data_base64: is not the base64 of a JSON object: send it as data"),
        ("\u00e9", "data_base64: is not the base64 of a JSON object: send it as data"),
    ],
)
def test_base64_of_something_else_is_refused(encoded: str, message: str) -> None:
    said = written("started") | {"data_base64": encoded}
    del said["data"]
    refused = one(said)
    assert isinstance(refused, Refused)
    assert (refused.fault, refused.message) == (EventFault.BAD_DATA, message)


def test_data_comes_once() -> None:
    refused = one(written("started") | {"data_base64": "e30="})
    assert isinstance(refused, Refused)
    assert refused.message == "data_base64: stands beside data: send one of them"


@pytest.mark.parametrize("kind", ["veo.queue.reading", "veo.engine.reading"])
def test_what_is_not_taken_yet_is_said_so(kind: str) -> None:
    refused = one(written(kind, depth=3))
    assert isinstance(refused, Refused)
    assert (refused.fault.value, refused.message) == (
        "not_taken",
        f"type: {kind} is not taken yet: do not send it",
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("veo\0engine", "veo\ufffdengine"),
        ("a\nb\x7f\x85\u2028c", "a\ufffdb\ufffd\ufffd\ufffdc"),
        # No control characters: a space that does not break, and letters of any kind.
        ("veo\u00a0\u00e9ngine", "veo\u00a0\u00e9ngine"),
    ],
)
def test_control_characters_in_a_name_are_replaced(name: str, shown: str) -> None:
    data = read(written("started", engine=name, model=name, variant=name, gpus=[name])).data
    assert isinstance(data, Data)
    assert (data.engine, data.model, data.variant, data.gpus) == (shown, shown, shown, [shown])


def test_a_clock_that_is_ahead_is_not_believed() -> None:
    event = read(written("started", time="2026-03-01T12:00:05Z"))
    assert event.unix_nanoseconds == NOON * NANO


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T01:00:00+01:00", 0),
        ("2026-03-01t12:00:00z", NOON * NANO),
        ("2026-03-01 12:00:00.000000001Z", NOON * NANO + 1),
        ("2026-03-01T12:00:00.1234567891Z", NOON * NANO + 123_456_789),
        ("2026-03-01T06:30:00.5-05:30", NOON * NANO + NANO // 2),
    ],
)
def test_times_are_read_to_the_nanosecond(text: str, expected: int) -> None:
    assert unix_nanoseconds(text) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    "engine", "request", "gpus", "pid", "stage", "duration_s", "start", "end", "reason", "outcome",
    "outputs", "error", "scores", "filtered_count",
]  # fmt: skip
EVENTISH = st.fixed_dictionaries(
    {},
    optional={
        "specversion": st.just("1.0") | JSON,
        "id": st.just("1") | JSON,
        "source": st.just("s") | JSON,
        "type": st.sampled_from([kind.value for kind in EventType]) | JSON,
        "subject": st.just("j") | JSON,
        "time": st.just("2026-03-01T12:00:00Z") | JSON,
        "traceparent": JSON,
        "data": st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4) | JSON,
    },
)


@given(st.binary(max_size=200))
@example(b'[{"specversion":"1.0"}]')
def test_bytes_raise_nothing_but_their_own_fault(body: bytes) -> None:
    with suppress(BadBody):
        parsed = parse_structured(body, moment(), 10)
        assert all(refused.message for refused in parsed.refused)


@given(EVENTISH)
def test_events_raise_nothing_but_their_own_fault(said: dict[str, Any]) -> None:
    parsed = parse_event(said, moment())
    assert isinstance(parsed, Event | Refused)
    if isinstance(parsed, Refused):
        assert parsed.message
        assert len(parsed.message) < 1000
