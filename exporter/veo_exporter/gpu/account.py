# SPDX-FileCopyrightText: The veo-exporter authors
# SPDX-License-Identifier: Apache-2.0
"""What all samples of one GPU come to. Sessions come and go; this stays with the GPU."""

import threading
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from veo_exporter.catalog import MetricSpec
from veo_exporter.catalog.gpu import UTILIZATION, WINDOWS
from veo_exporter.catalog.gpu_samples import BUSY, BUSY_FROM_RATIO, HISTOGRAMS
from veo_exporter.gpu.fold import SignalFold, Taking
from veo_exporter.gpu.histogram import TimeHistogram
from veo_exporter.gpu.readings import Cadence, Raw, Reading, Sampled, Signal, Statistics, Summed
from veo_exporter.gpu.throttle import IDLE, ThrottleClock
from veo_exporter.gpu.window import TrailingWindow

MAX_UNFOLDED_READINGS: Final = 32
"""So many wait until somebody looks. Folded in one go they cost a third of what they do one by one, each
with cold caches."""
MAX_UNFOLDED_BATCHES: Final = 16
"""Likewise of readings with what the driver's buffers had, some sixty samples each: more are memory, and a
scrape each fifteen seconds finds fewer."""
_ENGINES: Final = tuple(signal for signal in BUSY if signal not in WINDOWS)
"""Signals of the full sweep that are summed up over time."""


@dataclass(frozen=True, slots=True)
class Folding:
    """How samples are folded: the trailing window's length, and how long a sample may stand for."""

    window_seconds: float
    longest_step_seconds: float
    longest_full_step_seconds: float = 15.0
    """Likewise for signals of the full sweep."""


