# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Several logs, followed by path across renames, truncation and deletion."""

from collections import Counter, OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from veo_exporter.logs.follow import Identity, NotAFile, OpenLog, Position
from veo_exporter.logs.lines import Blemish
from veo_exporter.logs.paths import UNREADABLE, find_logs, sentence_of

LINGER_SECONDS: Final = 30.0
"""A file that was renamed is read on for so long: its writer is told to reopen it a little later."""
PART_SECONDS: Final = 2.0
"""A line without an end is taken as it is after so long without more."""
MAX_REMEMBERED: Final = 1000
MAX_LINGERING: Final = 8
"""Of each path: whoever renames faster than this loses the oldest."""
CHUNK_BYTES: Final = 1 << 16
MAX_LINES: Final = 10_000
"""Of one look, whatever their length: a megabyte of line ends alone is a million lines."""


_TOLD: Final = {
    Blemish.CUT: "a line of more than {most} bytes was cut in its middle: raise logs.max_line_bytes, or have "
    "shorter lines written",
    Blemish.NUL: "a line holds NULs, and what should stand there is lost: did the machine go down, or was the "
    "file truncated under a writer that does not append?",
    Blemish.ENCODING: "a line is not in UTF-8, and what cannot be read of it is replaced: have UTF-8 written",
}


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
    spoilt: list[str] = field(default_factory=list)
    """Sentences on lines that do not stand as they were written, one for each file and reason."""
    more: bool = False
    """Whether files hold more than could be read at this look."""


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
        max_lines: int = MAX_LINES,
        positions: Iterable[Position] = (),
        from_beginning: bool = False,
    ) -> None:
        self._patterns = tuple(patterns)
        self._max_files = max_files
        self._max_line_bytes = max_line_bytes
        self._max_read_bytes = max_read_bytes
        self._max_lines = max_lines
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
        found = find_logs(self._patterns, self._max_files)
        for fault in found.faults:
            self._blame(fault.path, fault.reason, fault.sentence, gathered)
        self._retire(found.files)
        self._open_new(found.files, gathered, now_monotonic_seconds)
        self._read_all(gathered, now_monotonic_seconds)
        self._let_go(gathered, now_monotonic_seconds)
        self._first_look = False
        return gathered

    def close(self) -> None:
        """Let go of all files."""
        for followed in list(self._followed):
            self._drop(followed)

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
                followed = self._open(path, now_monotonic_seconds)
            except OSError as error:
                reason = "not_a_file" if isinstance(error, NotAFile) else UNREADABLE
                self._blame(path, reason, sentence_of(error), gathered)
                continue
            if any(other.path == path for other in self._followed):
                gathered.restarts["replaced"] += 1
            self._followed.append(followed)
            open_already[followed.log.identity] = followed

    def _open(self, path: str, now_monotonic_seconds: float) -> _Followed:
        log = OpenLog.open(Path(path), self._max_line_bytes)
        try:
            log.quiet_since_monotonic_seconds = now_monotonic_seconds
            known = self._known.get(log.identity)
            resumed = known is not None and log.resume(known)
            if not resumed and self._first_look and not self._from_beginning:
                log.begin_at_end()
        except OSError:
            log.close()
            raise
        self._known.pop(log.identity, None)
        self._opened += 1
        return _Followed(path, log, self._opened)

    def _read_all(self, gathered: Gathered, now_monotonic_seconds: float) -> None:
        bytes_left, lines_left = self._max_read_bytes, self._max_lines
        # Old names first, so that lines come in the order in which they were written.
        hungry = sorted(self._followed, key=lambda followed: not followed.retired)
        while hungry and bytes_left > 0 and lines_left > 0:
            # What a quiet file leaves of its share is for the others.
            most_bytes = max(1, bytes_left // len(hungry))
            most_lines = max(1, lines_left // len(hungry))
            unfinished: dict[str, list[_Followed]] = {}
            for followed in hungry:
                older = unfinished.get(followed.path)
                if older or bytes_left <= 0 or lines_left <= 0:
                    unfinished.setdefault(followed.path, []).append(followed)
                    continue
                try:
                    read_bytes, read_lines, ended = self._read(
                        followed,
                        min(most_bytes, bytes_left),
                        min(most_lines, lines_left),
                        gathered,
                        now_monotonic_seconds,
                    )
                except OSError as error:
                    self._blame(followed.path, UNREADABLE, sentence_of(error), gathered)
                    # A handle gone stale stays so; the next look opens the file anew.
                    self._remember(followed)
                    self._drop(followed)
                    continue
                bytes_left -= read_bytes
                lines_left -= read_lines
                if not ended:
                    unfinished.setdefault(followed.path, []).append(followed)
            hungry = [followed for several in unfinished.values() for followed in several]
        gathered.more = bool(hungry)

    def _read(
        self,
        followed: _Followed,
        most_bytes: int,
        most_lines: int,
        gathered: Gathered,
        now_monotonic_seconds: float,
    ) -> tuple[int, int, bool]:
        """Bytes and ends of lines that were read, and whether there is no more for now."""
        log = followed.log
        if restarted := log.restart_if_changed():
            cause, left = restarted
            gathered.restarts[cause] += 1
            self._add(followed, left, gathered)
            followed.generation += 1
        read_bytes, read_lines, ended = 0, 0, False
        while not ended and read_bytes < most_bytes and read_lines < most_lines:
            piece = log.read(min(CHUNK_BYTES, most_bytes - read_bytes), most_lines - read_lines)
            read_bytes += piece.byte_count
            read_lines += piece.end_count
            self._add(followed, piece.lines, gathered)
            ended = piece.byte_count == 0
        if read_bytes:
            log.quiet_since_monotonic_seconds = now_monotonic_seconds
        quiet_seconds = now_monotonic_seconds - log.quiet_since_monotonic_seconds
        if log.holds_a_part and quiet_seconds >= PART_SECONDS:
            self._add(followed, log.flush(), gathered)
        self._note_blemishes(followed, gathered)
        return read_bytes, read_lines, ended

    def _note_blemishes(self, followed: _Followed, gathered: Gathered) -> None:
        for blemish, count in followed.log.take_blemishes().items():
            gathered.dropped["log_line", blemish.value] += count
            if blemish not in followed.log.told:
                followed.log.told.add(blemish)
                sentence = _TOLD[blemish].format(most=self._max_line_bytes)
                gathered.spoilt.append(f"{followed.path}: {sentence}")

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
            self._note_blemishes(followed, gathered)
            self._remember(followed)
            self._drop(followed)
        while len(self._known) > MAX_REMEMBERED:
            self._known.popitem(last=False)

    def _remember(self, followed: _Followed) -> None:
        self._known[followed.log.identity] = followed.log.position

    def _drop(self, followed: _Followed) -> None:
        self._followed.remove(followed)
        # Nothing was written by us that a failing close could lose.
        with suppress(OSError):
            followed.log.close()
