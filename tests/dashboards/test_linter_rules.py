# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The 17 rules of Grafana's dashboard-linter 0.2, by their names, for every type of panel in use.

Two differ, on purpose. The linter wants an `instance` variable; ours is `node`, since an instance is
an address that a restart changes. And its All is `.*` where the linter wants `.+`, since a node label
is set by relabelling and a plain scrape configuration has none.
"""

import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest

from tests.dashboards.documents import (
    Document,
    PanelOf,
    TargetOf,
    documents,
    panels,
    parsed,
    selectors,
    substituted,
    targets,
)
from tests.dashboards.units import GRAFANA_UNITS

of_each_document = pytest.mark.parametrize("document", documents(), ids=lambda each: each.name)
of_each_panel = pytest.mark.parametrize("panel", panels(), ids=str)
of_each_target = pytest.mark.parametrize("target", targets(), ids=str)

KINDS = {"stat", "timeseries", "table", "state-timeline", "heatmap"}
LABEL_VALUES = re.compile(r"label_values\((?:(?P<selector>.+),\s*)?(?P<label>\w+)\)")


def test_the_rules_see_something() -> None:
    assert documents()
    assert panels()
    assert targets()
    assert {panel.kind for panel in panels()} <= KINDS


@of_each_document
class TestTemplate:
    def test_template_datasource(self, document: Document) -> None:
        variable = document.variables["datasource"]
        assert variable["type"] == "datasource"
        assert variable["query"] == "prometheus"
        assert variable["label"] == "Data source"

    def test_template_job(self, document: Document) -> None:
        assert_chosen(document.variables["job"], "Job", ".+")

    def test_template_instance(self, document: Document) -> None:
        assert_chosen(document.variables["node"], "Node", ".*")

    def test_template_label_promql(self, document: Document) -> None:
        for variable in queried(document):
            match = LABEL_VALUES.fullmatch(variable["query"])
            assert match, f"{document.name}, {variable['name']}: {variable['query']}"
            assert match["selector"], f"{document.name}, {variable['name']}: of all metrics"
            promql_parser.parse(substituted(match["selector"]))

    def test_template_on_time_change_reload(self, document: Document) -> None:
        for variable in queried(document):
            assert variable["refresh"] == 2, f"{document.name}, {variable['name']}"

    def test_uneditable_dashboard(self, document: Document) -> None:
        assert document.content["editable"] is False


@of_each_panel
class TestPanel:
    def test_panel_datasource(self, panel: PanelOf) -> None:
        for where in (panel.content, *(target.content for target in panel.targets)):
            assert where["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, panel

    def test_panel_title_description(self, panel: PanelOf) -> None:
        assert panel.content["title"], panel
        assert panel.content["description"], panel

    def test_panel_units(self, panel: PanelOf) -> None:
        unit = panel.defaults.get("unit")
        assert unit in GRAFANA_UNITS, f"{panel}: {unit!r} is no unit of Grafana"

    def test_panel_no_targets(self, panel: PanelOf) -> None:
        assert panel.targets, panel


@of_each_target
class TestTarget:
    def test_target_promql(self, target: TargetOf) -> None:
        promql_parser.parse(substituted(target.expr))

    def test_target_logql_and_target_logql_auto(self, target: TargetOf) -> None:
        """There are no logs here: both rules hold as long as every query is for Prometheus."""
        assert target.content["datasource"]["type"] == "prometheus", target

    def test_target_rate_interval(self, target: TargetOf) -> None:
        for function, window in re.findall(r"\b(rate|irate)\(\w+{[^}]*}\[([^]]+)\]", target.expr):
            assert window == "$__rate_interval", f"{target}: {function} over {window}"

    def test_target_job(self, target: TargetOf) -> None:
        for name, matchers in scraped(target):
            assert matchers.get("job") == "=~$job", f"{target}: {name}"

    def test_target_instance(self, target: TargetOf) -> None:
        for name, matchers in scraped(target):
            assert matchers.get("node") == "=~$node", f"{target}: {name}"
            assert matchers.get("cluster") == "=~$cluster", f"{target}: {name}"

    def test_target_counter_agg(self, target: TargetOf) -> None:
        """A counter's own value says nothing: it belongs into rate, irate or increase."""
        inside = [
            window.vector_selector.name or ""
            for call, window in calls(target.expr)
            if call in {"rate", "irate", "increase"}
        ]
        counters = [
            name for name, _ in selectors(target.expr) if name.endswith(("_total", "_bucket"))
        ]
        assert sorted(counters) == sorted(inside), target


def assert_chosen(variable: dict[str, Any], label: str, everything: str) -> None:
    assert variable["type"] == "query"
    assert variable["datasource"]["uid"] == "${datasource}"
    assert variable["label"] == label
    assert variable["multi"] is True
    assert variable["includeAll"] is True
    assert variable["allValue"] == everything


def queried(document: Document) -> list[dict[str, Any]]:
    found = [each for each in document.variables.values() if each["type"] == "query"]
    assert found, document.name
    return found


OUR_JOBS = (
    "veo_exporter_build_info",
    {"cluster": "=~$cluster", "job": "=~$job"},
)
"""Which jobs are ours is asked of all nodes: a node that never was up could not say it of itself."""


def scraped(target: TargetOf) -> list[tuple[str, dict[str, str]]]:
    """Selectors of what is scraped; ALERTS is made by Prometheus and has the labels of its rule."""
    found = selectors(target.expr)
    return [each for each in found if each[0] != "ALERTS" and each != OUR_JOBS]


def calls(expr: str) -> Iterator[tuple[str, promql_parser.MatrixSelector]]:
    """Calls of functions that take a window, by name."""
    found: list[tuple[str, promql_parser.MatrixSelector]] = []

    def visit(node: promql_parser.Expr) -> None:
        if isinstance(node, promql_parser.Call):
            windows = (each for each in node.args if isinstance(each, promql_parser.MatrixSelector))
            found.extend((node.func.name, window) for window in windows)

    promql_parser.walk(parsed(expr), visit)
    yield from found
