# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The room of traces, wired: a way out, if the settings or the SDK's variables name one."""

import os
import socket
from typing import Final

import veo_exporter
from veo_exporter.app.surroundings import Surroundings
from veo_exporter.catalog import traces as catalog
from veo_exporter.config import Traces
from veo_exporter.errors import BadConfig
from veo_exporter.traces import Tracing, open_emitter, traces_url

BROKEN_CONTEXT: Final = ("traceparent", "broken")
_SPAN: Final = "span"
DROPPED_SEEDS: Final = ((_SPAN, "queue_full"), (_SPAN, "shutdown"), BROKEN_CONTEXT)
"""What is dropped here, as (kind, reason)."""


def open_tracing(settings: Traces, around: Surroundings) -> Tracing:
    """Raises BadConfig if the SDK's variables contradict each other."""
    exported = around.folds.counter(catalog.SPANS_EXPORTED)
    failed = around.folds.counter(catalog.SPANS_FAILED)
    try:
        emitter = open_emitter(
            traces_url(settings.endpoint, os.environ),
            node=socket.gethostname(),
            version=veo_exporter.__version__,
            simulated=around.simulated,
            queue_limit=settings.queue_limit,
            exported=exported.inc,
            failed=failed.inc,
            dropped=lambda reason, spans: around.drop(_SPAN, reason, spans),
        )
    except (ValueError, RuntimeError) as error:
        raise BadConfig(
            [f"traces: the SDK's variables (OTEL_…) do not go together: {error}"]
        ) from None
    return Tracing(
        emitter,
        patience_seconds=settings.probe_patience,
        waiting_limit=settings.waiting_limit,
        keep_unsampled=settings.keep_unsampled,
        context_broken=lambda: around.drop(*BROKEN_CONTEXT, 1),
    )
