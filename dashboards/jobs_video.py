# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs and video: do jobs end well and in time, and is what comes out of them right?"""

from collections.abc import Iterable
from typing import Final

from dashboards import jobs_video_files as files
from dashboards import jobs_video_roads as roads
from dashboards import jobs_video_time as durations
from dashboards.fields import Wording
from dashboards.house import Placed, Shelf, chosen_of, document
from dashboards.jobs_video_parts import BY_MODEL, UPON_REQUEST, pair, per_second, to_the_gpus
from dashboards.palette import BLUE, GREEN, GREY, OLIVE, ORANGE, PLAIN, PURPLE, SKY, VERMILLION
from dashboards.panels import graph, number
from dashboards.promql import RATE_UNITS, Series, gauge, rate
from dashboards.questions import About, Query
from dashboards.sdk import dashboard
from dashboards.thresholds import objective
from veo_client.vocabulary import OUTCOME_OF, Outcome, Reason
from veo_exporter.catalog import exporter as own
from veo_exporter.catalog import jobs
from veo_exporter.units import Unit

UID: Final = "veo-jobs-video"

OUTCOMES: Final = {
    "success": BLUE,
    "failed": VERMILLION,
    "timeout": ORANGE,
    "aborted": PURPLE,
    "empty": OLIVE,
    "filtered": SKY,
    "cancelled": GREY,
    "lost": GREEN,
}
"""Every outcome of a job has one colour on every panel."""
COUNTED: Final = tuple(
    reason.value
    for reason, outcome in OUTCOME_OF.items()
    if outcome not in (Outcome.FILTERED, Outcome.CANCELLED) and reason is not Reason.INVALID_REQUEST
)
"""Reasons that the service answers for: all but those of filtered, cancelled and invalid requests."""


def text() -> str:
    """The dashboard's file."""
    return document(
        UID,
        "Jobs and video",
        "Do jobs end well and in time, why do they not, and is the video that comes out as it was "
        "asked for? A gap is a value that is not there; it is never drawn as zero.",
        ("jobs", "video"),
        (
            Shelf(4, tuple(Placed(panel, 4) for panel in _figures())),
            *_ends(),
            *durations.shelves(),
            *files.shelves(),
            *roads.shelves(),
        ),
        variables=(
            chosen_of(jobs.JOBS_SUBMITTED, "engine", "Engine"),
            chosen_of(jobs.JOBS_SUBMITTED, "model", "Model"),
            chosen_of(jobs.JOBS_SUBMITTED, "profile", "Profile"),
        ),
    )


def success_ratio(*by: str) -> Series:
    """Of the jobs that count and ended, the share that succeeded; absent while none ends."""
    succeeded = rate(jobs.JOBS_FINISHED, outcome="success").once().aggregate("sum", *by)
    counted = rate(jobs.JOBS_FINISHED, reason=COUNTED).once().aggregate("sum", *by)
    return succeeded / counted


def _figures() -> Iterable[dashboard.Panel]:
    per_second_unit = RATE_UNITS[Unit.NONE]
    yield number(
        About(own.SIMULATED, "Are these figures real?", title="Figures", unit="none"),
        Query(gauge(own.SIMULATED).aggregate("max")),
        words={0: Wording("real", BLUE), 1: Wording("SIMULATED", ORANGE)},
        background=True,
    )
    yield number(
        About(jobs.JOBS_IN_FLIGHT, "How many jobs are under way?", title="In flight"),
        Query(gauge(jobs.JOBS_IN_FLIGHT).once().aggregate("sum")),
    )
    yield number(
        About(
            jobs.JOBS_SUBMITTED,
            "How many jobs come in each second?",
            title="Submitted, now",
            unit=per_second_unit,
        ),
        Query(rate(jobs.JOBS_SUBMITTED).once().aggregate("sum")),
    )
    yield number(
        About(
            jobs.JOBS_FINISHED,
            "Of the jobs that count, what share succeeds right now?",
            title="Success ratio, now",
            unit=Unit.RATIO.grafana,
            meaning="Filtered, cancelled and invalid jobs do not count. Nothing is shown while no job ends.",
            none="no job ended, or no data",
        ),
        Query(success_ratio()),
    )
    yield number(
        About(
            jobs.JOBS_FINISHED,
            "How many jobs are lost each second?",
            title="Lost, now",
            unit=per_second_unit,
            meaning="Jobs of which no word came for longer than their budget.",
        ),
        Query(rate(jobs.JOBS_FINISHED, outcome="lost").once().aggregate("sum")),
        words={0: Wording("none", PLAIN)},
    )
    yield number(
        About(
            jobs.JOB_TIMEOUTS,
            "How many jobs run into a deadline each second?",
            title="Timeouts, now",
            unit=per_second_unit,
        ),
        Query(rate(jobs.JOB_TIMEOUTS).once().aggregate("sum")),
        words={0: Wording("none", PLAIN)},
    )


