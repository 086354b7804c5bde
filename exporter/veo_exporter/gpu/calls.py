# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""How many calls went to NVML and how long they took, over all threads that ever called it."""

import threading
from collections.abc import Mapping

from veo_exporter.gpu.nvml import Line, Tally


class CallTotals:
    """Sums the tallies of lines. A line that is retired is counted once more, and then let go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: list[Line] = []
        self._retired: dict[str, Tally] = {}

    def watch(self, line: Line) -> None:
        """Count this line's calls from now on."""
        with self._lock:
            self._lines.append(line)

    def retire(self, line: Line) -> None:
        """The line's thread has ended: what it counted stays, the line need not."""
        with self._lock:
            if line in self._lines:
                self._lines.remove(line)
                _add(self._retired, line.tallies)

    def totals(self) -> Mapping[str, Tally]:
        """Calls and seconds by function, as of now."""
        with self._lock:
            totals: dict[str, Tally] = {}
            for tallies in (self._retired, *(line.tallies for line in self._lines)):
                _add(totals, tallies)
            return totals


def _add(totals: dict[str, Tally], tallies: Mapping[str, Tally]) -> None:
    # A copy: the line's own thread may call a function for the first time meanwhile.
    for function, tally in list(tallies.items()):
        total = totals.setdefault(function, Tally())
        total.calls += tally.calls
        total.seconds += tally.seconds
