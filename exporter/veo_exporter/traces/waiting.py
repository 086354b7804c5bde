# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Finished jobs whose files are still being looked into: their traces leave whole, or in time.

Sampling by tail decides once for a trace, soon after its first span; a probe that came a minute
later would be judged by itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from veo_exporter.traces.inputs import FinishedJob, Probed

_Key = tuple[str, str]
"""A job's source and id."""


@dataclass(frozen=True, slots=True)
class Complete:
    """A job and those of its files that were looked into."""

    job: FinishedJob
    probed: Sequence[Probed]


@dataclass(slots=True)
class _Held:
    job: FinishedJob
    awaited: set[str]
    until_monotonic_seconds: float
    probed: list[Probed] = field(default_factory=list)

    def complete(self) -> Complete:
        return Complete(self.job, tuple(self.probed))


class Waiting:
    """Bounded: beyond the limit, the job that has waited longest goes as it is."""

    def __init__(self, *, patience_seconds: float, limit: int) -> None:
        self._patience_seconds = patience_seconds
        self._limit = limit
        self._held: dict[_Key, _Held] = {}
        self._job_of: dict[str, _Key] = {}
        """Who waits for a path: the last job that named it, for the file is that one's now."""

    def __len__(self) -> int:
        return len(self._held)

    def hold(
        self, job: FinishedJob, awaited: Iterable[str], now_monotonic_seconds: float
    ) -> list[Complete]:
        """Keep a job until these files are looked into; what leaves because of it."""
        paths = set(awaited)
        # An id used again at once: the first one's files cannot be told from the second's.
        key = job.source, job.job_id
        leaving = [self._release(key)] if key in self._held else []
        if not paths:
            return [*leaving, Complete(job, ())]
        until = now_monotonic_seconds + self._patience_seconds
        self._held[key] = _Held(job, paths, until)
        self._job_of |= dict.fromkeys(paths, key)
        while len(self._held) > self._limit:
            leaving.append(self._release(next(iter(self._held))))
        return leaving

    def looked_into(self, path: str, probed: Probed) -> Complete | None:
        """Add what was found; the job, if this was the last file that it waited for."""
        key = self._job_of.pop(path, None)
        if key is None:
            return None
        held = self._held[key]
        held.awaited.discard(path)
        held.probed.append(probed)
        return None if held.awaited else self._release(key)

    def overdue(self, now_monotonic_seconds: float) -> list[Complete]:
        """Those whose patience is over, with what was learnt until now."""
        late = [
            key
            for key, held in self._held.items()
            if held.until_monotonic_seconds <= now_monotonic_seconds
        ]
        return [self._release(key) for key in late]

    def drain(self) -> list[Complete]:
        """All of them, at the end."""
        return [self._release(key) for key in list(self._held)]

    def _release(self, key: _Key) -> Complete:
        held = self._held.pop(key)
        for path in held.awaited:
            if self._job_of.get(path) == key:
                del self._job_of[path]
        return held.complete()
