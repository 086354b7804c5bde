# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What all dashboards have in common: variables, annotations, links, and the grid."""

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dashboards import fields, palette
from dashboards.frames import DATASOURCE
from dashboards.promql import firing_alerts
from dashboards.sdk import JSONEncoder, dashboard
from dashboards.thresholds import runbook_base_url
from veo_exporter.catalog import MetricSpec
from veo_exporter.catalog import exporter as exporter_catalog
from veo_exporter.catalog import gpu as gpu_catalog

COLUMNS: Final = 24
TAG: Final = "veo"
RUNBOOKS: Final = "runbooks"
"""Name of the constant that holds where the runbooks are."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A panel and its width in columns."""

    panel: dashboard.Panel
    width: int


@dataclass(frozen=True, slots=True)
class Shelf:
    """Panels side by side, of one height. A heading starts a row that can be folded."""

    height: int
    panels: tuple[Placed, ...]
    heading: str = ""

    def __post_init__(self) -> None:
        if (width := sum(placed.width for placed in self.panels)) != COLUMNS:
            titles = ", ".join(placed.panel.title or "" for placed in self.panels)
            raise ValueError(f"{titles}: {width} columns together, not {COLUMNS}")


def document(
    uid: str,
    title: str,
    description: str,
    tags: Sequence[str],
    shelves: Sequence[Shelf],
    *,
    variables: Sequence[dashboard.VariableModel] = (),
) -> str:
    """A dashboard as the text of its file: sorted, so that a change is seen as what it is."""
    made = dashboard.Dashboard(
        uid=uid,
        title=title,
        description=description,
        tags=sorted({TAG, *tags}),
        timezone="browser",
        # The file is the dashboard: what is changed by hand is lost with the next version.
        editable=False,
        graph_tooltip=dashboard.DashboardCursorSync.CROSSHAIR,
        time=dashboard.DashboardDashboardTime(from_val="now-1h", to="now"),
        refresh="30s",
        templating=dashboard.DashboardDashboardTemplating(list_val=[*_variables(), *variables]),
        annotations=dashboard.AnnotationContainer(list_val=[_firing()]),
        links=[_others()],
        panels=list(_placed(shelves)),
    )
    text = json.dumps(made, cls=JSONEncoder, sort_keys=True, indent=2, ensure_ascii=False)
    return text + "\n"


def _placed(shelves: Sequence[Shelf]) -> Iterator[dashboard.Panel | dashboard.RowPanel]:
    y = 0
    for shelf in shelves:
        if shelf.heading:
            row = dashboard.GridPos(x=0, y=y, w=COLUMNS, h=1)
            name = panel_id(shelf.heading)
            yield dashboard.RowPanel(title=shelf.heading, grid_pos=row, id_val=name, panels=[])
            y += 1
        x = 0
        for placed in shelf.panels:
            placed.panel.id_val = panel_id(placed.panel.title or "")
            placed.panel.grid_pos = dashboard.GridPos(x=x, y=y, w=placed.width, h=shelf.height)
            yield placed.panel
            x += placed.width
        y += shelf.height


def panel_id(title: str) -> int:
    """The SDK gives panels no id. Links to a panel lean on it, so it stays when others come or go."""
    return zlib.crc32(title.encode()) % 1_000_000


def _variables() -> Iterator[dashboard.VariableModel]:
    yield dashboard.VariableModel(
        type_val=dashboard.VariableType.DATASOURCE,
        name="datasource",
        label="Data source",
        query="prometheus",
    )
    build_info = exporter_catalog.BUILD_INFO
    # Every target has a job. The others may be absent: cluster where there is one only, gpu on a
    # GPU that NVML never listed; an absent label matches .* and not .+
    yield _chosen("cluster", "Cluster", _values_of(build_info, "cluster"), ".*")
    yield _chosen("job", "Job", _values_of(build_info, "job", "cluster"), ".+")
    yield _chosen("node", "Node", _values_of(build_info, "node", "cluster", "job"), ".*")
    gpus = _values_of(gpu_catalog.GPU_STATE, "gpu", "cluster", "job", "node")
    yield _chosen("gpu", "GPU", gpus, ".*")
    yield dashboard.VariableModel(
        type_val=dashboard.VariableType.CONSTANT,
        name=RUNBOOKS,
        label="Runbooks",
        query=runbook_base_url(),
        hide=dashboard.VariableHide.HIDE_VARIABLE,
        skip_url_sync=True,
    )


def chosen_of(spec: MetricSpec, label: str, name: str) -> dashboard.VariableModel:
    """A variable with the values of a metric's label."""
    return _chosen(label, name, _values_of(spec, label, "cluster", "job", "node"), ".*")


def _values_of(spec: MetricSpec, label: str, *chosen: str) -> str:
    matchers = ",".join(f'{name}=~"${name}"' for name in chosen)
    selector = f"{spec.name}{{{matchers}}}" if matchers else spec.name
    return f"label_values({selector}, {label})"


def _chosen(name: str, label: str, query: str, everything: str) -> dashboard.VariableModel:
    return dashboard.VariableModel(
        type_val=dashboard.VariableType.QUERY,
        name=name,
        label=label,
        datasource=DATASOURCE,
        query=query,
        definition=query,
        multi=True,
        include_all=True,
        all_value=everything,
        current=dashboard.VariableOption(selected=True, text=["All"], value=["$__all"]),
        refresh=dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED,
        # GPU 10 comes after GPU 9.
        sort=dashboard.VariableSort.NATURAL_ASC,
    )


def _firing() -> dashboard.AnnotationQuery:
    made = dashboard.AnnotationQuery(
        name="Firing alerts",
        datasource=DATASOURCE,
        enable=True,
        hide=False,
        icon_color=palette.VERMILLION,
        expr=firing_alerts().text,
        title_format="{{alertname}}",
        text_format="{{severity}}: node {{node}} GPU {{gpu}}, do: {{action}}",
        tag_keys="severity,node,gpu",
        step="30s",
    )
    made.placement = None  # type: ignore[assignment]
    return made


def _others() -> dashboard.DashboardLink:
    made = dashboard.DashboardLink(
        title="Veo dashboards",
        type_val=dashboard.DashboardLinkType.DASHBOARDS,
        tags=[TAG],
        as_dropdown=False,
        keep_time=True,
        include_vars=True,
    )
    fields.show_directly(made)
    return made
