# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Lengths of time between the stamps of two clocks, and those that cannot be meant. Pure.

A stamp that is wrong costs the durations that lean on it, never the job or the event itself.
"""

from enum import StrEnum
from typing import Final

from veo_exporter.jobs.finished import NANOSECONDS, FinishedJob
from veo_exporter.jobs.job import Job
from veo_exporter.jobs.payload import MAX_STAGE_SECONDS

JOB_DURATION: Final = "job_duration"
STAGE_DURATION: Final = "stage_duration"


class Doubt(StrEnum):
    """Why a duration is left out; the reason in the counter of dropped things."""

    NEGATIVE = "negative"
    TOO_LONG = "too_long"


LeftOut = tuple[str, Doubt]
"""What was left out, and why."""

LEFT_OUT: Final = tuple((kind, doubt) for kind in (JOB_DURATION, STAGE_DURATION) for doubt in Doubt)
"""Everything that can be."""


def doubt_of(seconds: float) -> Doubt | None:
    """Why so many seconds are not believed; None if they are."""
    if seconds < 0:
        return Doubt.NEGATIVE
    return Doubt.TOO_LONG if seconds > MAX_STAGE_SECONDS else None


def seconds_of(job: Job, finished: FinishedJob) -> float:
    """How long a job took by the stamps as they came: below zero if its end lies before its begin."""
    if finished.duration_seconds > 0 or job.end is None:
        return finished.duration_seconds
    began = job.submitted_unix_nanoseconds
    if began is None:
        began = job.opened.unix_nanoseconds
    return min(0.0, (job.end.unix_nanoseconds - began) / NANOSECONDS)
