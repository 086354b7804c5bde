# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Loops whose rounds fail, and one that ends."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
import structlog.testing

from veo_exporter.app.loops import DROPPED_SEEDS, Loops

PATIENCE_SECONDS = 60.0


class Rounds:
    """Rounds that fail at these numbers; told when there were enough."""

    def __init__(self, fail_at: set[int], enough: int) -> None:
        self._fail_at = fail_at
        self._enough = enough
        self.done = 0
        self.reached = asyncio.Event()

    async def __call__(self) -> float:
        self.done += 1
        if self.done == self._enough:
            self.reached.set()
        if self.done in self._fail_at:
            raise RuntimeError(f"round {self.done}")
        return 0.0


async def wait_for(what: Awaitable[object]) -> None:
    await asyncio.wait_for(what, PATIENCE_SECONDS)


def loops(dropped: Counter[tuple[str, str]]) -> Loops:
    return Loops(
        lambda kind, reason, count: dropped.update({(kind, reason): count}), pause_seconds=0.0
    )


async def test_a_fault_costs_its_round_and_no_other_loop() -> None:
    dropped: Counter[tuple[str, str]] = Counter()
    watched = loops(dropped)
    # Two troubles: at the second to the fourth round, and at the sixth.
    bad, good = Rounds({2, 3, 4, 6}, 8), Rounds(set(), 8)
    with structlog.testing.capture_logs() as lines:
        watched.start("logs", bad)
        watched.start("jobs", good)
        await wait_for(bad.reached.wait())
        await wait_for(good.reached.wait())
        assert watched.ended() == []
        await watched.stop()
    assert dropped == {("loop_round", "logs"): 4}
    assert set(dropped) <= set(DROPPED_SEEDS)
    assert [(line["event"], line["loop"]) for line in lines] == [
        ("a round of our own failed; the next one is tried", "logs"),
        ("rounds of our own succeed again", "logs"),
    ] * 2
    assert all("exc_info" in line for line in lines[::2])


async def ends_itself() -> float:
    raise asyncio.CancelledError


async def test_a_loop_that_has_ended_is_told_of() -> None:
    watched = loops(Counter())
    going = Rounds(set(), 100)
    watched.start("jobs", going)
    watched.start("logs", ends_itself)
    await wait_for(going.reached.wait())
    assert watched.ended() == ["logs"]
    await watched.stop()
    # What was stopped has not ended by itself.
    assert watched.ended() == []


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_stopping_ends_all(count: int) -> None:
    watched = loops(Counter())
    endless: Callable[[], Awaitable[float]] = Rounds(set(), 0)
    for number in range(count):
        watched.start(str(number), endless)
    await wait_for(watched.stop())
    assert asyncio.all_tasks() == {asyncio.current_task()}
