# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The second road, on real parts only: an event and its file to a verdict, a trace and an exemplar."""

import gzip
import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartDaemon
from tests.daemon import wait_until
from tools.collecting import attributes_of, collecting
from tools.monitoring import monitoring

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
SHORTFALL = "veo_video_duration_shortfall_seconds"
PATIENCE_SECONDS = 60.0


@pytest.fixture
def film(tmp_path: Path) -> Path:
    """Six seconds at 24 frames a second, where 6.2 are asked for."""
    ffmpeg = shutil.which("ffmpeg")
    assert ffmpeg is not None, "ffmpeg is not there: apt-get install ffmpeg"
    folder = tmp_path / "out"
    folder.mkdir()
    path = folder / "job-1.mp4"
    command = [ffmpeg, "-v", "error", "-f", "lavfi", "-i", "testsrc=rate=24:size=128x72"]
    subprocess.run([*command, "-frames:v", "144", "-pix_fmt", "yuv420p", str(path)], check=True)
    return path


def event(number: int, kind: str, data: dict[str, Any]) -> dict[str, Any]:
    return {
        "specversion": "1.0",
        "id": str(number),
        "source": "test",
        "type": f"veo.job.{kind}",
        "subject": "job-1",
        # A second apart, up to now: a job that took no time is not observed.
        "time": (datetime.now(UTC) - timedelta(seconds=5 - number)).isoformat(),
        "traceparent": f"00-{TRACE}-{PARENT}-01",
        "data": {"engine": "veo-engine", "model": "m", **data},
    }


def post(url: str, body: bytes, kind: str, coding: str = "") -> tuple[int, dict[str, Any]]:
    headers = {"Content-Type": kind, **({"Content-Encoding": coding} if coding else {})}
    request = urllib.request.Request(f"{url}/api/v1/events", data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_an_event_and_its_file_become_a_verdict_a_trace_and_an_exemplar(
    start: StartDaemon, film: Path, tmp_path: Path
) -> None:
    with collecting(tmp_path / "collector") as collector:
        running = start(f'--video.roots=["{film.parent}"]', VEO_TRACES__ENDPOINT=collector.otlp_url)
        targets = {"node-a": running.url.removeprefix("http://")}
        with monitoring(
            tmp_path / "monitoring", targets, lambda *_: None, times_faster=15
        ) as monitored:
            request = {"width": 1280, "height": 720, "fps": 24, "duration_s": 6.2}
            batch = [
                event(1, "submitted", {"request": request}),
                event(2, "started", {}),
                event(3, "stage", {"stage": "denoise", "duration_s": 0.5}),
                event(4, "finished", {"outcome": "success", "outputs": [{"path": str(film)}]}),
            ]
            status, answer = post(
                running.url, json.dumps(batch).encode(), "application/cloudevents-batch+json"
            )
            assert (status, answer["refused_count"]) == (202, 0)

            # 24 x 6.2 is 148.8: 149 frames are expected, and 144 are there.
            page = running.wait_for(
                lambda page: (
                    page.value(
                        "veo_video_files_total",
                        verdict="defective",
                        source="event",
                        engine="veo-engine",
                        profile="720p24-6.2s",
                    )
                    == 1
                    # The last that is counted of a file.
                    and page.values(f"{SHORTFALL}_count", profile="720p24-6.2s") == [1]
                )
            )
            # 6.2 s were asked for, and 144 frames are 6.
            assert page.values(f"{SHORTFALL}_sum", profile="720p24-6.2s") == [pytest.approx(0.2)]
            assert (
                sum(page.values("veo_jobs_finished_total", engine="veo-engine", outcome="success"))
                == 1
            )

            def whole_trace() -> list[Mapping[str, Any]] | None:
                """Its spans may come in more than one batch."""
                spans = [span for span, _ in collector.spans() if span["traceId"] == TRACE]
                known = {PARENT, *(span["spanId"] for span in spans)}
                whole = all(span["parentSpanId"] in known for span in spans)
                return spans if whole and any("probe" in span["name"] for span in spans) else None

            spans = wait_until(whole_trace, PATIENCE_SECONDS)
            by_id = {span["spanId"]: span for span in spans}
            [root] = [span for span in spans if span.get("parentSpanId") == PARENT]
            for probe in (span for span in spans if "probe" in span["name"]):
                above = probe
                while above["spanId"] != root["spanId"]:
                    above = by_id[above["parentSpanId"]]
            assert "job-1" in attributes_of(root).values()

            def exemplars() -> list[dict[str, str]]:
                query = urllib.parse.urlencode(
                    {"query": "veo_job_duration_seconds_bucket", "start": "0", "end": "9999999999"}
                )
                url = f"{monitored.prometheus_url}/api/v1/query_exemplars?{query}"
                with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
                    found = json.load(answer)["data"]
                return [row["labels"] for series in found for row in series["exemplars"]]

            [labels] = wait_until(lambda: exemplars() or None, PATIENCE_SECONDS)
            assert labels == {"trace_id": TRACE, "span_id": root["spanId"]}


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"no JSON at all", "application/cloudevents+json", 400),
        (
            b'{"specversion": "1.0", "id": "1", "source": "s", "type": "veo.job.unheard_of"}',
            "application/cloudevents+json",
            400,
        ),
        (b"[" + b" " * 10_000_000 + b"]", "application/cloudevents-batch+json", 413),
        (b"{}", "text/plain", 415),
    ],
    ids=["not-json", "wrong-type", "ten-megabytes", "wrong-media-type"],
)
def test_bad_input_is_told_and_counted_and_costs_nothing_else(
    start: StartDaemon, body: bytes, kind: str, status: int
) -> None:
    running = start()
    found, answer = post(running.url, body, kind)
    assert found == status
    assert answer["refused"][0]["message"]
    good = json.dumps(event(1, "submitted", {})).encode()
    assert post(running.url, good, "application/cloudevents+json")[0] == 202
    page = running.wait_for(
        lambda page: sum(page.values("veo_jobs_submitted_total", engine="veo-engine")) == 1
    )
    assert sum(page.values("veo_exporter_dropped_total", kind="event")) == 1
    assert running.events("NVML call is over its deadline; its thread is left behind") == []


