# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes to lines, however they come: torn in the middle of a line or of a character."""

from typing import Final

_BOM: Final = b"\xef\xbb\xbf"
_END_SHARE: Final = 16
"""Of a line that is cut, this part of the bound is its end: what stands behind a long text counts too."""


class LineSplitter:
    """Holds what has no end yet. A line longer than the bound is cut, in what lies before its end."""

    def __init__(self, max_line_bytes: int) -> None:
        self._max_line_bytes = max_line_bytes
        self._max_end_bytes = max_line_bytes // _END_SHARE
        self._held = bytearray()
        self._end = bytearray()
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
        if self._cutting:
            self._hold_end(piece)
            return
        room = self._max_line_bytes - len(self._held)
        self._held += piece[:room]
        if len(piece) > room:
            self._cutting = True
            self.cut_lines += 1
            self._hold_end(piece[room:])

    def _hold_end(self, piece: bytes) -> None:
        if self._max_end_bytes:
            self._end += piece[-self._max_end_bytes :]
            del self._end[: -self._max_end_bytes]

    def _release(self, lines: list[str]) -> None:
        # Nothing is held of a line whose beginning was released already: its end alone is no line.
        end = bytes(self._end) if self._held else b""
        line = bytes(self._held[: len(self._held) - len(end)]) + end
        self._held.clear()
        self._end.clear()
        if self._first:
            line = line.removeprefix(_BOM)
            self._first = False
        if line := line.rstrip(b"\r"):
            lines.append(line.decode(errors="replace"))
