# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What every dashboard of this house keeps to, beyond the linter's rules."""

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from dashboards import jobs_video, node_gpu, node_gpu_load, palette
from dashboards.promql import RATE_UNITS
from dashboards.thresholds import FILE, lines_of
from tests.dashboards.documents import Document, PanelOf, TargetOf, documents, panels, targets
from tests.dashboards.documents import selectors as selectors_of
from tests.dashboards.units import GRAFANA_UNITS
from veo_client.vocabulary import OUTCOME_OF, Outcome, Reason
from veo_exporter.catalog import CATALOG
from veo_exporter.gpu.readings import State
from veo_exporter.gpu.throttle import OTHER, REASONS
from veo_exporter.units import Unit

ROOT = Path(__file__).resolve().parent.parent.parent
COLUMNS = 24
TARGET_LABELS = {"cluster", "job", "instance", "node"}
OF_PROMETHEUS = {
    "up": set(),
    "ALERTS": {"alertname", "alertstate", "severity", "action", "gpu", "uuid"},
}
OF_KUBERNETES = re.compile(r"kube_\w+")

of_each_document = pytest.mark.parametrize("document", documents(), ids=lambda each: each.name)
of_each_panel = pytest.mark.parametrize("panel", panels(), ids=str)
of_each_target = pytest.mark.parametrize("target", targets(), ids=str)


def known_names() -> dict[str, set[str] | None]:
    """Names that a query may have, with the labels declared for them; None where nobody declares."""
    known: dict[str, set[str] | None] = {**OF_PROMETHEUS}
    for spec in CATALOG:
        for name in spec.series_names:
            bucket = {"le"} if name.endswith("_bucket") else set()
            known[name] = set(spec.label_names) | bucket
    for path in sorted((ROOT / "alerts/rules").glob("*.yaml")):
        for group in yaml.safe_load(path.read_text())["groups"]:
            known.update({rule["record"]: None for rule in group["rules"] if "record" in rule})
    return known


def test_every_outcome_has_a_colour_of_its_own() -> None:
    assert list(jobs_video.OUTCOMES) == [outcome.value for outcome in Outcome]
    assert len(set(jobs_video.OUTCOMES.values())) == len(Outcome)


def test_jobs_that_count_are_those_of_the_rules() -> None:
    """A reason that is new to the vocabulary counts in both, or in neither."""
    content = yaml.safe_load((ROOT / "alerts/rules/veo-recording.yaml").read_text())
    rules = {
        rule["record"]: rule["expr"]
        for group in content["groups"]
        for rule in group["rules"]
        if rule["record"].startswith("veo:jobs_finished:increase")
    }
    assert rules
    for record, expr in rules.items():
        ((name, matchers),) = selectors_of(expr)
        assert name == "veo_jobs_finished_total", record
        assert matchers.keys() == {"job", "outcome", "reason"}, record
        not_outcomes = re.fullmatch(r"!~(.+)", matchers["outcome"])
        not_reason = re.fullmatch(r"!=(.+)", matchers["reason"])
        assert not_outcomes, record
        assert not_reason, record
        counted = [
            reason.value
            for reason in Reason
            if OUTCOME_OF[reason].value not in not_outcomes[1].split("|")
            and reason.value != not_reason[1]
        ]
        assert sorted(jobs_video.COUNTED) == sorted(counted), record


@of_each_target
def test_every_name_and_label_is_declared(target: TargetOf) -> None:
    known = known_names()
    for name, matchers in selectors_of(target.expr):
        if OF_KUBERNETES.fullmatch(name):
            continue
        assert name in known, f"{target}: {name} is in no catalogue and no recording rule"
        labels = known[name]
        if labels is not None:
            unknown = set(matchers) - labels - TARGET_LABELS
            assert not unknown, f"{target}: {name} has no label {', '.join(sorted(unknown))}"


@of_each_target
def test_what_is_chosen_is_chosen_everywhere(target: TargetOf) -> None:
    known = known_names()
    for name, matchers in selectors_of(target.expr):
        for label in {"gpu", "engine", "model", "profile"} & (known.get(name) or set()):
            if name != "ALERTS":
                assert matchers.get(label) == f"=~${label}", f"{target}: {name}"


@of_each_panel
def test_its_description_begins_with_a_question(panel: PanelOf) -> None:
    question = panel.content["description"].split("\n\n")[0]
    assert question.endswith("?"), f"{panel}: {question}"


@of_each_panel
def test_its_description_is_for_people(panel: PanelOf) -> None:
    """Grafana's names of units are none, and a panel without a graph has no lines."""
    text = panel.content["description"]
    ids = set(GRAFANA_UNITS) - {"s", "bytes"}
    assert not re.search(rf"\d ({'|'.join(ids)})\b", text), text
    if panel.kind != "timeseries":
        assert "Line at" not in text


@of_each_panel
def test_its_unit_is_that_of_a_metric_it_shows(panel: PanelOf) -> None:
    """A gauge's own, a counter's per second, a share, or a plain count."""
    specs = {name: spec for spec in CATALOG for name in spec.series_names}
    shown = [
        specs[name]
        for target in panel.targets
        for name, _ in selectors_of(target.expr)
        if name in specs
    ]
    right = {spec.unit.grafana for spec in shown} | {"none", Unit.NONE.grafana}
    right |= {RATE_UNITS[spec.unit] for spec in shown if spec.unit in RATE_UNITS}
    if any(spec.unit is Unit.TIMESTAMP for spec in shown):
        right.add(Unit.SECONDS.grafana)
    if any(" / " in target.expr for target in panel.targets):
        right.add(Unit.RATIO.grafana)
    assert panel.defaults["unit"] in right, f"{panel}: {panel.defaults['unit']}, not {right}"


