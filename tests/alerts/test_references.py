# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A name that does not exist is found wherever it is used."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from alerts.thresholds import load_thresholds
from tools.expressions import OUTSIDE, Query, Vocabulary, faults_of, labels_of
from tools.programs import ROOT
from tools.references import check, dashboard_queries, rule_queries, runbook_queries
from veo_exporter.catalog import CATALOG, Kind, MetricSpec
from veo_exporter.units import Unit

HISTOGRAM = MetricSpec(
    "veo_test_duration_seconds", Kind.HISTOGRAM, Unit.SECONDS, "A histogram.", buckets=(1.0, 2.0)
)
RECORDING = [
    Query(
        "rules.yaml", "veo:node:busy", "avg by (node) (veo_gpu_utilization_ratio)", "veo:node:busy"
    ),
    Query(
        "rules.yaml",
        "veo:energy_joules_total",
        "max by (node, uuid) (veo_gpu_energy_joules_total)",
        "veo:energy_joules_total",
    ),
]
VOCABULARY = Vocabulary([*CATALOG, HISTOGRAM], RECORDING)


def said(expr: str) -> list[str]:
    """What is wrong with an expression."""
    return [
        ": ".join(filter(None, (fault.metric, fault.what)))
        for fault in faults_of(Query("file", "rule", expr), VOCABULARY)
    ]


def test_all_rules_dashboards_and_runbooks_name_what_exists() -> None:
    assert list(map(str, check())) == []


def test_there_is_something_to_check() -> None:
    assert len(rule_queries()) == sum(
        len(group["rules"])
        for path in (ROOT / "alerts/rules").glob("*.yaml")
        for group in yaml.safe_load(path.read_text())["groups"]
    )
    written = sum(
        len(re.findall(r'"expr": ', path.read_text()))
        for path in (ROOT / "dashboards/json").glob("*.json")
    )
    asked = [query for query in dashboard_queries() if not query.where.startswith("variable ")]
    assert len(asked) == written
    pages = list((ROOT / "alerts/runbooks").glob("*.md"))
    assert len(runbook_queries()) == sum(page.read_text().count("```promql\n") for page in pages)


def renamed(old: str, new: str) -> list[MetricSpec]:
    """The catalogue with one metric under another name."""
    return [replace(spec, name=new) if spec.name == old else spec for spec in CATALOG]


def test_a_metric_renamed_in_the_catalogue_is_named_with_all_who_used_it(tmp_path: Path) -> None:
    (tmp_path / "alerts").mkdir()
    shutil.copytree(ROOT / "alerts/rules", tmp_path / "alerts/rules")
    shutil.copytree(ROOT / "alerts/runbooks", tmp_path / "alerts/runbooks")
    dashboards = tmp_path / "dashboards/json"
    dashboards.mkdir(parents=True)
    panel = {
        "title": "GPUs expected",
        "targets": [{"expr": 'sum(veo_gpus_expected{node=~"$node"})'}],
    }
    other = {"title": "Usable", "targets": [{"expr": "veo_gpus_usable"}]}
    content = {"panels": [other, {"type": "row", "title": "Folded", "panels": [panel]}]}
    (dashboards / "node.json").write_text(json.dumps(content))
    assert check(CATALOG, tmp_path) == []
    faults = check(renamed("veo_gpus_expected", "veo_gpus_wanted"), tmp_path)
    assert list(map(str, faults)) == [
        "alerts/rules/veo-alerts.yaml: VeoGpusMissing: veo_gpus_expected: no such metric",
        "alerts/rules/veo-alerts.yaml: VeoDataStale: veo_gpus_expected: no such metric",
        "alerts/rules/veo-recording.yaml: veo:node_gpus_usable:ratio: veo_gpus_expected: no such metric",
        "dashboards/json/node.json: GPUs expected: veo_gpus_expected: no such metric",
        "alerts/runbooks/VeoDataStale.md: Diagnosis: veo_gpus_expected: no such metric",
        "alerts/runbooks/VeoGpuHung.md: Diagnosis: veo_gpus_expected: no such metric",
        "alerts/runbooks/VeoGpuHung.md: Verify recovery: veo_gpus_expected: no such metric",
        "alerts/runbooks/VeoGpuLost.md: Verify recovery: veo_gpus_expected: no such metric",
        "alerts/runbooks/VeoGpuResetRequired.md: Verify recovery: veo_gpus_expected: no such metric",
        "alerts/runbooks/VeoGpusMissing.md: Diagnosis: veo_gpus_expected: no such metric",
        "alerts/runbooks/VeoGpusMissing.md: Verify recovery: veo_gpus_expected: no such metric",
    ]


def test_alerts_that_lean_on_a_recording_rule_are_named_too_and_thresholds() -> None:
    old = "veo_gpu_memory_copy_utilization_ratio"
    faults = list(map(str, check(renamed(old, "veo_gpu_copy_utilization_ratio"))))
    record = "veo:gpu_memory_copy_utilization_ratio"
    for line in (
        f"alerts/rules/veo-recording.yaml: {record}: {old}: no such metric",
        f"alerts/rules/veo-alerts.yaml: VeoGpuMemoryCopyHigh: {record}: leans on {old}: no such metric",
        f"alerts/thresholds.yaml: gpu_memory_copy_high: {old}: no such metric",
    ):
        assert line in faults
    assert any(
        line.startswith("dashboards/json/node-gpu.json: ") and old in line for line in faults
    )