def _ends() -> Iterable[Shelf]:
    unit = RATE_UNITS[Unit.NONE]
    finished = rate(jobs.JOBS_FINISHED).once()
    links = (to_the_gpus(),)
    yield pair(
        graph(
            About(
                jobs.JOBS_FINISHED,
                "Do as many jobs end (solid) as come in (dashed)?",
                title="Submitted and finished",
                unit=unit,
                meaning=f"{jobs.JOBS_SUBMITTED.help} {jobs.JOBS_FINISHED.help}",
            ),
            Query(finished.aggregate("sum", *BY_MODEL), "{{engine}} {{model}} finished"),
            Query(
                rate(jobs.JOBS_SUBMITTED).once().aggregate("sum", *BY_MODEL),
                "{{engine}} {{model}} submitted",
                dashed=True,
            ),
            colours={},
        ),
        graph(
            About(
                jobs.JOBS_FINISHED,
                "Of the jobs that count, what share succeeds?",
                title="Success ratio",
                unit=Unit.RATIO.grafana,
                meaning="Filtered, cancelled and invalid jobs do not count. A gap: no job ended.",
                none="no job ended, or no data",
            ),
            Query(success_ratio(*BY_MODEL), "{{engine}} {{model}}"),
            lines=(objective("job_success"),),
            most=1,
            colours={},
        ),
        heading="How jobs end",
    )
    yield pair(
        graph(
            About(
                jobs.JOBS_FINISHED,
                "How do jobs end?",
                title="Outcomes",
                unit=unit,
            ),
            Query(finished.aggregate("sum", "outcome"), "{{outcome}}"),
            colours={f"^{outcome}$": colour for outcome, colour in OUTCOMES.items()},
            links=links,
        ),
        graph(
            About(
                jobs.JOBS_FINISHED,
                "Why do jobs not succeed?",
                title="Reasons",
                unit=unit,
                meaning="Each reason belongs to one outcome. Only those that occur in the time shown by "
                "one point are drawn.",
                none="every job succeeded, or no data",
            ),
            Query(
                rate(jobs.JOBS_FINISHED, outcome=tuple(list(OUTCOMES)[1:]))
                .once()
                .aggregate("sum", "outcome", "reason")
                .above_zero(),
                "{{outcome}} {{reason}}",
            ),
            colours={},
            links=links,
        ),
    )
    yield pair(
        per_second(
            jobs.JOB_RETRIES,
            "Which failures are tried once more, and how often?",
            "Retries",
            "reason",
        ),
        graph(
            About(
                jobs.JOBS_IN_FLIGHT,
                "Do jobs pile up?",
                title="Jobs in flight",
            ),
            Query(
                gauge(jobs.JOBS_IN_FLIGHT).once().aggregate("sum", *BY_MODEL),
                "{{engine}} {{model}}",
            ),
            colours={},
        ),
    )
    yield pair(
        graph(
            About(
                jobs.JOBS_FINISHED,
                "Which jobs end without a word?",
                title="Lost jobs",
                unit=unit,
                meaning="Jobs of which nothing was heard for longer than their budget: a worker that "
                "died, or one that tells nothing of its jobs.",
            ),
            Query(
                rate(jobs.JOBS_FINISHED, outcome="lost").once().aggregate("sum", *BY_MODEL),
                "{{engine}} {{model}}",
            ),
            colours={},
        ),
        per_second(
            jobs.JOB_REQUEST_VIOLATIONS,
            "What is asked for that the engine is not made for?",
            "Requests outside of limits",
            "rule",
            none=UPON_REQUEST,
        ),
    )
