# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What the event loop does again and again. A fault costs a round, never the loop."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

log = structlog.get_logger(__name__)

Round = Callable[[], Awaitable[float]]
"""Does what is due and gives how often it wants to, in seconds: the next time is within so long."""

LOOP_NAMES: Final = ("jobs", "traces", "logs", "kernel")
PAUSE_SECONDS: Final = 1.0
"""After a round that failed."""
FAILED: Final = "loop_round"
DROPPED_SEEDS: Final = tuple((FAILED, name) for name in LOOP_NAMES)
"""What is dropped here, as (kind, reason): rounds that failed, by loop."""


def seconds_to_beat(now_seconds: float, period_seconds: float) -> float:
    """Until the next whole multiple of the period: loops of one period wake the process together, and
    not each by itself. To wake it costs more than most rounds."""
    return period_seconds - now_seconds % period_seconds if period_seconds > 0 else 0.0


class Loops:
    """Tasks that are watched: what fails is logged and counted, and one that has ended is told of."""

    def __init__(
        self,
        dropped: Callable[[str, str, int], None],
        *,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self._dropped = dropped
        self._pause_seconds = pause_seconds
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stopping = False

    def start(self, name: str, do_round: Round) -> None:
        """Begin with the first round at once."""
        self._tasks[name] = asyncio.create_task(self._repeat(name, do_round), name=f"loop-{name}")

    def ended(self) -> list[str]:
        """Loops that are no more, though nobody stopped them."""
        return [] if self._stopping else [name for name, task in self._tasks.items() if task.done()]

    async def stop(self) -> None:
        """End all of them within the round."""
        self._stopping = True
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _repeat(self, name: str, do_round: Round) -> None:
        failing = False
        while True:
            try:
                seconds = await do_round()
            except Exception:
                self._dropped(FAILED, name, 1)
                # Once for each trouble: it may come back every second.
                if not failing:
                    log.exception("a round of our own failed; the next one is tried", loop=name)
                failing = True
                seconds = self._pause_seconds
            else:
                if failing:
                    log.info("rounds of our own succeed again", loop=name)
                failing = False
            await asyncio.sleep(seconds_to_beat(asyncio.get_running_loop().time(), seconds))
