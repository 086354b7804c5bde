# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes to lines, however they come: torn in the middle of a line or of a character."""

from typing import Final

_BOM: Final = b"\xef\xbb\xbf"


class LineSplitter:
    """Holds what has no end yet. A line longer than the bound is cut, and the rest of it dropped."""

    def __init__(self, max_line_bytes: int) -> None:
        self._max_line_bytes = max_line_bytes
        self._held = bytearray()
        self._cutting = False
        self._first = True
        self.cut_lines = 0

    @property
    def holds(self) -> bool:
        """Whether there is a line without an end."""
        return bool(self._held)

    def feed(self, chunk: bytes) -> list[str]:
        """The lines that end in this chunk."""
        # A writer that goes on at its old place in a truncated file leaves a hole of NULs.
        pieces = chunk.replace(b"\0", b"").split(b"\n")
        lines: list[str] = []
        for piece in pieces[:-1]:
            self._hold(piece)
            self._cutting = False
            self._release(lines)
        self._hold(pieces[-1])
        return lines

    def flush(self) -> list[str]:
        """What is held, as a line: nothing more is expected of it."""
        lines: list[str] = []
        if self._held:
            self._release(lines)
        return lines

    def _hold(self, piece: bytes) -> None:
        if not piece or self._cutting:
            return
        room = self._max_line_bytes - len(self._held)
        self._held += piece[:room]
        if len(piece) > room:
            self._cutting = True
            self.cut_lines += 1

    def _release(self, lines: list[str]) -> None:
        line = bytes(self._held)
        self._held.clear()
        if self._first:
            line = line.removeprefix(_BOM)
            self._first = False
        if line := line.rstrip(b"\r"):
            lines.append(line.decode(errors="replace"))
