# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What a trace is planned from: whatever looks so, whichever room made it.

Words may be enums of the vocabulary. Texts that were never told are empty, other things None.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Protocol


class StageSpan(Protocol):
    """A stage of a job, the wait in the queue among them."""

    @property
    def stage(self) -> str: ...
    @property
    def start_unix_nanoseconds(self) -> int: ...
    @property
    def end_unix_nanoseconds(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def cache(self) -> str: ...


class Retry(Protocol):
    """An attempt had failed, and another was to begin after the delay."""

    @property
    def reason(self) -> str: ...
    @property
    def delay_seconds(self) -> float | None: ...
    @property
    def unix_nanoseconds(self) -> int: ...


class OutputFile(Protocol):
    """A file that a job says it has written."""

    @property
    def size_bytes(self) -> int | None: ...


class FinishedJob(Protocol):
    """A job whose end is known, or that is given up as lost."""

    @property
    def job_id(self) -> str: ...
    @property
    def source(self) -> str:
        """Who tells of it: two sources may use one id."""
        ...

    @property
    def engine(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def variant(self) -> str: ...
    @property
    def profile(self) -> str: ...
    @property
    def traceparent(self) -> str: ...
    @property
    def tracestate(self) -> str: ...
    @property
    def submitted_unix_nanoseconds(self) -> int: ...
    @property
    def started_unix_nanoseconds(self) -> int | None: ...
    @property
    def ended_unix_nanoseconds(self) -> int: ...
    @property
    def stages(self) -> Sequence[StageSpan]: ...
    @property
    def retries(self) -> Sequence[Retry]: ...
    @property
    def outcome(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def module(self) -> str: ...
    @property
    def stage_at_end(self) -> str | None: ...
    @property
    def error_code(self) -> str: ...
    @property
    def outputs(self) -> Sequence[OutputFile]: ...
    @property
    def filtered_count(self) -> int: ...
    @property
    def gpus(self) -> Sequence[str]: ...
    @property
    def frame(self) -> int | None: ...
    @property
    def gpu_memory_peak_bytes(self) -> int | None: ...


class Failure(Protocol):
    """Why a file could not be judged."""

    @property
    def kind(self) -> str: ...


class Finding(Protocol):
    """One thing that is wrong with a file."""

    @property
    def defect(self) -> str: ...


class Media(Protocol):
    """What the file is."""

    @property
    def codec(self) -> str | None: ...
    @property
    def frame_count(self) -> int: ...


class Cadence(Protocol):
    """How its frames follow each other."""

    @property
    def rate(self) -> Fraction: ...


class Asked(Protocol):
    """What was asked for against what came."""

    @property
    def frames_missing(self) -> int | None: ...


class VideoReport(Protocol):
    """What is known of a file."""

    @property
    def file(self) -> Path: ...
    @property
    def verdict(self) -> str: ...
    @property
    def failure(self) -> Failure | None: ...
    @property
    def findings(self) -> Sequence[Finding]: ...
    @property
    def media(self) -> Media | None: ...
    @property
    def cadence(self) -> Cadence | None: ...
    @property
    def duration(self) -> Fraction | None: ...
    @property
    def asked(self) -> Asked | None: ...


@dataclass(frozen=True, slots=True)
class Probed:
    """A file that was looked into, and when."""

    report: VideoReport
    start_unix_nanoseconds: int
    end_unix_nanoseconds: int
