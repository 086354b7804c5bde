# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Files that wait to be probed, each path once as far as folders find it. Pure; one caller at a time."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from veo_exporter.video.request import ProbeRequest

GRACE_SECONDS: Final = 1.0
"""A file that a folder shows waits so long for the event of its job, which knows what was asked."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits."""

    files: int
    oldest_age_seconds: float


@dataclass(frozen=True, slots=True)
class _Entry:
    request: ProbeRequest
    since: float
    ready: float


class WaitingFiles:
    """First come, first served. Times are monotonic seconds."""

    def __init__(self, most_waiting: int) -> None:
        self.most_waiting = most_waiting
        self._entries: dict[int, _Entry] = {}
        self._serial = 0
        self._shown: dict[Path, int] = {}
        self._named: Counter[Path] = Counter()

    def add(self, request: ProbeRequest, now: float) -> bool:
        """False if too many wait already.

        An event takes over what a folder showed; a folder adds nothing to a path that waits.
        """
        path = request.path
        if not request.named_by_event and (path in self._shown or self._named[path]):
            return True
        if request.named_by_event and path in self._shown:
            shown = self._entries.pop(self._shown.pop(path))
            self._append(_Entry(request, shown.since, now))
            return True
        if len(self._entries) >= self.most_waiting:
            return False
        self._append(_Entry(request, now, now if request.named_by_event else now + GRACE_SECONDS))
        return True

    def take(self, now: float) -> ProbeRequest | None:
        """The next one that is not held back any more."""
        for serial, entry in self._entries.items():
            if entry.ready <= now:
                del self._entries[serial]
                self._strike(entry.request)
                return entry.request
        return None

    def seconds_to_wait(self, now: float) -> float | None:
        """Until one that is held back is not; None if nothing waits."""
        return min((max(0.0, entry.ready - now) for entry in self._entries.values()), default=None)

    def backlog(self, now: float) -> Backlog:
        """How many wait, and how long the oldest has."""
        oldest = min((entry.since for entry in self._entries.values()), default=now)
        return Backlog(len(self._entries), now - oldest)

    def clear(self) -> None:
        """Give all of them up."""
        self._entries.clear()
        self._shown.clear()
        self._named.clear()

    def _append(self, entry: _Entry) -> None:
        self._serial += 1
        self._entries[self._serial] = entry
        if entry.request.named_by_event:
            self._named[entry.request.path] += 1
        else:
            self._shown[entry.request.path] = self._serial

    def _strike(self, request: ProbeRequest) -> None:
        if not request.named_by_event:
            del self._shown[request.path]
            return
        self._named[request.path] -= 1
        if not self._named[request.path]:
            del self._named[request.path]