def test_make_check_names_them_before_it_says_that_files_are_stale() -> None:
    verbs = (ROOT / "Makefile").read_text().partition("\ncheck:")[2].partition("\n\n")[0]
    assert 0 < verbs.index("tools.references") < verbs.index("tools.generate")


@pytest.mark.parametrize("spec", CATALOG, ids=lambda spec: spec.name)
def test_each_metric_renamed_is_found_wherever_its_name_stands(spec: MetricSpec) -> None:
    """The queries are searched as text here, and read as PromQL there."""
    name = re.compile(rf"(?<![\w:]){spec.name}(?![\w:])")
    queries = [*rule_queries(), *dashboard_queries(), *runbook_queries()]
    users = {(query.file, query.where) for query in queries if name.search(query.expr)}
    users |= {
        ("alerts/thresholds.yaml", threshold.name)
        for threshold in load_thresholds().thresholds.values()
        if threshold.metric == spec.name
    }
    faults = check(
        renamed(spec.name, f"{spec.name.removesuffix(of_counter(spec))}_x{of_named(spec)}")
    )
    assert {(fault.file, fault.where) for fault in faults if fault.metric == spec.name} == users
    direct = {fault.what for fault in faults if not fault.metric.startswith("veo:")}
    assert direct <= {"no such metric"}


def of_named(spec: MetricSpec) -> str:
    """The end of a metric's name that its kind and unit ask for."""
    unit = f"_{spec.unit.suffix}" if spec.unit.suffix else ""
    return unit + of_counter(spec)


def of_counter(spec: MetricSpec) -> str:
    return "_total" if spec.kind is Kind.COUNTER else ""


