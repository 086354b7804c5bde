# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Every alert has its page, and what the page says is so."""

import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from alerts.sources import Alert, load_groups
from alerts.thresholds import Threshold, load_thresholds
from tests.alerts.test_alertmanager import CONTENT, carriers
from tools.expressions import Query, Vocabulary, faults_of
from tools.programs import ROOT, tool
from tools.references import rule_queries, runbook_queries
from veo_exporter.catalog import CATALOG, Kind, MetricSpec
from veo_exporter.gpu.codes import ReturnCode, remedy_for
from veo_exporter.web.doors import PUBLIC_PATHS

FOLDER = ROOT / "alerts/runbooks"
ALERTS = {
    rule.alert: rule for group in load_groups() for rule in group.rules if isinstance(rule, Alert)
}
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load((ROOT / "alerts/rules/veo-alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
}
SECTIONS = ["Meaning", "Impact", "Diagnosis", "Mitigation", "Verify recovery", "Tuning"]
THRESHOLDS = load_thresholds().thresholds
every_alert = pytest.mark.parametrize("alert", ALERTS)


@cache
def page(alert: str) -> str:
    return (FOLDER / f"{alert}.md").read_text()


def section(alert: str, name: str) -> str:
    found = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", page(alert), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def queries(alert: str) -> list[Query]:
    return [query for query in runbook_queries() if Path(query.file).stem == alert]


# One page for each alert, all of the same make


def test_alerts_and_pages_are_one_to_one() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {f"{alert}.md" for alert in ALERTS}


@every_alert
def test_the_alert_leads_to_its_page(alert: str) -> None:
    url: str = RULES[alert]["annotations"]["runbook_url"]
    assert url.rsplit("/", 1)[-1] == f"{alert}.md"


@every_alert
def test_the_sections_are_the_usual_ones(alert: str) -> None:
    assert re.findall(r"^# (.+)$", page(alert), re.MULTILINE)[0] == alert
    assert page(alert).startswith(f"# {alert}\n")
    assert re.findall(r"^## (.+)$", page(alert), re.MULTILINE) == SECTIONS
    assert [name for name in SECTIONS if not section(alert, name).strip()] == []


@every_alert
def test_links_lead_somewhere(alert: str) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page(alert)):
        file, _, anchor = target.partition("#")
        found = (FOLDER / file).resolve() if file else FOLDER / f"{alert}.md"
        assert found.is_file(), target
        assert not anchor or anchor in anchors(found), target


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


@every_alert
def test_curl_asks_the_exporter_what_it_answers_to_other_hosts(alert: str) -> None:
    paths = re.findall(r"NODE:9420(/[\w/-]*)", page(alert))
    assert set(paths) <= PUBLIC_PATHS


# What the page says of the alert is what rules and Alertmanager do


@every_alert
def test_severity_and_action_are_the_rules(alert: str) -> None:
    labels = RULES[alert]["labels"]
    assert f"Severity {labels['severity']}" in section(alert, "Impact")
    assert f"`action` is `{labels['action']}`" in section(alert, "Meaning")


@every_alert
def test_the_threshold_is_named_and_its_number_is_the_files(alert: str) -> None:
    threshold = ALERTS[alert].threshold
    named = {name for name in THRESHOLDS if f"`{name}`" in page(alert)}
    assert named == ({threshold} if threshold else set())
    if threshold:
        assert f"`{threshold}`" in section(alert, "Meaning")
        assert f"`{threshold}` in `alerts/thresholds.yaml`" in section(alert, "Tuning")
        compared = numbers_compared_with(THRESHOLDS[threshold], queries(alert))
        assert compared
        # Above 0 only asks whether there is any.
        assert set(compared) - {0} == {THRESHOLDS[threshold].value}


