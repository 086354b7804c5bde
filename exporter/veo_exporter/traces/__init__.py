# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Traces: one for each finished job, sent over OTLP. The SDK is imported only if they are."""

from veo_exporter.traces.inputs import FinishedJob, Probed, VideoReport
from veo_exporter.traces.plan import identity_of, plan_trace
from veo_exporter.traces.tracing import Tracing, open_emitter, traces_url

__all__ = [
    "FinishedJob",
    "Probed",
    "Tracing",
    "VideoReport",
    "identity_of",
    "open_emitter",
    "plan_trace",
    "traces_url",
]
