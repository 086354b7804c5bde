# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs and video: how long jobs and their stages take, and what is over its budget."""

from collections.abc import Iterable

from dashboards.house import Placed, Shelf
from dashboards.jobs_video_parts import UPON_REQUEST, pair, per_second, to_the_gpus
from dashboards.panels import graph
from dashboards.promql import quantile
from dashboards.questions import About, Query
from veo_exporter.catalog import jobs


def shelves() -> Iterable[Shelf]:
    """The whole first, then its parts."""
    yield pair(
        graph(
            About(
                jobs.JOB_DURATION,
                "How long do jobs that succeed take: half of them (solid), and 95 of 100 (dashed)?",
                title="Duration by profile",
                meaning="From submission to end. A dot is one job: its trace opens from there.",
                none="no job ended, or no data",
            ),
            Query(
                quantile(0.5, jobs.JOB_DURATION, "profile", outcome="success"), "{{profile}} p50"
            ),
            Query(
                quantile(0.95, jobs.JOB_DURATION, "profile", outcome="success"),
                "{{profile}} p95",
                dashed=True,
            ),
            colours={},
            links=(to_the_gpus(),),
        ),
        graph(
            About(
                jobs.JOB_STAGE_DURATION,
                "Which stage takes how long: half of the jobs (solid), and 95 of 100 (dashed)?",
                title="Duration by stage",
                none="no stage ended, or no data",
            ),
            Query(quantile(0.5, jobs.JOB_STAGE_DURATION, "stage"), "{{stage}} p50"),
            Query(quantile(0.95, jobs.JOB_STAGE_DURATION, "stage"), "{{stage}} p95", dashed=True),
            colours={},
        ),
        heading="How long jobs take",
    )
    yield pair(
        per_second(
            jobs.JOB_TIMEOUTS, "In which stage do jobs run into a deadline?", "Timeouts", "stage"
        ),
        per_second(
            jobs.JOB_BUDGET_BREACHES,
            "Which stage takes longer than its budget?",
            "Budget breaches",
            "stage",
        ),
    )
    quality = graph(
        About(
            jobs.JOB_QUALITY_SCORE,
            "How good is what comes out: half of it (solid), and all but the worst twentieth (dashed)?",
            title="Quality score",
            none=UPON_REQUEST,
        ),
        Query(quantile(0.5, jobs.JOB_QUALITY_SCORE, "scorer"), "{{scorer}} p50"),
        Query(quantile(0.05, jobs.JOB_QUALITY_SCORE, "scorer"), "{{scorer}} p5", dashed=True),
        most=100,
        colours={},
    )
    memory = graph(
        About(
            jobs.JOB_GPU_MEMORY_PEAK,
            "How much device memory do jobs need at most?",
            title="Peak of device memory",
            none=UPON_REQUEST,
        ),
        Query(quantile(0.5, jobs.JOB_GPU_MEMORY_PEAK, "model"), "{{model}} p50"),
        Query(quantile(0.95, jobs.JOB_GPU_MEMORY_PEAK, "model"), "{{model}} p95", dashed=True),
        colours={},
    )
    yield Shelf(8, (Placed(quality, 12), Placed(memory, 12)))