def numbers_compared_with(threshold: Threshold, asked: list[Query]) -> list[float]:
    """Every number that the threshold's metric, or what is recorded of it, is compared with."""
    recorded = {
        query.record
        for query in rule_queries()
        if query.record and re.search(rf"\b{threshold.metric}\b", query.expr)
    }
    names = {threshold.metric, *recorded}
    found: list[float] = []

    def visit(node: promql_parser.Expr) -> None:
        if (
            isinstance(node, promql_parser.BinaryExpr)
            and str(node.op).split()[0] in {"<", ">", "<=", ">="}
            and isinstance(node.rhs, promql_parser.NumberLiteral)
            and names & set(metrics_of(node.lhs))
        ):
            found.append(node.rhs.val)

    for query in asked:
        promql_parser.walk(promql_parser.parse(query.expr), visit)
    return found


def metrics_of(node: promql_parser.Expr) -> list[str]:
    found: list[str] = []

    def visit(inner: promql_parser.Expr) -> None:
        if isinstance(inner, promql_parser.VectorSelector) and inner.name:
            found.append(inner.name)

    promql_parser.walk(node, visit)
    return found


def named_after(alert: str, word: str) -> set[str]:
    """The alerts in the sentence that begins so."""
    sentence = re.search(
        rf"^{word}: (.*?)\n\n", section(alert, "Impact") + "\n", re.MULTILINE | re.DOTALL
    )
    assert sentence
    names = set(re.findall(r"`(Veo\w+)`", sentence[1]))
    assert names or sentence[1].strip() == "nothing."
    return names


@every_alert
def test_inhibition_is_told_as_alertmanager_does_it(alert: str) -> None:
    pairs = {
        (source, target)
        for rule in CONTENT["inhibit_rules"]
        for source in carriers(rule["source_matchers"])
        for target in carriers(rule["target_matchers"])
        if source != target
    }
    assert named_after(alert, "Mutes") == {target for source, target in pairs if source == alert}
    assert named_after(alert, "Muted by") == {source for source, target in pairs if target == alert}


@pytest.mark.parametrize(
    "code",
    [
        ReturnCode.DRIVER_NOT_LOADED,
        ReturnCode.LIBRARY_NOT_FOUND,
        ReturnCode.LIB_RM_VERSION_MISMATCH,
        ReturnCode.NO_PERMISSION,
        ReturnCode.OPERATING_SYSTEM,
        ReturnCode.UNKNOWN,
    ],
    ids=lambda code: code.name,
)
def test_what_the_exporter_says_of_a_stale_node_is_in_the_page(code: ReturnCode) -> None:
    rows = re.findall(r"^\| ([^|]+?) \|", section("VeoDataStale", "Diagnosis"), re.MULTILINE)
    assert [row for row in rows if remedy_for(code).startswith(row)]


# Queries


@every_alert
def test_queries_can_be_read_and_name_what_exists(alert: str) -> None:
    vocabulary = Vocabulary(CATALOG, rule_queries())
    assert queries(alert)
    assert [str(fault) for query in queries(alert) for fault in faults_of(query, vocabulary)] == []


LABELS = {
    "gpu": ["3"],
    "uuid": ["GPU-3"],
    # A whole GPU.
    "mig_uuid": [""],
    "pci_bus_id": ["0000:4e:00.0"],
    "state": ["ok", "lost", "hung", "reset_required", "hidden", "unknown"],
    "reason": ["hw_thermal_slowdown"],
    "code": ["OVERDUE"],
    "group": ["gpu_fast", "gpu_full", "gpu_static"],
    "outcome": ["success", "failed", "timeout", "lost"],
    "defect": ["truncated", "low_consistency", "jitter"],
    "verdict": ["ok", "defective"],
}
"""Values of labels; those not named here have any."""

LABELS_IN: dict[str, dict[str, list[str]]] = {
    # It asks for two engines, and the other for failures that name no model.
    "VeoFleetNoneSucceed": {"engine": ["any", "other"]},
    "VeoEngineFailuresOnly": {"model": ["unknown"]},
}
"""Otherwise in the story of an alert."""

