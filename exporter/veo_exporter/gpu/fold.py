# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The samples of one signal, folded once for whoever asks: window, integral, histogram."""

from collections.abc import Sequence
from itertools import pairwise
from operator import mul
from typing import Final

from veo_exporter.gpu.histogram import TimeHistogram
from veo_exporter.gpu.readings import SampleBatch
from veo_exporter.gpu.window import TrailingWindow

CLOCK_STEP_SECONDS: Final = 0.25
"""The wall clock is corrected by less than a thousandth of the time; more at once is a step."""
GAP_STEPS: Final = 3
"""A buffer that begins so many of its own steps after what was read last has lost samples."""


class SignalFold:
    """Takes samples in the order of time, from the driver's buffer or our own, and never both for the
    same time.

    A sample stands for the time since the one before. Where that is longer than the longest step,
    nobody looked: it counts for nothing, and in the window's mean for the longest step.
    """

    def __init__(
        self,
        longest_step_seconds: float,
        window: TrailingWindow | None = None,
        histogram: TimeHistogram | None = None,
        *,
        sums: bool = True,
    ) -> None:
        self.longest_step_seconds = longest_step_seconds
        self.window = window
        self.histogram = histogram
        self.gaps: int | None = None
        """How often samples were missed; None until a buffer was read."""
        self._sums = sums
        self._integral = 0.0
        self._at: float | None = None
        # The driver's time of what was folded last, whoever sampled it; kept when sessions come and go.
        self._newest_microseconds = 0
        self._offset: float | None = None
        self._step_microseconds: int | None = None
        self._buffered_at: float | None = None

    @property
    def integral(self) -> float:
        """The sum of each value by the seconds that it stands for; 0 unless that is asked for."""
        return self._integral if self.histogram is None else self.histogram.integral

    def add(self, times: Sequence[float], values: Sequence[float], unix_seconds: float) -> None:
        """Take our own samples in; `unix_seconds` is the wall-clock time of the last one."""
        self._fold(times, values)
        self._newest_microseconds = int(unix_seconds * 1e6)
        self._offset = unix_seconds - times[-1]
        self._buffered_at = None

    def take(
        self,
        batch: SampleBatch,
        value: float | None,
        monotonic_seconds: float,
        unix_seconds: float,
    ) -> None:
        """Take in what the driver's buffer had, at the time of a reading; where it gives nothing for longer
        than the longest step, the reading's own value."""
        offset = unix_seconds - monotonic_seconds
        rows = batch.rows
        if self._offset is not None and abs(offset - self._offset) > CLOCK_STEP_SECONDS:
            # What the driver names by the clock of before cannot be told from what came after.
            rows = ()
            self._newest_microseconds = int(unix_seconds * 1e6)
            if self._buffered_at is not None:
                self.gaps = (self.gaps or 0) + 1
                self._at = self._buffered_at = monotonic_seconds
        elif rows and rows[0][0] <= self._newest_microseconds:
            # Another session gives again what was read in an earlier one.
            rows = tuple([row for row in rows if row[0] > self._newest_microseconds])
        if rows:
            self._take_rows(rows, batch.since_microseconds, offset)
            self._buffered_at = monotonic_seconds
        silent = self._buffered_at is None or (
            monotonic_seconds - self._buffered_at > self.longest_step_seconds
        )
        if silent and value is not None:
            self.add((monotonic_seconds,), (value,), unix_seconds)
        self._offset = offset

    def _take_rows(self, rows: Sequence[tuple[int, float]], since: int, offset: float) -> None:
        self.gaps = self.gaps or 0
        if since and self._newest_microseconds:
            self._judge_gap(rows)
        if self._at is None:
            # What was before we first looked is not ours to count.
            rows = rows[-1:]
        times = [row[0] / 1e6 - offset for row in rows]
        self._fold(times, [row[1] for row in rows])
        self._newest_microseconds = rows[-1][0]

    def _judge_gap(self, rows: Sequence[tuple[int, float]]) -> None:
        if len(rows) > 1:
            self._step_microseconds = (rows[-1][0] - rows[0][0]) // (len(rows) - 1)
        usual = self._step_microseconds
        missing = rows[0][0] - self._newest_microseconds
        if not usual or missing <= GAP_STEPS * usual:
            return
        # Few come here: a buffer that is not filled evenly is judged by its own longest step.
        longest = max((later[0] - sooner[0] for sooner, later in pairwise(rows)), default=usual)
        if missing > GAP_STEPS * longest:
            self.gaps = (self.gaps or 0) + 1

    def _fold(self, times: Sequence[float], values: Sequence[float]) -> None:
        last = times[0] if self._at is None else self._at
        if times[0] < last:
            # The wall clock is being corrected: a little is no step.
            times = [max(at, last) for at in times]
        self._at = times[-1]
        counted = shown = [at - before for at, before in zip(times, (last, *times), strict=False)]
        longest = self.longest_step_seconds
        if max(shown) > longest:
            shown = [min(step, longest) for step in shown]
            counted = [step if step <= longest else 0.0 for step in counted]
        if self.window is not None:
            self.window.add_all(times, values, shown)
        if self.histogram is not None:
            self.histogram.add(values, counted)
        elif self._sums:
            self._integral += sum(map(mul, values, counted))
