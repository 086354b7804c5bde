# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""A file that its folder counted first: the event of its job adds no file, and its trace has the probe."""

import json
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.conftest import StartDaemon
from tests.daemon import wait_until
from tests.video.test_once import put
from tools.collecting import attributes_of, collecting

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PATIENCE_SECONDS = 60.0


def finished(path: Path) -> bytes:
    return json.dumps(
        {
            "specversion": "1.0",
            "id": "1",
            "source": "test",
            "type": "veo.job.finished",
            "subject": "job-1",
            "time": (datetime.now(UTC) - timedelta(seconds=1)).isoformat(),
            "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01",
            "data": {
                "engine": "veo-engine",
                "outcome": "success",
                "request": {"fps": 24, "duration_s": 6.2},
                "outputs": [{"path": str(path)}],
            },
        }
    ).encode()


def test_the_event_adds_no_file_and_has_its_span(
    start: StartDaemon, films: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    written = [{"name": "out", "path": str(folder), "expect": "fps=24,duration=6.2"}]
    with collecting(tmp_path / "collector") as collector:
        running = start(
            f"--video.folders={json.dumps(written)}", VEO_TRACES__ENDPOINT=collector.otlp_url
        )
        path = put(films["stops-at-6-seconds.mp4"], folder)
        running.wait_for(
            lambda page: (
                page.value("veo_video_files_total", source="out", verdict="defective") == 1
            ),
            PATIENCE_SECONDS,
        )
        post = urllib.request.Request(
            f"{running.url}/api/v1/events",
            data=finished(path),
            headers={"Content-Type": "application/cloudevents+json"},
        )
        with urllib.request.urlopen(post, timeout=20) as answer:
            assert answer.status == 202
        [probe] = wait_until(
            lambda: (
                [
                    span
                    for span, _ in collector.spans()
                    if span["traceId"] == TRACE and span["name"] == "probe_video"
                ]
                or None
            ),
            PATIENCE_SECONDS,
        )
        said = attributes_of(probe)
        assert said["file.path"] == str(path)
        assert said["videogen.video.verdict"] == "defective"
        # 149 were asked for, and 6 s are 144.
        assert int(said["videogen.video.frames_missing"]) == 5
        assert sum(running.scrape().values("veo_video_files_total")) == 1
