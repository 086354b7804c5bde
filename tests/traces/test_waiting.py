# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs whose files are still being looked into."""

from tests.traces.examples import UNREADABLE, Job, Report
from veo_exporter.traces.inputs import Probed
from veo_exporter.traces.waiting import Complete, Waiting

ONE, OTHER = Probed(Report(), 1, 2), Probed(UNREADABLE, 3, 4)


def jobs(leaving: list[Complete]) -> list[tuple[str, int]]:
    return [(complete.job.job_id, len(complete.probed)) for complete in leaving]


def test_a_job_without_files_leaves_at_once() -> None:
    waiting = Waiting(patience_seconds=30, limit=8)
    assert waiting.hold(Job(), [], 0.0) == [Complete(Job(), ())]
    assert len(waiting) == 0


def test_a_job_leaves_with_the_last_of_its_files() -> None:
    waiting = Waiting(patience_seconds=30, limit=8)
    assert waiting.hold(Job(), ["/a", "/b", "/a"], 0.0) == []
    assert waiting.looked_into("/b", ONE) is None
    assert waiting.looked_into("/b", ONE) is None
    assert waiting.looked_into("/elsewhere", ONE) is None
    assert waiting.looked_into("/a", OTHER) == Complete(Job(), (ONE, OTHER))
    assert waiting.looked_into("/a", OTHER) is None
    assert len(waiting) == 0


def test_patience_ends() -> None:
    waiting = Waiting(patience_seconds=30, limit=8)
    waiting.hold(Job(job_id="a"), ["/a", "/b"], 100.0)
    waiting.hold(Job(job_id="b"), ["/c"], 101.0)
    waiting.looked_into("/b", ONE)
    assert waiting.overdue(129.9) == []
    assert jobs(waiting.overdue(130.0)) == [("a", 1)]
    assert waiting.looked_into("/a", ONE) is None
    assert jobs(waiting.drain()) == [("b", 0)]
    assert waiting.drain() == []


def test_beyond_the_limit_the_oldest_leaves() -> None:
    waiting = Waiting(patience_seconds=30, limit=2)
    assert [jobs(waiting.hold(Job(job_id=str(n)), [f"/{n}"], n)) for n in range(4)] == [
        [],
        [],
        [("0", 0)],
        [("1", 0)],
    ]
    assert not waiting.looked_into("/0", ONE)
    assert waiting.looked_into("/3", ONE)


def test_an_id_may_be_used_again_and_by_another_source() -> None:
    waiting = Waiting(patience_seconds=30, limit=8)
    waiting.hold(Job(model="first"), ["/a"], 0.0)
    assert waiting.hold(Job(source="//render-8"), ["/b"], 0.0) == []
    (leaving,) = waiting.hold(Job(model="second"), ["/a"], 0.0)
    assert leaving.job.model == "first"
    complete = waiting.looked_into("/a", ONE)
    assert complete
    assert complete.job.model == "second"
    assert len(waiting) == 1


def test_a_file_that_is_written_twice_is_the_last_ones() -> None:
    waiting = Waiting(patience_seconds=30, limit=8)
    waiting.hold(Job(job_id="a"), ["/out"], 0.0)
    waiting.hold(Job(job_id="b"), ["/out"], 1.0)
    complete = waiting.looked_into("/out", ONE)
    assert complete
    assert complete.job.job_id == "b"
    assert jobs(waiting.overdue(30.0)) == [("a", 0)]
