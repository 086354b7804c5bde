# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""How the pods are found, and what the notes say of it."""

from typing import Any

import yaml

from tests.helm.chart import (
    CHART,
    EVERYTHING,
    NAMESPACE,
    RELEASE,
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
    assert monitor["sampleLimit"] == 10000
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert endpoint["port"] == container(manifests)["ports"][0]["name"]
    assert endpoint["interval"] == "5s"
    targets = {row["targetLabel"]: row for row in endpoint["relabelings"]}
    assert targets["job"]["replacement"] == "x"
    assert targets["node"]["sourceLabels"] == ["__meta_kubernetes_pod_node_name"]


def test_a_limit_of_zero_is_none() -> None:
    values = {"podMonitor": {"enabled": True, "labelLimit": 0}}
    assert "labelLimit" not in only(render(values), "PodMonitor")["spec"]


def test_notes_say_what_is_off_and_how_to_be_scraped() -> None:
    notes = _notes({})
    for switch in ("podMonitor.enabled", "prometheusRule.enabled", "dashboards.enabled"):
        assert switch in notes
    assert "image.repository is veo-exporter" in notes
    assert "port 9420" in notes
    for later in ("prober", "Collector", "NetworkPolicy"):
        assert later in notes


def test_notes_do_not_call_off_what_is_on() -> None:
    notes = _notes({**EVERYTHING, "image": {"repository": "registry.example.com/veo-exporter"}})
    assert "podMonitorSelector" in notes
    assert "image.repository" not in notes
    assert "prometheusRule.enabled" not in notes
    assert "dashboards.enabled" not in notes


def _notes(values: dict[str, Any]) -> str:
    installed = run(
        "helm",
        *("install", RELEASE, CHART, "--namespace", NAMESPACE, "--dry-run=client", "--values", "-"),
        stdin=yaml.safe_dump(values),
    )
    assert installed.returncode == 0, installed.stderr
    return installed.stdout.partition("\nNOTES:\n")[2]
