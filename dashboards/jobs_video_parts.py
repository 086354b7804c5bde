# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs and video: what several of its panels have in common."""

from typing import Final

from dashboards.house import Placed, Shelf
from dashboards.panels import graph, link
from dashboards.promql import RATE_UNITS, rate
from dashboards.questions import About, Query
from dashboards.sdk import dashboard
from veo_exporter.catalog import MetricSpec

BY_MODEL: Final = ("engine", "model")
UPON_REQUEST: Final = "none since the exporter started, or no data"
_KEEP: Final = (
    "${__url_time_range}&${datasource:queryparam}&${cluster:queryparam}&${job:queryparam}"
    "&${node:queryparam}"
)


def pair(left: dashboard.Panel, right: dashboard.Panel, heading: str = "") -> Shelf:
    """Two graphs side by side."""
    return Shelf(8, (Placed(left, 12), Placed(right, 12)), heading)


def per_second(
    spec: MetricSpec,
    question: str,
    title: str,
    *by: str,
    none: str = UPON_REQUEST,
) -> dashboard.Panel:
    """A counter of all nodes, by these labels."""
    legend = " ".join(f"{{{{{label}}}}}" for label in by)
    return graph(
        About(spec, question, title=title, unit=RATE_UNITS[spec.unit], none=none),
        Query(rate(spec).once().aggregate("sum", *by), legend or title),
        colours={},
    )


def to_the_gpus() -> dashboard.DashboardLink:
    """From how jobs end to the GPUs that they ran on."""
    return link("The GPUs at that time", f"/d/veo-node-gpu?{_KEEP}")
