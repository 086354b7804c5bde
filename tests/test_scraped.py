# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes the real daemon, healthy and under faults: it takes each page whole.

Prometheus asks for OpenMetrics first. What it cannot read, it says in its log, and what it drops, in
`scrape_samples_post_metric_relabeling` and in the warnings on series that stand twice.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.conftest import StartDaemon
from tests.daemon import PATIENCE_SECONDS, Daemon, Page, all_ok, wait_until
from tests.dashboards.prometheus import INTERVAL_SECONDS, Prometheus
from tests.fake_nvml import FakeNode
from tests.gpu.boards import divide

SCRAPES = 4
"""So many in a row are looked at, each under the fault."""
COMPLAINT = re.compile(r"\blevel=(?:WARN|ERROR)\b")
OPENMETRICS = "application/openmetrics-text;version=1.0.0"


@dataclass(frozen=True)
class Trouble:
    """What happens to the node, and when its page has come to rest."""

    name: str
    happens: Callable[[FakeNode], object]
    settled: Callable[[Page], bool]


def in_state(state: str, gpu: str = "3") -> Callable[[Page], bool]:
    return lambda page: (
        page.states().get(gpu) == state
        and page.values("veo_gpu_power_watts", gpu=gpu) == []
        and page.values("veo_gpu_power_limit_watts", gpu=gpu) == []
    )


TROUBLES = (
    Trouble("healthy", lambda node: None, lambda page: True),
    Trouble("lost", lambda node: node.gpus[3].lose(), in_state("lost")),
    Trouble("hung", lambda node: node.gpus[3].hang("nvmlDeviceGetPowerUsage"), in_state("hung")),
    Trouble(
        "driver gone",
        lambda node: node.unload_driver(),
        lambda page: page.value("veo_gpus_visible") == 0 and not page.values("veo_gpu_power_watts"),
    ),
    Trouble(
        "MIG",
        lambda node: divide(node.gpus[3]),
        lambda page: len(page.values("veo_gpu_mig_info", gpu="3")) == 3,
    ),
    Trouble(
        "Xid",
        lambda node: node.send_xid(3, 79),
        lambda page: page.value("veo_gpu_xid_errors_total", gpu="3", xid="79") == 1,
    ),
)


def all_well(page: Page) -> bool:
    return (
        all_ok(page) and page.value("veo_exporter_event_source_up", event_source="nvml_events") == 1
    )


def scraping(address: str, folder: Path) -> Prometheus:
    folder.mkdir()
    return Prometheus(folder, {"veo": {address: {}}}, "groups: []\n")


def told(prometheus: Prometheus, metric: str) -> list[tuple[float, float]]:
    """All that it has kept of a metric about its scrapes: when and what."""
    answer = prometheus.ask("query", query=f'{metric}{{job="veo"}}[10m]')
    rows = [] if answer is None else answer["result"]
    return [(at, float(value)) for row in rows for at, value in row["values"]]


def complaints(prometheus: Prometheus) -> list[str]:
    return [line for line in prometheus.log if COMPLAINT.search(line)]


def count_series(daemon: Daemon) -> int:
    """The samples of a page as Prometheus asks for it."""
    status, body = daemon.get("/metrics", {"Accept": OPENMETRICS})
    assert status == 200
    text = body.decode()
    assert text.endswith("# EOF\n"), "asked for OpenMetrics, so told in it"
    return sum(1 for line in text.splitlines() if not line.startswith("#"))


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.name)
def test_prometheus_takes_every_page_whole(
    trouble: Trouble, node: FakeNode, start: StartDaemon, tmp_path: Path
) -> None:
    (tmp_path / "kern.log").touch()
    daemon = start(f"--kernel.log-path={tmp_path / 'kern.log'}", "--gpu.dcgm-names=classic")
    daemon.wait_for(all_well)
    address = daemon.url.removeprefix("http://")
    with scraping(address, tmp_path / "prometheus") as prometheus:
        wait_until(lambda: len(told(prometheus, "up")) >= 2, 2 * PATIENCE_SECONDS)
        trouble.happens(node)
        daemon.wait_for(trouble.settled, 2 * PATIENCE_SECONDS)
        taken = "scrape_samples_post_metric_relabeling"

        def at_rest() -> bool:
            """Scrapes between two pages with as many series as they have all that there are."""
            before, seen = count_series(daemon), len(told(prometheus, taken))
            wait_until(lambda: len(told(prometheus, taken)) >= seen + SCRAPES)
            new = [value for _, value in told(prometheus, taken)[seen + 1 :]]
            return count_series(daemon) == before and set(new) == {before}

        wait_until(at_rest, 2 * PATIENCE_SECONDS)
        # From the first scrape on, those during the fault too; but for what took a busy machine longer
        # than there is until the next one.
        seconds = dict(told(prometheus, "scrape_duration_seconds"))
        down = [at for at, value in told(prometheus, "up") if value != 1]
        assert [at for at in down if seconds.get(at, 0) < INTERVAL_SECONDS] == []
        # Asked for second, there may be one more of it.
        scraped, kept = told(prometheus, "scrape_samples_scraped"), told(prometheus, taken)
        assert len(scraped) > SCRAPES
        assert scraped == kept[: len(scraped)]

        def is_up() -> bool:
            [target] = prometheus.ask("targets", state="active")["activeTargets"]
            return (target["health"], target["lastError"]) == ("up", "")

        wait_until(is_up)
        assert complaints(prometheus) == []
    node.release()


class _Twice(BaseHTTPRequestHandler):
    """A page on which a series stands twice, with other values."""

    def do_GET(self) -> None:  # noqa: N802, as http.server wants it
        body = b"# TYPE a gauge\na 1\na 2\n# EOF\n"
        self.send_response(200)
        self.send_header("Content-Type", f"{OPENMETRICS}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def test_prometheus_complains_of_a_page_that_is_not_well(tmp_path: Path) -> None:
    """So that the silence above tells something."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Twice) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"127.0.0.1:{server.server_port}"
            with scraping(address, tmp_path / "prometheus") as prometheus:
                wait_until(lambda: complaints(prometheus) or None, 2 * PATIENCE_SECONDS)
        finally:
            server.shutdown()
            thread.join()
