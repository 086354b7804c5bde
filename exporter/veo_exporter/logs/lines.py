# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes to lines, however they come: torn in the middle of a line or of a character."""

from collections import Counter
from enum import StrEnum
from typing import Final

_BOM: Final = b"\xef\xbb\xbf"
_END_SHARE: Final = 16
"""Of a line that is cut, this part of the bound is its end: what stands behind a long text counts too."""


class Blemish(StrEnum):
    """Why a line does not stand as it was written; the reason in the counter of dropped things."""

    CUT = "cut"
    NUL = "nul"
    ENCODING = "encoding"


class LineSplitter:
    """Holds what has no end yet. A line longer than the bound is cut, in what lies before its end.

    NULs at a line's beginning and end are no part of it; those within stand for what was lost there,
    and become one space, lest the words beside them become one.
    """

    def __init__(self, max_line_bytes: int) -> None:
        self.blemishes = Counter[Blemish]()
        """Lines, by what is wrong with them."""
        self._max_line_bytes = max_line_bytes
        self._max_end_bytes = max_line_bytes // _END_SHARE
        self._held = bytearray()
        self._end = bytearray()
        self._cutting = False
        self._first = True
        # NULs were read behind what is held, and it is not known yet whether the line goes on.
        self._gap = False
        self._nul = False

    @property
    def holds(self) -> bool:
        """Whether there is a line without an end."""
        return bool(self._held)

    def feed(self, chunk: bytes) -> list[str]:
        """The lines that end in this chunk."""
        pieces = chunk.split(b"\n")
        lines: list[str] = []
        if self._gap or b"\0" in chunk:
            for piece in pieces[:-1]:
                self._hold(self._without_nuls(piece))
                self._end_line(lines)
            self._hold(self._without_nuls(pieces[-1]))
            return lines
        for piece in pieces[:-1]:
            self._hold(piece)
            self._end_line(lines)
        self._hold(pieces[-1])
        return lines

    def flush(self) -> list[str]:
        """What is held, as a line: nothing more is expected of it."""
        lines: list[str] = []
        if self._held:
            self._release(lines)
        return lines

    def _without_nuls(self, piece: bytes) -> bytes:
        if b"\0" not in piece and not (self._gap and piece):
            return piece
        parts = [part for part in piece.split(b"\0") if part]
        within = self._gap or piece.startswith(b"\0")
        # A writer that goes on at its old place in a truncated file leaves a hole before its first line,
        # and nothing was lost there.
        if b"\0" in piece.lstrip(b"\0") or not self._first or self._held:
            self._nul = True
        if not parts:
            self._gap = bool(self._held)
            return b""
        self._gap = piece.endswith(b"\0")
        return (b" " if within and self._held else b"") + b" ".join(parts)

    def _end_line(self, lines: list[str]) -> None:
        self._gap = False
        self._release(lines)
        self._cutting = False

    def _hold(self, piece: bytes) -> None:
        if self._cutting:
            self._hold_end(piece)
            return
        room = self._max_line_bytes - len(self._held)
        self._held += piece[:room]
        if len(piece) > room:
            self._cutting = True
            self.blemishes[Blemish.CUT] += 1
            self._hold_end(piece[room:])

    def _hold_end(self, piece: bytes) -> None:
        if self._max_end_bytes:
            self._end += piece[-self._max_end_bytes :]
            del self._end[: -self._max_end_bytes]

    def _release(self, lines: list[str]) -> None:
        stripped = b"\r"
        if self._nul:
            # Between the last word and its return there may be a space that was none.
            stripped, self._nul = b"\r ", False
            self.blemishes[Blemish.NUL] += 1
        # Nothing is held of a line whose beginning was released already: its end alone is no line.
        end = bytes(self._end) if self._held else b""
        line = bytes(self._held[: len(self._held) - len(end)]) + end
        self._held.clear()
        self._end.clear()
        if self._first:
            line = line.removeprefix(_BOM)
            self._first = False
        if line := line.rstrip(stripped):
            lines.append(self._decode(line))

    def _decode(self, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            # Where a line was cut, a character may have been.
            if not self._cutting:
                self.blemishes[Blemish.ENCODING] += 1
            return line.decode(errors="replace")
