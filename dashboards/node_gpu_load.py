# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Node and GPU: what the GPUs do, and what holds them down."""

from collections.abc import Iterable
from typing import Final

from dashboards import palette
from dashboards.house import Placed, Shelf
from dashboards.panels import graph, states
from dashboards.promql import RATE_UNITS, gauge, rate
from dashboards.questions import GPU_LEGEND, NODE_LEGEND, About, Query
from dashboards.sdk import dashboard
from dashboards.thresholds import Line, lines_of
from veo_exporter.catalog import MetricSpec, gpu
from veo_exporter.units import Unit

# The first users' ladder: which frame rate a GPU can be asked for, by how full its memory is (DESIGN,
# section 4, Advice). Constants, and not in alerts/thresholds.yaml: no alert compares with them, and
# once the exporter gives the advice itself, its settings hold them.
MEMORY_LADDER: Final = (
    Line(0.60, "info", "below it, jobs of 120 frames per second fit; above it, 60."),
    Line(0.85, "warning", "above it, ask for no more than 30 frames per second."),
)
THROTTLED: Final = (
    Line(0.01, "info", "the clocks are held down now and then."),
    Line(0.5, "warning", "the clocks are held down most of the time."),
)
REASONS: Final = {
    "sw_power_cap": palette.BLUE,
    "hw_slowdown": palette.PURPLE,
    "hw_thermal_slowdown": palette.VERMILLION,
    "sw_thermal_slowdown": palette.ORANGE,
    "hw_power_brake_slowdown": palette.SKY,
    "sync_boost": palette.GREEN,
    "applications_clocks_setting": palette.OLIVE,
    "display_clock_setting": palette.GREY,
    "other": palette.GREY,
}
_PER_NODE: Final = ("cluster", "node")


def shelves(only_this_gpu: dashboard.DashboardLink) -> Iterable[Shelf]:
    """Work first, then power, heat and clocks."""
    links = (only_this_gpu,)
    yield _pair(
        graph(
            About(gpu.UTILIZATION, "How busy is each GPU right now?"),
            Query(gauge(gpu.UTILIZATION), GPU_LEGEND),
            lines=lines_of(gpu.UTILIZATION),
            most=1,
            links=links,
        ),
        _trailing(gpu.UTILIZATION, "How busy was each GPU between two scrapes?", links),
        heading="Work",
    )
    yield _pair(
        graph(
            About(gpu.MEMORY_USED, "How much memory is in use, and how much does a board have?"),
            Query(gauge(gpu.MEMORY_USED), GPU_LEGEND),
            Query(
                gauge(gpu.MEMORY_TOTAL).aggregate("max", *_PER_NODE),
                f"{NODE_LEGEND} total of a board",
                dashed=True,
            ),
            links=links,
        ),
        graph(
            About(
                gpu.MEMORY_USED,
                "How full is each GPU, and which frame rate does that leave room for?",
                title="Memory used, share",
                meaning="Used memory by used and free; the driver's reserve is left out.",
                unit=Unit.RATIO.grafana,
            ),
            Query(
                gauge(gpu.MEMORY_USED) / (gauge(gpu.MEMORY_USED) + gauge(gpu.MEMORY_FREE)),
                GPU_LEGEND,
            ),
            lines=MEMORY_LADDER,
            most=1,
            links=links,
        ),
    )
    yield _pair(
        graph(
            About(gpu.MEMORY_COPY_UTILIZATION, "Does memory bandwidth set the pace?"),
            Query(gauge(gpu.MEMORY_COPY_UTILIZATION), GPU_LEGEND),
            lines=lines_of(gpu.MEMORY_COPY_UTILIZATION),
            most=1,
            links=links,
        ),
        graph(
            About(
                gpu.ENCODER_UTILIZATION,
                "Is a video engine the bottleneck: the encoder (solid) or the decoder (dashed)?",
                title="Video encoder and decoder",
                meaning=f"{gpu.ENCODER_UTILIZATION.help} {gpu.DECODER_UTILIZATION.help}",
                none="no data, or boards without video engines: see What the boards do not give",
            ),
            Query(gauge(gpu.ENCODER_UTILIZATION), f"{GPU_LEGEND} encoder"),
            Query(gauge(gpu.DECODER_UTILIZATION), f"{GPU_LEGEND} decoder", dashed=True),
            most=1,
            links=links,
        ),
    )
    yield _pair(
        graph(
            About(gpu.POWER, "How much power does each GPU draw, and how far is its limit?"),
            Query(gauge(gpu.POWER), GPU_LEGEND),
            Query(
                gauge(gpu.POWER_LIMIT).aggregate("min", *_PER_NODE),
                f"{NODE_LEGEND} lowest limit",
                dashed=True,
            ),
            links=links,
        ),
        graph(
            About(
                gpu.ENERGY,
                "How much power do all GPUs of a node draw, counted without gaps?",
                title="Power of the node, from energy",
                unit=RATE_UNITS[gpu.ENERGY.unit],
            ),
            Query(
                # Each GPU once, however many jobs scrape it.
                rate(gpu.ENERGY)
                .aggregate("max", *_PER_NODE, "gpu", "uuid")
                .aggregate("sum", *_PER_NODE),
                NODE_LEGEND,
            ),
            colours={},
        ),
        heading="Power, heat and clocks",
    )
    yield _pair(
        graph(
            About(gpu.TEMPERATURE, "Does a GPU run hotter than its neighbours?"),
            Query(gauge(gpu.TEMPERATURE), GPU_LEGEND),
            least=None,
            links=links,
        ),
        graph(
            About(gpu.SM_CLOCK, "Does each GPU run at the clock it is made for?"),
            Query(gauge(gpu.SM_CLOCK), GPU_LEGEND),
            Query(
                gauge(gpu.SM_CLOCK_MAX).aggregate("max", *_PER_NODE),
                f"{NODE_LEGEND} maximum",
                dashed=True,
            ),
            links=links,
        ),
    )
    yield _pair(*_throttling(links))


