# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A histogram's buckets over time, as colours."""

from typing import Final

from dashboards import palette
from dashboards.frames import framed, look_of
from dashboards.promql import RATE_UNITS, Series
from dashboards.questions import About, Query
from dashboards.sdk import common, dashboard, heatmap, prometheus
from veo_exporter.units import Unit

SCHEME: Final = "Viridis"
"""Its lightness grows with the value: it can be read without telling colours apart."""


def cells(about: About, buckets: Series) -> dashboard.Panel:
    """A row for each bucket; the lighter a cell, the more fell into it."""
    look = look_of(about)
    panel = framed("heatmap", about, (Query(buckets, "{{le}}"),), (), look)
    for target in panel.targets or ():
        assert isinstance(target, prometheus.Dataquery)  # noqa: S101, there is no other kind here
        target.format_val = prometheus.PromQueryFormat.HEATMAP
    panel.options = heatmap.Options(
        calculate=False,
        color=heatmap.HeatmapColorOptions(
            mode=heatmap.HeatmapColorMode.SCHEME,
            scheme=SCHEME,
            scale=heatmap.HeatmapColorScale.EXPONENTIAL,
            exponent=0.5,
            steps=64,
        ),
        rows_frame=heatmap.RowsHeatmapOptions(layout=common.HeatmapCellLayout.AUTO),
        filter_values=heatmap.FilterValueRange(le=1e-9),
        cell_values=heatmap.CellValues(unit=RATE_UNITS[Unit.NONE]),
        y_axis=heatmap.YAxisConfig(unit=about.grafana_unit),
        exemplars=heatmap.ExemplarConfig(color=palette.ORANGE),
        legend=heatmap.HeatmapLegend(show=True),
        tooltip=heatmap.HeatmapTooltip(mode=common.TooltipDisplayMode.SINGLE, y_histogram=True),
    )
    look.defaults.custom = heatmap.FieldConfig()
    return panel