@pytest.mark.parametrize(
    ("coding", "status", "reason"),
    [("gzip", 400, "not_json"), ("br", 415, "unsupported_media_type")],
)
def test_a_body_that_cannot_be_unpacked_is_no_fault_of_ours(
    start: StartDaemon, coding: str, status: int, reason: str
) -> None:
    running = start()
    found, answer = post(running.url, b"[]", "application/cloudevents-batch+json", coding)
    assert (found, answer["refused"][0]["reason"]) == (status, reason)
    good = gzip.compress(json.dumps([event(1, "submitted", {})]).encode())
    assert post(running.url, good, "application/cloudevents-batch+json", "gzip")[0] == 202
    running.wait_for(
        lambda page: page.value("veo_exporter_dropped_total", kind="event", reason=reason) == 1
    )
    assert [entry for entry in running.log if entry.get("level") == "error"] == []


def test_two_jobs_that_name_one_file_have_its_verdict_each_in_its_own_trace(
    start: StartDaemon, film: Path, tmp_path: Path
) -> None:
    traces = {"job-a": "a" * 32, "job-b": "b" * 32}
    with collecting(tmp_path / "collector") as collector:
        running = start(f'--video.roots=["{film.parent}"]', VEO_TRACES__ENDPOINT=collector.otlp_url)
        end = {"outcome": "success", "outputs": [{"path": str(film)}] * 2}
        batch = [
            event(number, "finished", end)
            | {"subject": job, "traceparent": f"00-{trace}-{PARENT}-01"}
            for number, (job, trace) in enumerate(traces.items())
        ]
        body = json.dumps(batch).encode()
        assert post(running.url, body, "application/cloudevents-batch+json")[0] == 202

        def probes() -> dict[str, str]:
            """The trace of each job's probes."""
            spans = [span for span, _ in collector.spans()]
            jobs = {span["spanId"]: attributes_of(span).get("videogen.job.id") for span in spans}
            return {
                str(jobs.get(span["parentSpanId"])): span["traceId"]
                for span in spans
                if span["name"] == "probe_video"
            }

        # A job's own span may come in a later batch than its probe's.
        wait_until(lambda: len(probes()) == 2 and "None" not in probes(), PATIENCE_SECONDS)
        assert probes() == traces
        # A file counts once, whoever names it.
        page = running.scrape()
        assert sum(page.values("veo_video_files_total", source="event")) == 1


