# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The whole room: a film is renamed into a folder, and its verdict is counted."""

from pathlib import Path

from tests.daemon import wait_until
from veo_exporter.catalog import video as catalog
from veo_exporter.clock import SystemClock
from veo_exporter.config.video import Video
from veo_exporter.exposition import Folds
from veo_exporter.simulate.videos import EXPECTATION, KINDS, VideoMaker
from veo_exporter.video import (
    FolderWatch,
    Origins,
    Prober,
    ProbeRequest,
    Unprobed,
    VideoMetrics,
    VideoReport,
    exemplar_of,
    folders_of,
    probe_of,
    roots_of,
)


def test_from_a_folder_to_the_verdict(ffmpeg: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    video = Video.model_validate(
        {
            "folders": [
                {"name": "demo", "path": tmp_path / "out", "quiet": "200ms", "expect": EXPECTATION}
            ]
        }
    )
    folds, clock = Folds(), SystemClock()
    refused: list[str] = []
    unprobed: list[Unprobed] = []
    (folder,) = folders_of(video)
    metrics = VideoMetrics(folds, Origins([folder.request(folder.path)], refused.append))
    reports: dict[str, VideoReport] = {}

    def take(request: ProbeRequest, report: VideoReport, started: int, ended: int) -> None:
        metrics.fold(request, report, exemplar_of(request.parent))
        reports[report.file.name.partition("-")[2]] = report

    prober = Prober(
        probe_of(video, roots_of(video)), on_report=take, unprobed=unprobed.append, clock=clock
    )
    watch = FolderWatch(folder, prober.submit, clock)
    maker = VideoMaker(tmp_path / "out", interval_seconds=0.1)
    prober.start()
    watch.start()
    assert watch.watching.wait(20)
    maker.start()
    try:
        wait_until(lambda: len(reports) == len(KINDS), 60)
    finally:
        assert maker.stop(10)
        assert watch.stop(10)
        assert prober.stop(10)
    assert {name: report.verdict.value for name, report in reports.items()} == {
        "healthy.mp4": "ok",
        "healthy.webm": "ok",
        "one-frame-dropped.mp4": "defective",
        "stops-at-6-seconds.mp4": "defective",
        "duplicate-timestamps.mp4": "defective",
        "variable-rate.mp4": "degraded",
        "text.mp4": "error",
    }
    counted = {
        labels[-1]: value
        for family in folds.families(0)
        if family.spec is catalog.FILES
        for labels, value in family.rows
        if labels[0] == "demo"
    }
    assert all(counted[verdict] >= 1 for verdict in ("ok", "degraded", "defective", "error"))
    assert (refused, unprobed) == ([], [])
