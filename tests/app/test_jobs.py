# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Many jobs that are lost together, ended a few at a time."""

from tests.jobs import BUDGETS, Clock, event, moment
from veo_exporter.app.jobs import ENDED_AT_ONCE, PacedTable
from veo_exporter.jobs import Limits


def table(jobs: int) -> PacedTable:
    made = PacedTable(Limits(), BUDGETS, Clock().monotonic_seconds())
    for number in range(jobs):
        made.apply(event("started", str(number), 0.0, job=f"job-{number}"))
    return made


def looks(made: PacedTable, seconds: float, most: int) -> list[int]:
    """How many jobs end at each look, until there is no more to end."""
    ended = []
    for _ in range(most):
        ended.append(len(list(made.expire(moment(seconds)))))
        if not made.more_to_end:
            break
    return ended


def test_all_are_ended_and_never_many_at_one_look() -> None:
    # BUDGETS give up on a job after 600 s.
    made = table(2 * ENDED_AT_ONCE + 7)
    assert looks(made, 599.0, 9) == [0]
    assert looks(made, 601.0, 9) == [ENDED_AT_ONCE, ENDED_AT_ONCE, 7]
    assert made.in_flight == ()


def test_the_last_ones_may_fill_a_look() -> None:
    assert looks(table(ENDED_AT_ONCE), 601.0, 9) == [ENDED_AT_ONCE, 0]


def test_one_that_speaks_in_between_is_not_lost() -> None:
    made = table(ENDED_AT_ONCE + 2)
    assert looks(made, 601.0, 1) == [ENDED_AT_ONCE]
    last = ENDED_AT_ONCE + 1
    made.apply(event("heartbeat", "word", 601.0, job=f"job-{last}"))
    assert looks(made, 601.0, 9) == [1]
    assert [job.job_id for job in made.in_flight] == [f"job-{last}"]


def test_a_look_that_was_broken_off_is_not_over() -> None:
    made = table(3)
    ending = made.expire(moment(601.0))
    next(ending)
    del ending
    assert made.more_to_end
    assert looks(made, 601.0, 9) == [2]
