# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""From a fault of the driver to somebody's pager, on real parts only.

The fake NVML library loses a GPU; the exporter, Prometheus and Alertmanager are real, with this
project's rules and configuration. Addresses and secrets are put in and intervals are shortened;
nothing else is changed.
"""

import json
import threading
import time
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import QUICK
from tests.daemon import Daemon, wait_until
from tests.fake_nvml import FakeNode
from tools.monitoring import Monitoring, monitoring
from tools.webhook import Notification

TIMES_FASTER = 15
"""A scrape each second, and a fault is held for two."""
PATIENCE_SECONDS = 120.0


class Pager:
    """What the receivers were told, in order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: list[tuple[str, Notification]] = []

    def told(self, receiver: str, notification: Notification) -> None:
        with self._lock:
            self._told.append((receiver, notification))

    def notifications(self, alert: str, receiver: str = "pager") -> list[Notification]:
        with self._lock:
            return [
                notification
                for name, notification in self._told
                if name == receiver and notification["commonLabels"].get("alertname") == alert
            ]

    def wait_for(self, alert: str, holds: Callable[[Notification], bool]) -> Notification:
        return wait_until(
            lambda: next((told for told in self.notifications(alert) if holds(told)), None),
            PATIENCE_SECONDS,
        )


class Site:
    """Two nodes with eight GPUs each, watched."""

    def __init__(
        self,
        nodes: dict[str, FakeNode],
        daemons: dict[str, Daemon],
        pager: Pager,
        running: Monitoring,
    ) -> None:
        self.nodes = nodes
        self.daemons = daemons
        self.pager = pager
        self.running = running

    def lost_at_a_time(self, node: str) -> set[int]:
        """How many of a node's GPUs were lost, in each scrape of it."""
        query = f'veo_gpu_state{{node="{node}",state="lost"}}[5m]'
        text = urllib.parse.urlencode({"query": query})
        with urllib.request.urlopen(
            f"{self.running.prometheus_url}/api/v1/query?{text}", timeout=PATIENCE_SECONDS
        ) as answer:
            rows = json.load(answer)["data"]["result"]
        lost: Counter[float] = Counter()
        for row in rows:
            for at, value in row["values"]:
                lost[at] += int(value)
        return set(lost.values())

    def alerts(self) -> list[dict[str, Any]]:
        """Alerts as Alertmanager has them, inhibited ones too."""
        with urllib.request.urlopen(
            f"{self.running.alertmanager_url}/api/v2/alerts", timeout=PATIENCE_SECONDS
        ) as answer:
            alerts: list[dict[str, Any]] = json.load(answer)
            return alerts


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    pager = Pager()
    with ExitStack() as running:
        nodes, daemons = {}, {}
        for name in ("node-a", "node-b"):
            folder = tmp_path / name
            folder.mkdir()
            nodes[name] = FakeNode(folder / "scenario", gpus=8)
            nodes[name].write_sysfs(folder / "sys")
            command = ["serve", *QUICK, f"--gpu.sysfs-root={folder / 'sys'}"]
            daemons[name] = running.enter_context(Daemon(command, nodes[name].environment()))
        targets = {name: daemon.url.removeprefix("http://") for name, daemon in daemons.items()}
        monitored = running.enter_context(
            monitoring(tmp_path / "monitoring", targets, pager.told, times_faster=TIMES_FASTER)
        )
        site = Site(nodes, daemons, pager, monitored)
        # All is up once the alert that always fires has come through.
        wait_until(lambda: bool(pager.notifications("VeoWatchdog", "watchdog")), PATIENCE_SECONDS)
        yield site


def test_a_lost_gpu_is_paged_with_all_one_needs_and_resolved_when_it_is_back(site: Site) -> None:
    gone = site.nodes["node-a"].gpus[3]
    gone.lose()

    page = site.pager.wait_for("VeoGpuLost", lambda told: told["status"] == "firing")
    [alert] = page["alerts"]
    assert alert["labels"] == {
        "alertname": "VeoGpuLost",
        "severity": "critical",
        "action": "reboot_node",
        "cluster": "default",
        "job": "veo",
        "instance": site.daemons["node-a"].url.removeprefix("http://"),
        "node": "node-a",
        "gpu": "3",
        "uuid": gone.uuid,
        "pci_bus_id": gone.sysfs_address,
    }
    assert alert["annotations"] == {
        "summary": "A GPU is lost.",
        "description": (
            f"GPU 3 ({gone.uuid}, PCI {gone.sysfs_address}) of node node-a no longer answers, "
            "or NVML no longer lists it. Its jobs have failed and it gives no values."
        ),
        "runbook_url": "https://runbooks.example.com/veo/VeoGpuLost.md",
        "dashboard_url": "https://grafana.example.com/d/veo-node-gpu?var-node=node-a&var-gpu=3",
    }

    gone.recover()
    page = site.pager.wait_for("VeoGpuLost", lambda told: told["status"] == "resolved")
    assert [alert["labels"]["gpu"] for alert in page["alerts"]] == ["3"]