BOUNDS = (', le="1"', ', le="+Inf"')

WELL, ILL, AGAIN = 41, 80, 120
"""Scrapes before, during and after the trouble, 15 s apart."""
WHILE_ILL, WHEN_WELL = "25m", "55m"
LATER = {"VeoEngineFailuresOnly": ("95m", 280)}
"""Alerts that look back for an hour: when all is well again, and scrapes after the trouble."""

Values = tuple[str, str]
"""Of a series, while all is well and while it is not."""

OFTEN = {
    "up": ("1", "1"),
    "veo_gpus_expected": ("8", "8"),
    "veo_gpus_visible": ("8", "8"),
    "veo_gpus_usable": ("8", "8"),
    "veo_exporter_paused": ("0", "0"),
    "veo_gpu_nvml_return_code": ("0", "0"),
    "veo_gpu_nvml_call_in_flight_seconds": ("_", "_"),
    "veo_gpu_memory_used_bytes": ("60e9", "60e9"),
    "veo_gpu_memory_free_bytes": ("20e9", "20e9"),
    '{outcome="failed"}': ("+0", "+0"),
    '{outcome="timeout"}': ("+0", "+0"),
    '{outcome="lost"}': ("+0", "+0"),
    '{defect="truncated"}': ("+0", "+0"),
    '{defect="low_consistency"}': ("+0", "+0"),
    '{verdict="defective"}': ("+0", "+0"),
}


def in_state(state: str) -> dict[str, Values]:
    return {'{state="ok"}': ("1", "0"), f'{{state="{state}"}}': ("0", "1")}


TROUBLES: dict[str, dict[str, Values]] = {
    "VeoGpuLost": {
        **in_state("lost"),
        "veo_gpus_usable": ("8", "7"),
        "veo_gpu_nvml_return_code": ("0", "15"),
    },
    "VeoGpuHung": {
        **in_state("hung"),
        "veo_gpus_usable": ("8", "7"),
        "veo_gpu_nvml_call_in_flight_seconds": ("_", "100"),
    },
    "VeoGpuResetRequired": {
        **in_state("reset_required"),
        "veo_gpus_usable": ("8", "7"),
        "veo_gpu_nvml_return_code": ("0", "16"),
    },
    "VeoGpuMemoryCopyHigh": {"veo_gpu_memory_copy_utilization_ratio": ("0.5", "0.95")},
    "VeoGpuMemoryCopySaturated": {"veo_gpu_memory_copy_utilization_ratio": ("0.5", "0.9")},
    "VeoGpuUtilizationSaturated": {"veo_gpu_utilization_ratio": ("0.5", "0.99")},
    "VeoExporterDown": {"up": ("1", "0"), "*": ("", "_")},
    "VeoNodeNotReporting": {"up": ("1", "_"), "*": ("", "_")},
    "VeoGpusMissing": {"veo_gpus_usable": ("8", "7")},
    "VeoDataStale": {
        **in_state("unknown"),
        "veo_gpus_usable": ("8", "0"),
        "veo_exporter_last_success_timestamp_seconds": ("", "frozen"),
    },
    "VeoExporterPaused": {
        **in_state("unknown"),
        "veo_exporter_paused": ("0", "1"),
        "veo_gpus_usable": ("8", "0"),
        "veo_exporter_last_success_timestamp_seconds": ("", "frozen"),
    },
    "VeoJobsNoneSucceed": {
        '{outcome="success"}': ("+15", "+0"),
        '{outcome="failed"}': ("+0", "+15"),
    },
    "VeoEngineNoneSucceed": {
        '{outcome="success"}': ("+15", "+0"),
        '{outcome="failed"}': ("+0", "+15"),
    },
    "VeoFleetNoneSucceed": {
        '{outcome="success"}': ("+15", "+0"),
        '{outcome="failed"}': ("+0", "+15"),
    },
    "VeoEngineFailuresOnly": {
        '{outcome="success"}': ("+0", "+0"),
        '{outcome="failed"}': ("+0", "+1"),
    },
    "VeoJobSuccessBurnFast": {
        '{outcome="success"}': ("+15", "+0"),
        '{outcome="failed"}': ("+0", "+15"),
    },
    "VeoJobSuccessBurnSlow": {
        '{outcome="success"}': ("+10", "+10"),
        '{outcome="failed"}': ("+0", "+5"),
    },
    "VeoJobTimeouts": {
        '{outcome="success"}': ("+10", "+10"),
        '{outcome="timeout"}': ("+0", "+5"),
    },
    "VeoJobsLost": {'{outcome="lost"}': ("+0", "+1")},
    "VeoVideoTruncated": {
        '{defect="truncated"}': ("+0", "+1"),
        '{verdict="defective"}': ("+0", "+1"),
        '{outcome="failed"}': ("+0", "+1"),
    },
    "VeoVideoFrameRateInconsistent": {
        '{defect="low_consistency"}': ("+0", "+5"),
        '{verdict="defective"}': ("+0", "+5"),
    },
    "VeoWatchdog": {},
}
"""What is otherwise while an alert fires: by metric, by a label's rows, or for all."""


