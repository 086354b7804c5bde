# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Every query of every dashboard, on a real Prometheus that scrapes two real exporters.

One node is healthy; on the other, everything goes wrong that a panel is there to show. The node that
is not well has a cluster label and the healthy one has none, as with a single cluster.
"""

import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, TypeVar

import prometheus_client
import pytest
import yaml

from tests.daemon import PATIENCE_SECONDS, Daemon, daemon, wait_until
from tests.dashboards.documents import Document, TargetOf, documents, panels, substituted, targets
from tests.dashboards.prometheus import Prometheus

QUICK = [
    "--gpu.fast-interval=200ms",
    "--gpu.full-interval=1s",
    "--gpu.static-interval=5s",
    "--gpu.window=5s",
    "--gpu.call-deadline=1s",
]
WINDOWS = {"$__rate_interval": "4s", "$__range": "10s"}
"""Four scrapes and more, as Grafana would have it."""

EMPTY_ON_THE_HEALTHY_NODE = {
    ("Firing alerts", "A"),
    ("NVML errors by function and code", "A"),
    ("NVML calls over their deadline", "A"),
    # The board of the shipped scenario has no encoder; that of the other node has.
    ("Video encoder and decoder", "A"),
}
TROUBLE = {
    "about": "A node on which much goes wrong at once.",
    "gpus": 5,
    "board": {
        "name": "Board with an encoder",
        "memory_gib": 24,
        "reserved_gib": 0.5,
        "power_limit_watts": 300,
        "sm_clock_max_megahertz": 1980,
        "memory_clock_megahertz": 2619,
    },
    "work": [
        {
            "name": "render",
            "lasts": "5s",
            "utilization": 0.9,
            "memory_copy_utilization": 0.5,
            "memory_used": 0.7,
            "power": 0.8,
            "temperature_celsius": 60,
        }
    ],
    "happenings": [
        {"at": "0s", "what": "throttle", "gpus": [0], "reason": "hw_thermal_slowdown"},
        {
            "at": "0s",
            "what": "fail",
            "gpus": [1],
            "function": "nvmlDeviceGetTemperature",
            "code": 999,
        },
        {
            "at": "3s",
            "what": "hang",
            "gpus": [2],
            "function": "nvmlDeviceGetTotalEnergyConsumption",
        },
        {"at": "3s", "what": "lose", "gpus": [3]},
    ],
}

SELDOM = {("Reasons", "A"), ("Defects by kind", "A")}
"""Only what has just occurred is on these; they are asked for all that did since the start."""

RULES = """
groups:
  - name: test
    rules:
      - alert: VeoGpuLost
        expr: max without (state) (veo_gpu_state{state="lost"}) == 1
        labels: {severity: critical, action: reboot_node}
      - alert: VeoWatchdog
        expr: vector(1)
        labels: {severity: none, action: none}
"""


T = TypeVar("T")


class Fleet:
    """A Prometheus and its exporters."""

    def __init__(self, prometheus: Prometheus, nodes: dict[str, Daemon]) -> None:
        self.prometheus = prometheus
        self.nodes = nodes

    def labels(self, target: TargetOf, node: str) -> list[dict[str, str]]:
        values = {**WINDOWS, "$node": node}
        if key(target) in SELDOM:
            values["$__rate_interval"] = "2m"
        return self.prometheus.series(substituted(target.expr, values))

    def answer(self, wanted: tuple[str, str], node: str) -> list[dict[str, Any]]:
        """The answer to one query, by its panel's title and its letter."""
        (target,) = (each for each in targets() if key(each) == wanted)
        answer = self.prometheus.ask("query", query=substituted(target.expr, {"$node": node}))
        rows: list[dict[str, Any]] = answer["result"]
        return rows


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("prometheus")
    scenario = folder / "trouble.yaml"
    scenario.write_text(yaml.safe_dump(TROUBLE))
    with ExitStack() as running:
        nodes = {
            "healthy": running.enter_context(daemon(["demo", *QUICK])),
            "trouble": running.enter_context(daemon(["demo", *QUICK, "--scenario", str(scenario)])),
        }
        server, thread = prometheus_client.start_http_server(0, "127.0.0.1")
        running.callback(thread.join)
        running.callback(server.server_close)
        running.callback(server.shutdown)
        jobs = {
            "veo": {
                address(nodes["healthy"]): {"node": "healthy"},
                address(nodes["trouble"]): {"node": "trouble", "cluster": "west"},
                "127.0.0.1:1": {"node": "dead"},
            },
            # Another exporter, which has process metrics too, and one that is down.
            "other": {f"127.0.0.1:{server.server_port}": {"node": "healthy"}, "127.0.0.1:1": {}},
        }
        prometheus = running.enter_context(Prometheus(folder, jobs, RULES))
        # Once this much is there, nothing that is absent will come later.
        signs = (
            "ALERTS{alertname='VeoGpuLost'}",
            "veo_gpu_nvml_call_in_flight_seconds",
            "count(veo_gpu_utilization_mean_ratio) > 8",
            "count_over_time(up{node='healthy',job='veo'}[4s]) > 4",
            "up{job='other'} == 0",
            "process_resident_memory_bytes{job='other'}",
        )
        wait_until(lambda: all(map(prometheus.series, signs)), 2 * PATIENCE_SECONDS)
        # After the first scrape, so that it is seen to come.
        for node in nodes.values():
            post_failed_job(node)
        yield Fleet(prometheus, nodes)


