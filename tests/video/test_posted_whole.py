# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A report that is posted, through the whole exporter: to the counters, and into its job's trace."""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import StartDaemon
from tests.daemon import Daemon, wait_until
from tests.jobs import written
from tests.video.synthetic import evenly, report
from tools.collecting import collecting
from veo_exporter.video import as_json, parse_expectation


def post(running: Daemon, *events: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(
        f"{running.url}/api/v1/events",
        data=json.dumps(events).encode(),
        headers={"Content-Type": "application/cloudevents-batch+json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def probed(event_id: str, path: str, **more: Any) -> dict[str, Any]:
    # 144 frames of the 149 that 6.2 s at 24 a second are: made, but for its name, by a probe.
    said = as_json(report(evenly(144), expectation=parse_expectation("fps=24,duration=6.2")))
    return written("veo.video.probed", event_id, **(said | {"file": path}), **more)


@pytest.mark.parametrize("order", ["report-first", "job-first"])
def test_a_posted_report_is_counted_and_is_part_of_its_jobs_trace(
    start: StartDaemon, tmp_path: Path, order: str
) -> None:
    # On the job's own volume: nobody here can read it.
    path = "/volume-of-the-job/1.mp4"
    end = written("finished", "2", outcome="success", outputs=[{"path": path}])
    last = [probed("3", path), end] if order == "report-first" else [end, probed("3", path)]
    with collecting(tmp_path / "collector") as collector:
        running = start(VEO_TRACES__ENDPOINT=collector.otlp_url)
        first = written("submitted", "1", engine="veo-engine", request={"fps": 24})
        status, answer = post(running, first, *last)
        assert (status, answer["taken"]) == (202, {"applied": 2, "handed_on": 1})
        labels = {"source": "event", "engine": "veo-engine"}
        page = running.wait_for(
            lambda page: (
                page.value("veo_video_defects_total", defect="frames_missing", **labels) == 1
                # The last that is counted of a file.
                and page.value("veo_video_duration_shortfall_seconds_count", **labels) == 1
            )
        )
        assert page.value("veo_video_files_total", verdict="defective", **labels) == 1
        assert page.value("veo_video_frames_total", **labels) == 144
        assert page.value("veo_video_consistency_ratio_count", **labels) == 1
        assert page.value("veo_video_frame_deviation_seconds_count", **labels) == 143
        assert page.value("veo_video_duration_shortfall_seconds_sum", **labels) == pytest.approx(
            0.2
        )
        wait_until(lambda: any("probe" in span["name"] for span, _ in collector.spans()))
        if order == "report-first":
            # Then the exporter does not look for it itself, and finds nothing.
            assert page.value("veo_video_files_total", verdict="error", **labels) == 0


def test_what_is_no_report_and_what_is_not_taken_is_answered_and_counted(
    start: StartDaemon,
) -> None:
    running = start("--gpu.enabled=false")
    status, answer = post(
        running,
        probed("1", "/out/1.mp4"),
        written("veo.video.probed", "2", file="/out/2.mp4"),
        written("veo.queue.reading", "3", depth=3),
    )
    assert (status, answer["taken"], answer["refused_count"]) == (400, {"handed_on": 1}, 2)
    assert [(told["index"], told["message"]) for told in answer["refused"]] == [
        (2, "type: veo.queue.reading is not taken yet: do not send it"),
        (1, "data.verdict: Field required"),
    ]
    page = running.wait_for(
        lambda page: (
            page.value("veo_exporter_dropped_total", kind="event", reason="not_taken") == 1
            and page.value("veo_exporter_dropped_total", kind="event", reason="bad_data") == 1
        )
    )
    assert page.value("veo_video_files_total", engine="unknown", verdict="defective") == 1
