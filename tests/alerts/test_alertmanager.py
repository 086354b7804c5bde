# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Who is told of which alert, what mutes what, and what a notification says."""

import json
import queue
import re
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.generation import quicken
from alerts.sources import LABELS_ABOUT, Alert, load_groups
from tools.expressions import Vocabulary, labels_of
from tools.monitoring import RECEIVERS, SECRETS
from tools.programs import ROOT, Program, free_port, tool
from tools.references import rule_queries
from tools.webhook import Notification, WebhookServer
from veo_exporter.catalog import CATALOG

CONFIGURATION = ROOT / "alerts/alertmanager.yaml"
CONTENT: dict[str, Any] = yaml.safe_load(CONFIGURATION.read_text())
ALERTS = {
    rule.alert: rule for group in load_groups() for rule in group.rules if isinstance(rule, Alert)
}
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load((ROOT / "alerts/rules/veo-alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
}
RECEIVER_OF = {"critical": "pager", "warning": "tickets", "info": "nobody", "none": "nobody"}

PATIENCE_SECONDS = 60.0
TIMES_FASTER = 200.0

ACCEPTED = {
    "empty-receiver": "nobody is told of what only explains: that is what the receiver is for",
    "global-resolve-timeout-missing": "Prometheus gives each alert its end",
}
"""Findings of amlint that stay, and why."""


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def amlint(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run(Path(sys.executable).with_name("amlint"), *arguments)


@cache
def labels_in_stories(alert: str) -> list[dict[str, str]]:
    """The label sets with which promtool has seen an alert fire, as Alertmanager gets them."""
    stories = yaml.safe_load((ROOT / f"alerts/tests/{alert}.yaml").read_text())["tests"]
    seen: list[dict[str, str]] = []
    for story in stories:
        for step in story["alert_rule_test"]:
            for expected in step["exp_alerts"]:
                labels = {"alertname": alert, **expected["exp_labels"], **external_labels()}
                if labels not in seen:
                    seen.append(labels)
    return seen


@cache
def external_labels() -> dict[str, str]:
    prometheus = yaml.safe_load((ROOT / "alerts/prometheus.yml").read_text())
    labels: dict[str, str] = prometheus["global"]["external_labels"]
    return labels


# What the configuration says


def test_amtool_takes_it() -> None:
    checked = run(tool("amtool"), "check-config", CONFIGURATION)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_amlint_finds_nothing_but_what_is_meant() -> None:
    checked = amlint(
        "check", CONFIGURATION, "--rules", str(ROOT / "alerts/rules/*.yaml"), "--format", "json"
    )
    assert {finding["code"] for finding in json.loads(checked.stdout)} == ACCEPTED.keys()


def test_routing_and_inhibition_are_as_written_down() -> None:
    tested = amlint(
        "test",
        CONFIGURATION,
        ROOT / "alerts/routing.test.yaml",
        "--coverage",
        "--fail-under",
        "100",
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.parametrize("alert", ALERTS)
def test_each_alert_goes_where_its_severity_says(alert: str) -> None:
    severity = RULES[alert]["labels"]["severity"]
    receiver = "watchdog" if alert == "VeoWatchdog" else RECEIVER_OF[severity]
    for labels in labels_in_stories(alert):
        pairs = [f"{name}={value}" for name, value in labels.items()]
        judged = run(
            *(tool("amtool"), "config", "routes", "test"),
            *(f"--config.file={CONFIGURATION}", f"--verify.receivers={receiver}", *pairs),
        )
        assert judged.returncode == 0, judged.stdout + judged.stderr
        routed = json.loads(amlint("route", CONFIGURATION, *pairs, "--format", "json").stdout)
        # The root would take it too, by accident.
        assert [route["path"][-1] == "route" for route in routed["routes"]] == [False]
        assert routed["inhibited"] is False


# Where two alerts lack a label, Alertmanager takes them for equal


def always_carried(alert: str) -> frozenset[str]:
    """The labels that the rule's expression and the configuration give it, whatever happens."""
    queries = rule_queries()
    vocabulary = Vocabulary(CATALOG, queries)
    [query] = [query for query in queries if query.where == alert]
    labels = labels_of(query, vocabulary)
    assert labels is not None
    return labels.always | {"alertname", *RULES[alert]["labels"], *external_labels()}


def test_alerts_carry_what_their_subject_promises() -> None:
    for name, alert in ALERTS.items():
        promised = set(LABELS_ABOUT[alert.about])
        seen = [labels.keys() for labels in labels_in_stories(name)]
        assert all(promised <= labels for labels in seen)
        # What is proven from the expression is what is seen.
        assert all(always_carried(name) <= labels for labels in seen)


MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"(.*)"')


def matched(matchers: list[str], labels: dict[str, str]) -> bool:
    """Whether Alertmanager's matchers take these labels."""
    for text in matchers:
        parsed = MATCHER.fullmatch(text)
        assert parsed, text
        name, operator, value = parsed.groups()
        found = labels.get(name, "")
        equal = bool(re.fullmatch(value, found)) if "~" in operator else found == value
        if equal is operator.startswith("!"):
            return False
    return True


def carriers(matchers: list[str]) -> dict[str, frozenset[str]]:
    """The alerts that matchers can take, and the labels each carries whenever they do."""
    not_empty = {text.removesuffix('!=""') for text in matchers if text.endswith('!=""')}
    about_rules = [text for text in matchers if text.removesuffix('!=""') not in not_empty]
    return {
        alert: always_carried(alert) | not_empty
        for alert, rule in RULES.items()
        if matched(about_rules, {"alertname": alert, **rule["labels"]})
    }


@pytest.mark.parametrize("rule", CONTENT["inhibit_rules"], ids=lambda rule: str(rule["equal"]))
def test_every_alert_of_an_inhibition_carries_its_equal_labels(rule: dict[str, Any]) -> None:
    for side in ("source_matchers", "target_matchers"):
        alerts = carriers(rule[side])
        assert alerts, f"{rule[side]} take no alert"
        lacking = {alert: set(rule["equal"]) - labels for alert, labels in alerts.items()}
        assert {alert: labels for alert, labels in lacking.items() if labels} == {}


def test_a_lost_gpu_may_lack_its_uuid_and_is_then_no_source() -> None:
    assert "uuid" not in always_carried("VeoGpuLost")
    assert "uuid" in always_carried("VeoGpuMemoryCopyHigh")
    assert "uuid" in carriers(['alertname="VeoGpuLost"', 'uuid!=""'])["VeoGpuLost"]


def test_no_alert_mutes_what_could_mute_it() -> None:
    muting = {
        (source, target)
        for rule in CONTENT["inhibit_rules"]
        for source in carriers(rule["source_matchers"])
        for target in carriers(rule["target_matchers"])
    }
    assert {pair for pair in muting if pair[::-1] in muting} == set()


# A real Alertmanager


class Site:
    """An Alertmanager with our configuration, and what it told to whom."""

    def __init__(self, folder: Path, port: int) -> None:
        self.told: queue.Queue[tuple[str, Notification]] = queue.Queue()
        self.folder = folder
        self.url = f"http://127.0.0.1:{port}"

    def post(self, alerts: list[dict[str, Any]]) -> None:
        request = urllib.request.Request(
            f"{self.url}/api/v2/alerts",
            data=json.dumps(alerts).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS):
            pass

    def alerts(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(
            f"{self.url}/api/v2/alerts", timeout=PATIENCE_SECONDS
        ) as answer:
            found: list[dict[str, Any]] = json.load(answer)
            return found

    def groups(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(
            f"{self.url}/api/v2/alerts/groups", timeout=PATIENCE_SECONDS
        ) as answer:
            found: list[dict[str, Any]] = json.load(answer)
            return found

    def notification(self, **counts: int) -> tuple[str, Notification]:
        """The next one with so many alerts, by status.

        A group that grows after its first notification is told again, so that there may be others before.
        """
        while True:
            receiver, text = self.told.get(timeout=PATIENCE_SECONDS)
            if Counter(alert["status"] for alert in text["alerts"]) == counts:
                return receiver, text


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    port = free_port()
    site = Site(tmp_path, port)
    with WebhookServer(lambda receiver, text: site.told.put((receiver, text))) as webhook:
        (tmp_path / "secrets").mkdir()
        for receiver in RECEIVERS:
            (tmp_path / f"secrets/{receiver}_url").write_text(webhook.url(receiver))
        text = CONFIGURATION.read_text().replace(SECRETS, str(tmp_path / "secrets"))
        text = text.replace("templates/", f"{ROOT / 'alerts/templates'}/")
        (tmp_path / "alertmanager.yaml").write_text(quicken(text, TIMES_FASTER))
        command: list[str | Path] = [
            tool("alertmanager"),
            f"--config.file={tmp_path / 'alertmanager.yaml'}",
            f"--storage.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        ]
        with Program(
            "alertmanager",
            command,
            ready_url=f"{site.url}/-/ready",
            log=tmp_path / "alertmanager.log",
        ) as program:
            program.wait_until_ready()
            yield site


def firing(alert: str, **labels: str) -> dict[str, Any]:
    """An alert as Prometheus sends it, with the labels of its first story where none is given."""
    carried = {**labels_in_stories(alert)[0], **labels}
    annotations = {
        name: filled(text, carried) for name, text in RULES[alert]["annotations"].items()
    }
    now = datetime.now(UTC)
    return {
        "labels": carried,
        "annotations": annotations,
        "startsAt": now.isoformat(),
        "endsAt": (now + timedelta(minutes=10)).isoformat(),
        "generatorURL": "http://prometheus.example.com/graph",
    }


def filled(text: str, labels: dict[str, str]) -> str:
    """An annotation with its labels, which Prometheus puts in."""
    return re.sub(r"{{ \$labels\.(\w+) }}", lambda found: labels.get(found[1], ""), text)


def lost(node: str, number: int) -> dict[str, Any]:
    return firing(
        "VeoGpuLost",
        node=node,
        instance=f"{node}:9420",
        gpu=str(number),
        uuid=f"GPU-{node}-{number}",
        pci_bus_id=f"0000:{number}b:00.0",
    )


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come so"
        time.sleep(0.05)


def test_the_gpus_of_a_node_are_one_group_and_two_nodes_are_two(site: Site) -> None:
    site.post([lost("node-a", number) for number in range(8)] + [lost("node-b", 0)])
    wait_until(lambda: sum(len(group["alerts"]) for group in site.groups()) == 9)
    by_node = {group["labels"]["node"]: group for group in site.groups()}
    assert {node: len(group["alerts"]) for node, group in by_node.items()} == {
        "node-a": 8,
        "node-b": 1,
    }
    assert len(site.groups()) == 2
    assert by_node["node-a"]["labels"] == {
        "alertname": "VeoGpuLost",
        "cluster": "default",
        "node": "node-a",
    }
    receiver, notification = site.notification(firing=8)
    assert receiver == "pager"
    assert notification["groupLabels"] == by_node["node-a"]["labels"]


def test_what_is_muted_is_what_the_configuration_means(site: Site) -> None:
    posted = [
        firing("VeoExporterDown", node="down", instance="down:9420"),
        firing("VeoGpuHung", node="down", instance="down:9420", uuid="GPU-d"),
        firing("VeoDataStale", node="down", instance="down:9420"),
        firing("VeoDataStale", node="up", instance="up:9420"),
        firing("VeoGpuLost", node="ill", uuid="GPU-3", gpu="3"),
        firing("VeoGpuMemoryCopyHigh", node="ill", uuid="GPU-3", gpu="3"),
        firing("VeoGpuMemoryCopyHigh", node="ill", uuid="GPU-4", gpu="4"),
        firing("VeoGpuMemoryCopySaturated", node="ill", uuid="GPU-4", gpu="4"),
        firing("VeoNodeNotReporting", node="dcgm"),
        firing("VeoGpuMemoryCopyHigh", node="dcgm", job="dcgm", uuid="GPU-d0"),
        firing("VeoJobsNoneSucceed", engine="out", model="m"),
        firing("VeoJobSuccessBurnFast", engine="out", model="m"),
        firing("VeoJobSuccessBurnSlow", engine="out", model="m"),
        firing("VeoJobSuccessBurnFast", engine="out", model="other"),
        firing("VeoJobTimeouts", engine="out", model="m"),
        firing("VeoWatchdog"),
    ]
    site.post(posted)
    wait_until(
        lambda: (
            len(states := [alert["status"]["state"] for alert in site.alerts()]) == len(posted)
            and "unprocessed" not in states
        )
    )
    muted = {
        (labels["alertname"], labels.get("node", ""), labels.get("uuid", labels.get("model", "")))
        for alert in site.alerts()
        if (labels := alert["labels"]) and alert["status"]["inhibitedBy"]
    }
    assert muted == {
        ("VeoGpuHung", "down", "GPU-d"),
        ("VeoDataStale", "down", ""),
        ("VeoGpuMemoryCopyHigh", "ill", "GPU-3"),
        ("VeoGpuMemoryCopySaturated", "ill", "GPU-4"),
        ("VeoJobSuccessBurnFast", "", "m"),
        ("VeoJobSuccessBurnSlow", "", "m"),
    }


# Texts


def rendered(folder: Path, name: str, notification: Notification) -> str:
    data = folder / "notification.json"
    data.write_text(json.dumps(notification))
    shown = run(
        *(tool("amtool"), "template", "render"),
        f"--template.glob={ROOT / 'alerts/templates/*.tmpl'}",
        f'--template.text={{{{ template "{name}" . }}}}',
        f"--template.data={data}",
    )
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


def test_a_page_says_what_and_where_and_how_many(site: Site) -> None:
    site.post([lost("node-a", number) for number in range(2)])
    _, notification = site.notification(firing=2)
    title = rendered(site.folder, "veo.title", notification)
    assert title.strip() == "CRITICAL: A GPU is lost. Node node-a in default (2)"
    lines = rendered(site.folder, "veo.text", notification).strip().splitlines()
    assert lines == [line for number in (0, 1) for line in lines_about(number)]


def lines_about(number: int) -> list[str]:
    said = (
        f"GPU {number} (GPU-node-a-{number}, PCI 0000:{number}b:00.0) of node node-a no longer "
        "answers, or NVML no longer lists it. Its jobs have failed and it gives no values."
    )
    dashboard = "https://grafana.example.com/d/veo-node-gpu?var-node=node-a"
    return [
        said,
        "Runbook: https://runbooks.example.com/veo/VeoGpuLost.md",
        f"Dashboard: {dashboard}&var-gpu={number}",
    ]


def test_a_gpu_that_is_back_is_not_counted_among_the_lost(site: Site) -> None:
    ill, back = lost("node-a", 0), lost("node-a", 1)
    site.post([ill, back])
    site.notification(firing=2)
    site.post([{**back, "endsAt": datetime.now(UTC).isoformat()}])
    _, notification = site.notification(firing=1, resolved=1)
    title = rendered(site.folder, "veo.title", notification)
    assert title.strip() == "CRITICAL: A GPU is lost. Node node-a in default (1)"
    text = rendered(site.folder, "veo.text", notification)
    assert "Resolved: GPU 1 (" in text
    assert "Resolved: GPU 0 (" not in text


def test_the_end_is_told_as_the_end(site: Site) -> None:
    back = lost("node-a", 1)
    site.post([back])
    site.notification(firing=1)
    site.post([{**back, "endsAt": datetime.now(UTC).isoformat()}])
    receiver, notification = site.notification(resolved=1)
    assert (receiver, notification["status"]) == ("pager", "resolved")
    title = rendered(site.folder, "veo.title", notification)
    assert title.strip() == "RESOLVED: A GPU is lost. Node node-a in default (1)"
