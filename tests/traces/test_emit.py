# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Plans through the real SDK, to an exporter that keeps them, or one that fails."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog.testing
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tests.traces.examples import (
    NOON,
    PARENT_ID,
    TRACE_ID,
    TRACEPARENT,
    Again,
    File,
    Job,
    after,
    run,
)
from veo_client.vocabulary import Outcome, Reason, Stage
from veo_exporter.traces import identity_of, plan_trace
from veo_exporter.traces.emit import Emitter, Tally

PATIENCE_SECONDS = 30.0


@dataclass
class Bench:
    """An emitter and what it counts."""

    exporter: SpanExporter
    queue_limit: int = 512
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.emitter = Emitter(
            self.exporter,
            resource={
                "service.name": "veo-exporter",
                "host.name": "n1",
                "videogen.simulated": True,
            },
            version="1.2.3",
            queue_limit=self.queue_limit,
            tally=Tally(
                exported=lambda spans: self.counts.update(exported=spans),
                failed=lambda spans: self.counts.update(failed=spans),
                dropped=lambda reason, spans: self.counts.update({reason: spans}),
            ),
        )

    def sent(self, job: Job) -> dict[str, ReadableSpan]:
        """A job's spans by name, as the SDK has them."""
        assert isinstance(self.exporter, InMemorySpanExporter)
        self.emitter.emit(plan_trace(job))
        self.emitter.flush()
        return {span.name: span for span in self.exporter.get_finished_spans()}


class Refusing(SpanExporter):
    """A Collector that takes nothing, or waits before it does."""

    def __init__(self, wait: Callable[[], Any] = lambda: None) -> None:
        self.well = False
        self._wait = wait

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._wait()
        return SpanExportResult.SUCCESS if self.well else SpanExportResult.FAILURE

    def shutdown(self) -> None:
        pass


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench(InMemorySpanExporter())
    yield made
    made.emitter.stop(1.0)


def test_spans_have_the_ids_and_times_of_the_plan(bench: Bench) -> None:
    job = Job(traceparent=TRACEPARENT, tracestate="vendor=1,other=2")
    spans = bench.sent(job)
    root, render = spans["process video_jobs"], spans["render"]
    assert root.context is not None
    assert render.context is not None
    assert root.parent is not None
    assert root.context.trace_id == render.context.trace_id == TRACE_ID
    assert root.context.span_id == identity_of(job).span_id
    assert root.context.trace_state.to_header() == "vendor=1,other=2"
    assert (root.parent.span_id, root.parent.is_remote) == (PARENT_ID, True)
    assert render.parent == root.context
    assert (root.start_time, root.end_time) == (NOON, after(12))
    assert (render.start_time, render.end_time) == (after(4), after(11))
    assert (root.kind, render.kind) == (SpanKind.CONSUMER, SpanKind.INTERNAL)
    assert root.attributes is not None
    assert root.attributes["videogen.job.id"] == "job-1"
    assert root.status.status_code is StatusCode.UNSET
    assert [link.context.span_id for link in root.links] == [PARENT_ID]
    assert bench.counts == {"exported": 4}


def test_the_resource_says_who_sends(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        bench.sent(Job())["render"].resource.attributes.items()
        >= {
            "service.name": "veo-exporter",
            "host.name": "n1",
            "videogen.simulated": True,
        }.items()
    )
    monkeypatch.setenv("OTEL_SERVICE_NAME", "videos")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=veo-0,host.name=n2")
    other = Bench(InMemorySpanExporter())
    attributes = other.sent(Job())["render"].resource.attributes
    other.emitter.stop(1.0)
    assert attributes["service.name"] == "videos"
    assert attributes["k8s.pod.name"] == "veo-0"
    assert attributes["host.name"] == "n2"


def test_errors_and_retries_are_told(bench: Bench) -> None:
    spans = bench.sent(
        Job(
            outcome=Outcome.TIMEOUT,
            reason=Reason.DEADLINE_OURS,
            retries=[Again(after(5), Reason.QUOTA, 1.0)],
        )
    )
    root = spans["process video_jobs"]
    assert root.status.status_code is StatusCode.ERROR
    assert root.attributes is not None
    assert root.attributes["error.type"] == "deadline_ours"
    assert [(event.name, event.timestamp) for event in root.events] == [("retry", after(5))]
    assert isinstance(bench.exporter, InMemorySpanExporter)
    finished = bench.exporter.get_finished_spans()
    assert Counter(span.name for span in finished if span.links) == {"attempt": 1}