def test_eight_gpus_lost_at_once_are_one_notification(site: Site) -> None:
    for name, node in site.nodes.items():
        with node.changes():
            for gpu in node.gpus:
                gpu.lose()

        def all_of_it(told: Notification, name: str = name) -> bool:
            return len(told["alerts"]) == 8 and told["commonLabels"]["node"] == name

        page = site.pager.wait_for("VeoGpuLost", all_of_it)
        assert {alert["labels"]["gpu"] for alert in page["alerts"]} == set("01234567")
        # On a busy machine they may be found in two sweeps, and scraped between them: not at once, then,
        # and we have another node.
        if site.lost_at_a_time(name) == {0, 8}:
            break
    assert site.lost_at_a_time(name) == {0, 8}
    told = site.pager.notifications("VeoGpuLost")
    assert [one["commonLabels"]["node"] for one in told].count(name) == 1
    # The driver answers for none of them, which the page about the GPUs says already.
    assert site.pager.notifications("VeoDataStale") == []


def test_a_node_that_cannot_be_asked_mutes_its_own_gpu_alerts_and_no_other_nodes(
    site: Site,
) -> None:
    site.nodes["node-a"].gpus[3].lose()
    site.pager.wait_for("VeoGpuLost", lambda told: told["commonLabels"]["node"] == "node-a")

    site.daemons["node-a"].process.kill()

    def muted() -> bool:
        return any(
            alert["status"]["inhibitedBy"]
            for alert in site.alerts()
            if alert["labels"]["alertname"] == "VeoGpuLost" and alert["labels"]["node"] == "node-a"
        )

    # The lost GPU's alert lives on for a while after its exporter.
    wait_until(muted, PATIENCE_SECONDS)
    down = site.pager.wait_for("VeoExporterDown", lambda told: told["status"] == "firing")
    assert down["commonLabels"]["node"] == "node-a"
    assert down["commonLabels"]["severity"] == "critical"
    site.nodes["node-b"].gpus[5].lose()
    other = site.pager.wait_for("VeoGpuLost", lambda told: told["commonLabels"]["node"] == "node-b")
    assert [alert["labels"]["gpu"] for alert in other["alerts"]] == ["5"]
    by_node = {
        alert["labels"]["node"]: alert["status"]
        for alert in site.alerts()
        if alert["labels"]["alertname"] == "VeoGpuLost"
    }
    assert by_node["node-b"]["inhibitedBy"] == []


def test_an_alert_that_fires_while_its_node_cannot_be_asked_is_inhibited(site: Site) -> None:
    site.daemons["node-a"].process.kill()
    site.pager.wait_for("VeoExporterDown", lambda told: told["status"] == "firing")
    labels = {"alertname": "VeoGpuLost", "severity": "critical", "cluster": "default", "gpu": "1"}
    posted = [{"labels": {**labels, "node": node, "uuid": node}} for node in ("node-a", "node-b")]
    request = urllib.request.Request(
        f"{site.running.alertmanager_url}/api/v2/alerts",
        data=json.dumps(posted).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        assert answer.status == 200

    def inhibited() -> dict[str, bool] | None:
        found = {
            alert["labels"]["node"]: bool(alert["status"]["inhibitedBy"])
            for alert in site.alerts()
            if alert["labels"]["alertname"] == "VeoGpuLost"
        }
        return found if len(found) == 2 and found["node-a"] else None

    assert wait_until(inhibited, PATIENCE_SECONDS) == {"node-a": True, "node-b": False}
    site.pager.wait_for("VeoGpuLost", lambda told: told["commonLabels"]["node"] == "node-b")
    assert [told["commonLabels"]["node"] for told in site.pager.notifications("VeoGpuLost")] == [
        "node-b"
    ]


def test_a_hung_gpu_is_paged(site: Site) -> None:
    began = time.monotonic()
    site.nodes["node-b"].gpus[0].hang()
    page = site.pager.wait_for("VeoGpuHung", lambda told: told["status"] == "firing")
    assert [alert["labels"]["gpu"] for alert in page["alerts"]] == ["0"]
    assert page["commonLabels"]["action"] == "reset_gpu"
    assert time.monotonic() - began < PATIENCE_SECONDS
    site.nodes["node-b"].gpus[0].release()
