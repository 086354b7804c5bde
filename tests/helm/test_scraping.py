# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""How the pods are found, and what the notes say of it."""

from typing import Any

import pytest
import yaml

from tests.helm.chart import (
    CHART,
    EVERYTHING,
    NAMESPACE,
    RELEASE,
    ROOT,
    container,
    only,
    pod_labels,
    render,
    run,
)


def test_the_service_stays_on_the_node() -> None:
    manifests = render()
    service = only(manifests, "Service")["spec"]
    assert service["internalTrafficPolicy"] == "Local"
    assert service["ports"][0]["port"] == 9420
    assert service["ports"][0]["targetPort"] == container(manifests)["ports"][0]["name"]
    assert service["selector"] == pod_labels(manifests)
    headless = only(render({"service": {"headless": True}}), "Service")["spec"]
    assert headless["clusterIP"] == "None"
    assert "internalTrafficPolicy" not in headless


def test_pod_monitor_finds_the_pods_and_names_the_node() -> None:
    manifests = render({"podMonitor": {"enabled": True}, "scrape": {"job": "x", "interval": "5s"}})
    monitor = only(manifests, "PodMonitor")["spec"]
    assert monitor["selector"]["matchLabels"].items() <= pod_labels(manifests).items()
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert endpoint["port"] == container(manifests)["ports"][0]["name"]
    assert (endpoint["interval"], endpoint["scrapeTimeout"]) == ("5s", "5s")
    targets = {row["targetLabel"]: row for row in endpoint["relabelings"]}
    assert targets["job"]["replacement"] == "x"
    assert targets["node"]["sourceLabels"] == ["__meta_kubernetes_pod_node_name"]


def test_scrapes_are_those_of_the_plain_configuration() -> None:
    plain = yaml.safe_load((ROOT / "alerts/prometheus.yml").read_text())
    monitor = only(render({"podMonitor": {"enabled": True}}), "PodMonitor")["spec"]
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert endpoint["interval"] == plain["global"]["scrape_interval"]
    assert endpoint["scrapeTimeout"] == plain["global"]["scrape_timeout"]
    assert {job["sample_limit"] for job in plain["scrape_configs"]} == {monitor["sampleLimit"]}


@pytest.mark.parametrize(
    ("scrape", "timeout"),
    [
        ({"interval": "2s"}, "2s"),
        ({"interval": "1m30s"}, "5s"),
        ({"interval": "5s", "timeout": "5s"}, "5s"),
        ({"interval": "1m", "timeout": "59s"}, "59s"),
    ],
)
def test_a_scrape_is_given_up_before_the_next_one(scrape: dict[str, str], timeout: str) -> None:
    monitor = only(render({"podMonitor": {"enabled": True}, "scrape": scrape}), "PodMonitor")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["scrapeTimeout"] == timeout


def test_a_limit_of_zero_is_none() -> None:
    values = {"podMonitor": {"enabled": True, "labelLimit": 0}}
    assert "labelLimit" not in only(render(values), "PodMonitor")["spec"]


def test_notes_say_what_is_off_and_how_to_be_scraped() -> None:
    notes = _notes({})
    for switch in ("podMonitor.enabled", "prometheusRule.enabled", "dashboards.enabled"):
        assert switch in notes
    assert "image.repository is veo-exporter" in notes
    assert "port 9420" in notes
    assert "VeoWatchdog" not in notes
    # They lean on none, and are whole without the rules.
    assert "lean" not in notes
    dashboards = (ROOT / "dashboards/json").glob("*.json")
    assert not any("veo:" in path.read_text() for path in dashboards)
    for later in ("prober", "Collector", "NetworkPolicy"):
        assert later in notes


def test_notes_do_not_call_off_what_is_on() -> None:
    notes = _notes({**EVERYTHING, "image": {"repository": "registry.example.com/veo-exporter"}})
    assert "podMonitorSelector" in notes
    assert "image.repository" not in notes
    assert "prometheusRule.enabled" not in notes
    assert "dashboards.enabled" not in notes


@pytest.mark.parametrize("text", [None, (CHART / "README.md").read_text()], ids=["notes", "readme"])
def test_what_the_rules_bring_is_said(text: str | None) -> None:
    said = " ".join((text or _notes(EVERYTHING)).split())
    for word in (
        *("VeoWatchdog", "dead man's switch", "severity", "info", "alerts/alertmanager.yaml"),
        *("external label", "cluster", "kube_node_labels", "six hours"),
        "--metric-labels-allowlist=nodes=[nvidia.com/gpu.present]",
    ):
        assert word in said, word


def _notes(values: dict[str, Any]) -> str:
    installed = run(
        "helm",
        *("install", RELEASE, CHART, "--namespace", NAMESPACE, "--dry-run=client", "--values", "-"),
        stdin=yaml.safe_dump(values),
    )
    assert installed.returncode == 0, installed.stderr
    return installed.stdout.partition("\nNOTES:\n")[2]
