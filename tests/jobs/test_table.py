# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The table of jobs: once each, within bounds, and whom a log means."""

from itertools import islice

import pytest

from tests.jobs import Desk, event, moment
from veo_exporter.jobs import Limits, Result
from veo_exporter.jobs.memory import Memory, digest

SMALL = Limits(max_in_flight=2, max_ended=2, max_event_ids=100, remember_seconds=60)


def test_an_event_counts_once_by_source_and_id() -> None:
    table = Desk().table
    first = event("heartbeat", "1", job="a")
    assert table.apply(first).result is Result.APPLIED
    assert table.apply(first).result is Result.REPEATED
    assert table.apply(event("heartbeat", "1", job="a", source="other")).result is Result.APPLIED


def test_a_table_that_is_full_takes_no_new_job_but_every_end() -> None:
    table = Desk(SMALL).table
    results = [
        table.apply(event("started", str(number), job=job)).result
        for number, job in enumerate("abc")
    ]
    assert results == [Result.APPLIED, Result.APPLIED, Result.TABLE_FULL]
    assert table.apply(event("heartbeat", "3", job="a")).result is Result.APPLIED
    assert table.apply(event("finished", "4", job="d", outcome="failed")).result is Result.APPLIED
    assert table.apply(event("finished", "5", job="a", outcome="success")).finished is not None
    # It was not taken, so it is no repetition.
    assert table.apply(event("started", "2", job="c")).result is Result.APPLIED


def test_jobs_that_ended_are_remembered_for_a_while() -> None:
    table = Desk(SMALL).table
    table.apply(event("finished", "1", 0, job="a", outcome="success"))
    assert list(table.expire(moment(59))) == []
    assert table.apply(event("started", "2", 59, job="a")).result is Result.LATE
    list(table.expire(moment(61)))
    assert table.apply(event("started", "3", 61, job="a")).result is Result.APPLIED


def test_jobs_may_be_ended_a_few_at_a_time() -> None:
    desk = Desk()
    for number in range(5):
        desk.table.apply(event("started", str(number), job=str(number), engine="other"))
    late = moment(600)
    first = list(islice(desk.table.expire(late), 2))
    assert [step.finished and step.finished.job_id for step in first] == ["0", "1"]
    assert len(desk.table.in_flight) == 3
    rest = list(desk.table.expire(late))
    assert [step.finished and step.finished.job_id for step in rest] == ["2", "3", "4"]


def test_jobs_that_ended_are_remembered_up_to_a_bound() -> None:
    table = Desk(SMALL).table
    for number, job in enumerate("abc"):
        table.apply(event("finished", str(number), job=job, outcome="success"))
    assert table.ended_forgotten_early == 1
    assert table.apply(event("heartbeat", "8", job="b")).result is Result.LATE
    assert table.apply(event("heartbeat", "9", job="a")).result is Result.APPLIED


@pytest.mark.parametrize(
    ("jobs", "gpu", "expected"),
    [
        ({}, "3", "veo-engine.log#9"),
        ({"a": ("veo-engine", [])}, "3", "a"),
        ({"a": ("", ["GPU-3"])}, "3", "a"),
        ({"a": ("veo-engine", ["GPU-3"]), "b": ("veo-engine", ["GPU-4"])}, "3", "a"),
        ({"a": ("veo-engine", ["GPU-3"]), "b": ("veo-engine", [])}, "GPU-3", "a"),
        ({"a": ("veo-engine", ["GPU-4"]), "b": ("veo-engine", [])}, "3", "b"),
        ({"a": ("veo-engine", ["GPU-4"])}, "3", "veo-engine.log#9"),
        ({"a": ("other-engine", ["GPU-3"])}, "3", "veo-engine.log#9"),
        ({"a": ("veo-engine", []), "b": ("veo-engine", [])}, "3", None),
    ],
)
def test_whom_a_line_of_a_log_means(
    jobs: dict[str, tuple[str, list[str]]], gpu: str, expected: str | None
) -> None:
    table = Desk(gpus={"3": "GPU-3", "4": "GPU-4"}).table
    for job, (engine, gpus) in jobs.items():
        said = {"engine": engine} if engine else {}
        table.apply(event("started", job, job=job, gpus=gpus, **said))
    line = event(
        "finished",
        "9",
        job="",
        source="veo-engine.log",
        engine="veo-engine",
        outcome="aborted",
        gpus=[gpu],
    )
    step = table.apply(line)
    if expected is None:
        assert step.result is Result.AMBIGUOUS
    else:
        assert step.after is not None
        assert step.finished is not None
        # A job that was known keeps its name; else the line is a job of its own.
        assert step.finished.job_id == expected


def test_event_ids_are_remembered_for_their_time() -> None:
    memory = Memory(60, 1000)
    memory.add(1, 1000)
    memory.add(2, 1030)
    memory.add(3, 1061)
    # Those of the generation before are still known, for at least a minute each.
    assert [memory.knows(key) for key in (1, 2, 3)] == [True, True, True]
    memory.add(4, 1122)
    assert [memory.knows(key) for key in (1, 2, 3, 4)] == [False, False, True, True]
    assert memory.forgotten_early == 0


def test_event_ids_are_remembered_up_to_a_bound() -> None:
    memory = Memory(1e9, 10)
    memory.add(0, 0)
    for key in range(1, 101):
        memory.add(key, 1)
        assert len(memory) <= 10
        assert memory.knows(key)
    assert memory.forgotten_early > 80


def test_source_and_id_do_not_run_together() -> None:
    assert digest(("a", "bc")) != digest(("ab", "c"))
    assert digest(("a 1", "b")) != digest(("a", " 1b"))
    # The same in every process: worked out by hashlib on another day.
    assert digest(("a", "b")) == digest(("a", "b"))
    assert digest(("\udc80", "b")) >= 0
