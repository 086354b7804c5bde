# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The room's front, over a real OTLP exporter and a receiver on the loopback."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import structlog.testing
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.traces.examples import SECOND, TRACEPARENT, UNREADABLE, Job, Report, after
from tools.programs import free_port
from veo_exporter.traces import Tracing, open_emitter, traces_url
from veo_exporter.traces.sdk_log import MAX_REMEMBERED, SdkLog
from veo_exporter.traces.tracing import SENT_AT_ONCE

PATIENCE_SECONDS = 30.0
BROKEN = "00-zz-01"
UNSAMPLED = TRACEPARENT[:-2] + "02"


class Receiver:
    """Takes what is posted to it."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, ExportTraceServiceRequest]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # noqa: N802
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((self.path, ExportTraceServiceRequest.FromString(body)))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def names(self) -> list[str]:
        return [span.name for span in self.spans()]

    def spans(self) -> list[Span]:
        return [
            span
            for _, request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


def tracing(
    endpoint: str | None,
    counts: Counter[str],
    *,
    keep_unsampled: bool = True,
    waiting_limit: int = 8,
) -> Tracing:
    return Tracing(
        open_emitter(
            traces_url(endpoint, {}),
            node="n1",
            version="1.2.3",
            simulated=False,
            queue_limit=2048,
            exported=lambda spans: counts.update(exported=spans),
            failed=lambda spans: counts.update(failed=spans),
            dropped=lambda reason, spans: counts.update({reason: spans}),
        ),
        patience_seconds=30,
        waiting_limit=waiting_limit,
        keep_unsampled=keep_unsampled,
        context_broken=lambda: counts.update(broken=1),
    )


def test_a_trace_leaves_with_its_probe(receiver: Receiver) -> None:
    counts: Counter[str] = Counter()
    room = tracing(receiver.url + "/", counts)
    room.finished(Job(), ["/srv/videos/out.mp4"], 0.0)
    parent = room.parent_of(Job())
    room.probed(parent, "/srv/videos/other.mp4", Report(), 1, 2)
    # Others' files, one of them under no job at all.
    for stranger in (TRACEPARENT, BROKEN, "", None):
        room.probed(stranger, "/srv/videos/out.mp4", Report(), 1, 2)
    room.probed(parent, "/srv/videos/out.mp4", Report(), after(12), after(13))
    room.stop(PATIENCE_SECONDS)
    assert sorted(receiver.names()) == [
        "probe_video",
        "process video_jobs",
        "queue",
        "render",
        "weights_load",
    ]
    assert {path for path, _ in receiver.requests} == {"/v1/traces"}
    assert counts == {"exported": 5}


def test_patience_and_the_end_let_traces_go_without_their_probes(receiver: Receiver) -> None:
    counts: Counter[str] = Counter()
    room = tracing(receiver.url, counts)
    a, b = Job(job_id="a"), Job(job_id="b")
    room.finished(a, ["/a"], 0.0)
    room.finished(b, ["/b", "/c"], 20.0)
    assert room.tick(30.0) is False
    room.probed(room.parent_of(a), "/a", UNREADABLE, 0, SECOND)
    room.probed(room.parent_of(b), "/b", UNREADABLE, 0, SECOND)
    room.stop(PATIENCE_SECONDS)
    assert Counter(receiver.names())["process video_jobs"] == 2
    assert Counter(receiver.names())["probe_video"] == 1


def test_jobs_that_name_one_file_have_each_its_own_probe(receiver: Receiver) -> None:
    counts: Counter[str] = Counter()
    room = tracing(receiver.url, counts)
    a, b = Job(job_id="a", traceparent=TRACEPARENT), Job(job_id="b", traceparent=TRACEPARENT)
    for job in (a, b):
        room.finished(job, ["/out"], 0.0)
    # The same trace, and each job's verdict under its own span.
    room.probed(room.parent_of(a), "/out", UNREADABLE, 0, SECOND)
    room.probed(room.parent_of(b), "/out", Report(), 0, SECOND)
    room.stop(PATIENCE_SECONDS)
    spans = receiver.spans()
    jobs = {
        span.span_id: value.value.string_value
        for span in spans
        for value in span.attributes
        if value.key == "videogen.job.id"
    }
    verdicts = {
        jobs[span.parent_span_id]: value.value.string_value
        for span in spans
        for value in span.attributes
        if span.name == "probe_video" and value.key == "videogen.video.verdict"
    }
    assert verdicts == {"a": "error", "b": "defective"}


def test_many_that_are_overdue_are_sent_a_few_at_a_time(receiver: Receiver) -> None:
    counts: Counter[str] = Counter()
    room = tracing(receiver.url, counts, waiting_limit=SENT_AT_ONCE + 1)
    for number in range(SENT_AT_ONCE + 1):
        room.finished(Job(job_id=str(number), stages=()), ["/out"], 0.0)
    assert [room.tick(29.9), room.tick(30.0), room.tick(30.0)] == [False, True, False]
    room.stop(PATIENCE_SECONDS)
    assert counts == {"exported": SENT_AT_ONCE + 1}


def test_while_it_is_off_there_is_nothing() -> None:
    counts: Counter[str] = Counter()
    room = tracing(None, counts)
    assert not room.on
    room.finished(Job(traceparent=BROKEN), ["/a"], 0.0)
    room.probed(TRACEPARENT, "/a", Report(), 0, 1)
    room.tick(1e9)
    assert room.exemplar(Job()) is None
    # There is no span of ours: what the caller named is the nearest one.
    assert room.parent_of(Job()) is None
    assert room.parent_of(Job(traceparent=UNSAMPLED)) == TRACEPARENT[:-2] + "00"
    assert room.parent_of(Job(traceparent=BROKEN)) is None
    assert room.parent_of(Job(traceparent=f"{TRACEPARENT}-more")) is None
    room.stop(1.0)
    # What callers send is as broken as before.
    assert counts == {"broken": 1}


def test_exemplars_lead_to_spans_that_will_be_there(receiver: Receiver) -> None:
    counts: Counter[str] = Counter()
    room = tracing(receiver.url, counts)
    exemplar = room.exemplar(Job(traceparent=UNSAMPLED))
    assert exemplar is not None
    room.finished(Job(traceparent=UNSAMPLED), [], 0.0)
    room.stop(PATIENCE_SECONDS)
    (_, request) = receiver.requests[0]
    (root,) = (
        span
        for span in request.resource_spans[0].scope_spans[0].spans
        if span.name == "process video_jobs"
    )
    assert (root.trace_id.hex(), root.span_id.hex()) == (exemplar["trace_id"], exemplar["span_id"])


def test_the_callers_decision_may_be_followed(receiver: Receiver) -> None:
    counts: Counter[str] = Counter()
    room = tracing(receiver.url, counts, keep_unsampled=False)
    assert room.exemplar(Job(traceparent=UNSAMPLED)) is None
    assert room.exemplar(Job(traceparent=TRACEPARENT)) is not None
    assert room.exemplar(Job()) is not None
    room.finished(Job(traceparent=UNSAMPLED), [], 0.0)
    room.stop(PATIENCE_SECONDS)
    assert receiver.names() == []


def test_without_a_collector_the_end_takes_a_second() -> None:
    counts: Counter[str] = Counter()
    room = tracing(f"http://127.0.0.1:{free_port()}", counts)
    room.finished(Job(), [], 0.0)
    begun = time.monotonic()
    room.stop(1.0)
    assert time.monotonic() - begun < 5
    assert counts == {"shutdown": 4}


@pytest.mark.parametrize(
    ("endpoint", "environment", "url"),
    [
        (None, {}, None),
        ("http://c:4318", {}, "http://c:4318/v1/traces"),
        ("http://c:4318/", {}, "http://c:4318/v1/traces"),
        ("http://c/otlp/v1/traces", {}, "http://c/otlp/v1/traces"),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://d"}, ""),
        (None, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://d"}, ""),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, None),
        ("http://c", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://d"}, "http://c/v1/traces"),
        ("http://c", {"OTEL_SDK_DISABLED": "True"}, None),
    ],
)
def test_where_spans_go(
    endpoint: str | None, environment: Mapping[str, str], url: str | None
) -> None:
    assert traces_url(endpoint, environment) == url


def record(message: str, created: float, *args: object) -> logging.LogRecord:
    made = logging.LogRecord("opentelemetry.sdk", logging.WARNING, "", 0, message, args, None)
    made.created = created
    return made


def test_the_sdk_repeats_itself_and_we_do_not() -> None:
    handler = SdkLog()
    with structlog.testing.capture_logs() as lines:
        for second in range(400):
            handler.handle(record("retrying in %.2fs", float(second), float(second)))
        handler.handle(record("something else", 400.0))
    assert [line["event"] for line in lines] == [
        "retrying in 0.00s",
        "retrying in 300.00s",
        "something else",
    ]
    assert {line["log_level"] for line in lines} == {"warning"}


def test_what_the_sdk_has_said_is_not_remembered_without_end() -> None:
    handler = SdkLog()
    with structlog.testing.capture_logs():
        for number in range(3 * MAX_REMEMBERED):
            handler.handle(record(f"sentence {number}", 0.0))
    assert len(handler._said) <= MAX_REMEMBERED
