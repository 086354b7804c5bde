# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The chart's rules are those of alerts/rules, and each knob turns what it says."""

import re
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

import alerts.chart
from alerts.generation import generated_files
from alerts.sources import Recording, load_groups
from alerts.thresholds import SCRAPE_INTERVAL_SECONDS, load_thresholds
from tests.helm.chart import CHART, only, render, run

ALERTS = {alert.alert: alert for alert in alerts.chart.alerts()}
Rules = dict[str, dict[str, Any]]


def _groups(values: dict[str, Any] | None = None, **more: Any) -> list[dict[str, Any]]:
    settings = {"prometheusRule": {"enabled": True, **(values or {})}, **more}
    groups = only(render(settings), "PrometheusRule")["spec"]["groups"]
    assert isinstance(groups, list)
    return groups


def _alerts(values: dict[str, Any] | None = None, **more: Any) -> Rules:
    return {
        rule["alert"]: rule
        for group in _groups(values, **more)
        for rule in group["rules"]
        if "alert" in rule
    }


def _plain_groups() -> list[dict[str, Any]]:
    files = {path.name: yaml.safe_load(text) for path, text in generated_files().items()}
    return [
        group
        for name in ("veo-recording.yaml", "veo-alerts.yaml")
        for group in files[name]["groups"]
    ]


