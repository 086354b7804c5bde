# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What the processes on GPUs are called: their names in /proc, and how many different ones are shown."""

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from veo_exporter.catalog.gpu_processes import OTHER, UNKNOWN
from veo_exporter.clock import Clock

MAX_LOOK_UPS: Final = 256
"""Names read for one answer; the rest are read for the next one."""
MAX_REMEMBERED: Final = 8192
BELIEVED_SECONDS: Final = 60.0
"""A process may give itself another name."""
FORGOTTEN_AFTER_SECONDS: Final = 600.0
"""A name that nobody has used for so long makes room for another."""
LONGEST_NAME: Final = 64

Drop = Callable[[str], None]
"""Told the reason why a name is not shown."""
TOO_MANY_NAMES: Final = "too_many_names"


@dataclass(frozen=True, slots=True, kw_only=True)
class NameLimits:
    """What the settings say."""

    proc_root: Path = Path("/proc")
    per_gpu: int = 3
    per_node: int = 50


class _Known(NamedTuple):
    # Of the process's folder: the kernel makes it anew for each process, also where a pid is used again.
    birth: tuple[int, int]
    name: str
    read_monotonic_seconds: float


class ProcessNames:
    """Names by pid, remembered as long as it is the same process. Asked by one thread at a time, or by
    one that was left behind besides: each step leaves it in order."""

    def __init__(self, limits: NameLimits, drop: Drop, clock: Clock) -> None:
        self.limits = limits
        self.drop = drop
        self._clock = clock
        self._known: dict[int, _Known] = {}
        self._used_monotonic_seconds: dict[str, float] = {}
        self._turned_away: set[str] = set()

    def names_of(self, pids: Collection[int]) -> dict[int, str]:
        """A name for each."""
        now = self._clock.monotonic_seconds()
        if len(self._known) + len(pids) > MAX_REMEMBERED:
            self._known = {}
        look_ups = MAX_LOOK_UPS
        root = self.limits.proc_root
        names = {}
        for pid in pids:
            folder = f"{root}/{pid}"
            try:
                status = os.stat(folder)  # noqa: PTH116, making hundreds of paths costs as much again
            except OSError:
                # Ended; or of another PID namespace, or hidden from us.
                self._known.pop(pid, None)
                names[pid] = UNKNOWN
                continue
            birth = (status.st_ino, status.st_ctime_ns)
            known = self._known.get(pid)
            if known is not None and known.birth != birth:
                known = None
            if look_ups and (
                known is None or now - known.read_monotonic_seconds >= BELIEVED_SECONDS
            ):
                look_ups -= 1
                known = self._known[pid] = _Known(birth, _read_name(folder), now)
            names[pid] = UNKNOWN if known is None else known.name
        return names

    def admit(self, name: str) -> str:
        """The name, or that of the others if there are too many on this node."""
        now = self._clock.monotonic_seconds()
        used = self._used_monotonic_seconds
        if name in (OTHER, UNKNOWN):
            return name
        if name not in used and len(used) >= self.limits.per_node:
            oldest = min(used, key=used.__getitem__, default=None)
            if oldest is None or now - used[oldest] < FORGOTTEN_AFTER_SECONDS:
                self._turn_away(name)
                return OTHER
            del used[oldest]
        used[name] = now
        self._turned_away.discard(name)
        return name

    def _turn_away(self, name: str) -> None:
        # Counted once for each name, and not at each sweep.
        if name not in self._turned_away:
            if len(self._turned_away) >= MAX_REMEMBERED:
                self._turned_away.clear()
            self._turned_away.add(name)
            self.drop(TOO_MANY_NAMES)


def _read_name(folder: str) -> str:
    try:
        with Path(folder, "comm").open("rb") as file:
            written = file.read(LONGEST_NAME)
    except OSError:
        return UNKNOWN
    name = written.decode(errors="replace").strip()
    # A process may call itself anything.
    return "".join(letter if letter.isprintable() else "?" for letter in name) or UNKNOWN
