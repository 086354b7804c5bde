# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs: from events to counters, histograms and finished jobs.

Read in this order: payload, faults, omissions, elements, documents and events (bytes to events), job and
lifecycle (what an event makes of a job), reasons and ending (how it ended), finished (the job as it is
told), locations (where its files lie), table (all of them), labels, durations and metrics (what is
counted), safety (budgets that are too tight), intake (the way in).
"""

from veo_exporter.jobs.budgets import PRESETS, Budget, Budgets, parse_budget
from veo_exporter.jobs.events import Event, Moment, Parsed
from veo_exporter.jobs.faults import BadBody, BadEvent, EventFault, Refused
from veo_exporter.jobs.finished import FinishedJob, OutputFile, Retry, StageSpan
from veo_exporter.jobs.intake import DROPPED_SEEDS, Intake, Receipt
from veo_exporter.jobs.labels import JobLabels, Known
from veo_exporter.jobs.locations import is_elsewhere, local_name
from veo_exporter.jobs.metrics import JobFolds
from veo_exporter.jobs.payload import OpaqueData, Request
from veo_exporter.jobs.safety import unsafe_timeouts
from veo_exporter.jobs.step import Result
from veo_exporter.jobs.table import JobTable, Limits

__all__ = [
    "DROPPED_SEEDS",
    "PRESETS",
    "BadBody",
    "BadEvent",
    "Budget",
    "Budgets",
    "Event",
    "EventFault",
    "FinishedJob",
    "Intake",
    "JobFolds",
    "JobLabels",
    "JobTable",
    "Known",
    "Limits",
    "Moment",
    "OpaqueData",
    "OutputFile",
    "Parsed",
    "Receipt",
    "Refused",
    "Request",
    "Result",
    "Retry",
    "StageSpan",
    "is_elsewhere",
    "local_name",
    "parse_budget",
    "unsafe_timeouts",
]
