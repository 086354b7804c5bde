# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Several logs, followed by path across renames, truncation and deletion."""

import glob
from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from veo_exporter.logs.follow import Identity, NotAFile, OpenLog, Position

LINGER_SECONDS: Final = 30.0
"""A file that was renamed is read on for so long: its writer is told to reopen it a little later."""
PART_SECONDS: Final = 2.0
"""A line without an end is taken as it is after so long without more."""
MAX_REMEMBERED: Final = 1000
MAX_LINGERING: Final = 8
"""Of each path: whoever renames faster than this loses the oldest."""
CHUNK_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Line:
    """A line and where it stands, so that the same one is known again."""

    path: str
    place: str
    text: str


@dataclass(slots=True)
class Gathered:
    """What a look at the logs brought."""

    lines: list[Line] = field(default_factory=list)
    restarts: Counter[str] = field(default_factory=Counter)
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: dict[str, str] = field(default_factory=dict)
    """Sentences by path, for files that cannot be read."""


@dataclass(slots=True)
class _Followed:
    path: str
    log: OpenLog
    serial: int
    retired: bool = False
    generation: int = 0
    lines: int = 0


class Follower:
    """Looks at its files when asked, reads a bounded amount and gives the lines.

    Files that stand there at the first look are read from their end, unless `positions` of an
    earlier run say more; files that appear later are read from their beginning.
    """

    def __init__(
        self,
        patterns: Iterable[str],
        *,
        max_files: int = 64,
        max_line_bytes: int = 65_536,
        max_read_bytes: int = 4 << 20,
        positions: Iterable[Position] = (),
        from_beginning: bool = False,
    ) -> None:
        self._patterns = tuple(patterns)
        self._max_files = max_files
        self._max_line_bytes = max_line_bytes
        self._max_read_bytes = max_read_bytes
        self._from_beginning = from_beginning
        self._followed: list[_Followed] = []
        self._known: OrderedDict[Identity, Position] = OrderedDict(
            (position.identity, position) for position in positions
        )
        self._first_look = True
        self._opened = 0
        self._faulty: set[tuple[str, str]] = set()
        self._faulty_before: set[tuple[str, str]] = set()

    def positions(self) -> list[Position]:
        """How far each file was read, to be handed to the next run."""
        here = [followed.log.position for followed in self._followed]
        return [*self._known.values(), *here]

    def look(self, now_monotonic_seconds: float) -> Gathered:
        """Read what is new. Waits for nothing but the disk."""
        gathered = Gathered()
        self._faulty_before, self._faulty = self._faulty, set()
        paths = self._paths(gathered)
        self._retire(paths)
        self._open_new(paths, gathered, now_monotonic_seconds)
        share = self._max_read_bytes // max(1, len(self._followed))
        # Old names first, so that lines come in the order in which they were written.
        for followed in sorted(self._followed, key=lambda followed: not followed.retired):
            try:
                self._read(followed, share, gathered, now_monotonic_seconds)
            except OSError as error:
                self._blame(followed.path, "unreadable", error.strerror or str(error), gathered)
        self._let_go(gathered, now_monotonic_seconds)
        self._first_look = False
        return gathered

    def close(self) -> None:
        """Let go of all files."""
        for followed in self._followed:
            followed.log.close()
        self._followed.clear()

    def _paths(self, gathered: Gathered) -> dict[str, Identity]:
        paths: dict[str, Identity] = {}
        for pattern in self._patterns:
            # A name may hold brackets: what exists as it is written is no pattern.
            found = [pattern] if Path(pattern).exists() else sorted(glob.glob(pattern))  # noqa: PTH207
            for path in found:
                if len(paths) >= self._max_files:
                    self._blame(path, "too_many", "beyond logs.max_files", gathered)
                    continue
                try:
                    status = Path(path).stat()
                except OSError:
                    continue
                paths[path] = (status.st_dev, status.st_ino)
        return paths

    def _retire(self, paths: dict[str, Identity]) -> None:
        for followed in self._followed:
            if not followed.retired and paths.get(followed.path) != followed.log.identity:
                followed.retired = True

    def _open_new(
        self, paths: dict[str, Identity], gathered: Gathered, now_monotonic_seconds: float
    ) -> None:
        open_already = {followed.log.identity: followed for followed in self._followed}
        for path, identity in paths.items():
            if identity in open_already:
                continue
            try:
                log = OpenLog.open(Path(path), self._max_line_bytes)
            except OSError as error:
                reason = "not_a_file" if isinstance(error, NotAFile) else "unreadable"
                self._blame(path, reason, error.strerror or str(error), gathered)
                continue
            log.quiet_since_monotonic_seconds = now_monotonic_seconds
            if any(followed.path == path for followed in self._followed):
                gathered.restarts["replaced"] += 1
            self._opened += 1
            followed = _Followed(path, log, self._opened)
            self._followed.append(followed)
            open_already[log.identity] = followed
            known = self._known.pop(log.identity, None)
            resumed = known is not None and log.resume(known)
            if not resumed and self._first_look and not self._from_beginning:
                log.begin_at_end()

    def _read(
        self, followed: _Followed, share: int, gathered: Gathered, now_monotonic_seconds: float
    ) -> None:
        log = followed.log
        if restarted := log.restart_if_changed():
            cause, left = restarted
            gathered.restarts[cause] += 1
            self._add(followed, left, gathered)
            followed.generation += 1
        cut_before, total = log.cut_lines, 0
        while total < share:
            count, lines = log.read(min(CHUNK_BYTES, share - total))
            total += count
            self._add(followed, lines, gathered)
            if count == 0:
                break
        if total:
            log.quiet_since_monotonic_seconds = now_monotonic_seconds
        quiet_seconds = now_monotonic_seconds - log.quiet_since_monotonic_seconds
        if log.holds_a_part and quiet_seconds >= PART_SECONDS:
            self._add(followed, log.flush(), gathered)
        if log.cut_lines > cut_before:
            gathered.dropped["log_line", "cut"] += log.cut_lines - cut_before

    def _blame(self, path: str, reason: str, sentence: str, gathered: Gathered) -> None:
        # Told when it begins, and not at each look.
        self._faulty.add((path, reason))
        if (path, reason) not in self._faulty_before:
            gathered.dropped["log_file", reason] += 1
            gathered.faults[path] = f"{path}: {sentence}"

    def _add(self, followed: _Followed, lines: list[str], gathered: Gathered) -> None:
        # An inode is given away again; the serial is not.
        _, inode = followed.log.identity
        for text in lines:
            followed.lines += 1
            place = f"{inode}-{followed.serial}-{followed.generation}-{followed.lines}"
            gathered.lines.append(Line(followed.path, place, text))

    def _let_go(self, gathered: Gathered, now_monotonic_seconds: float) -> None:
        over = [
            followed
            for followed in self._followed
            if followed.retired
            and now_monotonic_seconds - followed.log.quiet_since_monotonic_seconds >= LINGER_SECONDS
        ]
        for path in {followed.path for followed in self._followed}:
            lingering = [f for f in self._followed if f.retired and f.path == path]
            over += [
                f for f in lingering[: max(0, len(lingering) - MAX_LINGERING)] if f not in over
            ]
        for followed in over:
            self._add(followed, followed.log.flush(), gathered)
            self._known[followed.log.identity] = followed.log.position
            followed.log.close()
            self._followed.remove(followed)
        while len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)
