# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The SDK's exporter, with a count of what became of its spans and a word when that changes."""

import threading
from collections.abc import Callable, Sequence

import structlog
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

log = structlog.get_logger(__name__)


class CountingExporter(SpanExporter):
    """Passes batches on. Called by the SDK's own thread."""

    def __init__(
        self, inner: SpanExporter, exported: Callable[[int], None], failed: Callable[[int], None]
    ) -> None:
        self._inner = inner
        self._exported = exported
        self._failed = failed
        self._lock = threading.Lock()
        self._pending = 0
        self._away = False
        self._abandoned = False

    @property
    def pending(self) -> int:
        """Spans that are queued or under way."""
        with self._lock:
            return self._pending

    def expect(self, spans: int) -> None:
        """So many are about to be queued."""
        with self._lock:
            self._pending += spans

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = SpanExportResult.FAILURE
        try:
            result = self._inner.export(spans)
        finally:
            self._settle(len(spans), result is SpanExportResult.SUCCESS)
        return result

    def _settle(self, spans: int, succeeded: bool) -> None:
        with self._lock:
            if self._abandoned:
                # They were counted as dropped when the end could not wait for them.
                return
            self._pending -= spans
            changed = self._away is succeeded
            self._away = not succeeded
        (self._exported if succeeded else self._failed)(spans)
        if changed and succeeded:
            log.info("the Collector takes spans again")
        elif changed:
            log.warning(
                "the Collector does not take spans: they are lost until it does", spans=spans
            )

    def abandon(self) -> None:
        """Give up what is under way."""
        with self._lock:
            self._abandoned = True
        self._inner.shutdown()

    def shutdown(self) -> None:
        # Waits for nobody; whoever abandoned it has already done so.
        if not self._abandoned:
            self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._inner.force_flush(timeout_millis)
