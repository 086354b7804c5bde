# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The rules, run by promtool against stories of series."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.generation import rule_files
from alerts.sources import Alert, load_groups
from alerts.thresholds import load_thresholds, seconds_in
from tools.programs import ROOT, tool

TESTS = ROOT / "alerts/tests"
ALERTS = [rule for group in load_groups() for rule in group.rules if isinstance(rule, Alert)]

# Every alert's stories must have these words in their names, so that none lacks a kind.
KINDS = ("fires", "healthy and present", "every fourth scrape")


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(tool("promtool")), *map(str, arguments)], capture_output=True, text=True, check=False
    )


def without_annotations(text: str) -> dict[str, Any]:
    """Rules that promtool's stories judge by behaviour: their wording may change."""
    content: dict[str, Any] = yaml.safe_load(text)
    for group in content["groups"]:
        for rule in group["rules"]:
            rule.pop("annotations", None)
    return content


@pytest.fixture(scope="module")
def bare_rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alerts")
    (folder / "rules").mkdir()
    (folder / "tests").mkdir()
    for name, text in rule_files().items():
        (folder / "rules" / name).write_text(yaml.safe_dump(without_annotations(text)))
    return folder


@pytest.mark.parametrize("alert", [alert.alert for alert in ALERTS])
def test_stories(alert: str, bare_rules: Path) -> None:
    story = bare_rules / f"tests/{alert}.yaml"
    story.write_text((TESTS / f"{alert}.yaml").read_text())
    run = promtool("test", "rules", story)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("alert", [alert.alert for alert in ALERTS])
def test_every_alert_has_every_kind_of_story(alert: str) -> None:
    content = yaml.safe_load((TESTS / f"{alert}.yaml").read_text())
    names = [test["name"] for test in content["tests"]]
    assert [kind for kind in KINDS if not any(kind in name for name in names)] == []
    asked = {step["alertname"] for test in content["tests"] for step in test["alert_rule_test"]}
    assert asked == {alert}
    fires = [
        step for test in content["tests"] for step in test["alert_rule_test"] if step["exp_alerts"]
    ]
    assert fires, "no story in which it fires"


def test_no_story_is_about_an_alert_that_is_not_there() -> None:
    assert {path.stem for path in TESTS.glob("*.yaml")} == {alert.alert for alert in ALERTS}


def test_a_flag_is_held_for_longer_than_it_is_looked_back_for() -> None:
    lookback = load_thresholds().lookback
    flags = [alert for alert in ALERTS if alert.expr.lstrip().startswith("max without (state)")]
    assert len(flags) == 3
    for alert in flags:
        assert alert.hold is not None
        assert seconds_in(alert.hold) > seconds_in(lookback), alert.alert


def test_promtool_finds_nothing_to_mend() -> None:
    run = promtool(
        "check", "rules", "--lint=all", "--lint-fatal", *sorted((ROOT / "alerts/rules").iterdir())
    )
    assert run.returncode == 0, run.stdout + run.stderr
    run = promtool("check", "config", ROOT / "alerts/prometheus.yml")
    assert run.returncode == 0, run.stdout + run.stderr


def test_quickened_rules_are_the_same_rules() -> None:
    for name, text in rule_files(times_faster=10).items():
        plain = yaml.safe_load(rule_files()[name])
        quick = yaml.safe_load(text)
        for group, quick_group in zip(plain["groups"], quick["groups"], strict=True):
            for rule, quick_rule in zip(group["rules"], quick_group["rules"], strict=True):
                assert rule.keys() == quick_rule.keys()
                assert re.sub(r"\[\w+\]", "", rule["expr"]) == re.sub(
                    r"\[\w+\]", "", quick_rule["expr"]
                )
                assert quick_rule.get("annotations") == rule.get("annotations")
                assert quick_rule.get("labels") == rule.get("labels")
    [lost] = [
        rule
        for group in yaml.safe_load(rule_files(times_faster=10)["veo-alerts.yaml"])["groups"]
        for rule in group["rules"]
        if rule["alert"] == "VeoGpuLost"
    ]
    # 1m, 90s and 2m, ten times shorter.
    assert "[6000ms]" in lost["expr"]
    assert (lost["for"], lost["keep_firing_for"]) == ("9000ms", "12000ms")
