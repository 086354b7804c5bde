# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The kernel's log, opened as soon as it may be read, and what its messages say."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import structlog

from veo_exporter.clock import Clock
from veo_exporter.logs.kernel_lines import KernelRecord
from veo_exporter.logs.kernel_messages import (
    OomKill,
    OomVictim,
    OomVictims,
    SwitchXidMessage,
    XidMessage,
    read_message,
)
from veo_exporter.logs.kernel_places import REMEDY, Opening
from veo_exporter.logs.kernel_sources import KernelSource

log = structlog.get_logger(__name__)

RETRY_SECONDS: Final = 30.0
OLDEST_SECONDS: Final = 30.0
"""A record's own time is believed if it was logged so long ago at most: the kernel's clock drifts
from ours, and a container may have another one."""

XID: Final = "xid"
SWITCH_XID: Final = "switch_xid"
OOM_KILL: Final = "oom_kill"
OTHER: Final = "other"
MESSAGES: Final = (XID, SWITCH_XID, OOM_KILL, OTHER)
KERNEL_DROPPED_SEEDS: Final = (("kernel_log_line", "overrun"), ("kernel_log_line", "cut"))


@dataclass(frozen=True, slots=True)
class Told:
    """A message that is our affair, and when it was logged."""

    at_unix_seconds: float
    message: XidMessage | SwitchXidMessage | OomKill


@dataclass(slots=True)
class KernelNews:
    """What one look brought."""

    told: list[Told] = field(default_factory=list)
    lines: Counter[str] = field(default_factory=Counter)
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)


class KernelLog:
    """Reads one place; tries again for ever if there is none. Called by one thread at a time."""

    def __init__(
        self,
        open_log: Callable[[], Opening],
        clock: Clock,
        *,
        wanted: bool,
        boot_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open_log = open_log
        self._clock = clock
        self._boot_seconds = boot_seconds
        self._tell = log.warning if wanted else log.info
        self._source: KernelSource | None = None
        self._fault: str | None = None
        self._retry_at = 0.0
        self._victims = OomVictims()
        self.was_up = False

    @property
    def up(self) -> bool:
        return self._source is not None

    @property
    def quick(self) -> bool:
        """Whether a look touches no disk and starts no program."""
        if self._source is None:
            return self._clock.monotonic_seconds() < self._retry_at
        return self._source.quick

    def look(self) -> KernelNews:
        """Read what is new; opens the log if that was not possible before."""
        now = self._clock.monotonic_seconds()
        news = KernelNews()
        if self._source is None:
            if now >= self._retry_at:
                self._retry_at = now + RETRY_SECONDS
                self._open()
            if self._source is None:
                return news
        taken = self._source.take(now)
        for record in taken.records:
            self._read(record, news)
        news.lines[OTHER] += taken.lines - news.lines.total()
        for reason, count in (("overrun", taken.overrun), ("cut", taken.cut)):
            if count:
                news.dropped["kernel_log_line", reason] += count
        if taken.ended:
            log.warning("the kernel log ends", place=self._source.name, fault=taken.ended)
            self.close()
            self._retry_at = now + RETRY_SECONDS
        return news

    def close(self) -> None:
        """Let go of it."""
        source, self._source = self._source, None
        if source is not None:
            source.close()

    def _open(self) -> None:
        opening = self._open_log()
        self._source = opening.source
        if opening.source is not None:
            self.was_up = True
            self._fault = None
            log.info("the kernel log is read", place=opening.source.name)
        elif opening.fault != self._fault:
            # Once, and not at each attempt.
            self._fault = opening.fault
            self._tell("the kernel log is not read", fault=opening.fault, remedy=REMEDY)

    def _read(self, record: KernelRecord, news: KernelNews) -> None:
        message = read_message(record.text)
        match message:
            case None:
                return
            case OomVictim():
                self._victims.remember(message)
                return
            case OomKill():
                message = self._victims.complete(message)
                news.lines[OOM_KILL] += 1
            case XidMessage():
                news.lines[XID] += 1
            case SwitchXidMessage():
                news.lines[SWITCH_XID] += 1
        news.told.append(Told(self._time_of(record), message))

    def _time_of(self, record: KernelRecord) -> float:
        now = self._clock.unix_seconds()
        if record.boot_seconds is None:
            return now
        age = self._boot_seconds() - record.boot_seconds
        return now - age if 0 <= age <= OLDEST_SECONDS else now
