# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Panels in the house style: title, description and unit come from the metric's declaration."""

from collections.abc import Mapping, Sequence

from dashboards import fields, palette
from dashboards.fields import Wording
from dashboards.frames import REF_IDS, framed, look_of
from dashboards.promql import BadQuery
from dashboards.questions import About, Query
from dashboards.sdk import common, dashboard, stat, statetimeline, table, timeseries
from dashboards.thresholds import Line


def graph(
    about: About,
    *queries: Query,
    lines: Sequence[Line] = (),
    least: float | None = 0,
    most: float | None = None,
    fill: int = 0,
    colours: Mapping[str, str] | None = None,
    links: Sequence[dashboard.DashboardLink] = (),
) -> dashboard.Panel:
    """Values over time. Colours are fixed by a pattern of the series' names; GPUs have theirs."""
    look = look_of(about, lines)
    panel = framed("timeseries", about, queries, lines, look)
    panel.options = timeseries.Options(legend=fields.legend(shown=True), tooltip=fields.tooltip())
    style = common.GraphThresholdsStyleConfig(
        mode=common.GraphThresholdsStyleMode.DASHED
        if lines
        else common.GraphThresholdsStyleMode.OFF
    )
    look.defaults.min_val, look.defaults.max_val = least, most
    look.defaults.color = dashboard.FieldColor(
        mode=dashboard.FieldColorModeId.PALETTE_CLASSIC_BY_NAME
    )
    look.defaults.links = list(links) or None
    look.defaults.custom = timeseries.FieldConfig(
        draw_style=common.GraphDrawStyle.LINE,
        line_width=2,
        fill_opacity=fill,
        show_points=common.VisibilityMode.AUTO,
        span_nulls=False,
        thresholds_style=style,
    )
    fixed = palette.gpu_colours() if colours is None else colours
    overrides = [
        fields.override("byRegexp", f"/{pattern}/", color=fields.fixed(colour))
        for pattern, colour in fixed.items()
    ]
    for ref_id, query in zip(REF_IDS, queries, strict=False):
        if query.dashed:
            dash = {"fill": "dash", "dash": [6, 6]}
            properties: dict[str, object] = {"custom.lineStyle": dash, "custom.lineWidth": 1}
            if not query.in_legend:
                hidden = {"legend": True, "tooltip": False, "viz": False}
                properties["custom.hideFrom"] = hidden
            overrides.append(fields.override("byFrameRefID", ref_id, **properties))
    look.overrides = overrides
    return panel


def number(
    about: About,
    query: Query,
    *,
    words: Mapping[int, Wording] | None = None,
    lines: Sequence[Line] = (),
    background: bool = False,
) -> dashboard.Panel:
    """One figure, or one word, of now."""
    look = look_of(about, lines)
    panel = framed("stat", about, (query,), lines, look, instant=True)
    panel.options = stat.Options(
        graph_mode=common.BigValueGraphMode.NONE,
        color_mode=common.BigValueColorMode.BACKGROUND_SOLID
        if background
        else common.BigValueColorMode.VALUE,
        text_mode=common.BigValueTextMode.VALUE,
        reduce_options=common.ReduceDataOptions(calcs=["lastNotNull"], fields="", values=False),
    )
    look.defaults.mappings = fields.mappings(words)
    look.defaults.color = dashboard.FieldColor(mode=dashboard.FieldColorModeId.THRESHOLDS)
    return panel


def states(
    about: About,
    query: Query,
    *,
    words: Mapping[int, Wording] | None = None,
    lines: Sequence[Line] = (),
    links: Sequence[dashboard.DashboardLink] = (),
) -> dashboard.Panel:
    """One row for each series, a word or a step of thresholds for each stretch of time."""
    look = look_of(about, lines)
    panel = framed("state-timeline", about, (query,), lines, look)
    panel.options = statetimeline.Options(
        show_value=common.VisibilityMode.AUTO,
        merge_values=True,
        row_height=0.85,
        # The colours are explained by the words in the rows.
        legend=fields.legend(shown=words is None),
        tooltip=fields.tooltip(),
        per_page=32,
    )
    look.defaults.mappings = fields.mappings(words)
    look.defaults.color = dashboard.FieldColor(mode=dashboard.FieldColorModeId.THRESHOLDS)
    look.defaults.links = list(links) or None
    look.defaults.custom = statetimeline.FieldConfig(
        line_width=0, fill_opacity=90, span_nulls=False
    )
    return panel


def rows(
    about: About,
    query: Query,
    columns: Mapping[str, str],
    *,
    words: Mapping[int, Wording] | None = None,
    sorted_by: str,
    links: Mapping[str, dashboard.DashboardLink] | None = None,
) -> dashboard.Panel:
    """A table of now: label to heading, left to right; the value's label is Value."""
    labels = [label for label in columns if label != "Value"]
    if missing := set(labels) - query.series.labels:
        raise BadQuery(f"{query.series.text} has no label {', '.join(sorted(missing))}")
    look = look_of(about)
    panel = framed("table", about, (query,), (), look, instant=True)
    panel.options = table.Options(
        show_header=True,
        cell_height=common.TableCellHeight.SM,
        sort_by=[common.TableSortByFieldState(display_name=sorted_by, desc=False)],
    )
    hidden = {"Time": True, "__name__": True, **({} if "Value" in columns else {"Value": True})}
    panel.transformations = [
        dashboard.DataTransformerConfig(
            id_val="organize",
            options={
                "excludeByName": hidden,
                "indexByName": {label: place for place, label in enumerate(columns)},
                "renameByName": dict(columns),
            },
        )
    ]
    look.defaults.custom = table.FieldConfig(filterable=True)
    overrides = []
    if words is not None:
        cell = common.TableColoredBackgroundCellOptions(
            mode=common.TableCellBackgroundDisplayMode.BASIC
        )
        overrides.append(
            fields.override(
                "byName",
                columns["Value"],
                mappings=fields.mappings(words),
                **{"custom.cellOptions": cell},
            )
        )
    for label, link in (links or {}).items():
        overrides.append(fields.override("byName", columns[label], links=[link]))
    look.overrides = overrides
    return panel


def link(title: str, url: str, *, new_tab: bool = False) -> dashboard.DashboardLink:
    """A link that a value carries."""
    made = dashboard.DashboardLink(title=title, url=url, target_blank=new_tab)
    fields.show_directly(made)
    return made
