# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Values that mean nothing are refused, by name."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.helm.chart import CHART, refusal, render

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
OPEN = {
    "properties/global": "a parent chart's own",
    "properties/affinity/properties/nodeAffinity": "Kubernetes' own, and it checks it",
    "properties/affinity/properties/podAffinity": "Kubernetes' own, and it checks it",
    "properties/affinity/properties/podAntiAffinity": "Kubernetes' own, and it checks it",
    "definitions/volume": "some thirty kinds",
    "definitions/environmentVariable/properties/valueFrom": "Kubernetes' own, and it checks it",
}
"""Mappings whose keys this schema does not know, and why."""


def _objects(node: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield place, node
        for name, inner in node.items():
            yield from _objects(inner, f"{place}/{name}".lstrip("/"))


def test_every_mapping_is_closed() -> None:
    open_ones = {place for place, node in _objects(SCHEMA) if "additionalProperties" not in node}
    assert open_ones == OPEN.keys()


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"confg": {}}, ["confg"]),
        ({"image": {"tagg": "1"}}, ["/image", "tagg"]),
        ({"image": {"digest": "latest"}}, ["/image/digest"]),
        ({"config": {"gpus": {}}}, ["/config", "gpus"]),
        ({"config": {"gpu": {"fast_intervall": "1s"}}}, ["/config/gpu", "fast_intervall"]),
        ({"config": {"gpu": {"fast_interval": 5}}}, ["/config/gpu/fast_interval", "want string"]),
        ({"config": {"log": {"level": "loud"}}}, ["/config/log/level"]),
        ({"deviceAccess": "magic"}, ["/deviceAccess", "runtimeClass", "hostPath"]),
        ({"livenessProbe": {"httpGet": {"path": "/-/ready"}}}, ["/livenessProbe", "httpGet"]),
        ({"readinessProbe": {"exec": {}}}, ["/readinessProbe", "exec"]),
        ({"resources": {"limit": {}}}, ["/resources", "limit"]),
        ({"securityContext": {"priviledged": True}}, ["/securityContext", "priviledged"]),
        (
            {"securityContext": {"capabilities": {"ad": []}}},
            ["/securityContext/capabilities", "ad"],
        ),
        ({"tolerations": [{"keys": "a"}]}, ["/tolerations/0", "keys"]),
        ({"gpuNodes": [{"key": "a"}]}, ["/gpuNodes/0", "operator"]),
        ({"nodeSelector": {"gpu": True}}, ["/nodeSelector/gpu", "want string"]),
        ({"extraEnv": [{"value": "a"}]}, ["/extraEnv/0", "name"]),
        ({"extraVolumeMounts": [{"name": "a", "path": "/b"}]}, ["/extraVolumeMounts/0", "path"]),
        ({"service": {"prot": 1}}, ["/service", "prot"]),
        ({"service": {"port": 0}}, ["/service/port"]),
        ({"scrape": {"interval": "15"}}, ["/scrape/interval"]),
        ({"scrape": {"job": 'a"b'}}, ["/scrape/job"]),
        ({"podMonitor": {"samplelimit": 1}}, ["/podMonitor", "samplelimit"]),
        ({"podMonitor": {"relabelings": [{"source": "a"}]}}, ["/podMonitor/relabelings/0"]),
        ({"prometheusRule": {"alert": {}}}, ["/prometheusRule", "alert"]),
        (
            {"prometheusRule": {"alerts": {"VeoGpuLst": {}}}},
            ["/prometheusRule/alerts", "VeoGpuLst"],
        ),
        (
            {"prometheusRule": {"alerts": {"VeoGpuLost": {"threshold": 1}}}},
            ["/prometheusRule/alerts/VeoGpuLost", "threshold"],
        ),
        (
            {"prometheusRule": {"alerts": {"VeoGpuLost": {"for": "5 minutes"}}}},
            ["/prometheusRule/alerts/VeoGpuLost/for"],
        ),
        (
            {"prometheusRule": {"alerts": {"VeoGpuLost": {"severity": "page"}}}},
            ["/prometheusRule/alerts/VeoGpuLost/severity", "critical"],
        ),
        *(
            (
                {"prometheusRule": {"alerts": {alert: {"threshold": value}}}},
                [f"/prometheusRule/alerts/{alert}/threshold", bound],
            )
            for alert, value, bound in (
                # Percents for a share: an alert that would never fire.
                ("VeoGpuMemoryCopyHigh", 92, "exclusiveMaximum: got"),
                ("VeoGpuUtilizationSaturated", 1, "exclusiveMaximum: got"),
                ("VeoGpuMemoryCopySaturated", -0.1, "minimum"),
                ("VeoDataStale", -1, "minimum"),
            )
        ),
        ({"dashboards": {"label": {}}}, ["/dashboards", "label"]),
    ],
    ids=lambda value: None if isinstance(value, list) else json.dumps(value),
)
def test_refuses_and_names_it(values: dict[str, Any], named: list[str]) -> None:
    said = refusal(values)
    for name in named:
        assert name in said


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"config": {"web": {"listen_address": "127.0.0.1:9420"}}}, "write :9420"),
        ({"config": {"web": {"listen_address": "[::1]:9420"}}}, "write :9420"),
        ({"config": {"web": {"listen_address": ":0"}}}, "name a port"),
        ({"hostSysfs": False}, "set that to /sys"),
        (
            {"podMonitor": {"enabled": True}, "scrape": {"interval": "15s", "timeout": "20s"}},
            "scrape.timeout is 20s, above scrape.interval (15s)",
        ),
        (
            {"prometheusRule": {"enabled": True}, "scrape": {"interval": "30s"}},
            "set it to 90s or more",
        ),
        (
            {
                "prometheusRule": {
                    "enabled": True,
                    "alerts": {"VeoGpuMemoryCopyHigh": {"window": "10s"}},
                }
            },
            "the alert could never fire",
        ),
    ],
)
def test_refuses_what_would_not_work(values: dict[str, Any], sentence: str) -> None:
    assert sentence in refusal(values)


def test_takes_what_parent_charts_set() -> None:
    assert render({"global": {"storageClass": "a"}, "enabled": True}) == render()


def test_takes_null_for_a_setting_that_may_be_unset() -> None:
    render({"config": {"gpu": {"expected_count": None}, "web": {"unix_socket": None}}})
