# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Which place of the kernel's log is taken: the first that may be read."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from veo_exporter.logs.kernel_sources import JournalSource, KernelSource, open_path

KMSG: Final = Path("/dev/kmsg")
JOURNALS: Final = (Path("/run/log/journal"), Path("/var/log/journal"))
SYSLOG_FILES: Final = (
    Path("/var/log/kern.log"),
    Path("/var/log/messages"),
    Path("/var/log/syslog"),
)

REMEDY: Final = (
    "give the exporter /dev/kmsg and CAP_SYSLOG (or kernel.dmesg_restrict=0), or put its user into the group "
    "systemd-journal or adm; kernel.log=off says that it is not wanted"
)


@dataclass(frozen=True, slots=True)
class Places:
    """Where to look; `path` alone, if it is given."""

    path: Path | None = None
    kmsg: Path = KMSG
    journals: tuple[Path, ...] = JOURNALS
    syslog_files: tuple[Path, ...] = SYSLOG_FILES


@dataclass(frozen=True, slots=True)
class Opening:
    """The source that could be opened, or a sentence that says why none could."""

    source: KernelSource | None
    fault: str = ""


def open_kernel_log(places: Places) -> Opening:
    """Open the first place that may be read.

    The device first: it is the kernel's own and has the time of each record. journald next: where it
    runs, syslog's files may be left over from before. Those last.
    """
    if places.path is not None:
        return _first([(str(places.path), lambda: open_path(places.path or KMSG))])
    attempts: list[tuple[str, Callable[[], KernelSource | None]]] = [
        (str(places.kmsg), lambda: open_path(places.kmsg)),
        ("journald", lambda: _open_journal(places.journals)),
        *((str(path), _opener(path)) for path in places.syslog_files),
    ]
    return _first(attempts)


def _opener(path: Path) -> Callable[[], KernelSource | None]:
    return lambda: open_path(path) if path.exists() else None


def _first(attempts: list[tuple[str, Callable[[], KernelSource | None]]]) -> Opening:
    faults = []
    for name, attempt in attempts:
        try:
            source = attempt()
        except OSError as error:
            faults.append(f"{name}: {error.strerror or error}")
            continue
        if source is not None:
            return Opening(source)
    return Opening(None, "; ".join(faults) or "it is nowhere to be found")


def _open_journal(journals: tuple[Path, ...]) -> KernelSource | None:
    program = shutil.which("journalctl")
    if program is None:
        return None
    # Without rights journalctl says nothing and goes on for ever.
    files = [file for folder in journals for file in folder.glob("*/system.journal")]
    if not files:
        return None
    if not any(os.access(file, os.R_OK) for file in files):
        raise PermissionError(1, "its files may not be read")
    return JournalSource(program)
