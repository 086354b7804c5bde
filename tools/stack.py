# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The demo, a real Prometheus, Alertmanager and Collector together; one Ctrl-C ends all."""

import argparse
import os
import signal
import sys
import tempfile
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tools.collecting import Collecting, collecting
from tools.monitoring import Monitoring, monitoring
from tools.programs import Program, ProgramFailedError, free_port
from tools.webhook import Notification

EXPORTER_PORT: Final = 9420
NODE: Final = "demo-node"
QUIET_RECEIVERS: Final = ("watchdog",)


def print_notification(receiver: str, notification: Notification) -> None:
    """What would be on somebody's phone."""
    if receiver in QUIET_RECEIVERS:
        return
    time = datetime.now(UTC).strftime("%H:%M:%S")
    alerts = notification["alerts"]
    summary = notification["commonAnnotations"].get("summary", "")
    name = notification["commonLabels"].get("alertname", "")
    print(
        f"{time}  {receiver} is told: {notification['status'].upper()} {name} ({len(alerts)}): {summary}"
    )
    for alert in alerts:
        print(f"          {alert['status']}: {alert['annotations']['description']}")
        print(f"          runbook {alert['annotations']['runbook_url']}")
    sys.stdout.flush()


def describe(
    exporter_url: str,
    running: Monitoring,
    collector: Collecting,
    scenario: str,
    times_faster: float,
) -> str:
    """What a newcomer needs to know, and where to look."""
    prometheus = running.prometheus_url
    return f"""
The stack is up, with scenario {scenario}; every figure is simulated.

  exporter       {exporter_url}
                 {exporter_url}/metrics
  Prometheus     {prometheus}
                 {prometheus}/api/v1/query?query=veo_gpu_state==1
                 {prometheus}/api/v1/alerts
                 {prometheus}/api/v1/rules
  Alertmanager   {running.alertmanager_url}
                 {running.alertmanager_url}/api/v2/alerts
  Collector      {collector.otlp_url} takes OTLP over HTTP, {collector.otlp_grpc_address} over gRPC
                 {collector.metrics_url} counts spans
                 traces are written to {collector.traces_file}

All intervals are {times_faster:g} times shorter than in alerts/. What Alertmanager sends is printed below:
in scenario gpu-lost, the pager hears of VeoGpuLost about a minute and a half from now, and again when the
GPU is back. Ctrl-C ends everything.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="gpu-lost", help="as in veo-exporter demo --scenario")
    parser.add_argument(
        "--times-faster", type=float, default=5.0, help="how much shorter intervals are"
    )
    arguments = parser.parse_args()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    port = free_port(EXPORTER_PORT)
    exporter_url = f"http://127.0.0.1:{port}"
    try:
        with (
            tempfile.TemporaryDirectory(prefix="veo-stack-") as name,
            collecting(Path(name) / "collector", usual_ports=True) as collector,
        ):
            folder = Path(name)
            exporter = Program(
                "veo-exporter",
                [
                    *(sys.executable, "-m", "veo_exporter", "demo"),
                    f"--web.listen-address=127.0.0.1:{port}",
                    f"--scenario={arguments.scenario}",
                ],
                ready_url=f"{exporter_url}/-/healthy",
                log=folder / "exporter.log",
                environment={**os.environ, "VEO_TRACES__ENDPOINT": collector.otlp_url},
            )
            with (
                exporter,
                monitoring(
                    folder / "monitoring",
                    {NODE: f"127.0.0.1:{port}"},
                    print_notification,
                    times_faster=arguments.times_faster,
                    usual_ports=True,
                ) as running,
            ):
                exporter.wait_until_ready()
                print(
                    describe(
                        exporter_url,
                        running,
                        collector,
                        arguments.scenario,
                        arguments.times_faster,
                    ),
                    flush=True,
                )
                stop.wait()
                print("ending ...", flush=True)
    except ProgramFailedError as error:
        print(f"stack: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