def test_every_unit_of_the_catalogue_is_known_to_grafana() -> None:
    assert {unit.grafana for unit in Unit} | set(RATE_UNITS.values()) <= set(GRAFANA_UNITS)


@of_each_panel
def test_nothing_looks_like_zero(panel: PanelOf) -> None:
    assert panel.defaults["noValue"], panel
    custom = panel.defaults.get("custom", {})
    assert not custom.get("spanNulls"), f"{panel}: draws over gaps"


@of_each_document
class TestDocument:
    def test_ids_are_there_and_unique(self, document: Document) -> None:
        ids = Counter(panel["id"] for panel in document.content["panels"])
        assert [id for id, times in ids.items() if times > 1 or not id] == []

    def test_titles_are_unique(self, document: Document) -> None:
        titles = Counter(panel["title"] for panel in document.content["panels"])
        assert [title for title, times in titles.items() if times > 1] == []

    def test_the_grid_is_whole(self, document: Document) -> None:
        """Nothing overlaps, nothing is beyond the edge, and there is no hole."""
        taken: dict[tuple[int, int], str] = {}
        for panel in document.content["panels"]:
            place = panel["gridPos"]
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    other = taken.setdefault((x, y), panel["title"])
                    assert other == panel["title"], f"{document.name}: {other}, {panel['title']}"
        rows = 1 + max(y for _, y in taken)
        assert set(taken) == {(x, y) for x in range(COLUMNS) for y in range(rows)}

    def test_sizes_can_be_read_at_1280_pixels(self, document: Document) -> None:
        """A column is some 52 pixels wide there, and a unit of height 38."""
        least = {
            "stat": (4, 3),
            "timeseries": (8, 6),
            "table": (8, 5),
            "state-timeline": (8, 5),
            "heatmap": (8, 6),
        }
        for panel in document.panels:
            place = panel.content["gridPos"]
            width, height = least[panel.kind]
            assert width <= place["w"] <= COLUMNS, panel
            assert height <= place["h"] <= 12, panel

    def test_links_keep_time_and_variables(self, document: Document) -> None:
        (link,) = document.content["links"]
        assert link["type"] == "dashboards"
        assert link["tags"] == ["veo"]
        assert link["keepTime"] is True
        assert link["includeVars"] is True
        assert "placement" not in link, "hidden in a menu"
        assert "veo" in document.content["tags"]

    def test_firing_alerts_are_marked(self, document: Document) -> None:
        (annotation,) = document.content["annotations"]["list"]
        assert annotation["enable"] is True
        assert "placement" not in annotation, "hidden in a menu"
        ((name, matchers),) = selectors_of(annotation["expr"])
        assert name == "ALERTS"
        assert matchers["alertstate"] == "=firing"
        # What concerns no single node or GPU has no such label, and is marked too.
        assert matchers["node"] == "=~$node|"

    def test_the_crosshair_is_shared(self, document: Document) -> None:
        assert document.content["graphTooltip"] == 1

    def test_a_link_to_a_dashboard_keeps_what_is_chosen(self, document: Document) -> None:
        text = document.path.read_text()
        urls = re.findall(r'"url": "(/d/[^"]+)"', text)
        assert urls
        for url in urls:
            for kept in ("__url_time_range", "datasource:queryparam", "job:queryparam"):
                assert f"${{{kept}}}" in url, url


def test_threshold_lines_are_those_of_the_alerts() -> None:
    """Right whatever the numbers are: each one in the file is on the panels of its metric."""
    shown = {panel.content["title"]: panel for panel in panels()}
    titles = {
        "veo_gpu_utilization_ratio": "Utilization",
        "veo_gpu_memory_copy_utilization_ratio": "Memory copy utilization",
        "veo_exporter_last_success_timestamp_seconds": "Age of data by group",
    }
    specs = {spec.name: spec for spec in CATALOG}
    rows = yaml.safe_load(FILE.read_text())["thresholds"].values()
    for name, title in titles.items():
        values = sorted(row["value"] for row in rows if row["metric"] == name)
        assert values == [line.value for line in lines_of(specs[name])]
        steps = shown[title].defaults["thresholds"]["steps"]
        assert [step["value"] for step in steps[1:]] == values, title
        assert shown[title].defaults["custom"]["thresholdsStyle"]["mode"] == "dashed"


def test_every_state_has_its_word() -> None:
    assert set(node_gpu.STATES) == {state.value for state in State}
    assert len({word.text for word in node_gpu.STATES.values()}) == len(State)


def test_every_throttle_reason_has_its_colour() -> None:
    assert set(node_gpu_load.REASONS) == {*REASONS.values(), OTHER}


@of_each_document
def test_colours_are_of_the_palette(document: Document) -> None:
    """Red beside green says nothing to one man in twelve."""
    fixed = set(
        re.findall(r'"(?:fixedColor|color|iconColor)": "([^"]+)"', document.path.read_text())
    )
    assert fixed <= {*palette.CYCLE, palette.PLAIN}