def post_failed_job(node: Daemon) -> None:
    event = {
        "specversion": "1.0",
        "id": "1",
        "source": "test",
        "type": "veo.job.finished",
        "subject": "failed",
        "data": {"engine": "veo-engine", "outcome": "failed", "reason": "upstream_503"},
    }
    request = urllib.request.Request(
        f"{node.url}/api/v1/events",
        json.dumps(event).encode(),
        {"Content-Type": "application/cloudevents+json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        assert answer.status < 300


def assert_comes_to(right: T, ask: Callable[[], T]) -> None:
    """Once it is so.

    A scrape that takes longer than half a second, as on a busy machine, takes all series of its node
    away until the next one.
    """
    seen: list[T] = []

    def so() -> bool:
        seen[:] = [ask()]
        return seen == [right]

    with suppress(AssertionError):
        wait_until(so)
    assert seen == [right]


def address(node: Daemon) -> str:
    return node.url.removeprefix("http://")


def key(target: TargetOf) -> tuple[str, str]:
    return target.panel.content["title"], target.content["refId"]


def columns(target: TargetOf) -> set[str]:
    """Labels that a table has a heading for; a cluster may be absent."""
    found: set[str] = set()
    for step in target.panel.content.get("transformations", []):
        found |= set(step["options"]["renameByName"])
    return found - {"Value", "cluster"}


def unnamed(target: TargetOf, fleet: Fleet) -> str:
    """What is wrong with a query's answer; nothing if it has all it should."""
    node = "trouble" if key(target) in EMPTY_ON_THE_HEALTHY_NODE else "healthy"
    series = fleet.labels(target, node)
    if not series:
        return f"{target}: no data from {target.expr}"
    for wanted in sorted(target.legend_labels | columns(target)):
        if not all(labels.get(wanted) for labels in series):
            return f"{target}: series without {wanted} from {target.expr}"
    return ""


def untrue(target: TargetOf, fleet: Fleet) -> str:
    """What is wrong with where a query is empty; nothing if it is empty where it should be."""
    if key(target) in EMPTY_ON_THE_HEALTHY_NODE:
        return f"{target}: data from a healthy node" if fleet.labels(target, "healthy") else ""
    if fleet.labels(target, "trouble"):
        return ""
    return f"{target}: no data from the node that is not well"


# One test for all queries each, so that parallel runs need few fleets.
@pytest.mark.parametrize("fault", [unnamed, untrue], ids=["data and labels", "empty where right"])
def test_every_query(fault: Callable[[TargetOf, Fleet], str], fleet: Fleet) -> None:
    faults: list[str] = []

    def none_left() -> bool:
        faults[:] = filter(None, (fault(target, fleet) for target in targets()))
        return not faults

    with suppress(AssertionError):
        wait_until(none_left)
    assert faults == []


def test_the_exceptions_are_of_queries_that_exist() -> None:
    assert {key(target) for target in targets()} >= EMPTY_ON_THE_HEALTHY_NODE


@pytest.mark.parametrize("document", documents(), ids=lambda each: each.name)
def test_variables_offer_what_is_there(document: Document, fleet: Fleet) -> None:
    offered = {}
    for name, variable in document.variables.items():
        if variable["type"] == "query":
            match = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"])
            assert match, name
            selector = substituted(match[1])
            offered[name] = fleet.prometheus.ask(
                f"label/{match[2]}/values", **{"match[]": selector}
            )
    assert offered["job"] == ["veo"]
    assert offered["node"] == ["healthy", "trouble"]
    assert offered["cluster"] == ["west"]
    assert offered["gpu"] == [str(gpu) for gpu in range(8)]


def test_other_exporters_are_left_out(fleet: Fleet) -> None:
    for target in targets():
        for labels in fleet.labels(target, ".*"):
            assert labels.get("job", "veo") == "veo", target


@pytest.mark.parametrize(("node", "down"), [(".*", "1"), ("dead", "1"), ("healthy", "0")])
def test_exporters_that_are_down_are_counted(node: str, down: str, fleet: Fleet) -> None:
    """Our own alone: the other job has one that is down too."""
    assert_comes_to(
        [down],
        lambda: [row["value"][1] for row in fleet.answer(("Exporters down", "A"), node)],
    )
    everywhere = {"healthy": "1", "trouble": "1", "dead": "0"}
    assert_comes_to(
        everywhere if node == ".*" else {node: everywhere[node]},
        lambda: {
            row["metric"]["node"]: row["value"][1]
            for row in fleet.answer(("Exporter reachable", "A"), node)
        },
    )


def test_one_of_several_gpus_can_be_chosen(fleet: Fleet) -> None:
    """As Grafana writes it when two of them are."""
    (target,) = (each for each in targets() if key(each) == ("Utilization", "A"))
    expr = substituted(target.expr, {"$gpu": "(0|5)", "$node": "healthy"})
    assert_comes_to({"0", "5"}, lambda: {labels["gpu"] for labels in fleet.prometheus.series(expr)})


def test_a_lost_gpu_is_shown_as_such(fleet: Fleet) -> None:
    (panel,) = (each for each in panels() if each.content["title"] == "State of each GPU")
    words = panel.defaults["mappings"][0]["options"]
    assert_comes_to(
        {"0": "ok", "1": "ok", "2": "hung", "3": "lost", "4": "ok"},
        lambda: {
            row["metric"]["gpu"]: words[row["value"][1]]["text"]
            for row in fleet.answer(("State of each GPU", "A"), "trouble")
        },
    )
    assert_comes_to(
        ["2"], lambda: [row["value"][1] for row in fleet.answer(("GPUs missing", "A"), "trouble")]
    )


@pytest.fixture(scope="module")
def twice(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """The node that is not well, scraped by two jobs: from outside, an old job and its successor."""
    node = {address(fleet.nodes["trouble"]): {"node": "trouble"}}
    jobs = {"veo": node, "veo-new": node}
    with Prometheus(tmp_path_factory.mktemp("twice"), jobs, RULES) as prometheus:
        wait_until(
            lambda: len(prometheus.series("veo_gpu_state{gpu='2',state='hung'} == 1")) == 2,
            PATIENCE_SECONDS,
        )
        yield prometheus


def test_a_gpu_that_two_jobs_scrape_is_one_gpu_in_one_state(twice: Prometheus) -> None:
    def rows(title: str) -> list[dict[str, Any]]:
        (target,) = (each for each in targets() if key(each) == (title, "A"))
        found: list[dict[str, Any]] = twice.ask("query", query=substituted(target.expr))["result"]
        return found

    (panel,) = (each for each in panels() if each.content["title"] == "State of each GPU")
    words = panel.defaults["mappings"][0]["options"]
    right = {"0": "ok", "1": "ok", "2": "hung", "3": "lost", "4": "ok"}

    def shown(title: str) -> list[tuple[str, str]]:
        return sorted((row["metric"]["gpu"], words[row["value"][1]]["text"]) for row in rows(title))

    for title in ("State of each GPU", "GPUs"):
        assert_comes_to(sorted(right.items()), partial(shown, title))
    figures = {"GPUs expected": "5", "GPUs usable": "3", "GPUs missing": "2", "Exporters down": "0"}

    def numbers() -> dict[str, list[str]]:
        return {title: [row["value"][1] for row in rows(title)] for title in figures}

    assert_comes_to({title: [figure] for title, figure in figures.items()}, numbers)


def test_nothing_is_added_up_or_counted_twice(twice: Prometheus) -> None:
    """With both jobs chosen, every total is what it is with one of them."""

    def answers(expr: str, job: str) -> dict[str, float]:
        text = substituted(expr, {**WINDOWS, "$job": job})
        rows = twice.ask("query", query=text)["result"]
        return {str(row["metric"]): float(row["value"][1]) for row in rows}

    remaining = [each for each in targets() if re.search(r"\b(sum|count)\b", each.expr)]
    assert remaining
    differences: list[str] = []

    # Each by itself: with jobs coming and going, all of them are seldom at rest at once.
    def none_left() -> bool:
        found = [
            (target, f"{target}: {both} is not {one}")
            for target in remaining
            if (both := answers(target.expr, ".+")).keys()
            != (one := answers(target.expr, "veo")).keys()
            # Rates of two jobs are not of the same scrapes.
            or any(both[name] > 1.5 * one[name] + 0.01 for name in one)
        ]
        remaining[:] = [target for target, _ in found]
        differences[:] = [difference for _, difference in found]
        return not found

    with suppress(AssertionError):
        wait_until(none_left)
    assert differences == []


@pytest.mark.parametrize("document", documents(), ids=lambda each: each.name)
def test_firing_alerts_are_marked_on_the_graphs(document: Document, fleet: Fleet) -> None:
    (annotation,) = document.content["annotations"]["list"]
    expr = substituted(annotation["expr"])
    named = set(re.findall(r"{{(\w+)}}", annotation["titleFormat"] + annotation["textFormat"]))

    def marked() -> list[tuple[str, set[str]]]:
        rows = fleet.prometheus.series(expr)
        return [(row["alertname"], named & row.keys()) for row in rows]

    assert_comes_to([("VeoGpuLost", named)], marked)
