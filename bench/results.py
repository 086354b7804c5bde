# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What was measured: one row for each figure, as a table for people and as JSON."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

HEADINGS = ("what", "veo-exporter", "nvitop-exporter", "ratio", "limit", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A figure on both sides. Without a limit it is for information."""

    what: str
    unit: str
    ours: float
    theirs: float | None = None
    most_ratio: float | None = None
    most: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        if not self.theirs or not math.isfinite(self.theirs):
            return None
        return self.ours / self.theirs

    @property
    def verdict(self) -> str:
        """Either ok or OVER; empty where there is no limit."""
        if self.most is None and self.most_ratio is None:
            return ""
        over = self.most is not None and not self.ours <= self.most
        if self.most_ratio is not None:
            over = over or self.ratio is None or not self.ratio <= self.most_ratio
        return "OVER" if over else "ok"

    @property
    def limit(self) -> str:
        limits = []
        if self.most_ratio is not None:
            limits.append(f"ratio {self.most_ratio:g}")
        if self.most is not None:
            limits.append(_figure(self.most, self.unit))
        return ", ".join(limits)

    def as_dict(self) -> dict[str, Any]:
        written = asdict(self) | {"ratio": self.ratio, "verdict": self.verdict}
        # JSON has no word for what never came.
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in written.items()
        }


def _figure(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if not math.isfinite(value):
        return "no answer"
    digits = 0 if value == int(value) else max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f} {unit}".strip()


def table(rows: Iterable[Row]) -> str:
    """The rows in columns, as Markdown, so that they can be pasted into the docs."""
    written: list[Sequence[str]] = [HEADINGS]
    notes: list[str] = []
    for row in rows:
        mark = ""
        if row.note:
            notes.append(row.note)
            mark = f" ({len(notes)})"
        ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
        figures = (_figure(row.ours, row.unit), _figure(row.theirs, row.unit))
        written.append((row.what + mark, *figures, ratio, row.limit or "-", row.verdict))
    widths = [max(len(line[place]) for line in written) for place in range(len(HEADINGS))]
    lines = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in written
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    numbered = [f"({number}) {note}" for number, note in enumerate(notes, start=1)]
    return "\n".join([*lines, *([""] if numbered else []), *numbered])