def story(alert: str) -> list[dict[str, str]]:
    """A node with every metric of the catalogue, on which the alert's trouble comes and goes."""
    trouble = TROUBLES[alert]
    target = 'job="veo", instance="n1:9420", node="n1"'
    lines = [(f"up{{{target}}}", trouble.get("up", OFTEN["up"]))]
    for spec in CATALOG:
        for labels in label_sets(spec, LABELS | LABELS_IN.get(alert, {})):
            rest = "".join(f', {name}="{value}"' for name, value in labels.items())
            values = values_of(spec, labels, trouble)
            lines += [
                (f"{series}{{{target}{rest}{bound}}}", values)
                for series in spec.series_names
                for bound in (BOUNDS if series.endswith("_bucket") else ("",))
            ]
    # Prometheus' own of the same scrapes; a second node, and Kubernetes, which know nothing of it.
    lines += [
        (
            f"scrape_duration_seconds{{{target}}}",
            ("0.01", "5" if alert == "VeoExporterDown" else "_"),
        ),
        ('up{job="veo", instance="n2:9420", node="n2"}', ("1", "1")),
        ('veo_gpus_expected{job="veo", instance="n2:9420", node="n2"}', ("8", "8")),
        ('kube_node_labels{node="n1", label_nvidia_com_gpu_present="true"}', ("1", "1")),
    ]
    _, again = LATER.get(alert, (WHEN_WELL, AGAIN))
    return [{"series": series, "values": sequence(*values, again)} for series, values in lines]


def label_sets(spec: MetricSpec, known: dict[str, list[str]]) -> list[dict[str, str]]:
    sets: list[dict[str, str]] = [{}]
    for name in spec.label_names:
        sets = [{**labels, name: value} for labels in sets for value in known.get(name, ["any"])]
    return sets


def values_of(spec: MetricSpec, labels: dict[str, str], trouble: dict[str, Values]) -> Values:
    usual: Values = ("0.5", "0.5")
    if spec.kind is not Kind.GAUGE:
        usual = ("growing", "growing")
    elif spec.name.endswith("_timestamp_seconds"):
        usual = ("now", "now")
    elif "state" in labels:
        usual = ("1", "1") if labels["state"] == "ok" else ("0", "0")
    rows = [spec.name, *(f'{{{name}="{value}"}}' for name, value in labels.items())]
    usual = next((OFTEN[row] for row in rows if row in OFTEN), usual)
    of_trouble = (trouble[row] for row in (*rows, "*") if row in trouble)
    well, ill = next(of_trouble, usual)
    return (well or usual[0], ill or usual[1])


