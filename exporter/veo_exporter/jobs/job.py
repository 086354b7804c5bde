# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What is known of a job while it runs, and a little longer."""

from dataclasses import dataclass, replace
from typing import Self

from veo_client.vocabulary import Stage
from veo_exporter.jobs.events import Moment
from veo_exporter.jobs.finished import OutputFile, Retry, StageReport
from veo_exporter.jobs.payload import Request
from veo_exporter.jobs.reasons import Cause


@dataclass(frozen=True, slots=True)
class End:
    """How and when a job ended."""

    cause: Cause
    unix_nanoseconds: int
    outputs: tuple[OutputFile, ...] = ()
    filtered_count: int = 0
    error_code: str = ""
    error_message: str = ""
    stage: Stage | None = None
    frame: int | None = None
    gpu_memory_peak_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job, as far as it was told."""

    job_id: str
    source: str
    engine: str
    model: str
    variant: str
    request: Request | None
    gpus: tuple[str, ...]
    pid: int | None
    traceparent: str
    tracestate: str
    opened: Moment
    """When it was first heard of."""
    heard_monotonic_seconds: float
    submitted_unix_nanoseconds: int | None = None
    started_unix_nanoseconds: int | None = None
    stages: tuple[StageReport, ...] = ()
    under_way: StageReport | None = None
    retries: tuple[Retry, ...] = ()
    evaluations: tuple[tuple[str, str], ...] = ()
    end: End | None = None

    def remembered(self) -> Self:
        """What is kept of it when it is over: enough to know what comes late, and whose it is."""
        return replace(self, stages=(), under_way=None, retries=(), gpus=(), pid=None)
