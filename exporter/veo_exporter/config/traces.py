# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of the traces of finished jobs."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from veo_exporter.config.quantities import Duration
from veo_exporter.config.section import Section


def _receiver(written: str | None) -> str | None:
    if written is None:
        return None
    try:
        parts = urlsplit(written)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname)
        sound = sound and (parts.port is None or parts.port > 0)
    except ValueError:
        sound = False
    if not sound:
        raise ValueError(f"{written!r} is not a URL of a Collector: write http://127.0.0.1:4318")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError(
            "the endpoint takes no user, query or fragment: credentials go into OTEL_EXPORTER_OTLP_HEADERS"
        )
    return written


class Traces(Section):
    """Traces of finished jobs, sent to an OpenTelemetry Collector."""

    endpoint: Annotated[str | None, AfterValidator(_receiver)] = Field(
        None,
        description="Where a Collector receives OTLP over HTTP, such as http://127.0.0.1:4318; spans are posted to "
        "its /v1/traces. Unset: no traces are made, unless OTEL_EXPORTER_OTLP_ENDPOINT or "
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set.",
    )
    keep_unsampled: bool = Field(
        True,
        description="Whether a job is traced whose caller decided not to (the sampled bit of its traceparent is 0).",
    )
    queue_limit: int = Field(
        2048,
        ge=512,
        le=65536,
        description="Spans that may wait for the Collector, about 3 KiB of memory each; a trace that does not fit "
        "is dropped whole and counted.",
    )
    probe_patience: Duration = Field(
        30,
        ge=0,
        le=600,
        description="How long the trace of a finished job waits for its files to be probed, so that it leaves whole.",
    )
    waiting_limit: int = Field(
        256,
        ge=1,
        le=10000,
        description="Finished jobs whose traces may wait so; beyond it, the one that waited longest leaves as it is.",
    )
