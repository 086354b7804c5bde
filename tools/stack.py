# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The demo, a real Prometheus, Alertmanager and Collector together; one Ctrl-C ends all.

So does whatever ends a shell's work: a closed terminal (SIGHUP), SIGTERM, SIGQUIT. If one of the
programs ends by itself, it is named with its status and its last words, the others are ended too, and
the exit status is 1.
"""

import argparse
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tools.collecting import Collecting, collecting
from tools.monitoring import Monitoring, monitoring
from tools.programs import Program, ProgramFailedError, free_port
from tools.story import tell
from tools.webhook import Notification
from veo_exporter.errors import BadScenario
from veo_exporter.simulate.scenario import Scenario, load_scenario

EXPORTER_PORT: Final = 9420
NODE: Final = "demo-node"
COLLECTOR_JOB: Final = "otelcol"
SPAN_METRICS_JOB: Final = "otelcol-span-metrics"
QUIET_RECEIVERS: Final = ("watchdog",)
ENDED_BY: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_LOOK_SECONDS: Final = 0.2


def say(text: str) -> None:
    """Print it, if there is still somebody to read it."""
    try:
        print(text, flush=True)
    except OSError:
        # The terminal is closed. What is not yet written would fail once more at the end.
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123, a device and no path of ours
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def print_notification(receiver: str, notification: Notification) -> None:
    """What would be on somebody's phone."""
    if receiver in QUIET_RECEIVERS:
        return
    time = datetime.now(UTC).strftime("%H:%M:%S")
    alerts = notification["alerts"]
    summary = notification["commonAnnotations"].get("summary", "")
    name = notification["commonLabels"].get("alertname", "")
    lines = [
        f"{time}  {receiver} is told: {notification['status'].upper()} {name} ({len(alerts)}): {summary}"
    ]
    for alert in alerts:
        lines.append(f"          {alert['status']}: {alert['annotations']['description']}")
        lines.append(f"          runbook {alert['annotations']['runbook_url']}")
    say("\n".join(lines))


def describe(
    exporter_url: str,
    *,
    running: Monitoring,
    collector: Collecting,
    about: str,
    story: Iterable[str],
    times_faster: float,
) -> str:
    """What a newcomer needs to know, and where to look."""
    prometheus, alertmanager = running.prometheus_url, running.alertmanager_url
    told = "\n".join(f"  {line}" for line in story)
    return f"""
The stack is up; every figure is simulated. {about}

  exporter       {exporter_url}
  Prometheus     {prometheus} (the API alone: its web pages are not built in)
  Alertmanager   {alertmanager} (the API alone: its web pages are not built in)
  Collector      {collector.otlp_url} takes OTLP over HTTP, {collector.otlp_grpc_address} over gRPC
                 traces are written to {collector.traces_file}
                 Prometheus scrapes what it tells of itself (job {COLLECTOR_JOB}) and of the spans
                 (job {SPAN_METRICS_JOB}: each service by its own name, once a job has ended)

To see it there, paste:

  curl -s {exporter_url}/metrics
  curl -s '{prometheus}/api/v1/query' --data-urlencode 'query=veo_gpu_state == 1'
  curl -s '{prometheus}/api/v1/query' --data-urlencode 'query=ALERTS'
  curl -s '{prometheus}/api/v1/query' --data-urlencode 'query=traces_span_metrics_calls_total'
  curl -s '{prometheus}/api/v1/query' --data-urlencode 'query=otelcol_receiver_accepted_spans'
  curl -s '{prometheus}/api/v1/alerts'
  curl -s '{prometheus}/api/v1/rules'
  curl -s '{alertmanager}/api/v2/alerts'

What will happen, in UTC:

{told}

The story goes on at its own pace. All intervals of Prometheus and Alertmanager are {times_faster:g} times
shorter than in alerts/, numbers that rules compare with are not. Other alerts may come besides; what
Alertmanager sends is printed below. Ctrl-C ends everything.
"""


def run(
    name: str,
    scenario: Scenario,
    times_faster: float,
    stop: threading.Event,
    *,
    usual_ports: bool = True,
) -> None:
    """Until it is told to stop. Raises ProgramFailedError if a program does not start or ends."""
    port = free_port(EXPORTER_PORT if usual_ports else 0)
    exporter_url = f"http://127.0.0.1:{port}"
    with (
        tempfile.TemporaryDirectory(prefix="veo-stack-") as folder_name,
        collecting(Path(folder_name) / "collector", usual_ports=usual_ports) as collector,
    ):
        folder = Path(folder_name)
        started = datetime.now(UTC)
        exporter = Program(
            "veo-exporter",
            [
                *(sys.executable, "-m", "veo_exporter", "demo"),
                f"--web.listen-address=127.0.0.1:{port}",
                f"--scenario={name}",
            ],
            ready_url=f"{exporter_url}/-/healthy",
            log=folder / "exporter.log",
            environment={
                **os.environ,
                "VEO_TRACES__ENDPOINT": collector.otlp_url,
                # What it leaves behind when it is killed is swept up with the rest.
                "TMPDIR": folder_name,
            },
        )
        with (
            exporter,
            monitoring(
                folder / "monitoring",
                {NODE: f"127.0.0.1:{port}"},
                print_notification,
                times_faster=times_faster,
                usual_ports=usual_ports,
                further_jobs={
                    COLLECTOR_JOB: collector.own_metrics_address,
                    SPAN_METRICS_JOB: collector.metrics_address,
                },
            ) as running,
        ):
            exporter.wait_until_ready()
            about = f"Scenario {name}: {scenario.about}"
            story = tell(scenario, started, times_faster)
            text = describe(
                exporter_url,
                running=running,
                collector=collector,
                about=about,
                story=story,
                times_faster=times_faster,
            )
            say(text)
            while not stop.wait(_LOOK_SECONDS):
                for program in (exporter, collector.program, *running.programs):
                    program.check()
            say("ending ...")


def _times_faster(text: str) -> float:
    value = float(text)
    if not 0 < value <= 100:
        raise argparse.ArgumentTypeError("wants a number above 0 and up to 100")
    return value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="gpu-lost", help="as in veo-exporter demo --scenario")
    parser.add_argument(
        "--times-faster",
        type=_times_faster,
        default=5.0,
        help="how much shorter the intervals of Prometheus and Alertmanager are (default: 5)",
    )
    parser.add_argument(
        "--any-ports", action="store_true", help="any free ports, and not the usual ones if free"
    )
    arguments = parser.parse_args()
    stop = threading.Event()
    for number in ENDED_BY:
        signal.signal(number, lambda *_: stop.set())
    try:
        scenario = load_scenario(arguments.scenario)
        usual = not arguments.any_ports
        run(arguments.scenario, scenario, arguments.times_faster, stop, usual_ports=usual)
    except (BadScenario, ProgramFailedError) as error:
        print(f"stack: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
