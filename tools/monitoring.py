# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus and a real Alertmanager on the loopback, with this project's own configuration.

Addresses, secrets and, if asked for, intervals and further jobs are put in; nothing else is changed.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from alerts.generation import quicken, rule_files
from tools.programs import ROOT, Program, free_port, tool
from tools.webhook import Notification, WebhookServer

ALERTS: Final = ROOT / "alerts"
PROMETHEUS_PORT: Final = 9090
ALERTMANAGER_PORT: Final = 9093
SECRETS: Final = "/etc/alertmanager/secrets"
RESEND_DELAY_SECONDS: Final = 60
"""Prometheus' own default; an interval like the others."""
RECEIVERS: Final = ("pager", "tickets", "watchdog")


@dataclass(frozen=True, slots=True)
class Monitoring:
    """Where the two answer."""

    prometheus_url: str
    alertmanager_url: str
    targets: Path
    """A file of Prometheus' targets; it may be changed while this runs."""
    programs: tuple[Program, ...]
    """To see whether they still run."""


def write_targets(path: Path, targets: Mapping[str, str]) -> None:
    """Nodes and the addresses of their exporters, as Prometheus' file discovery reads them."""
    groups = [{"targets": [address], "labels": {"node": node}} for node, address in targets.items()]
    written = path.with_suffix(".new")
    written.write_text(yaml.safe_dump(groups))
    written.replace(path)


@contextmanager
def monitoring(
    folder: Path,
    targets: Mapping[str, str],
    told: Callable[[str, Notification], None],
    *,
    times_faster: float = 1.0,
    usual_ports: bool = False,
    further_jobs: Mapping[str, str] | None = None,
) -> Iterator[Monitoring]:
    """Prometheus scraping these targets and Alertmanager notifying `told`, until the block ends.

    With `usual_ports` they get the ports that people know, if those are free. `further_jobs` are the
    addresses of what is no exporter of ours, by Prometheus' name for the job.

    Raises ProgramFailedError if one of them does not start.
    """
    prometheus_port = free_port(PROMETHEUS_PORT if usual_ports else 0)
    alertmanager_port = free_port(ALERTMANAGER_PORT if usual_ports else 0)
    with ExitStack() as running:
        webhook = running.enter_context(WebhookServer(told))
        _write_configuration(folder, alertmanager_port, webhook, times_faster, further_jobs or {})
        write_targets(folder / "targets/veo-nodes.yaml", targets)
        alertmanager = running.enter_context(_alertmanager(folder, alertmanager_port))
        prometheus = running.enter_context(_prometheus(folder, prometheus_port, times_faster))
        alertmanager.wait_until_ready()
        prometheus.wait_until_ready()
        yield Monitoring(
            prometheus_url=f"http://127.0.0.1:{prometheus_port}",
            alertmanager_url=f"http://127.0.0.1:{alertmanager_port}",
            targets=folder / "targets/veo-nodes.yaml",
            programs=(prometheus, alertmanager),
        )


def _write_configuration(
    folder: Path,
    alertmanager_port: int,
    webhook: WebhookServer,
    times_faster: float,
    further_jobs: Mapping[str, str],
) -> None:
    for name in ("rules", "targets", "secrets", "templates"):
        (folder / name).mkdir(parents=True)
    for name, text in rule_files(times_faster).items():
        (folder / "rules" / name).write_text(text)
    for template in (ALERTS / "templates").iterdir():
        shutil.copy(template, folder / "templates")
    for receiver in RECEIVERS:
        (folder / f"secrets/{receiver}_url").write_text(webhook.url(receiver))
    prometheus = (ALERTS / "prometheus.yml").read_text()
    prometheus = prometheus.replace("localhost:9093", f"127.0.0.1:{alertmanager_port}")
    prometheus = with_jobs(prometheus, further_jobs)
    (folder / "prometheus.yml").write_text(patient(quicken(prometheus, times_faster)))
    alertmanager = (ALERTS / "alertmanager.yaml").read_text()
    alertmanager = alertmanager.replace(SECRETS, str(folder / "secrets"))
    (folder / "alertmanager.yaml").write_text(quicken(alertmanager, times_faster))


def patient(configuration: str) -> str:
    """Prometheus' configuration with all the time for a scrape that there is until the next one.

    How long an answer takes is up to the machine, and that is no faster than it was.
    """
    content = yaml.safe_load(configuration)
    content["global"]["scrape_timeout"] = content["global"]["scrape_interval"]
    return yaml.safe_dump(content, sort_keys=False)


def with_jobs(configuration: str, jobs: Mapping[str, str]) -> str:
    """Prometheus' configuration with a job for each of these addresses besides its own."""
    content = yaml.safe_load(configuration)
    content["scrape_configs"] += [
        {
            "job_name": name,
            # A Collector tells of services, each with its own "job": that is what one asks for.
            "honor_labels": True,
            "static_configs": [{"targets": [address]}],
        }
        for name, address in jobs.items()
    ]
    return yaml.safe_dump(content, sort_keys=False)


def _prometheus(folder: Path, port: int, times_faster: float) -> Program:
    return Program(
        "prometheus",
        [
            tool("prometheus"),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'prometheus'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--enable-feature=exemplar-storage",
            f"--rules.alert.resend-delay={round(1000 * RESEND_DELAY_SECONDS / times_faster)}ms",
        ],
        ready_url=f"http://127.0.0.1:{port}/-/ready",
        log=folder / "prometheus.log",
    )


def _alertmanager(folder: Path, port: int) -> Program:
    return Program(
        "alertmanager",
        [
            tool("alertmanager"),
            f"--config.file={folder / 'alertmanager.yaml'}",
            f"--storage.path={folder / 'alertmanager'}",
            f"--web.listen-address=127.0.0.1:{port}",
            # One alone: no gossip with others.
            "--cluster.listen-address=",
        ],
        ready_url=f"http://127.0.0.1:{port}/-/ready",
        log=folder / "alertmanager.log",
    )
