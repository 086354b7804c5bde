# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What became of an event, and what is new by it."""

from dataclasses import dataclass
from enum import StrEnum

from veo_exporter.jobs.finished import FinishedJob, Retry, StageReport
from veo_exporter.jobs.job import Job
from veo_exporter.jobs.payload import Scores


class Result(StrEnum):
    """What became of an event."""

    APPLIED = "applied"
    REPEATED = "repeated"
    """Known already; nothing changed."""
    OUT_OF_ORDER = "out_of_order"
    """Applied, though it should have come before others that did."""
    LATE = "late"
    """Its job was over."""
    UNKNOWN_JOB = "unknown_job"
    """It tells of a job that nobody knows; what needs no job was counted."""
    AMBIGUOUS = "ambiguous"
    """A line of a log that several jobs could be meant by."""
    OVER_LIMIT = "over_limit"
    """Its job has more stages, retries or scores than are kept."""
    TABLE_FULL = "table_full"
    """Its job is new, and too many are in flight."""
    HANDED_ON = "handed_on"
    """It is another room's."""


@dataclass(frozen=True, slots=True)
class Step:
    """What an event changed: the job before and after, and the news in it."""

    result: Result
    before: Job | None = None
    after: Job | None = None
    stages: tuple[StageReport, ...] = ()
    """Those that are over now."""
    retry: Retry | None = None
    scores: Scores | None = None
    finished: FinishedJob | None = None