def sequence(well: str, ill: str, again: int) -> str:
    """The three times in promtool's notation: `axN` is a and N more."""
    parts, start, total = [], 0, 0
    for value, scrapes in ((well, WELL), (ill, ILL), (well, again)):
        match value:
            case "_":
                # The first gap is a stale marker, as Prometheus writes it for a series that ended.
                parts += ["stale", f"_x{scrapes - 1}"]
            case "now" | "growing":
                parts.append(f"{start * 15}+15x{scrapes - 1}")
            case _ if value.startswith("+"):
                # So much more with each scrape.
                parts.append(f"{total}{value}x{scrapes - 1}")
                total += int(value) * scrapes
            case "frozen":
                parts.append(f"{(start - 1) * 15}x{scrapes - 1}")
            case _:
                parts.append(f"{value}x{scrapes - 1}")
        start += scrapes
    return " ".join(parts)


@cache
def answers(alert: str) -> dict[tuple[str, str], bool]:
    """Whether each query has an answer, by its text and the time; and so for ALERTS itself."""
    fires = f'ALERTS{{alertname="{alert}", alertstate="firing"}}'
    asked = [fires, *(put_in(query.expr) for query in queries(alert))]
    when_well, _ = LATER.get(alert, (WHEN_WELL, AGAIN))
    times = {WHILE_ILL: WHILE_ILL, WHEN_WELL: when_well}
    steps = [
        # promtool complains of what is there, with the query as it was asked: hence its number.
        {"expr": f"{expr} # {number} {when}", "eval_time": times[when]}
        for number, expr in enumerate(asked)
        for when in (WHILE_ILL, WHEN_WELL)
    ]
    content = {
        "rule_files": [str(path) for path in sorted((ROOT / "alerts/rules").glob("*.yaml"))],
        "evaluation_interval": "15s",
        "tests": [{"interval": "15s", "input_series": story(alert), "promql_expr_test": steps}],
    }
    run = subprocess.run(
        [str(tool("promtool")), "test", "rules", "/dev/stdin"],
        input=json.dumps(content),
        capture_output=True,
        text=True,
        check=False,
    )
    output = run.stdout + run.stderr
    complaints = set(re.findall(r'# (\d+) (\w+)", time: ', output))
    # Anything but a complaint about an answer is a mistake in the story.
    assert len(complaints) == output.count("expr: "), output
    assert "FAILED" in output, output
    assert "err:" not in output, output
    return {
        (expr, when): (str(number), when) in complaints
        for number, expr in enumerate(asked)
        for when in (WHILE_ILL, WHEN_WELL)
    }


def put_in(expr: str) -> str:
    """The query as on-call would ask it."""
    return expr.replace('"NODE"', '"n1"').replace('"GPU"', '"3"')


@every_alert
def test_the_story_is_the_alerts(alert: str) -> None:
    fires = f'ALERTS{{alertname="{alert}", alertstate="firing"}}'
    assert answers(alert)[fires, WHILE_ILL] is True
    assert answers(alert)[fires, WHEN_WELL] is (alert == "VeoWatchdog")


@every_alert
def test_queries_have_an_answer_while_the_alert_fires(alert: str) -> None:
    asked = [query for query in queries(alert) if query.where != "Verify recovery"]
    assert asked
    silent = [query.expr for query in asked if not answers(alert)[put_in(query.expr), WHILE_ILL]]
    assert silent == []


@every_alert
def test_recovery_has_an_answer_once_all_is_well_and_none_before(alert: str) -> None:
    asked = [query for query in queries(alert) if query.where == "Verify recovery"]
    assert asked
    found = answers(alert)
    assert [query.expr for query in asked if not found[put_in(query.expr), WHEN_WELL]] == []
    if alert != "VeoWatchdog":
        assert [query.expr for query in asked if found[put_in(query.expr), WHILE_ILL]] == []