@pytest.mark.parametrize(
    "traceparent", ["nonsense", f"00-{TRACE}-{PARENT}-01-extra", f"00-{'0' * 32}-{PARENT}-01"]
)
def test_a_traceparent_that_cannot_be_read_is_counted_once_under_one_name(
    start: StartDaemon, traceparent: str
) -> None:
    running = start()
    said = event(1, "finished", {"outcome": "success"}) | {"traceparent": traceparent}
    assert post(running.url, json.dumps(said).encode(), "application/cloudevents+json")[0] == 202
    page = running.wait_for(
        lambda page: page.value("veo_exporter_dropped_total", kind="traceparent") == 1
    )
    assert sum(page.values("veo_jobs_finished_total", outcome="success")) == 1
    counted = {
        (dict(labels)["kind"], dict(labels)["reason"]): value
        for (name, labels), value in page.series.items()
        if name == "veo_exporter_dropped_total" and value
    }
    assert counted == {("traceparent", "broken"): 1}


def test_a_log_that_cannot_be_reached_costs_no_other_and_no_loop(
    start: StartDaemon, tmp_path: Path
) -> None:
    log = tmp_path / "veo-engine.log"
    log.write_text("")
    (tmp_path / "loop").symlink_to("loop")
    faulty = ["/" + "x" * 256, f"{tmp_path}/loop", "/proc/self/mem"]
    running = start(f"--logs.files={json.dumps([*faulty, str(log)])}")
    running.wait_for(
        lambda page: page.value("veo_exporter_dropped_total", reason="unreadable") == 3
    )

    def told() -> bool:
        with log.open("a") as file:
            file.write('ERROR RENDER_ABORT frame=71 gpu=3 reason="device lost"\n')
        page = running.scrape()
        return sum(page.values("veo_jobs_finished_total", outcome="aborted")) >= 1

    wait_until(told)
    page = running.scrape()
    assert page.value("veo_exporter_dropped_total", reason="unreadable") == 3
    assert page.values("veo_exporter_dropped_total", kind="loop_round") == [0, 0, 0, 0]
    said = [entry["fault"] for entry in running.told("a log cannot be followed", 3)]
    assert sorted(said) == sorted(
        [
            f"{faulty[0]}: File name too long",
            f"{faulty[1]}: Too many levels of symbolic links",
            f"{faulty[2]}: Input/output error",
        ]
    )
    assert running.get("/-/healthy") == (200, b"healthy\n")


def test_an_abort_told_by_the_engines_log_is_a_job_that_ended(
    start: StartDaemon, tmp_path: Path
) -> None:
    log = tmp_path / "veo-engine.log"
    log.write_text("")
    running = start(f'--logs.files=["{log}"]')
    # Followed before the line comes: what stands there at the start is old.
    running.wait_for(lambda page: page.value("veo_gpus_usable") == 8)

    def told() -> bool:
        with log.open("a") as file:
            file.write('ERROR RENDER_ABORT frame=71 gpu=3 reason="device lost"\n')
        page = running.scrape()
        return sum(page.values("veo_jobs_finished_total", outcome="aborted")) >= 1

    wait_until(told)
    log.rename(tmp_path / "veo-engine.log.1")
    before = sum(running.scrape().values("veo_jobs_finished_total", outcome="aborted"))

    def told_again() -> bool:
        with log.open("a") as file:
            file.write('ERROR RENDER_ABORT frame=1 gpu=5 reason="device lost"\n')
        return sum(running.scrape().values("veo_jobs_finished_total", outcome="aborted")) > before

    wait_until(told_again)
