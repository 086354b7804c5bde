# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The room of logs, wired: lines of followed files to events of jobs."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from veo_exporter.app.surroundings import Surroundings
from veo_exporter.config import Logs
from veo_exporter.logs import Follower, LogReading, load_rules

EVENTS_AT_ONCE: Final = 25
"""A few milliseconds of work; then the event loop may answer somebody else."""
BEHIND_SECONDS: Final = 0.25
"""Until the next look, where there is more to read than one look takes."""


class LogFollowing:
    """Looks at the files in a thread; only events reach the event loop."""

    def __init__(
        self, settings: Logs, around: Surroundings, event: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self.wanted = bool(settings.files)
        self._clock = around.clock
        self._interval_seconds = settings.interval
        self._reading = LogReading(
            Follower(
                settings.files,
                max_files=settings.max_files,
                max_line_bytes=settings.max_line_bytes,
                max_read_bytes=settings.max_read_bytes,
            ),
            load_rules(settings.rules),
            around.folds,
            event=event,
            dropped=around.drop,
        )

    async def look(self) -> float:
        """Take in what is new; gives the seconds until the next look."""
        found = await asyncio.to_thread(self._reading.look, self._clock.monotonic_seconds())
        self._reading.count(found)
        for start in range(0, len(found.events), EVENTS_AT_ONCE):
            self._reading.hand_on(found.events[start : start + EVENTS_AT_ONCE])
            await asyncio.sleep(0)
        return min(self._interval_seconds, BEHIND_SECONDS) if found.more else self._interval_seconds

    def close(self) -> None:
        """Let go of the files."""
        self._reading.close()