def _parsed(groups: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Groups by name, with expressions as they are understood and not as they are written."""
    parsed = {group["name"]: deepcopy(group) for group in groups}
    for group in parsed.values():
        # Plain rules go by the interval of the Prometheus that loads them.
        group.setdefault("interval", f"{SCRAPE_INTERVAL_SECONDS}s")
        for rule in group["rules"]:
            rule["expr"] = str(promql_parser.parse(rule["expr"]))
    return parsed


def test_defaults_are_the_plain_rules() -> None:
    assert _parsed(_groups()) == _parsed(_plain_groups())


def test_promtool_takes_them(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": _groups()}))
    checked = run("promtool", "check", "rules", "--lint-fatal", file)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_promtool_takes_them_with_every_knob_turned(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": _groups({"alerts": _turned()}, scrape={"job": "x"})}))
    checked = run("promtool", "check", "rules", "--lint-fatal", file)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_nothing_is_left_to_fill_in() -> None:
    for group in _groups():
        for rule in group["rules"]:
            assert not re.search(r"<<[a-z]", str(rule)), rule


def _turned() -> dict[str, dict[str, Any]]:
    """Each knob of each alert at something else than its default."""
    thresholds = load_thresholds()
    other = {
        "for": "7m",
        "keepFiringFor": "11m",
        "severity": "none",
        "threshold": 0.125,
        "window": "13m",
    }
    return {
        name: {knob: other[knob] for knob in alerts.chart.knobs(alert, thresholds) if knob in other}
        for name, alert in ALERTS.items()
    }


@pytest.fixture(scope="module")
def defaults() -> Rules:
    return _alerts()


@pytest.fixture(scope="module")
def turned() -> Rules:
    return _alerts({"alerts": _turned()})


@pytest.mark.parametrize("name", ALERTS)
def test_each_knob_turns(name: str, defaults: Rules, turned: Rules) -> None:
    before, after = defaults[name], turned[name]
    assert after["for"] == "7m"
    assert after["keep_firing_for"] == "11m"
    assert after["labels"] == {**before["labels"], "severity": "none"}
    knobs = _turned()[name]
    if "threshold" in knobs:
        assert "0.125" in after["expr"]
        assert "0.125" not in before["expr"]
    if "window" in knobs:
        assert "[13m]" in after["expr"]
        # 52 scrapes of 15 s in 13 minutes, without each fourth.
        assert ">= 39" in after["expr"]
        assert "13m" in after["annotations"]["description"]
        assert "12.5 %" in after["annotations"]["description"]
    if "threshold" not in knobs:
        assert after["expr"] == before["expr"]


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_is_turned_off_alone(name: str, defaults: Rules) -> None:
    left = _alerts({"alerts": {name: {"enabled": False}}})
    assert left == {other: rule for other, rule in defaults.items() if other != name}


def test_recording_rules_stay_when_all_alerts_are_off() -> None:
    off = {name: {"enabled": False} for name in ALERTS}
    groups = _groups({"alerts": off})
    assert all("record" in rule for group in groups for rule in group["rules"])
    assert [group["name"] for group in groups] == [
        group.name
        for group in load_groups()
        if any(isinstance(rule, Recording) for rule in group.rules)
    ]


def test_no_duration_means_none() -> None:
    rule = _alerts({"alerts": {"VeoGpuLost": {"for": "", "keepFiringFor": ""}}})["VeoGpuLost"]
    assert "for" not in rule
    assert "keep_firing_for" not in rule


def test_a_threshold_of_zero_and_a_large_one_are_written_whole() -> None:
    for threshold, written in ((0, "> 0\n"), (1610612736, "> 1610612736\n")):
        values = {"alerts": {"VeoDataStale": {"threshold": threshold}}}
        assert written in _alerts(values)["VeoDataStale"]["expr"]


def test_samples_follow_the_scrape_interval() -> None:
    rules = _alerts({"lookback": "3m"}, scrape={"interval": "1m"})
    # Two scrapes in 120 s; each fourth of them is none.
    assert "[120s]) >= 2" in rules["VeoGpuMemoryCopyHigh"]["expr"]
    assert {
        group["interval"] for group in _groups({"lookback": "3m"}, scrape={"interval": "1m"})
    } == {"1m"}


def test_job_and_lookback_reach_every_rule() -> None:
    texts = str(_groups({"lookback": "2m30s"}, scrape={"job": "video-nodes"}))
    assert 'job="video-nodes"' in texts
    assert 'job="veo"' not in texts
    assert "[2m30s]" in texts
    assert "[1m]" not in texts


def test_links_go_where_they_are_told() -> None:
    rules = _alerts(
        {"runbookBaseUrl": "https://wiki.example.com/x/", "grafanaBaseUrl": "https://g.example.com"}
    )
    notes = rules["VeoGpuLost"]["annotations"]
    assert notes["runbook_url"] == "https://wiki.example.com/x/VeoGpuLost.md"
    assert notes["dashboard_url"].startswith("https://g.example.com/d/")
    assert "{{ $labels.node }}" in notes["dashboard_url"]


def test_links_are_left_out_when_there_is_nothing_to_link_to() -> None:
    for rule in _alerts({"runbookBaseUrl": "", "grafanaBaseUrl": ""}).values():
        assert rule["annotations"].keys() == {"summary", "description"}


def test_additional_labels_are_on_alerts_alone() -> None:
    groups = _groups({"additionalRuleLabels": {"team": "video", "severity": "mine"}})
    for group in groups:
        for rule in group["rules"]:
            if "record" in rule:
                assert "labels" not in rule, "joins would find nothing"
            else:
                assert rule["labels"]["team"] == "video"
                assert rule["labels"]["severity"] in alerts.chart.SEVERITIES


def test_scrape_values_are_what_the_rules_assume() -> None:
    scrape = yaml.safe_load((CHART / "values.yaml").read_text())["scrape"]
    assert scrape["job"] == load_thresholds().job
    assert scrape["interval"] == f"{SCRAPE_INTERVAL_SECONDS}s"


def test_a_threshold_of_an_unknown_metric_is_found_at_once() -> None:
    threshold = replace(load_thresholds().thresholds["data_stale_after"], metric="veo_x_seconds")
    with pytest.raises(ValueError, match="data_stale_after: veo_x_seconds is not in the catalogue"):
        alerts.chart.threshold_schema(threshold)


def test_a_text_that_the_chart_cannot_fill_in_is_found_at_once() -> None:
    with pytest.raises(ValueError, match="VeoX: <<value>> is nothing that the chart can fill in"):
        alerts.chart._text("up > <<value>>", "VeoX", {})