def _trailing(
    spec: MetricSpec, question: str, links: tuple[dashboard.DashboardLink, ...]
) -> dashboard.Panel:
    window = gpu.WINDOWS[spec]
    return graph(
        About(
            window.mean,
            f"{question[:-1]}, on average (solid) and at its peak (dashed)?",
            title="Utilization, trailing mean and peak",
        ),
        Query(gauge(window.mean), GPU_LEGEND),
        Query(gauge(window.peak), f"{GPU_LEGEND} peak", dashed=True, in_legend=False),
        most=1,
        links=links,
    )


def _throttling(
    links: tuple[dashboard.DashboardLink, ...],
) -> tuple[dashboard.Panel, dashboard.Panel]:
    share = RATE_UNITS[gpu.THROTTLE_SECONDS.unit]
    throttled = rate(gpu.THROTTLE_SECONDS)
    by_gpu = states(
        About(
            gpu.THROTTLE_SECONDS,
            "Which GPU has its clocks held down, and for what share of the time?",
            title="Throttled GPUs",
            unit=share,
        ),
        Query(throttled.aggregate("max", "cluster", "node", "gpu"), GPU_LEGEND),
        lines=THROTTLED,
        links=links,
    )
    by_reason = graph(
        About(
            gpu.THROTTLE_SECONDS,
            "What holds the clocks down on the worst GPU of the node, and for what share of the time?",
            title="Throttling by reason",
            unit=share,
        ),
        Query(
            throttled.aggregate("max", *_PER_NODE, "reason"),
            f"{NODE_LEGEND} {{{{reason}}}}",
        ),
        most=1,
        fill=15,
        colours={f" {reason}$": colour for reason, colour in REASONS.items()},
    )
    return by_gpu, by_reason


def _pair(left: dashboard.Panel, right: dashboard.Panel, heading: str = "") -> Shelf:
    return Shelf(8, (Placed(left, 12), Placed(right, 12)), heading)
