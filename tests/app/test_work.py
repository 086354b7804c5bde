# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The second road in parts: what one job's trouble costs, and what a probe is held under."""

import asyncio
import json
from collections import Counter

import structlog.testing

from tests.jobs import TRACEPARENT, Clock, written
from veo_exporter.app.surroundings import Surroundings
from veo_exporter.app.videos import requests_of
from veo_exporter.app.work import DROPPED_SEEDS, Work
from veo_exporter.config import Settings
from veo_exporter.exposition import Folds, Format, TextWriter
from veo_exporter.jobs import FinishedJob, JobLabels, OutputFile, Receipt
from veo_exporter.video import Expectation

LABELS = JobLabels("veo-engine", "m", "none", "1080p24-6s")


class Road:
    """The road with a counter that can be made to fail."""

    def __init__(self) -> None:
        self.dropped: Counter[tuple[str, str]] = Counter()
        self.failing = ""
        self.folds = Folds()
        self.work = Work(
            Settings.model_validate({"video": {"backlog": 1}}),
            Surroundings(
                folds=self.folds,
                drop=self.drop,
                clock=Clock(),
                simulated=True,
                gpu_uuid=lambda index: None,
                watching=lambda: None,
            ),
        )

    def drop(self, kind: str, reason: str, count: int) -> None:
        if kind == self.failing:
            raise RuntimeError(f"no counter for {kind}")
        self.dropped[kind, reason] += count

    def finish(self, number: int) -> None:
        """A job of an engine of its own, with a file."""
        said = written(
            "finished",
            str(number),
            job=f"job-{number}",
            engine=f"engine-{number}",
            outcome="success",
            outputs=[{"path": f"/srv/{number}.mp4"}],
        )
        read = self.work.intake.read_structured(json.dumps(said).encode(), 1)
        receipt = Receipt()
        self.work.intake.take(read.events, receipt)
        assert receipt.refused == []

    def succeeded(self) -> float:
        lines = TextWriter(Format.TEXT).write(self.folds.families(0)).splitlines()
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith("veo_jobs_finished_total{") and 'outcome="success"' in line
        )


def test_what_fails_after_a_jobs_end_costs_that_jobs_probes_and_nothing_else() -> None:
    road = Road()
    # One file may wait, and nothing probes it. Of every other one it is counted that there was no
    # room for it, which fails here.
    road.failing = "video_file"
    with structlog.testing.capture_logs() as lines:
        for number in range(4):
            road.finish(number)
    assert road.dropped["finished_job", "failed"] == 3
    assert road.succeeded() == 4
    assert set(road.dropped) <= set(DROPPED_SEEDS)
    said = [line for line in lines if line["log_level"] == "error"]
    assert {line["event"] for line in said} == {"a finished job is neither traced nor probed"}
    assert [line["job"] for line in said] == ["job-1", "job-2", "job-3"]


def finished(**told: object) -> FinishedJob:
    usual: dict[str, object] = {
        "job_id": "job-1",
        "source": "s",
        "engine": "veo-engine",
        "model": "m",
        "variant": "",
        "profile": "",
        "traceparent": TRACEPARENT,
        "tracestate": "",
        "submitted_unix_nanoseconds": 1,
        "started_unix_nanoseconds": None,
        "ended_unix_nanoseconds": 2,
        "stages": (),
        "retries": (),
        "outcome": "success",
        "reason": "none",
        "module": "",
        "stage_at_end": None,
        "error_code": "",
        "error_message": "",
        "outputs": (),
        "filtered_count": 0,
        "request": None,
        "gpus": (),
        "pid": None,
        "frame": None,
        "gpu_memory_peak_bytes": None,
    }
    return FinishedJob(**(usual | told))  # type: ignore[arg-type]


def test_each_file_of_a_job_is_handed_in_once_and_under_its_span() -> None:
    outputs = tuple(OutputFile(path, None) for path in ("/a.mp4", "", "/b.mp4", "/a.mp4"))
    requests = requests_of(finished(outputs=outputs), LABELS, TRACEPARENT)
    assert [str(request.path) for request in requests] == ["/a.mp4", "/b.mp4"]
    assert {request.parent for request in requests} == {TRACEPARENT}
    assert {request.expectation for request in requests} == {Expectation()}
    assert {(one.engine, one.variant, one.profile) for one in requests} == {
        ("veo-engine", "none", "1080p24-6s")
    }


def test_an_output_elsewhere_is_counted_and_not_probed() -> None:
    road = Road()
    with structlog.testing.capture_logs() as lines:
        for number, path in enumerate(("gs://bucket/a.mp4", "s3://bucket/b.mp4")):
            outputs = [{"path": path}]
            said = written(
                "finished", str(number), job=f"j{number}", outcome="success", outputs=outputs
            )
            road.work.intake.take(
                road.work.intake.read_structured(json.dumps(said).encode(), 1).events, Receipt()
            )
    assert road.dropped == {("video_file", "elsewhere"): 2}
    assert set(road.dropped) <= set(DROPPED_SEEDS)
    (line,) = lines
    assert (line["log_level"], line["job"]) == ("warning", "j0")
    local = finished(outputs=(OutputFile("file:///srv/a%20b.mp4", None),))
    assert [str(one.path) for one in requests_of(local, LABELS, None)] == ["/srv/a b.mp4"]


async def ends_itself() -> float:
    raise asyncio.CancelledError


async def test_a_loop_that_has_ended_is_told_to_whoever_asks_for_health() -> None:
    road = Road()
    assert road.work.unhealthy() == ""
    road.work._loops.start("logs", ends_itself)
    async with asyncio.timeout(20):
        await asyncio.gather(*road.work._loops._tasks.values(), return_exceptions=True)
    assert road.work.unhealthy() == "loops have ended (logs): restart the exporter"