def test_a_job_that_was_not_sampled_is_sent_all_the_same(bench: Bench) -> None:
    # Whether it should be was decided before.
    root = bench.sent(Job(traceparent=TRACEPARENT[:-2] + "00"))["process video_jobs"]
    assert root.context is not None
    assert root.context.trace_flags.sampled
    assert root.context.trace_id == TRACE_ID


def test_the_sdks_own_sampler_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
    bench = Bench(InMemorySpanExporter())
    assert bench.sent(Job()) == {}
    assert len(bench.sent(Job(traceparent=TRACEPARENT))) == 4
    bench.emitter.stop(1.0)
    assert bench.counts == {"exported": 4}


def test_what_cannot_be_encoded_costs_nothing_else(bench: Bench) -> None:
    hostile = Job(
        job_id="\ud800" + "x" * 5000,
        engine="\x00",
        tracestate="=,,=" * 2000,
        traceparent=TRACEPARENT,
        submitted_unix_nanoseconds=-5,
        ended_unix_nanoseconds=2**70,
        stages=[run(Stage.RENDER, 1e9, 1e9)],
        gpus=["\udfff"] * 100,
        outputs=[File("/a", 10**400)],
        frame=-(2**63) - 1,
        gpu_memory_peak_bytes=2**63,
    )
    spans = bench.sent(hostile)
    message = encode_spans(list(spans.values()))
    (root,) = (
        span
        for span in message.resource_spans[0].scope_spans[0].spans
        if span.name == "process video_jobs"
    )
    assert (root.start_time_unix_nano, root.end_time_unix_nano) == (0, 2**63 - 1)
    values = {one.key: one.value for one in root.attributes}
    assert values["videogen.job.id"].string_value == "?" + "x" * 1023
    assert len(values["videogen.gpu.uuids"].array_value.values) == 32
    assert values["videogen.frame_at_end"].double_value == -(2.0**63)
    assert values["videogen.output.bytes"].string_value == "1" + "0" * 400


def test_a_collector_that_is_away_costs_a_count_and_two_lines() -> None:
    away = Refusing()
    bench = Bench(away)
    with structlog.testing.capture_logs() as lines:
        for _ in range(3):
            bench.emitter.emit(plan_trace(Job()))
            bench.emitter.flush()
        away.well = True
        for _ in range(2):
            bench.emitter.emit(plan_trace(Job()))
            bench.emitter.flush()
        bench.emitter.stop(1.0)
    assert bench.counts == {"failed": 12, "exported": 8}
    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("warning", "the Collector does not take spans: they are lost until it does"),
        ("info", "the Collector takes spans again"),
    ]


def test_the_queue_is_bounded_and_traces_are_dropped_whole() -> None:
    gate = threading.Event()
    busy = Refusing(gate.wait)
    bench = Bench(busy, queue_limit=514)
    for _ in range(200):
        bench.emitter.emit(plan_trace(Job()))
    # 128 traces of 4 spans fit into 514.
    assert bench.counts == {"queue_full": (200 - 128) * 4}
    busy.well = True
    gate.set()
    bench.emitter.flush()
    bench.emitter.emit(plan_trace(Job()))
    bench.emitter.stop(PATIENCE_SECONDS)
    assert bench.counts == {"queue_full": (200 - 128) * 4, "exported": 129 * 4}


def test_the_end_sends_what_is_queued() -> None:
    exporter = InMemorySpanExporter()
    bench = Bench(exporter)
    bench.emitter.emit(plan_trace(Job()))
    bench.emitter.stop(PATIENCE_SECONDS)
    assert bench.counts == {"exported": 4}
    assert len(exporter.get_finished_spans()) == 4


def test_the_end_waits_for_no_collector() -> None:
    gate = threading.Event()
    bench = Bench(Refusing(gate.wait))
    bench.emitter.emit(plan_trace(Job()))
    begun = time.monotonic()
    bench.emitter.stop(0.2)
    taken = time.monotonic() - begun
    gate.set()
    assert taken < 5
    assert bench.counts == {"shutdown": 4}


def test_an_exporter_that_raises_is_one_that_failed() -> None:
    def burst() -> None:
        raise OSError("no route")

    bench = Bench(Refusing(burst))
    bench.emitter.emit(plan_trace(Job()))
    bench.emitter.flush()
    bench.emitter.stop(1.0)
    assert bench.counts == {"failed": 4}


def test_variables_that_contradict_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "9999")
    with pytest.raises(ValueError, match="max_export_batch_size"):
        Bench(InMemorySpanExporter())
