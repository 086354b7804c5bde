# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""When a file in a watched folder is finished: after a rename, or once nobody writes to it. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

MOST_REMEMBERED: Final = 10_000
"""Files that are being written at one time, and files that are done; the oldest are forgotten."""

RENAME_SECONDS: Final = 1.0
"""The old name's end and the new one's beginning are told together, or nearly so."""

FileId = tuple[int, int]
"""Device and inode: what stays when a file is renamed."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a file was when somebody looked."""

    id: FileId
    size_bytes: int
    modified_nanoseconds: int


@dataclass(frozen=True, slots=True)
class _Unsettled:
    look: Look
    since: float
    renamed: bool


@dataclass(frozen=True, slots=True)
class _Departed:
    look: Look
    told: bool
    at: float


class Settling:
    """Told of each change; says which of the files that are wanted are finished, each once.

    Times are monotonic seconds.
    """

    def __init__(self, quiet_seconds: float, wanted: Callable[[Path], bool]) -> None:
        self._quiet = quiet_seconds
        self._wanted = wanted
        self._unsettled: dict[Path, _Unsettled] = {}
        self._done: dict[Path, tuple[Look, bool]] = {}
        self._departed: dict[FileId, _Departed] = {}

    @property
    def waiting(self) -> tuple[Path, ...]:
        return tuple(self._unsettled)

    def remember(self, path: Path, look: Look) -> None:
        """It was here before us, and is not to be told."""
        self._done[path] = look, True
        _forget_oldest(self._done)

    def change(self, looks: Mapping[Path, Look | None], now: float) -> None:
        """What paths are now; None for those that are gone or no regular files."""
        for path in (path for path, look in looks.items() if look is None):
            if unsettled := self._unsettled.pop(path, None):
                self._departed[unsettled.look.id] = _Departed(unsettled.look, False, now)
            elif done := self._done.pop(path, None):
                self._departed[done[0].id] = _Departed(*done, now)
        for path, look in looks.items():
            if look is not None and not self._same_as_before(path, look):
                self._take_in(path, look, now)
        self._departed = {
            id: departed
            for id, departed in self._departed.items()
            if now - departed.at <= RENAME_SECONDS
        }
        _forget_oldest(self._unsettled)

    def settle(self, now: float) -> list[Path]:
        """Files that are finished now."""
        finished = [
            path
            for path, unsettled in self._unsettled.items()
            if unsettled.renamed or now - unsettled.since >= self._quiet
        ]
        for path in finished:
            self._done[path] = self._unsettled.pop(path).look, self._wanted(path)
        _forget_oldest(self._done)
        return [path for path in finished if self._wanted(path)]

    def _same_as_before(self, path: Path, look: Look) -> bool:
        if unsettled := self._unsettled.get(path):
            return unsettled.look == look
        done = self._done.get(path)
        return done is not None and done[0] == look

    def _take_in(self, path: Path, look: Look, now: float) -> None:
        former = self._departed.pop(look.id, None)
        if former and former.told and former.look == look:
            # Told under its former name; it is the same film.
            self._done[path] = look, True
            return
        # Whoever gives a file its last name has finished writing it. An inode that is used again by
        # a new file is that of a small one at first.
        renamed = former is not None and 0 < former.look.size_bytes <= look.size_bytes
        self._unsettled[path] = _Unsettled(look, now, renamed)


def _forget_oldest(entries: dict[Path, Any]) -> None:
    while len(entries) > MOST_REMEMBERED:
        del entries[next(iter(entries))]