class SampleAccount:
    """Folds readings: each signal by itself, and the reasons why clocks were held down.

    The sampler's thread puts them in, and whoever makes a page looks: the lock is held for as long as it
    takes to fold what has come in between, and never while anybody waits for the driver.
    """

    def __init__(self, folding: Folding) -> None:
        self._throttle = ThrottleClock(folding.longest_step_seconds)
        self._throttle_busy = ThrottleClock(folding.longest_step_seconds)
        self._folding = folding
        self._folds: dict[MetricSpec, SignalFold] = {}
        self._unfolded: list[Reading] = []
        self._lock = threading.Lock()

    def refold(self, folding: Folding) -> None:
        """Fold in another way from now on: windows begin anew, everything else goes on."""
        with self._lock:
            self._settle()
            self._folding = folding
            for signal, fold in self._folds.items():
                fold.longest_step_seconds = self._longest_step_of(signal)
                fold.window = self._window_of(signal)
            for clock in (self._throttle, self._throttle_busy):
                clock.longest_step_seconds = folding.longest_step_seconds

    def take(self, reading: Reading) -> None:
        """Take a reading in."""
        if reading.cadence is Cadence.STATIC:
            return
        with self._lock:
            if reading.cadence is Cadence.FULL:
                self._fold_signals(_ENGINES, (reading,))
                return
            # Up to fifty times a second, and looked at every few seconds.
            self._unfolded.append(reading)
            most = MAX_UNFOLDED_BATCHES if reading.samples else MAX_UNFOLDED_READINGS
            if len(self._unfolded) >= most:
                self._settle()

    def settle(self) -> None:
        """Fold what was read since it was last done."""
        with self._lock:
            self._settle()

    def _settle(self) -> None:
        readings, self._unfolded = self._unfolded, []
        if not readings:
            return
        self._fold_signals(WINDOWS, readings)
        self._fold_reasons(
            [reading for reading in readings if Raw.CLOCK_EVENT_REASONS in reading.values]
        )

    def _fold_reasons(self, readings: Sequence[Reading]) -> None:
        masks = [int(reading.values[Raw.CLOCK_EVENT_REASONS]) for reading in readings]
        if masks and max(masks) <= IDLE and UTILIZATION in readings[-1].values:
            # Nothing held the clocks down, as mostly: how far it was watched is all there is to say.
            readings, masks = readings[-1:], masks[-1:]
        for reading, mask in zip(readings, masks, strict=True):
            at = reading.finished_monotonic_seconds
            self._throttle.add(at, mask)
            utilization = reading.values.get(UTILIZATION)
            if utilization is not None:
                # Unknown is neither busy nor not: the next one that is known stands for this time too.
                self._throttle_busy.add(at, mask if utilization >= BUSY_FROM_RATIO else 0)

    def _fold_signals(self, signals: Iterable[MetricSpec], readings: Sequence[Reading]) -> None:
        """Fold readings in the order of time, all of one group."""
        buffered = {signal for reading in readings for signal in reading.samples or ()}
        times = [reading.finished_monotonic_seconds for reading in readings]
        for signal in signals:
            if signal in buffered:
                self._fold_buffered(signal, readings)
                continue
            values = [reading.values.get(signal) for reading in readings]
            if None not in values:
                fold = self._fold_of(signal)
                fold.add(times, values, readings[-1].finished_unix_seconds)  # type: ignore[arg-type]
            else:
                # Few boards do not tell it each time.
                self._fold_one_by_one(signal, readings)

    def _fold_buffered(self, signal: MetricSpec, readings: Sequence[Reading]) -> None:
        """Fold what the driver's buffers had, each stretch of readings that have one in one go."""
        fold, takings = self._fold_of(signal), list[Taking]()
        for reading in readings:
            batch = reading.samples.get(signal) if reading.samples else None
            if batch is None:
                fold.take(takings)
                takings = []
                self._fold_one_by_one(signal, (reading,))
                continue
            at, unix = reading.finished_monotonic_seconds, reading.finished_unix_seconds
            takings.append(Taking(batch, reading.values.get(signal), at, unix))
        fold.take(takings)

    def _fold_one_by_one(self, signal: MetricSpec, readings: Iterable[Reading]) -> None:
        for reading in readings:
            if (value := reading.values.get(signal)) is not None:
                at, unix = reading.finished_monotonic_seconds, reading.finished_unix_seconds
                self._fold_of(signal).add((at,), (value,), unix)

    def _fold_of(self, signal: MetricSpec) -> SignalFold:
        fold = self._folds.get(signal)
        if fold is None:
            bounds = HISTOGRAMS[signal].buckets if signal in HISTOGRAMS else ()
            fold = self._folds[signal] = SignalFold(
                self._longest_step_of(signal),
                self._window_of(signal),
                TimeHistogram(bounds) if bounds else None,
                sums=signal in BUSY,
            )
        return fold

    def _longest_step_of(self, signal: MetricSpec) -> float:
        folding = self._folding
        in_fast = signal in WINDOWS
        return folding.longest_step_seconds if in_fast else folding.longest_full_step_seconds

    def _window_of(self, signal: MetricSpec) -> TrailingWindow | None:
        if signal not in WINDOWS:
            return None
        return TrailingWindow(self._folding.window_seconds, self._folding.longest_step_seconds)

    def statistics(self, shown: Container[Signal]) -> dict[MetricSpec, Statistics]:
        """The trailing window of each fast signal among these."""
        return self.summed(shown).windows

    @property
    def throttle_seconds(self) -> dict[str, float]:
        """For how long the clocks were held down, by reason."""
        return self.summed(()).throttle_seconds

    def sampled(self) -> Sampled:
        """What all samples came to since the start."""
        return self.summed(()).sampled

    def summed(self, shown: Container[Signal]) -> Summed:
        """All of it as of now, with the trailing windows of the fast signals among these; for any thread."""
        with self._lock:
            self._settle()
            found = (
                (signal, fold.window.statistics())
                for signal, fold in self._folds.items()
                if signal in shown and fold.window is not None
            )
            return Summed(
                {signal: statistics for signal, statistics in found if statistics},
                dict(self._throttle.seconds),
                self._sampled(),
            )

    def _sampled(self) -> Sampled:
        return Sampled(
            seconds={
                signal: self._folds[signal].integral for signal in BUSY if signal in self._folds
            },
            spreads={
                signal: fold.histogram.spread()
                for signal, fold in self._folds.items()
                if fold.histogram is not None
            },
            throttle_busy_seconds=dict(self._throttle_busy.seconds),
            gaps={
                signal: fold.gaps for signal, fold in self._folds.items() if fold.gaps is not None
            },
        )
