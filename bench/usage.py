# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What a process and its children use, as the kernel counts it."""

import os
from collections import defaultdict
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")

# Places in /proc/PID/stat, counted from the word after the command's closing bracket.
_PARENT: Final = 1
_CPU_TIMES: Final = slice(11, 15)
"""utime, stime, and the same of children that have ended."""


def _stat(pid: int) -> list[str] | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        # It ended while we looked.
        return None
    return text.rpartition(")")[2].split()


def _family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (words := _stat(int(entry.name))):
            children[int(words[_PARENT])].append(int(entry.name))
    found = [pid]
    for member in found:
        found.extend(children[member])
    return found


def cpu_seconds(pid: int) -> float:
    """CPU time so far of a process, its threads and its children, in user and kernel mode."""
    ticks = sum(
        int(word)
        for member in _family(pid)
        if (words := _stat(member))
        for word in words[_CPU_TIMES]
    )
    return ticks / _TICKS_PER_SECOND


def resident_bytes(pid: int) -> int:
    """Resident memory of a process and its children."""
    pages = 0
    for member in _family(pid):
        try:
            pages += int((_PROC / str(member) / "statm").read_text().split()[1])
        except OSError:
            continue
    return pages * os.sysconf("SC_PAGE_SIZE")


def machine_busy_seconds() -> float:
    """CPU time that all cores have spent on work, since the machine started."""
    words = (_PROC / "stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _waiting, *interrupts = (int(word) for word in words[:8])
    return (user + nice + system + sum(interrupts)) / _TICKS_PER_SECOND


def processor() -> str:
    """The machine in words: cores and model."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in (_PROC / "cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "of a model that it does not tell",
    )
    return f"{len(os.sched_getaffinity(0))} cores, {model}"
