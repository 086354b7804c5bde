# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The first of its kind is seen: rows stand at zero before they stand at one, by a real Prometheus."""

import json
import shutil
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartDaemon
from tests.daemon import Daemon, wait_until
from tests.jobs import Desk, event, series, written
from tests.video.conftest import call
from tools.monitoring import monitoring
from veo_exporter.app.jobs import known_of
from veo_exporter.config import Jobs, Logs
from veo_exporter.jobs import Known, Receipt

PATIENCE_SECONDS = 60.0
OWN_RULES = """
rules:
  - name: worker_died
    contains: "worker died"
    pattern: 'worker died code=(?P<code>\\d+)'
    event:
      type: veo.job.finished
      data: {engine: of-a-log, outcome: aborted, reason: worker_died, error: {code: "{code:int}"}}
    examples:
      - line: "worker died code=139"
        event:
          type: veo.job.finished
          data: {engine: of-a-log, outcome: aborted, reason: worker_died, error: {code: 139}}
"""


class Eyes:
    """What a Prometheus with a scrape each second has seen."""

    def __init__(self, url: str) -> None:
        self._url = url

    def value(self, query: str) -> float | None:
        address = f"{self._url}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(address, timeout=20) as answer:
            found = json.load(answer)["data"]["result"]
        return float(found[0]["value"][1]) if found else None

    def wait_for_zero(self, series: str) -> None:
        assert wait_until(
            lambda: None if (seen := self.value(series)) is None else (seen,), PATIENCE_SECONDS
        ) == (0.0,)

    def wait_for_increase(self, series: str) -> None:
        wait_until(
            lambda: (self.value(f"increase({series}[5m])") or 0) > 0 or None, PATIENCE_SECONDS
        )


@contextmanager
def watched(running: Daemon, folder: Path) -> Iterator[Eyes]:
    targets = {"node-a": running.url.removeprefix("http://")}
    with monitoring(folder, targets, lambda *_: None, times_faster=15) as monitored:
        yield Eyes(monitored.prometheus_url)


def post(running: Daemon, kind: str, **data: Any) -> None:
    body = json.dumps([written(kind, kind, **data)]).encode()
    request = urllib.request.Request(
        f"{running.url}/api/v1/events",
        data=body,
        headers={"Content-Type": "application/cloudevents-batch+json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert answer.status == 202


def finished(engine: str, outcome: str, reason: str) -> str:
    return f'veo_jobs_finished_total{{engine="{engine}",outcome="{outcome}",reason="{reason}"}}'


def test_the_first_file_that_is_cut_off_and_the_first_job_that_fails_are_seen(
    start: StartDaemon, tmp_path: Path
) -> None:
    ffmpeg = shutil.which("ffmpeg")
    assert ffmpeg, "the test needs ffmpeg: apt-get install ffmpeg"
    whole, cut = tmp_path / "whole.mp4", tmp_path / "cut.mp4"
    call([ffmpeg, "-v", "error", "-f", "lavfi", "-i", "testsrc=size=128x72", "-t", "2", str(whole)])
    cut.write_bytes(whole.read_bytes()[:-2000])
    running = start(f'--video.roots=["{tmp_path}"]')
    truncated = 'veo_video_defects_total{source="event",engine="%s",defect="truncated"}'
    with watched(running, tmp_path / "monitoring") as eyes:
        # Of the engine that is configured, before anything is heard of it.
        eyes.wait_for_zero(truncated % "veo-engine")
        # Of one that nobody named, as soon as a job of it is heard of.
        assert eyes.value(truncated % "unheard-of") is None
        post(running, "submitted", engine="unheard-of", model="m")
        eyes.wait_for_zero(truncated % "unheard-of")
        failed = finished("unheard-of", "failed", "upstream_503")
        eyes.wait_for_zero(failed)
        post(
            running, "finished", outcome="failed", reason="upstream_503",
            outputs=[{"path": str(cut)}],
        )  # fmt: skip
        eyes.wait_for_increase(truncated % "unheard-of")
        eyes.wait_for_increase(failed)


def test_the_first_abort_in_a_log_is_seen(start: StartDaemon, tmp_path: Path) -> None:
    log, rules = tmp_path / "veo-engine.log", tmp_path / "rules.yaml"
    log.touch()
    rules.write_text(OWN_RULES)
    running = start(
        f'--logs.files=["{log}"]',
        f'--logs.rules=["veo-engine", "{rules}"]',
        # A line does not say which model it was.
        '--jobs.models=["veo-3"]',
    )
    with watched(running, tmp_path / "monitoring") as eyes:
        aborted = finished("veo-engine", "aborted", "device_lost")
        died = finished("of-a-log", "aborted", "worker_died")
        eyes.wait_for_zero(aborted.replace("{", '{model="unknown",'))
        eyes.wait_for_zero(died)
        with log.open("a") as file:
            file.write('RENDER_ABORT frame=37 gpu=3 reason="device lost"\nworker died code=139\n')
        eyes.wait_for_increase(aborted.replace("{", '{model="unknown",'))
        eyes.wait_for_increase(died)


def test_whoever_shows_rows_of_jobs_elsewhere_is_told_of_their_labels() -> None:
    desk = Desk(known=Known(engines=("e",), models=("m",), max_sets=1))
    told: list[tuple[str, ...]] = []
    assert desk.job_folds.sets == (
        ("e", "m", "none", "other"),
        ("unknown", "unknown", "none", "other"),
        ("e", "unknown", "none", "other"),
    )
    desk.job_folds.tell_sets(told.append)
    for number, engine in enumerate("efg"):
        desk.intake.take(
            [event("submitted", engine, job=str(number), engine=engine, model="m")], Receipt()
        )
    # No room for a second set: what is beyond it is told of once, and has its zeros too.
    assert told == [("other", "other", "other", "other")]
    elsewhere = dict.fromkeys(("engine", "model", "variant", "profile"), "other")
    said = series("veo_jobs_finished_total", **elsewhere, outcome="lost", reason="no_word")
    assert f"{said} 0.0\n" in desk.text()
    assert desk.dropped == {("job_label", "set"): 2}


def test_engines_that_rules_speak_for_are_known(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(OWN_RULES)
    logs = Logs(files=("/var/log/x.log",), rules=("veo-engine", str(rules)))
    assert known_of(Jobs(), logs).log_engines == ("veo-engine", "of-a-log")
    # Without a log no line will speak.
    assert known_of(Jobs(), Logs(rules=("veo-engine",))).log_engines == ()
    desk = Desk(known=Known(log_engines=("of-a-log",)))
    said = series(
        "veo_jobs_finished_total", engine="of-a-log", outcome="aborted", reason="worker_died"
    )
    assert f"{said} 0.0\n" in desk.text()


@pytest.mark.parametrize("engine", ["unknown", "veo-engine"])
def test_an_end_without_a_beginning_has_its_zeros(engine: str) -> None:
    desk = Desk(known=Known(engines=("veo-engine",), models=("veo-3",)))
    said = series("veo_jobs_finished_total", engine=engine, outcome="lost", reason="no_word")
    assert f"{said} 0.0\n" in desk.text()
