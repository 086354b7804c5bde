# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Panels in the house style: title, description and unit come from the metric's declaration."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final

from dashboards import fields, palette
from dashboards.fields import Wording
from dashboards.promql import BadQuery, Series
from dashboards.sdk import common, dashboard, prometheus, stat, statetimeline, table, timeseries
from dashboards.thresholds import Line
from veo_exporter.catalog import MetricSpec

DATASOURCE: Final = common.DataSourceRef(type_val="prometheus", uid="${datasource}")
GPU_LEGEND: Final = "{{node}} GPU {{gpu}}"
NODE_LEGEND: Final = "{{node}}"
NO_DATA: Final = "no data"

_PLACE: Final = re.compile(r"{{(\w+)}}")
_WORDS: Final = {"gpu": "GPU", "gpus": "GPUs", "sm": "SM", "nvml": "NVML", "cpu": "CPU"}
_REF_IDS: Final = "ABCDEFGH"


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked, and what its series are called. Dashed is for what bounds or frames a value."""

    series: Series
    legend: str = ""
    dashed: bool = False
    in_legend: bool = True

    def __post_init__(self) -> None:
        if missing := set(_PLACE.findall(self.legend)) - self.series.labels:
            raise BadQuery(
                f"{self.legend!r}: {self.series.text} has no label {', '.join(sorted(missing))}"
            )


@dataclass(frozen=True, slots=True)
class About:
    """What a panel is of, and the question it answers.

    Title, unit and meaning are the metric's own, unless the panel makes something else of it.
    """

    spec: MetricSpec | None
    question: str
    _: KW_ONLY
    title: str = ""
    unit: str = ""
    meaning: str = ""
    none: str = NO_DATA
    """What stands where there is no value, so that it never looks like a zero."""

    def __post_init__(self) -> None:
        if not self.question.endswith("?"):
            raise ValueError(f"a panel answers a question: {self.question!r}")
        if self.spec is None and not (self.title and self.unit and self.meaning):
            raise ValueError(f"{self.question!r}: title, unit or meaning is missing")

    @property
    def heading(self) -> str:
        """The panel's title."""
        return self.title or (title_of(self.spec) if self.spec else "")

    @property
    def grafana_unit(self) -> str:
        """The unit of what is shown."""
        return self.unit or (self.spec.unit.grafana if self.spec else "")

    def description(self, lines: Sequence[Line], *, drawn: bool) -> str:
        """The question, what the answer means, and what the lines or colours are."""
        meaning = self.meaning or (self.spec.help if self.spec else "")
        return "\n\n".join(
            (
                self.question,
                meaning,
                *(line.sentence(self.grafana_unit, drawn=drawn) for line in lines),
            )
        )


def title_of(spec: MetricSpec) -> str:
    """A metric's name as people say it."""
    stem = re.sub(r"^veo_(gpu_|exporter_)?", "", spec.name.removesuffix("_total"))
    words = stem.removesuffix(f"_{spec.unit.suffix}").split("_")
    title = " ".join(_WORDS.get(word, word) for word in words)
    return title[0].upper() + title[1:]


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
    look = _look(about, lines)
    panel = _panel("timeseries", about, queries, lines, look)
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
    for ref_id, query in zip(_REF_IDS, queries, strict=False):
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
    look = _look(about, lines)
    panel = _panel("stat", about, (query,), lines, look, instant=True)
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
    look = _look(about, lines)
    panel = _panel("state-timeline", about, (query,), lines, look)
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
    look = _look(about, ())
    panel = _panel("table", about, (query,), (), look, instant=True)
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


def _look(about: About, lines: Sequence[Line]) -> dashboard.FieldConfigSource:
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


def _panel(
    kind: str,
    about: About,
    queries: Sequence[Query],
    lines: Sequence[Line],
    look: dashboard.FieldConfigSource,
    *,
    instant: bool = False,
) -> dashboard.Panel:
    return dashboard.Panel(
        type_val=kind,
        title=about.heading,
        description=about.description(lines, drawn=kind == "timeseries"),
        datasource=DATASOURCE,
        field_config=look,
        targets=[
            _target(query, ref_id, instant=instant, as_table=kind == "table")
            for ref_id, query in zip(_REF_IDS, queries, strict=False)
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


def look_of(about: About) -> dashboard.FieldConfigSource:
    """Unit and words of a panel of another module."""
    return _look(about, ())


def base(
    kind: str, about: About, query: Query, look: dashboard.FieldConfigSource
) -> dashboard.Panel:
    """A panel of another module, without its options."""
    return _panel(kind, about, (query,), (), look)
