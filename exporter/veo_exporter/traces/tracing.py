# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The room's front: finished jobs and probed files in, traces out; nothing while it is off."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

import structlog

from veo_exporter.traces import attributes as names
from veo_exporter.traces.context import Identity, parse_traceparent
from veo_exporter.traces.inputs import FinishedJob, Probed, VideoReport
from veo_exporter.traces.plan import identity_of, plan_trace
from veo_exporter.traces.waiting import Complete, Waiting

if TYPE_CHECKING:
    from veo_exporter.traces.emit import Emitter

log = structlog.get_logger(__name__)

TRACES_PATH: Final = "/v1/traces"
SENT_AT_ONCE: Final = 100
"""Some ten milliseconds of work; who ticks may do something else in between."""
_SDK_DISABLED: Final = "OTEL_SDK_DISABLED"
_SDK_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class Tracing:
    """Traces of finished jobs; without an emitter there are none. Any thread may call it."""

    def __init__(
        self,
        emitter: "Emitter | None",
        *,
        patience_seconds: float,
        waiting_limit: int,
        keep_unsampled: bool,
        context_broken: Callable[[], None],
    ) -> None:
        self._emitter = emitter
        self._lock = threading.Lock()
        self._keep_unsampled = keep_unsampled
        self._context_broken = context_broken
        self._waiting = Waiting(patience_seconds=patience_seconds, limit=waiting_limit)

    @property
    def on(self) -> bool:
        return self._emitter is not None

    def exemplar(self, job: FinishedJob) -> dict[str, str] | None:
        """What leads from a metric to the job's span; None if there will be none."""
        identity = identity_of(job)
        return identity.as_exemplar() if self._keeps(identity) else None

    def parent_of(self, job: FinishedJob) -> str | None:
        """The traceparent under which its files are probed: its own span; the caller's if it has none."""
        identity = identity_of(job)
        span = identity.own if self._keeps(identity) else identity.parent
        return span.as_traceparent() if span else None

    def finished(
        self, job: FinishedJob, awaited_paths: Iterable[str], now_monotonic_seconds: float
    ) -> None:
        """A job has ended; its trace leaves once these files are looked into."""
        identity = identity_of(job)
        if identity.broken:
            self._context_broken()
        if not self._keeps(identity):
            return
        key = identity.trace_id, identity.span_id
        with self._lock:
            leaving = self._waiting.hold(key, job, awaited_paths, now_monotonic_seconds)
        self._send(leaving)

    def probed(
        self,
        parent: str | None,
        path: str,
        report: VideoReport,
        start_unix_ns: int,
        end_unix_ns: int,
    ) -> None:
        """A file was looked into; if the job that is its parent waits for it, it is part of its trace."""
        span = parse_traceparent(parent) if parent else None
        if span is None:
            return
        key = span.trace_id, span.span_id
        probed = Probed(report, start_unix_ns, end_unix_ns)
        with self._lock:
            complete = self._waiting.looked_into(key, path, probed)
        if complete:
            self._send([complete])

    def tick(self, now_monotonic_seconds: float) -> bool:
        """Let go of some that have waited long enough, and say whether there may be more of them."""
        with self._lock:
            leaving = self._waiting.overdue(now_monotonic_seconds, SENT_AT_ONCE)
        self._send(leaving)
        return len(leaving) == SENT_AT_ONCE

    def stop(self, timeout_seconds: float) -> None:
        """Send all there is, and end; blocks for at most this long."""
        with self._lock:
            leaving = self._waiting.drain()
        self._send(leaving)
        if self._emitter is not None:
            self._emitter.stop(timeout_seconds)

    def _keeps(self, identity: Identity) -> bool:
        return self.on and (identity.sampled or self._keep_unsampled)

    def _send(self, leaving: Iterable[Complete]) -> None:
        if self._emitter is None:
            return
        for complete in leaving:
            self._emitter.emit(plan_trace(complete.job, complete.probed))


def traces_url(endpoint: str | None, environment: Mapping[str, str]) -> str | None:
    """Where spans are posted to; an empty text leaves it to the SDK's variables, None is nowhere."""
    if environment.get(_SDK_DISABLED, "").strip().lower() == "true":
        return None
    if endpoint is not None:
        base = endpoint.rstrip("/")
        return base if base.endswith(TRACES_PATH) else base + TRACES_PATH
    return "" if any(environment.get(name) for name in _SDK_ENDPOINTS) else None


def open_emitter(
    url: str | None,
    *,
    node: str,
    version: str,
    simulated: bool,
    queue_limit: int,
    exported: Callable[[int], None],
    failed: Callable[[int], None],
    dropped: Callable[[str, int], None],
) -> "Emitter | None":
    """The way out, or none if there is no URL. Raises ValueError if the SDK's variables are wrong."""
    if url is None:
        return None
    # The SDK takes seven megabytes: only who wants traces pays for them.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    from veo_exporter.traces.emit import Emitter, Tally
    from veo_exporter.traces.sdk_log import take_over_sdk_log

    take_over_sdk_log()
    return Emitter(
        OTLPSpanExporter(endpoint=url or None),
        resource={
            names.SERVICE_NAME: "veo-exporter",
            names.SERVICE_VERSION: version,
            names.HOST_NAME: node,
            names.SIMULATED: simulated,
        },
        version=version,
        queue_limit=queue_limit,
        tally=Tally(exported=exported, failed=failed, dropped=dropped),
    )
