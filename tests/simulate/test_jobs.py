# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The demo's jobs: taken by the same intake as real ones."""

import json
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import pytest

from tests.daemon import wait_until
from tests.jobs import Desk, moment
from veo_client.vocabulary import Outcome
from veo_exporter.jobs import PRESETS, Budgets, Receipt
from veo_exporter.jobs.events import Event, parse_structured
from veo_exporter.simulate.jobs import (
    ENGINE,
    JOBS_A_MINUTE,
    LOST_AFTER_SECONDS,
    STORIES,
    JobMaker,
    events,
)
from veo_exporter.traces.context import parse_traceparent

HOUR = 3600


def hour(seed: int = 1) -> list[tuple[float, dict[str, Any]]]:
    return list(takewhile(lambda told: told[0] < HOUR, events(seed)))


def parsed(said: dict[str, Any], at: float = 0.0) -> Event:
    read = parse_structured(json.dumps(said).encode(), moment(at), 1)
    assert not read.refused, read.refused
    (event,) = read.events
    return event


def test_every_event_is_accepted() -> None:
    assert [said for _, said in hour() if not parse_traceparent(parsed(said).traceparent)] == []


def test_they_come_in_the_order_of_time_and_each_once() -> None:
    times = [at for at, _ in hour()]
    assert times == sorted(times)
    ids = [said["id"] for _, said in hour()]
    assert len(set(ids)) == len(ids)


def test_the_same_seed_tells_the_same() -> None:
    assert list(islice(events(7), 500)) == list(islice(events(7), 500))
    assert list(islice(events(7), 500)) != list(islice(events(8), 500))


@pytest.fixture(scope="module")
def desk() -> Desk:
    """An intake that has heard an hour of them, with the budgets that the demo sets."""
    made = Desk(budgets=Budgets(PRESETS[ENGINE], LOST_AFTER_SECONDS))
    for at, said in hour():
        while made.clock.seconds + 1 < at:
            made.clock.seconds += 1
            made.intake.tick()
        made.clock.seconds = at
        read = made.intake.read_structured(json.dumps(said).encode(), 1)
        made.intake.take(read.events, Receipt())
    return made


def test_every_outcome_occurs_within_an_hour(desk: Desk) -> None:
    assert {job.outcome for job in desk.finished} == set(Outcome)
    reasons = {job.reason.value for job in desk.finished}
    assert {"upstream_503", "device_lost", "deadline_engine", "no_word"} <= reasons


def test_most_of_them_succeed_and_there_are_several_a_minute(desk: Desk) -> None:
    expected = JOBS_A_MINUTE * 60
    assert 0.9 * expected < len(desk.finished) < 1.1 * expected
    succeeded = [job for job in desk.finished if job.outcome is Outcome.SUCCESS]
    assert 0.75 < len(succeeded) / len(desk.finished) < 0.95
    assert len({job.model for job in succeeded}) == 3
    assert len({job.profile for job in succeeded}) == 4


def test_nothing_is_late_or_refused(desk: Desk) -> None:
    assert not desk.dropped
    strange = {name for name in desk.page() if 'result="' in name and "applied" not in name}
    assert strange == set()


def test_retries_breaches_and_scores_are_counted(desk: Desk) -> None:
    page = desk.page()
    for name in (
        "veo_job_retries_total",
        "veo_job_timeouts_total",
        "veo_job_budget_breaches_total",
        "veo_job_request_violations_total",
        "veo_job_quality_score_count",
        "veo_job_gpu_memory_peak_bytes_count",
    ):
        assert any(series.startswith(name) for series in page), name


def test_a_maker_tells_of_what_was_before_it_and_ends_when_told() -> None:
    bodies: list[bytes] = []
    maker = JobMaker(bodies.append)
    maker.start()
    wait_until(lambda: len({json.loads(body)["subject"] for body in bodies}) > len(STORIES))
    assert maker.stop(20.0)
    assert all("time" in json.loads(body) for body in bodies)


def told(maker: JobMaker, bodies: list[bytes], count: int) -> list[dict[str, Any]]:
    """Its first events, once there are so many that succeed."""

    def ends() -> list[dict[str, Any]]:
        said = [json.loads(body) for body in list(bodies)]
        return [one for one in said if one["data"].get("outcome") == "success"]

    maker.start()
    wait_until(lambda: len(ends()) >= count)
    assert maker.stop(20.0)
    return ends()


def test_a_job_that_succeeds_names_the_film_that_it_has_written(tmp_path: Path) -> None:
    bodies: list[bytes] = []

    def film(job: str) -> Path:
        path = tmp_path / f"{job}.mp4"
        path.write_bytes(b"1234567")
        return path

    ends = told(JobMaker(bodies.append, film=film), bodies, 4)
    # The third story that succeeds says that nothing came out of it.
    empty = f"demo-{1 + [story.name for story in STORIES].index('empty'):06d}"
    for end in ends:
        path = str(tmp_path / f"{end['subject']}.mp4")
        outputs = [] if end["subject"] == empty else [{"path": path, "bytes": 7}]
        assert end["data"]["outputs"] == outputs
        parsed(end)
    assert {json.loads(body)["subject"] for body in bodies} > {end["subject"] for end in ends}
    assert len(list(tmp_path.iterdir())) == len([end for end in ends if end["data"]["outputs"]])


@pytest.mark.parametrize("fault", [OSError("no room"), None])
def test_without_a_film_there_is_a_job_all_the_same(fault: Exception | None) -> None:
    bodies: list[bytes] = []

    def film(job: str) -> Path | None:
        if fault:
            raise fault
        return None

    ends = told(JobMaker(bodies.append, film=film), bodies, 2)
    assert "outputs" not in ends[0]["data"]


def test_one_that_was_never_started_is_stopped_too() -> None:
    assert JobMaker(lambda body: None).stop(0.0)
