# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Finished jobs whose files are still being looked into: their traces leave whole, or in time.

Sampling by tail decides once for a trace, soon after its first span; a probe that came a minute
later would be judged by itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile

from veo_exporter.traces.inputs import FinishedJob, Probed

Key = tuple[int, int]
"""The ids of a job's own span, with its trace's first: no other job has them."""


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
        # In the order in which their patience ends.
        self._held: dict[Key, _Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    def hold(
        self, key: Key, job: FinishedJob, awaited: Iterable[str], now_monotonic_seconds: float
    ) -> list[Complete]:
        """Keep a job until these files are looked into; what leaves because of it."""
        paths = set(awaited)
        # Told twice: the first one's files cannot be told from the second's.
        leaving = [self._held.pop(key).complete()] if key in self._held else []
        if not paths:
            return [*leaving, Complete(job, ())]
        self._held[key] = _Held(job, paths, now_monotonic_seconds + self._patience_seconds)
        while len(self._held) > self._limit:
            leaving.append(self._held.pop(next(iter(self._held))).complete())
        return leaving

    def looked_into(self, key: Key, path: str, probed: Probed) -> Complete | None:
        """Add what was found of a job's file; the job, if this was the last that it waited for."""
        held = self._held.get(key)
        if held is None or path not in held.awaited:
            return None
        held.awaited.discard(path)
        held.probed.append(probed)
        if held.awaited:
            return None
        del self._held[key]
        return held.complete()

    def overdue(self, now_monotonic_seconds: float, most: int) -> list[Complete]:
        """Those whose patience is over, with what was learnt until now; so many at one time."""
        late = [
            key
            for key, _ in takewhile(
                lambda item: item[1].until_monotonic_seconds <= now_monotonic_seconds,
                islice(self._held.items(), most),
            )
        ]
        return [self._held.pop(key).complete() for key in late]

    def drain(self) -> list[Complete]:
        """All of them, at the end."""
        leaving = [held.complete() for held in self._held.values()]
        self._held.clear()
        return leaving
