# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What panels of every kind have in common: words, values and queries, as Grafana takes them."""

from collections.abc import Sequence
from typing import Final

from dashboards import palette
from dashboards.questions import About, Query
from dashboards.sdk import common, dashboard, prometheus
from dashboards.thresholds import Line

DATASOURCE: Final = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
REF_IDS: Final = "ABCDEFGH"


def look_of(about: About, lines: Sequence[Line] = ()) -> dashboard.FieldConfigSource:
    """Unit, words and colours of a panel's values."""
    steps = [
        dashboard.Threshold(value=None, color=palette.PLAIN),
        *(dashboard.Threshold(line.value, palette.SEVERITIES[line.severity]) for line in lines),
    ]
    defaults = dashboard.FieldConfig(
        unit=about.grafana_unit,
        no_value=about.none,
        thresholds=dashboard.ThresholdsConfig(mode=dashboard.ThresholdsMode.ABSOLUTE, steps=steps),
    )
    return dashboard.FieldConfigSource(defaults=defaults, overrides=[])


def framed(
    kind: str,
    about: About,
    queries: Sequence[Query],
    lines: Sequence[Line],
    look: dashboard.FieldConfigSource,
    *,
    instant: bool = False,
) -> dashboard.Panel:
    """A panel with what it asks, without the options of its kind."""
    return dashboard.Panel(
        type_val=kind,
        title=about.heading,
        description=about.description(lines, drawn=kind == "timeseries"),
        datasource=DATASOURCE,
        field_config=look,
        targets=[
            _target(query, ref_id, instant=instant, as_table=kind == "table")
            for ref_id, query in zip(REF_IDS, queries, strict=False)
        ],
    )


def _target(query: Query, ref_id: str, *, instant: bool, as_table: bool) -> prometheus.Dataquery:
    formats = prometheus.PromQueryFormat
    return prometheus.Dataquery(
        ref_id=ref_id,
        datasource=DATASOURCE,
        expr=query.series.text,
        legend_format=query.legend or "__auto",
        instant=instant,
        range_val=not instant,
        format_val=formats.TABLE if as_table else formats.TIME_SERIES,
        # Only a histogram's buckets carry traces.
        exemplar=True if "_bucket{" in query.series.text and not instant else None,
    )
