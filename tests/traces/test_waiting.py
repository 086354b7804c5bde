# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs whose files are still being looked into."""

from tests.traces.examples import UNREADABLE, Job, Report
from veo_exporter.traces.inputs import Probed
from veo_exporter.traces.waiting import Complete, Waiting

ONE, OTHER = Probed(Report(), 1, 2), Probed(UNREADABLE, 3, 4)


A, B, C = (7, 1), (7, 2), (7, 3)
"""Spans of jobs, in one trace."""


def jobs(leaving: list[Complete]) -> list[tuple[str, int]]:
    return [(complete.job.job_id, len(complete.probed)) for complete in leaving]


def test_a_job_without_files_leaves_at_once() -> None:
    waiting = Waiting(patience_seconds=30, limit=8)
    assert waiting.hold(A, Job(), [], 0.0) == [Complete(Job(), ())]
    assert len(waiting) == 0


def test_a_job_leaves_with_the_last_of_its_files() -> None:
    waiting = Waiting(patience_seconds=30, limit=8)
    assert waiting.hold(A, Job(), ["/a", "/b", "/a"], 0.0) == []
    assert waiting.looked_into(A, "/b", ONE) is None
    assert waiting.looked_into(A, "/b", ONE) is None
    assert waiting.looked_into(A, "/elsewhere", ONE) is None
    assert waiting.looked_into(B, "/a", ONE) is None
    assert waiting.looked_into(A, "/a", OTHER) == Complete(Job(), (ONE, OTHER))
    assert waiting.looked_into(A, "/a", OTHER) is None
    assert len(waiting) == 0


def test_patience_ends() -> None:
    waiting = Waiting(patience_seconds=30, limit=8)
    waiting.hold(A, Job(job_id="a"), ["/a", "/b"], 100.0)
    waiting.hold(B, Job(job_id="b"), ["/c"], 101.0)
    waiting.looked_into(A, "/b", ONE)
    assert waiting.overdue(129.9, 9) == []
    assert jobs(waiting.overdue(130.0, 9)) == [("a", 1)]
    assert waiting.looked_into(A, "/a", ONE) is None
    assert jobs(waiting.drain()) == [("b", 0)]
    assert waiting.drain() == []


def test_many_leave_a_few_at_a_time() -> None:
    waiting = Waiting(patience_seconds=30, limit=8)
    for number in range(5):
        waiting.hold((7, number), Job(job_id=str(number)), ["/out"], number)
    # Patience began at 0, 1, 2, 3 and 4: four of them are over it at 33.
    assert jobs(waiting.overdue(33.0, 3)) == [("0", 0), ("1", 0), ("2", 0)]
    assert jobs(waiting.overdue(33.0, 3)) == [("3", 0)]
    assert waiting.overdue(33.0, 3) == []


def test_beyond_the_limit_the_oldest_leaves() -> None:
    waiting = Waiting(patience_seconds=30, limit=2)
    held = [waiting.hold((7, n), Job(job_id=str(n)), [f"/{n}"], n) for n in range(4)]
    assert [jobs(leaving) for leaving in held] == [[], [], [("0", 0)], [("1", 0)]]
    assert not waiting.looked_into((7, 0), "/0", ONE)
    assert waiting.looked_into((7, 3), "/3", ONE)


def test_a_job_that_is_told_twice_leaves_and_waits_once_more() -> None:
    waiting = Waiting(patience_seconds=30, limit=8)
    waiting.hold(A, Job(model="first"), ["/a"], 0.0)
    assert waiting.hold(B, Job(source="//render-8"), ["/b"], 0.0) == []
    (leaving,) = waiting.hold(A, Job(model="second"), ["/a"], 0.0)
    assert leaving.job.model == "first"
    complete = waiting.looked_into(A, "/a", ONE)
    assert complete
    assert complete.job.model == "second"
    assert len(waiting) == 1


def test_each_of_several_jobs_that_name_one_file_has_its_own_probe() -> None:
    waiting = Waiting(patience_seconds=30, limit=8)
    for key, name in ((A, "a"), (B, "b"), (C, "c")):
        waiting.hold(key, Job(job_id=name), ["/out"], 0.0)
    # The last one's is done first.
    found = [waiting.looked_into(B, "/out", ONE), waiting.looked_into(A, "/out", OTHER)]
    assert found == [Complete(Job(job_id="b"), (ONE,)), Complete(Job(job_id="a"), (OTHER,))]
    assert jobs(waiting.overdue(30.0, 9)) == [("c", 0)]
