# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Patterns to the files that stand there, and what is wrong with those that cannot be reached."""

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from veo_exporter.logs.follow import Identity

TOO_MANY: Final = "too_many"
UNREADABLE: Final = "unreadable"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a path is not followed: a word for the counter, a sentence for the log."""

    path: str
    reason: str
    sentence: str


@dataclass(slots=True)
class Found:
    """Files by path, in the order of the patterns."""

    files: dict[str, Identity] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)


def find_logs(patterns: Iterable[str], max_files: int) -> Found:
    """What the patterns match now. What is not there is no fault: it may come."""
    found = Found()
    for pattern in patterns:
        for path in _matches(pattern, found.faults):
            if path in found.files:
                continue
            if len(found.files) >= max_files:
                found.faults.append(Fault(path, TOO_MANY, "beyond logs.max_files"))
                continue
            status = _look_at(path, found.faults)
            if status is not None:
                found.files[path] = (status.st_dev, status.st_ino)
    return found


def _matches(pattern: str, faults: list[Fault]) -> list[str]:
    if not glob.has_magic(pattern):
        return [pattern]
    # A name may hold brackets: what exists as it is written is no pattern.
    if _look_at(pattern, []) is not None:
        return [pattern]
    try:
        matches = sorted(glob.glob(pattern))  # noqa: PTH207, names of files are texts here
    except (OSError, ValueError) as error:
        faults.append(Fault(pattern, UNREADABLE, sentence_of(error)))
        return []
    if not matches:
        # A folder that may not be listed looks like an empty one.
        _list_folder(pattern, faults)
    return matches


def _look_at(path: str, faults: list[Fault]) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116, names of files are texts here
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        faults.append(Fault(path, UNREADABLE, sentence_of(error)))
        return None


def _list_folder(pattern: str, faults: list[Fault]) -> None:
    folder = os.path.dirname(pattern)  # noqa: PTH120
    while glob.has_magic(folder):
        folder = os.path.dirname(folder)  # noqa: PTH120
    try:
        os.scandir(folder).close()
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        faults.append(Fault(pattern, UNREADABLE, sentence_of(error)))


def sentence_of(error: OSError | ValueError) -> str:
    """The system's words; a path with a NUL in it has no error number."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