def test_the_command_passes() -> None:
    passed = subprocess.run(
        [sys.executable, "-m", "tools.references"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (passed.returncode, passed.stderr) == (0, "")


@pytest.mark.parametrize(
    ("expr", "faults"),
    [
        ("veo_gpu_utilization_ratio > 0.5", []),
        ("veo_gpu_utilisation_ratio > 0.5", ["veo_gpu_utilisation_ratio: no such metric"]),
        ("veo_test_duration_seconds", ["veo_test_duration_seconds: no such metric"]),
        ("rate(veo_test_duration_seconds_sum[5m])", []),
        ("sum by (le) (rate(veo_test_duration_seconds_bucket[5m]))", []),
        (
            "sum by (le) (rate(veo_test_duration_seconds_count[5m]))",
            ["veo_test_duration_seconds_count: has no label le"],
        ),
        ('{job="veo"}', ["a selector names no metric"]),
        ("sum(", ["cannot be parsed"]),
        # Labels
        ('veo_gpus_visible{node="a", cluster="c", instance="i", job="j"}', []),
        ('veo_gpus_visible{gpu="3"}', ["veo_gpus_visible: has no label gpu"]),
        (
            "sum by (node, reason) (veo_gpu_power_watts)",
            ["veo_gpu_power_watts: has no label reason"],
        ),
        ("max without (state) (veo_gpu_power_watts)", ["veo_gpu_power_watts: has no label state"]),
        ("veo_gpus_visible / on (instance) veo_gpus_expected", []),
        (
            "veo_gpus_visible / on (gpu) veo_gpus_expected",
            [
                "veo_gpus_visible: has no label gpu",
                "veo_gpus_expected: has no label gpu",
            ],
        ),
        ("veo_gpu_power_watts * on (instance, uuid) group_left (name) veo_gpu_info", []),
        ("sum by (name) (veo_gpu_power_watts * on (uuid) group_left (name) veo_gpu_info)", []),
        (
            "veo_gpu_power_watts * on (uuid) group_left (model) veo_gpu_info",
            ["veo_gpu_info: has no label model"],
        ),
        (
            "sum by (uuid) (sum by (node) (veo_gpu_power_watts))",
            ["veo_gpu_power_watts: has no label uuid"],
        ),
        ('label_replace(veo_gpus_visible, "host", "$1", "node", "(.+)")', []),
        (
            'label_replace(veo_gpus_visible, "host", "$1", "hostname", "(.+)")',
            ["veo_gpus_visible: has no label hostname"],
        ),
        ("sum by (node) (veo:node:busy)", []),
        ('veo:node:busy{uuid="x"}', ["veo:node:busy: has no label uuid"]),
        ("veo:node:idle", ["veo:node:idle: no such metric"]),
        ('ALERTS{alertname="VeoGpuLost", gpu="3"}', []),
        # Counters
        (
            "veo_gpu_energy_joules_total",
            ["veo_gpu_energy_joules_total: is a counter: take its rate or increase"],
        ),
        ("sum(rate(veo_gpu_energy_joules_total[5m]))", []),
        ("count(veo_gpu_energy_joules_total)", []),
        (
            "max_over_time(veo_gpu_energy_joules_total[5m])",
            ["veo_gpu_energy_joules_total: is a counter: take its rate or increase"],
        ),
        (
            "veo:energy_joules_total",
            ["veo:energy_joules_total: is a counter: take its rate or increase"],
        ),
        ("increase(veo:energy_joules_total[1h])", []),
        # Grafana's variables
        ('sum by (node) (rate(veo_gpu_energy_joules_total{node=~"$node"}[$__rate_interval]))', []),
        ('max_over_time(veo_gpu_power_watts{node=~"${node:regex}"}[${__range}])', []),
    ],
)
def test_what_is_found(expr: str, faults: list[str]) -> None:
    assert [fault.split(": ")[0] if "parsed" in fault else fault for fault in said(expr)] == faults


def test_a_counter_may_be_recorded_as_a_counter() -> None:
    assert [faults_of(query, VOCABULARY) for query in RECORDING] == [[], []]
    hidden = replace(RECORDING[1], record="veo:energy_joules")
    assert [fault.what for fault in faults_of(hidden, VOCABULARY)] == [
        "is a counter: take its rate or increase"
    ]


@pytest.mark.parametrize(
    ("expr", "always"),
    [
        ("up", {"job", "instance", "node"}),
        ("veo_gpu_power_watts", {"job", "instance", "node", "gpu", "uuid"}),
        # A GPU that NVML never listed has neither index nor UUID.
        ("veo_gpu_state", {"job", "instance", "node", "state"}),
        ("max by (node, uuid) (veo_gpu_power_watts)", {"node", "uuid"}),
        ("max without (uuid) (veo_gpu_power_watts)", {"job", "instance", "node", "gpu"}),
        ("veo_gpu_power_watts or veo_gpus_visible", {"job", "instance", "node"}),
        ("veo_gpu_power_watts and on (node) up", {"job", "instance", "node", "gpu", "uuid"}),
        ("veo_gpu_power_watts > 3", {"job", "instance", "node", "gpu", "uuid"}),
        ("veo_gpu_power_watts / on (uuid) veo_gpu_power_limit_watts", {"uuid"}),
        (
            'label_replace(DCGM_FI_DEV_GPU_UTIL, "uuid", "$1", "UUID", "(.+)")',
            {"job", "instance", "node", "gpu", "UUID", "uuid"},
        ),
        (
            'label_replace(DCGM_FI_DEV_GPU_UTIL, "name", "$1", "modelName", "(.+)")',
            {
                *("job", "instance", "node", "gpu", "UUID"),
            },
        ),
        ("vector(1)", set()),
        ("sum(up)", set()),
    ],
)
def test_labels_that_are_always_carried(expr: str, always: set[str]) -> None:
    labels = labels_of(Query("file", "rule", expr), VOCABULARY)
    assert labels is not None
    assert labels.always == always


def test_a_dashboards_variables_and_annotations_are_queries_too(tmp_path: Path) -> None:
    folder = tmp_path / "dashboards/json"
    folder.mkdir(parents=True)
    (tmp_path / "alerts/rules").mkdir(parents=True)
    variables = [
        {"name": "node", "type": "query", "query": 'label_values(veo_gpu_gone{job="$job"}, node)'},
        {"name": "gpu", "type": "query", "query": {"query": "label_values(veo_gpus_visible, gpu)"}},
        {"name": "datasource", "type": "datasource", "query": "prometheus"},
    ]
    content = {
        "templating": {"list": variables},
        "annotations": {"list": [{"name": "Lost", "expr": "veo_gpu_lost"}, {"name": "Built in"}]},
    }
    (folder / "d.json").write_text(json.dumps(content))
    assert list(map(str, check(CATALOG, tmp_path))) == [
        "dashboards/json/d.json: variable node: veo_gpu_gone: no such metric",
        "dashboards/json/d.json: variable gpu: veo_gpus_visible: has no label gpu",
        "dashboards/json/d.json: annotation Lost: veo_gpu_lost: no such metric",
    ]


def test_a_recording_rule_that_nobody_knows_of_is_found(tmp_path: Path) -> None:
    rules = tmp_path / "alerts/rules"
    rules.mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    rule = {"record": "veo:gpus:count", "expr": "count by (node) (veo_gpus_visible)"}
    (rules / "r.yaml").write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": [rule]}]}))
    assert list(map(str, check(CATALOG, tmp_path))) == [
        "alerts/rules/r.yaml: veo:gpus:count: is used nowhere, and no page explains it"
    ]
    (tmp_path / "docs/alerts.md").write_text("`veo:gpus:count` is the number of GPUs of a node.\n")
    assert check(CATALOG, tmp_path) == []


def test_every_outside_name_has_its_reason_and_its_use() -> None:
    assert all(outside.why for outside in OUTSIDE.values())
    texts = " ".join(
        query.expr for query in (*rule_queries(), *dashboard_queries(), *runbook_queries())
    )
    unused = [name for name in OUTSIDE if not re.search(rf"\b{name}\b", texts)]
    assert unused == []
