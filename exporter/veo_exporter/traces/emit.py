# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Planned spans to the OpenTelemetry SDK, and by it to a Collector.

Nothing here waits for the Collector but at the end, and then not for long. The SDK's own variables
(OTEL_EXPORTER_OTLP_*, OTEL_BSP_*, OTEL_TRACES_SAMPLER, OTEL_RESOURCE_ATTRIBUTES and so on) mean
what its documentation says.
"""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.environment_variables import OTEL_TRACES_SAMPLER
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode

from veo_exporter.traces import attributes as names
from veo_exporter.traces.exporting import CountingExporter
from veo_exporter.traces.sanitise import MAX_CHARACTERS, clean_attributes, clean_time
from veo_exporter.traces.spans import Attributes, Kind, SpanPlan, TracePlan

log = structlog.get_logger(__name__)

SCOPE: Final = "veo_exporter.traces"
_KINDS: Final = {Kind.CONSUMER: SpanKind.CONSUMER, Kind.INTERNAL: SpanKind.INTERNAL}
_SAMPLED: Final = trace.TraceFlags(trace.TraceFlags.SAMPLED)
_NOT_SAMPLED: Final = trace.TraceFlags(trace.TraceFlags.DEFAULT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Where spans are counted; each is counted once, as one of these."""

    exported: Callable[[int], None]
    failed: Callable[[int], None]
    """Handed to the Collector, which was away or refused them."""
    dropped: Callable[[str, int], None]
    """Never handed over: queue_full or shutdown."""


class _PlannedIds(IdGenerator):
    """Gives the SDK the ids that the plan says."""

    def __init__(self) -> None:
        self.trace_id = 0
        self.span_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id

    def generate_span_id(self) -> int:
        return self.span_id


class Emitter:
    """Sends traces; one for each App. Raises ValueError if the SDK's variables contradict it."""

    def __init__(
        self,
        exporter: SpanExporter,
        *,
        resource: Attributes,
        version: str,
        queue_limit: int,
        tally: Tally,
    ) -> None:
        self._queue_limit = queue_limit
        self._tally = tally
        self._lock = threading.Lock()
        self._ids = _PlannedIds()
        self._exporter = CountingExporter(exporter, tally.exported, tally.failed)
        # What the environment says of this process outranks what we think of it.
        detected = OTELResourceDetector().detect().attributes
        self._provider = TracerProvider(
            # The caller's decision was respected before; without the variable, the SDK would ask again.
            sampler=None if os.environ.get(OTEL_TRACES_SAMPLER) else ALWAYS_ON,
            resource=Resource.create({**clean_attributes(resource), **detected}),
            id_generator=self._ids,
            # The App ends what it began; an exit handler would wait for half a minute.
            shutdown_on_exit=False,
        )
        self._processor = BatchSpanProcessor(self._exporter, max_queue_size=queue_limit)
        self._provider.add_span_processor(self._processor)
        self._tracer = self._provider.get_tracer(SCOPE, version)

    def emit(self, plan: TracePlan) -> None:
        """Queue a trace, whole or not at all."""
        with self._lock:
            if self._exporter.pending + len(plan.spans) > self._queue_limit:
                self._tally.dropped("queue_full", len(plan.spans))
                return
            started: dict[int | None, tuple[trace.Span, SpanPlan]] = {}
            for planned in plan.spans:
                above = started.get(planned.parent_span_id)
                context = _context(above[0]) if above else _remote(plan)
                started[planned.span_id] = self._start(planned, plan, context), planned
            # The job's own span last: by then all others are there.
            for span, planned in reversed(started.values()):
                if span.is_recording():
                    self._exporter.expect(1)
                span.end(clean_time(planned.end_unix_ns))

    def _start(self, planned: SpanPlan, plan: TracePlan, context: Context) -> trace.Span:
        self._ids.trace_id, self._ids.span_id = plan.trace_id, planned.span_id
        span = self._tracer.start_span(
            planned.name,
            context,
            _KINDS[planned.kind],
            clean_attributes(planned.attributes),
            [
                trace.Link(_span_context(plan.trace_id, linked))
                for linked in planned.linked_span_ids
            ],
            clean_time(planned.start_unix_ns),
        )
        for event in planned.events:
            span.add_event(
                event.name, clean_attributes(event.attributes), clean_time(event.at_unix_ns)
            )
        if planned.error_type is not None:
            span.set_attributes(clean_attributes({names.ERROR_TYPE: planned.error_type}))
            span.set_status(Status(StatusCode.ERROR))
        return span

    def flush(self) -> None:
        """Send what is queued, and return when it is sent or given up."""
        self._provider.force_flush()

    def stop(self, timeout_seconds: float) -> None:
        """Send what is queued if that is possible within this time, and end."""
        # The SDK's own shutdown waits for half a minute and takes no other time.
        ending = threading.Thread(target=self._provider.shutdown, name="traces-end", daemon=True)
        ending.start()
        ending.join(timeout_seconds)
        if ending.is_alive():
            self._exporter.abandon()
        if pending := self._exporter.pending:
            self._tally.dropped("shutdown", pending)
            log.warning("spans were not sent before the end", spans=pending)


def _context(span: trace.Span) -> Context:
    return trace.set_span_in_context(span, Context())


def _remote(plan: TracePlan) -> Context:
    parent = plan.parent
    if parent is None:
        return Context()
    context = SpanContext(
        parent.trace_id,
        parent.span_id,
        is_remote=True,
        trace_flags=_SAMPLED if parent.sampled else _NOT_SAMPLED,
        trace_state=trace.TraceState.from_header([plan.tracestate[:MAX_CHARACTERS]]),
    )
    return _context(NonRecordingSpan(context))


def _span_context(trace_id: int, span_id: int) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=_SAMPLED)
