# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs and video: what is right and wrong with the files that come out."""

from collections.abc import Iterable
from typing import Final

from dashboards.heatmaps import cells
from dashboards.house import Shelf
from dashboards.jobs_video_parts import pair
from dashboards.palette import BLUE, ORANGE, PURPLE, VERMILLION
from dashboards.panels import graph
from dashboards.promql import RATE_UNITS, Series, buckets, gauge, quantile, rate
from dashboards.questions import NODE_LEGEND, About, Query
from dashboards.sdk import dashboard
from veo_exporter.catalog import MetricSpec, video
from veo_exporter.units import Unit

VERDICTS: Final = {"ok": BLUE, "degraded": ORANGE, "defective": VERMILLION, "error": PURPLE}
NO_FILE: Final = "no file was probed, or no data"
_PER_NODE: Final = ("cluster", "node")


def shelves() -> Iterable[Shelf]:
    """Verdicts first, then the figures behind them, then whether the prober keeps up."""
    unit = RATE_UNITS[Unit.NONE]
    yield pair(
        graph(
            About(
                video.FILES,
                "How many files come out well?",
                title="Files by verdict",
                unit=unit,
                none=NO_FILE,
            ),
            Query(rate(video.FILES).once().aggregate("sum", "verdict"), "{{verdict}}"),
            colours={f"^{verdict}$": colour for verdict, colour in VERDICTS.items()},
        ),
        graph(
            About(
                video.DEFECTS,
                "What is wrong with the files that do not?",
                title="Defects by kind",
                unit=unit,
                meaning=f"{video.DEFECTS.help} Only kinds that occur in the time shown by one point are "
                "drawn.",
                none="no defect, or no data",
            ),
            Query(rate(video.DEFECTS).once().aggregate("sum", "defect").above_zero(), "{{defect}}"),
            colours={},
        ),
        heading="Video",
    )
    yield pair(
        _quantiles(
            video.CONSISTENCY,
            "How even is the frame rate: of half of the files (solid), and of all but the worst "
            "twentieth (dashed)?",
            "Consistency",
            0.05,
            most=1,
        ),
        cells(
            About(
                video.FRAME_DEVIATION,
                "How far are frames from where they should be, and does that change?",
                title="Frame deviation",
                meaning=f"{video.FRAME_DEVIATION.help} The lighter, the more frames.",
                none=NO_FILE,
            ),
            buckets(video.FRAME_DEVIATION),
        ),
    )
    yield pair(
        graph(
            About(
                video.DROPPED_FRAMES,
                "What share of the frames is missing (solid) or there twice (dashed)?",
                title="Dropped and duplicate frames",
                unit=Unit.RATIO.grafana,
                meaning=f"{video.DROPPED_FRAMES.help} {video.DUPLICATE_FRAMES.help} Both by frames in "
                "files. A gap: no file was probed.",
                none=NO_FILE,
            ),
            Query(_of_frames(video.DROPPED_FRAMES), "{{profile}} dropped"),
            Query(_of_frames(video.DUPLICATE_FRAMES), "{{profile}} duplicate", dashed=True),
            colours={},
        ),
        _quantiles(
            video.DURATION_SHORTFALL,
            "How much of the length asked for is missing: of half of the files (solid), and of 95 of "
            "100 (dashed)?",
            "Duration shortfall",
            0.95,
        ),
    )
    yield pair(
        _quantiles(
            video.KEYFRAME_INTERVAL,
            "How far is it from one keyframe to the next: half of the time (solid), and 95 of 100 "
            "times (dashed)?",
            "Keyframe interval",
            0.95,
        ),
        graph(
            About(
                video.GAPS,
                "How many places are there where a frame comes late?",
                title="Gaps",
                unit=unit,
                none=NO_FILE,
            ),
            Query(rate(video.GAPS).once().aggregate("sum", "profile"), "{{profile}}"),
            colours={},
        ),
    )
    yield pair(
        graph(
            About(video.BACKLOG, "Does the prober keep up with the files?", title="Backlog"),
            Query(gauge(video.BACKLOG).aggregate("max", *_PER_NODE), NODE_LEGEND),
            colours={},
        ),
        graph(
            About(
                video.BACKLOG_OLDEST_AGE,
                "For how long does a file wait to be probed?",
                title="Age of the backlog",
            ),
            Query(gauge(video.BACKLOG_OLDEST_AGE).aggregate("max", *_PER_NODE), NODE_LEGEND),
            colours={},
        ),
    )


def _of_frames(spec: MetricSpec) -> Series:
    frames = rate(video.FRAMES).once().aggregate("sum", "profile")
    return rate(spec).once().aggregate("sum", "profile") / frames


def _quantiles(
    spec: MetricSpec, question: str, title: str, far: float, most: float | None = None
) -> dashboard.Panel:
    return graph(
        About(spec, question, title=title, none=NO_FILE),
        Query(quantile(0.5, spec, "profile"), "{{profile}} p50"),
        Query(quantile(far, spec, "profile"), f"{{{{profile}}}} p{far * 100:g}", dashed=True),
        most=most,
        colours={},
    )
