# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs and video: whether everything that is told of jobs arrives, and goes on."""

from collections.abc import Iterable
from typing import Final

from dashboards.house import Shelf
from dashboards.jobs_video_parts import UPON_REQUEST, pair, per_second
from dashboards.panels import graph
from dashboards.promql import RATE_UNITS, rate
from dashboards.questions import NODE_LEGEND, About, Query
from veo_exporter.catalog import exporter as own
from veo_exporter.catalog import jobs, traces
from veo_exporter.units import Unit

_PER_NODE: Final = ("cluster", "node")
OF_JOBS: Final = (
    "event",
    "event_field",
    "job_duration",
    "stage_duration",
    "job_label",
    "job_memory",
    "traceparent",
)
OF_OTHERS: Final = ("log_line", "video_file", "video_label", "span")


def shelves() -> Iterable[Shelf]:
    """Events in, lines in, spans out."""
    unit = RATE_UNITS[Unit.NONE]
    yield pair(
        per_second(
            jobs.EVENTS, "What becomes of the events of jobs?", "Events by result", "type", "result"
        ),
        graph(
            About(
                own.DROPPED,
                "Are events refused, or is something of them left out?",
                title="Events refused and dropped",
                unit=unit,
                none=UPON_REQUEST,
            ),
            Query(
                rate(own.DROPPED, kind=OF_JOBS).once().aggregate("sum", "kind", "reason"),
                "{{kind}} {{reason}}",
            ),
            colours={},
        ),
        heading="Is everything heard and told?",
    )
    yield pair(
        per_second(
            jobs.LOG_LINES,
            "How many lines of logs are read, and by which rule?",
            "Log lines by rule",
            "log_rule",
        ),
        graph(
            About(
                own.DROPPED,
                "Are log lines, files or spans left out?",
                title="Lines, files and spans dropped",
                unit=unit,
                none=UPON_REQUEST,
            ),
            Query(
                rate(own.DROPPED, kind=OF_OTHERS).once().aggregate("sum", "kind", "reason"),
                "{{kind}} {{reason}}",
            ),
            colours={},
        ),
    )
    yield pair(
        graph(
            About(
                traces.SPANS_EXPORTED,
                "Do traces reach a Collector?",
                title="Spans exported",
                unit=unit,
                none="traces are off, or no data",
            ),
            Query(rate(traces.SPANS_EXPORTED).aggregate("max", *_PER_NODE), NODE_LEGEND),
            colours={},
        ),
        graph(
            About(
                traces.SPANS_FAILED,
                "Are traces lost on their way?",
                title="Spans failed",
                unit=unit,
                none="traces are off, or no data",
            ),
            Query(rate(traces.SPANS_FAILED).aggregate("max", *_PER_NODE), NODE_LEGEND),
            colours={},
        ),
    )
