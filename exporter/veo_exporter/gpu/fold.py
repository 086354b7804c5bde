# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""The samples of one signal, folded once for whoever asks: window, integral, histogram."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import mul
from operator import sub as minus
from typing import Final, NamedTuple

from veo_exporter.gpu.histogram import TimeHistogram
from veo_exporter.gpu.readings import SampleBatch
from veo_exporter.gpu.window import TrailingWindow

CLOCK_STEP_SECONDS: Final = 0.25
"""The wall clock is corrected by less than a thousandth of the time; more at once is a step."""
FIRST_SAMPLE_SECONDS: Final = 1.0
"""A buffer's newest sample is no older when it is first read: if it seems so, the wall clock was just set."""
GAP_STEPS: Final = 3
"""A buffer that begins so many of its own steps after what was read last has lost samples."""


class Taking(NamedTuple):
    """What a reading has of one signal: the driver's buffer, and the reading's own value and times."""

    batch: SampleBatch
    value: float | None
    monotonic_seconds: float
    unix_seconds: float


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
        # Rows of the driver's buffer that were taken and are not yet folded; empty between calls.
        self._times: list[float] = []
        self._values: list[float] = []

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

    def take(self, takings: Iterable[Taking]) -> None:
        """Take in what the driver's buffer had at the times of readings; where it gives nothing for longer
        than the longest step, the reading's own value."""
        for taking in takings:
            self._accept(taking)
        self._fold_accepted()

    def _accept(self, taking: Taking) -> None:
        batch, value, monotonic_seconds, unix_seconds = taking
        offset = unix_seconds - monotonic_seconds
        times, values = batch.times_microseconds, batch.values
        if self._offset is not None and abs(offset - self._offset) > CLOCK_STEP_SECONDS:
            # What the driver names by the clock of before cannot be told from what came after.
            times = values = ()
            self._fold_accepted()
            self._newest_microseconds = int(unix_seconds * 1e6)
            if self._buffered_at is not None:
                self.gaps = (self.gaps or 0) + 1
                self._at = self._buffered_at = monotonic_seconds
        elif times and times[0] <= self._newest_microseconds:
            # Another session gives again what was read in an earlier one.
            old = bisect_right(times, self._newest_microseconds)
            times, values = times[old:], values[old:]
        if times:
            self._accept_samples(times, values, taking)
            self._buffered_at = monotonic_seconds
        silent = self._buffered_at is None or (
            monotonic_seconds - self._buffered_at > self.longest_step_seconds
        )
        if silent and value is not None:
            self._fold_accepted()
            self.add((monotonic_seconds,), (value,), unix_seconds)
        self._offset = offset

    def _accept_samples(
        self, driver_times: Sequence[int], values: Sequence[float], taking: Taking
    ) -> None:
        offset = taking.unix_seconds - taking.monotonic_seconds
        self.gaps = self.gaps or 0
        if taking.batch.since_microseconds and self._newest_microseconds:
            self._judge_gap(driver_times)
        if self._at is None and not self._times:
            # What was before we first looked is not ours to count.
            values = values[-1:]
            first = driver_times[-1] / 1e6 - offset
            times = [max(first, taking.monotonic_seconds - FIRST_SAMPLE_SECONDS)]
        else:
            times = [at / 1e6 - offset for at in driver_times]
        if self._times and times[0] < (last := self._times[-1]):
            # The wall clock is being corrected: a little is no step.
            times = [max(at, last) for at in times]
        self._times += times
        self._values += values
        self._newest_microseconds = driver_times[-1]

    def _fold_accepted(self) -> None:
        """All in one go: in a second come a few samples of each signal, and to fold them costs what it
        costs to fold those of ten seconds."""
        if self._times:
            self._fold(self._times, self._values)
            self._times, self._values = [], []

    def _judge_gap(self, times: Sequence[int]) -> None:
        if len(times) > 1:
            self._step_microseconds = (times[-1] - times[0]) // (len(times) - 1)
        usual = self._step_microseconds
        missing = times[0] - self._newest_microseconds
        if not usual or missing <= GAP_STEPS * usual:
            return
        # Few come here: a buffer that is not filled evenly is judged by its own longest step.
        longest = max((later - sooner for sooner, later in pairwise(times)), default=usual)
        if missing > GAP_STEPS * longest:
            self.gaps = (self.gaps or 0) + 1

    def _fold(self, times: Sequence[float], values: Sequence[float]) -> None:
        last = times[0] if self._at is None else self._at
        if times[0] < last:
            # The wall clock is being corrected: a little is no step.
            times = [max(at, last) for at in times]
        self._at = times[-1]
        counted = shown = list(map(minus, times, (last, *times)))
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
