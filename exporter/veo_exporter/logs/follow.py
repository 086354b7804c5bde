# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""One open log file, read on from where we were, and whether it is still the same.

An inode alone does not tell: it is given to a new file at once, and a file that was copied and
truncated keeps it. So what was read is remembered by its first and last bytes as well.
"""

import os
import stat
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from veo_exporter.logs.lines import Blemish, LineSplitter

HEAD_BYTES: Final = 1024
TAIL_BYTES: Final = 256

Identity = tuple[int, int]
"""Device and inode."""


class NotAFile(OSError):
    """A folder, pipe or device: reading it may never end."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far a file was read: enough to know it again, and to go on."""

    identity: Identity
    head: bytes
    offset: int


@dataclass(frozen=True, slots=True)
class Piece:
    """What was read at once: bytes, ends of lines in them, and the lines that ended there."""

    byte_count: int
    end_count: int
    lines: list[str]


class OpenLog:
    """A file that is held open, so that its inode stays its own."""

    def __init__(self, descriptor: int, identity: Identity, max_line_bytes: int) -> None:
        self.identity = identity
        self.quiet_since_monotonic_seconds = 0.0
        self._descriptor = descriptor
        self._max_line_bytes = max_line_bytes
        self._offset = 0
        self._settled = 0
        self._head = b""
        self._tail = b""
        self._splitter = LineSplitter(max_line_bytes)
        self.told: set[Blemish] = set()
        """What is wrong with lines of this file, as far as somebody was told."""
        self._blemishes = Counter[Blemish]()

    @classmethod
    def open(cls, path: Path, max_line_bytes: int) -> Self:
        """Raises OSError."""
        # Not blocking: opening a pipe would wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise NotAFile(f"{path} is no regular file")
        except OSError:
            os.close(descriptor)
            raise
        return cls(descriptor, (found.st_dev, found.st_ino), max_line_bytes)

    def take_blemishes(self) -> Counter[Blemish]:
        """Lines that do not stand as they were written, since this was asked last."""
        taken = self._blemishes + self._splitter.blemishes
        self._blemishes.clear()
        self._splitter.blemishes.clear()
        return taken

    @property
    def holds_a_part(self) -> bool:
        return self._splitter.holds

    @property
    def position(self) -> Position:
        # A line that has no end yet is read once more by whoever goes on from here.
        return Position(self.identity, self._head[: self._settled], self._settled)

    def begin_at_end(self) -> None:
        """Leave out what stands there already."""
        self._offset = os.fstat(self._descriptor).st_size
        self._remember()

    def resume(self, position: Position) -> bool:
        """Go on where this same file was left; gives whether it is the same."""
        size = os.fstat(self._descriptor).st_size
        head = os.pread(self._descriptor, len(position.head), 0)
        if position.identity != self.identity or size < position.offset or head != position.head:
            return False
        self._offset = position.offset
        self._remember()
        return True

    def restart_if_changed(self) -> tuple[str, list[str]] | None:
        """Begin anew if what we have read is no longer there: why, and the line that was held."""
        cause = self._change()
        if cause is None:
            return None
        left = self._splitter.flush()
        self._blemishes += self._splitter.blemishes
        self._splitter = LineSplitter(self._max_line_bytes)
        self._head = self._tail = b""
        self._offset = self._settled = self._beginning()
        return cause, left

    def read(self, max_bytes: int, max_lines: int) -> Piece:
        """Up to so many bytes and line ends."""
        before = len(self._tail)
        found = os.pread(self._descriptor, before + max_bytes, self._offset - before)
        if not found.startswith(self._tail):
            # Rewritten since it was looked at: what stands here is not what comes next.
            return Piece(0, 0, [])
        chunk = _first_lines(found[before:], max_lines)
        if chunk:
            if (end := chunk.rfind(b"\n")) >= 0:
                self._settled = self._offset + end + 1
            self._offset += len(chunk)
            self._tail = found[: before + len(chunk)][-TAIL_BYTES:]
            if len(self._head) < HEAD_BYTES:
                self._head = os.pread(self._descriptor, min(HEAD_BYTES, self._offset), 0)
        return Piece(len(chunk), chunk.count(b"\n"), self._splitter.feed(chunk))

    def flush(self) -> list[str]:
        """The line without an end, of which no more is expected."""
        self._settled = self._offset
        return self._splitter.flush()

    def close(self) -> None:
        os.close(self._descriptor)

    def _change(self) -> str | None:
        if os.fstat(self._descriptor).st_size < self._offset:
            return "truncated"
        if os.pread(self._descriptor, len(self._head), 0) != self._head:
            return "rewritten"
        before = self._offset - len(self._tail)
        if os.pread(self._descriptor, len(self._tail), before) != self._tail:
            return "rewritten"
        return None

    def _beginning(self) -> int:
        # A writer that goes on at its old place leaves a hole, which may be as long as the old log.
        try:
            return os.lseek(self._descriptor, 0, os.SEEK_DATA)
        except OSError:
            return 0

    def _remember(self) -> None:
        self._settled = self._offset
        self._head = os.pread(self._descriptor, min(HEAD_BYTES, self._offset), 0)
        before = max(0, self._offset - TAIL_BYTES)
        self._tail = os.pread(self._descriptor, self._offset - before, before)


def _first_lines(chunk: bytes, count: int) -> bytes:
    if chunk.count(b"\n") <= count:
        return chunk
    *_, rest = chunk.split(b"\n", count)
    return chunk[: len(chunk) - len(rest)]
